//! Deletion costs: whom a workload's controller is to delete first.
//!
//! Source: spec/workloadspread §5.5.

use std::cmp::{Ordering, Reverse};

use super::assign::{Group, limit};
use crate::facts::pod::{Phase, Pod};
use crate::facts::spec::Spec;
use crate::quota::Total;

/// A cost, and why.
#[derive(Debug, Clone, Copy)]
pub struct Cost<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The cost.
    pub cost: i32,
    /// Why.
    pub ground: CostGround,
}

/// Why a pod has its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostGround {
    /// Among the first `max` of its subset; `position` is the subset's place, reversed for revisions but the latest.
    Within {
        /// The subset's place, or that from the end.
        position: usize,
    },
    /// Among the minimum of its subset: it goes after all that are only within limits.
    Minimum {
        /// The subset's place, or that from the end.
        position: usize,
    },
    /// Beyond the limit of its subset.
    Surplus {
        /// The subset's place, or that from the end.
        position: usize,
        /// How many of the subset's active pods are kept.
        max: i64,
    },
    /// In no subset.
    Orphan,
}

/// Where a subset stands among `n`: for the pods of the latest revision as in the spec, for those of all others from the
/// end.
pub(crate) fn position(place: usize, n: usize, is_latest: bool) -> usize {
    if is_latest { place } else { n - 1 - place }
}

impl CostGround {
    /// The cost that follows, among `n` subsets.
    pub fn cost(self, n: usize) -> i32 {
        let hundreds = |x: usize| 100 * i32::try_from(x).unwrap_or(i32::MAX / 200);
        match self {
            Self::Within { position } => hundreds(n - position),
            Self::Minimum { position } => hundreds(n - position) + hundreds(n),
            Self::Surplus { position, .. } => -hundreds(position + 1),
            Self::Orphan => -hundreds(n + 1),
        }
    }
}

/// The costs of a revision's active pods, subset by subset, orphans last.
pub fn costs<'a>(spec: &Spec, group: &Group<'a>, is_latest: bool, total: Total) -> Vec<Cost<'a>> {
    let n = spec.subsets.len();
    let mut costs = Vec::new();
    let mut add = |pod, ground: CostGround| {
        let cost = ground.cost(n);
        costs.push(Cost { pod, cost, ground });
    };
    for (i, (subset, pods)) in spec.subsets.iter().zip(&group.subsets).enumerate() {
        let position = position(i, n, is_latest);
        let mut active: Vec<&Pod> = pods.iter().copied().filter(|p| p.is_active()).collect();
        let max = limit(subset, total);
        let surplus = usize::try_from(active.len() as i64 - max).unwrap_or(0);
        let min = (subset.min_replicas as usize).min(active.len() - surplus);
        if surplus > 0 || min > 0 {
            active.sort_by(|a, b| by_value(a, b));
        }
        let kept_for_min = active.len() - min;
        for (at, pod) in active.into_iter().enumerate() {
            add(
                pod,
                match at {
                    at if at < surplus => CostGround::Surplus { position, max },
                    at if at >= kept_for_min => CostGround::Minimum { position },
                    _ => CostGround::Within { position },
                },
            );
        }
    }
    let active = group.orphans.iter().filter(|p| p.is_active());
    active.for_each(|pod| add(pod, CostGround::Orphan));
    costs
}

/// The less valuable pod first: on no node, not started, not ready, ready for a shorter time, restarted more often,
/// younger.
fn by_value(a: &Pod, b: &Pod) -> Ordering {
    let phase = |p: &Pod| match p.phase {
        Phase::Pending => 0,
        Phase::Unknown => 1,
        _ => 2,
    };
    let ready = |p: &Pod| p.ready_since.map(Reverse);
    (a.node.is_some().cmp(&b.node.is_some()))
        .then_with(|| phase(a).cmp(&phase(b)))
        .then_with(|| ready(a).cmp(&ready(b)))
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| b.created.cmp(&a.created))
}
