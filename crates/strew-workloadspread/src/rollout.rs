//! Subsets for which a rollout of the target does not end, or that it leaves with fewer pods.
//!
//! New pods come before old ones go, as many as the workload may surge. If limits hold over all revisions, new pods
//! pass over a subset that old pods fill; if each revision has the whole limit, new pods wait for nodes that old pods
//! hold.
//!
//! Source: spec/workloadspread §5.10.

use crate::facts::kinds::{Kind, Kinds};
use crate::facts::spec::{LimitScope, Spec, WhenNoRoom};
use crate::facts::status::UNLIMITED;
use crate::facts::workload::{Rolling, WorkloadFact};
use crate::quota::{self, Total};

/// What a rollout does with a subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// New pods wait for nodes that old pods hold, and no old pod goes before a new one is ready.
    Stuck,
    /// All subsets are full of old pods, new ones are held back, and no old pod goes before a new one is ready.
    NoRoom,
    /// New pods pass over the subset while old ones fill it: afterwards it may have up to this number fewer than
    /// before.
    Short(i32),
}

/// A subset that pods of the workload fill, by its index.
struct Full {
    place: usize,
    pods: i64,
}

/// The first subsets, up to one that is not full, and the number of pods of the later ones.
fn full(spec: &Spec, total: Total) -> (Vec<Full>, i64) {
    let mut left = total.max(0);
    let mut full = Vec::new();
    for (place, subset) in spec.subsets.iter().enumerate() {
        let max = match quota::scaled(subset.max_replicas, total) {
            Some(max) if max != UNLIMITED => i64::from(max),
            _ => break,
        };
        if max > left {
            break;
        }
        left -= max;
        if max > 0 {
            full.push(Full { place, pods: max });
        }
    }
    (full, left)
}

/// True if new pods are counted together with old ones.
fn is_counted_together(spec: &Spec, kind: Kind) -> bool {
    match spec.limit_scope {
        LimitScope::Workload => true,
        LimitScope::Revision => false,
        LimitScope::Kind => kind == Kind::CloneSet,
    }
}

/// How the target rolls out; `None` unless it does, and limits count all of its pods and no others.
fn rolling(spec: &Spec, target: Option<&WorkloadFact>, total: Total) -> Option<Rolling> {
    let rolling = target.filter(|target| !target.deleting)?.rolling?;
    let is_alone = spec.filter.is_none() && spec.also.is_none();
    (is_alone && total > 0).then_some(rolling)
}

/// As [`rolling`], if new pods are made while all old ones are there.
fn surging(spec: &Spec, target: Option<&WorkloadFact>, total: Total) -> Option<Rolling> {
    rolling(spec, target, total).filter(|rolling| rolling.surge > 0)
}

/// By index: what the limits and the target's settings mean for every rollout.
pub fn misfits(
    spec: &Spec,
    target: Option<&WorkloadFact>,
    total: Total,
    kinds: &Kinds,
) -> Vec<(usize, Misfit)> {
    let Some((target, rolling)) = target.zip(surging(spec, target, total)) else {
        return Vec::new();
    };
    let kind = kinds.of(target.key.target.kind);
    if !is_counted_together(spec, kind) {
        return Vec::new();
    }
    let (mut full, later) = full(spec, total);
    let has_later = spec
        .subsets
        .iter()
        .skip(full.last().map_or(0, |last| last.place + 1))
        .any(|s| quota::scaled(s.max_replicas, total) != Some(0));
    let Some(last) = full.last() else {
        return Vec::new();
    };
    if !has_later {
        let is_held_back = spec.when_no_room != WhenNoRoom::Unconstrained;
        let is_stuck = is_held_back && rolling.unavailable == 0;
        return match is_stuck {
            true => vec![(last.place, Misfit::NoRoom)],
            false => Vec::new(),
        };
    }
    if spec.move_back.is_some() {
        return Vec::new();
    }
    // Old pods of a Deployment leave the first subset first, and the same number of new ones follow. Those of a
    // CloneSet leave it last.
    let mut short = match kind {
        Kind::CloneSet => rolling.surge,
        _ => {
            full.reverse();
            (rolling.surge - later).max(0)
        }
    };
    let mut misfits = Vec::new();
    for Full { place, pods } in full {
        let less = short.min(pods);
        short -= less;
        if less > 0 {
            let less = i32::try_from(less).unwrap_or(i32::MAX);
            misfits.push((place, Misfit::Short(less)));
        }
    }
    misfits.sort_by_key(|(place, _)| *place);
    misfits
}

/// Pods for which the nodes of a subset have no room go to another one.
fn is_moved_on(spec: &Spec) -> bool {
    spec.strategy.simulates() || spec.strategy.reschedules().is_some()
}

/// The most pods of the first subset, which new pods pass by if its nodes hold no more than these. `None` if waiting pods
/// are not moved on, or come back, or no other subset takes them.
pub fn may_pass(spec: &Spec, target: Option<&WorkloadFact>, total: Total) -> Option<i64> {
    let rolling = rolling(spec, target, total)?;
    if !is_moved_on(spec) || spec.move_back.is_some() {
        return None;
    }
    // An old pod holds its node until it is gone, and the new one is there before that; it can only wait for it if it
    // is not moved on at once.
    if rolling.surge == 0 && !spec.strategy.simulates() {
        return None;
    }
    let [first, _, ..] = &*spec.subsets else {
        return None;
    };
    match quota::scaled(first.max_replicas, total)? {
        UNLIMITED => Some(total),
        max => Some(i64::from(max).min(total)),
    }
}

/// The subset in which new pods wait without end if its nodes hold no more pods than it has, with the number of these
/// pods. `None` if an old pod goes first, a new one goes to another subset, or waiting pods are rescheduled.
pub fn may_stick(
    spec: &Spec,
    target: Option<&WorkloadFact>,
    total: Total,
    kinds: &Kinds,
) -> Option<(usize, i64)> {
    let rolling = surging(spec, target, total)?;
    let kind = kinds.of(target?.key.target.kind);
    if is_moved_on(spec) || rolling.unavailable > 0 || is_counted_together(spec, kind) {
        return None;
    }
    let (full, _) = full(spec, total);
    let first = full.first().filter(|first| rolling.surge <= first.pods)?;
    Some((first.place, first.pods))
}
