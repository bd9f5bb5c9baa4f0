//! The filter `Predicate`: labels, claims, CEL. Source: spec/placement §2.3.

use strew_model::Symbol;

use crate::facts::cluster::ClusterFact;
use crate::facts::placement::{CelId, ClusterPredicates};

/// Evaluates CEL expressions on the raw cluster object. Implemented outside this crate, where the objects are.
///
/// An error, a result that is not a boolean and an exhausted budget count as `false`.
pub trait ClusterPredicate {
    /// True if all expressions of the selector hold for the cluster of this name.
    fn holds(&self, selector: CelId, cluster: Symbol) -> bool;
}

impl<F: Fn(CelId, Symbol) -> bool> ClusterPredicate for F {
    fn holds(&self, selector: CelId, cluster: Symbol) -> bool {
        self(selector, cluster)
    }
}

/// For placements without CEL: every expression is false.
#[derive(Debug, Clone, Copy)]
pub struct NoCel;

impl ClusterPredicate for NoCel {
    fn holds(&self, _: CelId, _: Symbol) -> bool {
        false
    }
}

/// True if a cluster passes: one matching predicate suffices, and without predicates every cluster passes.
pub(crate) fn passes(
    predicates: &[ClusterPredicates],
    cluster: &ClusterFact,
    cel: &dyn ClusterPredicate,
) -> bool {
    let matches = |p: &ClusterPredicates| {
        p.labels.matches(&cluster.labels)
            && p.claims.matches(&cluster.claims)
            && p.cel.as_ref().is_none_or(|c| cel.holds(c.id, cluster.name))
    };
    predicates.is_empty() || predicates.iter().any(matches)
}
