//! Deletion costs: which pods a workload's controller deletes first.
//!
//! Source: spec/workloadspread §5.5; if limits are shares of the total, module `turns`.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use strew_cluster::scale_down::Stage;

use super::assign::{Group, limit};
use crate::facts::pod::Pod;
use crate::facts::spec::Spec;
use crate::quota::Total;
use crate::turns::Turns;

/// A cost with its reason.
#[derive(Debug, Clone, Copy)]
pub struct Cost<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The cost.
    pub cost: i32,
    /// The reason.
    pub ground: CostGround,
}

/// The reason of a pod's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostGround {
    /// It is among the first `max` pods of its subset. `position` is the index of the subset, counted from the end for
    /// revisions other than the latest.
    Within {
        /// The index of the subset, or the index from the end.
        position: usize,
    },
    /// As `Within`, if limits are shares of the total: the pod with the last turn goes first, so that the subsets keep
    /// their shares.
    Turn {
        /// The turn at which the subset got its place for this pod, from 1.
        turn: u32,
    },
    /// It belongs to the minimum of its subset: it goes after all pods that are only within limits.
    Minimum {
        /// The index of the subset, or the index from the end.
        position: usize,
        /// True if the other pods have turns.
        by_turns: bool,
    },
    /// It is beyond the limit of its subset.
    Surplus {
        /// The index of the subset, or the index from the end.
        position: usize,
        /// The number of the subset's active pods that are kept.
        max: i64,
    },
    /// It is in no subset.
    Orphan,
}

/// The position of a subset among `n`: its index for pods of the latest revision, its index from the end for all
/// others.
pub(crate) fn position(place: usize, n: usize, is_latest: bool) -> usize {
    if is_latest { place } else { n - 1 - place }
}

impl CostGround {
    /// True if another pod of the subset would have this cost if readiness or restarts of pods changed.
    pub(super) fn is_by_value(self) -> bool {
        matches!(self, Self::Surplus { .. } | Self::Minimum { .. })
    }

    /// The cost for this reason, among `n` subsets.
    pub fn cost(self, n: usize) -> i32 {
        let hundreds = |x: usize| 100 * i32::try_from(x).unwrap_or(i32::MAX / 200);
        match self {
            Self::Within { position } => hundreds(n - position),
            Self::Turn { turn } => FIRST_TURN.saturating_sub_unsigned(turn),
            Self::Minimum { position, by_turns } => {
                hundreds(n - position) + if by_turns { FIRST_TURN } else { hundreds(n) }
            }
            Self::Surplus { position, .. } => -hundreds(position + 1),
            Self::Orphan => -hundreds(n + 1),
        }
    }
}

/// The cost of the pod with the first turn, plus one: above all costs that follow from the order of subsets.
const FIRST_TURN: i32 = 1_000_000;

/// The costs of a revision's active pods, subset by subset, pods in no subset last.
///
/// Only pods of the latest revision have turns: in a rollout the other ones make room for them, subset by subset.
pub fn costs<'a>(spec: &Spec, group: &Group<'a>, is_latest: bool, total: Total) -> Vec<Cost<'a>> {
    let n = spec.subsets.len();
    let mut turns = Turns::of(spec).filter(|_| is_latest);
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
        match &turns {
            Some(_) => {
                active.sort_by(|a, b| by_value(a, b));
                active.sort_by_cached_key(|pod| turn_of(pod));
            }
            None if surplus > 0 || min > 0 => active.sort_by(|a, b| by_value(a, b)),
            None => {}
        }
        let kept = active.split_off(surplus);
        for pod in active {
            add(pod, CostGround::Surplus { position, max });
        }
        let (within, minimum) = kept.split_at(kept.len() - min);
        match &mut turns {
            None => within
                .iter()
                .for_each(|&pod| add(pod, CostGround::Within { position })),
            Some(turns) => {
                let nth = min + 1..=min + within.len();
                let places = nth.map(|nth| match turns.turn(i, nth) {
                    Some(turn) => CostGround::Turn { turn },
                    None => CostGround::Within { position },
                });
                seat(within, places, n, &mut add);
            }
        }
        for &pod in minimum {
            let by_turns = turns.is_some();
            add(pod, CostGround::Minimum { position, by_turns });
        }
    }
    let active = group.orphans.iter().filter(|p| p.is_active());
    active.for_each(|pod| add(pod, CostGround::Orphan));
    costs
}

/// Gives each pod one of as many places. A pod keeps the place that its present cost stands for; if two pods have the
/// same cost, the more valuable one keeps it. The other pods take free places: the more valuable a pod, the later its
/// place goes.
///
/// So one pod that goes or comes changes the cost of at most one other.
fn seat<'a>(
    pods: &[&'a Pod],
    places: impl Iterator<Item = CostGround>,
    n: usize,
    add: &mut impl FnMut(&'a Pod, CostGround),
) {
    let mut free: BTreeMap<i32, Vec<CostGround>> = BTreeMap::new();
    for place in places {
        free.entry(place.cost(n)).or_default().push(place);
    }
    let mut without = Vec::new();
    for &pod in pods.iter().rev() {
        let stands = pod.cost.as_deref().and_then(|cost| cost.parse().ok());
        let own = stands.and_then(|cost| free.get_mut(&cost)?.pop());
        match own {
            Some(own) => add(pod, own),
            None => without.push(pod),
        }
    }
    let left = free.into_values().rev().flatten();
    for (pod, place) in without.into_iter().zip(left) {
        add(pod, place);
    }
}

/// The order before the value of pods, if pods have turns: pods that a ReplicaSet deletes before it compares costs are
/// worth least, then pods of later turns, or of none. So the remaining pods go in the same order while costs are being
/// written.
fn turn_of(pod: &Pod) -> (Stage, Option<i32>) {
    let cost = pod.cost.as_deref().and_then(|cost| cost.parse().ok());
    (pod.stage(), cost)
}

/// The less valuable pod first: without a node, not started, not ready, ready for a shorter time, restarted more often,
/// younger.
fn by_value(a: &Pod, b: &Pod) -> Ordering {
    let ready = |p: &Pod| p.ready_since.map(Reverse);
    (a.stage().cmp(&b.stage()))
        .then_with(|| ready(a).cmp(&ready(b)))
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| b.created.cmp(&a.created))
}
