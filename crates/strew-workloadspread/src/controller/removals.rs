//! The pods that a sync removes: pods that cannot be scheduled, pods that waited for room which now exists, and pods
//! that may move back to an earlier subset.
//!
//! Source: spec/workloadspread §5.7; requests of Kruise's users.

use strew_model::{Instant, Span};

use super::assign::Group;
use super::effect::{PodName, Removal};
use super::plan::{Found, name_of};
use super::rows::Noted;
use crate::facts::pod::Pod;
use crate::facts::spec::{WhenNoRoom, WorkloadSpread};
use crate::facts::status::{Status, UNLIMITED};

/// All removals. `failed` are the pods that cannot be scheduled; `status` is what the sync will write.
pub(super) fn removals(
    ws: &WorkloadSpread,
    found: &Found<'_>,
    status: &Status,
    failed: Vec<&Pod>,
    now: Instant,
    noted: &mut Noted,
) -> Vec<(PodName, Removal)> {
    let removal = match found.is_job {
        false => Some(Removal::Delete),
        // A Job counts deleted pods as failed, and fails.
        true => found.ignores_disruption.then_some(Removal::Evict),
    };
    let failed = failed
        .into_iter()
        .filter_map(|pod| Some((name_of(pod), removal?)));
    let mut all: Vec<(PodName, Removal)> = failed.collect();
    let gated = gated(ws, found, status).into_iter();
    all.extend(gated.map(|pod| (name_of(pod), Removal::Delete)));
    if let Some(every) = ws.spec.move_back
        && all.is_empty()
        && let Some(pod) = moved(ws, found, status, every, now, noted)
    {
        all.push((name_of(pod), Removal::Evict));
    }
    all
}

fn pods<'a>(group: &Group<'a>) -> impl Iterator<Item = &'a Pod> {
    let of_subsets = group.subsets.iter().flatten();
    of_subsets.chain(&group.orphans).copied()
}

/// As many gated pods as there is room for: their replacements get the room. All of them, if pods without room need not
/// wait any more.
fn gated<'a>(ws: &WorkloadSpread, found: &Found<'a>, status: &Status) -> Vec<&'a Pod> {
    let groups = || found.assignment.groups.values();
    let active = groups().flat_map(pods).filter(|pod| pod.is_active());
    // While there are fewer pods than asked for, replacements of removed ones are on their way.
    if (active.count() as i64) < found.total {
        return Vec::new();
    }
    let of_group = |group: &Group<'a>| -> Vec<&'a Pod> {
        let rows = status.rows(&group.ledger).iter();
        let room = rows
            .filter(|row| status.is_open(row))
            .map(|row| match row.missing {
                UNLIMITED => usize::MAX,
                missing => usize::try_from(missing).unwrap_or(0),
            });
        let room = match ws.spec.when_no_room {
            WhenNoRoom::Unconstrained => usize::MAX,
            WhenNoRoom::Pending | WhenNoRoom::Reject => room.fold(0, usize::saturating_add),
        };
        let gated = group.orphans.iter().copied();
        gated
            .filter(|pod| pod.gated && pod.is_active())
            .take(room)
            .collect()
    };
    groups().flat_map(of_group).collect()
}

/// A pod of a later subset while an earlier one has room: its replacement goes there. At most one in `every`, and none
/// while pods of the workload come or go. It is evicted, so its budgets apply.
fn moved<'a>(
    ws: &WorkloadSpread,
    found: &Found<'a>,
    status: &Status,
    every: Span,
    now: Instant,
    noted: &mut Noted,
) -> Option<&'a Pod> {
    let groups = &found.assignment.groups;
    let (group, None) = (groups.values().next()?, groups.values().nth(1)) else {
        return None;
    };
    let mut rows = status.rows(&group.ledger).iter();
    let open = rows.position(|row| status.is_open(row))?;
    let later = group.subsets.iter().zip(&ws.spec.subsets);
    let mut movable = later.skip(open + 1).rev().filter_map(|(pods, subset)| {
        let active = || pods.iter().copied().filter(|pod| pod.is_active());
        let is_above_minimum = active().count() > subset.min_replicas as usize;
        let youngest = active().max_by_key(|pod| pod.created);
        youngest.filter(|_| is_above_minimum)
    });
    let pod = movable.next()?;
    let active = || pods(group).filter(|pod| pod.is_active());
    let is_settled = pods(group).all(|pod| !pod.deleting)
        && active().all(|pod| pod.ready_since.is_some())
        && active().count() as i64 == found.total;
    let newest = active().map(|pod| pod.created).max().unwrap_or(now);
    // The controller is not triggered when a pod becomes ready.
    let due = if is_settled {
        newest + every
    } else {
        now + every
    };
    if now < due {
        noted.wake_at(due);
        return None;
    }
    Some(pod)
}
