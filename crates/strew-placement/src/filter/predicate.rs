//! The filter `Predicate`: labels, claims, CEL. Source: spec/placement §2.3.

use strew_model::Symbol;

use crate::facts::cluster::ClusterFact;
use crate::facts::placement::{CelId, ClusterPredicates, PlacementFact};
use crate::hub::{ClusterIdx, Hub};
use crate::plan::Problem;

/// The most cost units of CEL for one placement, over all of its clusters: for 2,000 clusters 100,000 each.
pub const COST_MAX_PER_PLACEMENT: u64 = 200_000_000;

/// The answer of a selector for a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// True if all expressions hold.
    pub holds: bool,
    /// The cost units that the evaluation took.
    pub cost: u32,
    /// True if it was evaluated for this question, and false if the answer was known.
    pub is_new: bool,
}

/// Evaluates CEL expressions on the raw cluster object. Implemented outside this crate, where the objects are.
///
/// An error, a result that is not a boolean and an exhausted budget count as `false`.
pub trait ClusterPredicate {
    /// Whether the expressions of the selector hold for the cluster of this name.
    fn answer(&self, selector: CelId, cluster: Symbol) -> Answer;

    /// As [`answer`](Self::answer); if the cluster has changed since it was evaluated last, the answer before that.
    fn earlier(&self, selector: CelId, cluster: Symbol) -> Answer {
        self.answer(selector, cluster)
    }

    /// True if all expressions of the selector hold for the cluster of this name.
    fn holds(&self, selector: CelId, cluster: Symbol) -> bool {
        self.answer(selector, cluster).holds
    }
}

impl<F: Fn(CelId, Symbol) -> bool> ClusterPredicate for F {
    fn answer(&self, selector: CelId, cluster: Symbol) -> Answer {
        Answer {
            holds: self(selector, cluster),
            cost: 0,
            is_new: false,
        }
    }
}

/// Answers from before the latest changes of clusters, where there are any.
pub(crate) struct Earlier<'a>(pub(crate) &'a dyn ClusterPredicate);

impl ClusterPredicate for Earlier<'_> {
    fn answer(&self, selector: CelId, cluster: Symbol) -> Answer {
        self.0.earlier(selector, cluster)
    }
}

/// For placements without CEL: every expression is false.
#[derive(Debug, Clone, Copy)]
pub struct NoCel;

impl ClusterPredicate for NoCel {
    fn answer(&self, _: CelId, _: Symbol) -> Answer {
        Answer {
            holds: false,
            cost: 0,
            is_new: false,
        }
    }
}

/// The cost units of the answers for the clusters of one placement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// Of all answers.
    pub(crate) total: u64,
    /// Of those that were evaluated now.
    pub(crate) now: u64,
}

/// True if a cluster passes: one matching predicate suffices, and without predicates every cluster passes.
pub(crate) fn passes(
    predicates: &[ClusterPredicates],
    cluster: &ClusterFact,
    cel: &dyn ClusterPredicate,
) -> bool {
    passes_within(predicates, cluster, cel, &mut Spent::default())
}

/// As [`passes`]; adds what the answers cost.
pub(crate) fn passes_within(
    predicates: &[ClusterPredicates],
    cluster: &ClusterFact,
    cel: &dyn ClusterPredicate,
    spent: &mut Spent,
) -> bool {
    let mut holds = |selector| {
        let answer = cel.answer(selector, cluster.name);
        let cost = u64::from(answer.cost);
        spent.total = spent.total.saturating_add(cost);
        spent.now += if answer.is_new { cost } else { 0 };
        answer.holds
    };
    let matches = |p: &ClusterPredicates| {
        p.labels.matches(&cluster.labels)
            && p.claims.matches(&cluster.claims)
            && p.cel.as_ref().is_none_or(|c| holds(c.id))
    };
    predicates.is_empty() || predicates.iter().any(matches)
}

/// The candidates that match the predicates of a placement.
///
/// # Errors
/// The expressions cost more than a placement has.
pub(crate) fn passing(
    hub: &Hub,
    placement: &PlacementFact,
    cel: &dyn ClusterPredicate,
    candidates: &[ClusterIdx],
) -> Result<Vec<ClusterIdx>, Problem> {
    let predicates = placement.spec.predicates.as_deref().unwrap_or_default();
    let mut spent = Spent::default();
    let mut passed = Vec::new();
    for (i, &idx) in candidates.iter().enumerate() {
        let Some(cluster) = hub.cluster(idx) else {
            continue;
        };
        if passes_within(predicates, cluster, cel, &mut spent) {
            passed.push(idx);
        }
        if spent.total > COST_MAX_PER_PLACEMENT {
            let message = format!(
                "the celExpressions cost {} units for the first {} of {} clusters, more than the {COST_MAX_PER_PLACEMENT} \
                 that a Placement has",
                spent.total,
                i + 1,
                candidates.len(),
            );
            return Err(Problem::new("Predicate", message));
        }
    }
    Ok(passed)
}
