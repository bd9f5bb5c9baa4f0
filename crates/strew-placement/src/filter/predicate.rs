//! The filter `Predicate`: labels, claims, CEL. Source: spec/placement §2.3.

use strew_model::Symbol;

use crate::facts::cluster::ClusterFact;
use crate::facts::placement::{CelId, ClusterPredicates};

/// Answers CEL expressions over the raw cluster; implemented outside, where objects are.
///
/// Errors, results that are no booleans and spent budgets are `false`.
pub trait ClusterPredicate {
    /// Whether all expressions of the selector hold for the cluster of this name.
    fn holds(&self, selector: CelId, cluster: Symbol) -> bool;
}

impl<F: Fn(CelId, Symbol) -> bool> ClusterPredicate for F {
    fn holds(&self, selector: CelId, cluster: Symbol) -> bool {
        self(selector, cluster)
    }
}

/// For placements without CEL: no expression holds.
#[derive(Debug, Clone, Copy)]
pub struct NoCel;

impl ClusterPredicate for NoCel {
    fn holds(&self, _: CelId, _: Symbol) -> bool {
        false
    }
}

/// Whether a cluster passes: any of the predicates suffices, and none at all lets everything pass.
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
