//! Closes a subset whose pods cannot be scheduled, and opens it again.
//!
//! Source: spec/workloadspread §5.7.

use strew_model::{Instant, Span};

use super::rows::Noted;
use crate::controller::effect::EventKind;
use crate::facts::pod::{Phase, Pod};
use crate::facts::spec::Strategy;
use crate::facts::status::{Row, Schedulable, whole_second};

/// The time after which a timeout that is compared with "before now" has passed.
pub(super) const JUST_AFTER: Span = Span(1);

/// Sets the condition of a subset's row. Returns its pods that cannot be scheduled.
pub fn update<'a>(
    row: &mut Row,
    old: Option<Schedulable>,
    pods: &[&'a Pod],
    strategy: &Strategy,
    is_last: bool,
    now: Instant,
    noted: &mut Noted,
) -> Vec<&'a Pod> {
    let Some((critical, closed_for)) = strategy.reschedules() else {
        row.schedulable = None;
        return Vec::new();
    };
    let as_is = |holds| old.filter(|o| o.holds == holds);
    let turned = |holds| {
        as_is(holds).unwrap_or(Schedulable {
            holds,
            since: whole_second(now),
        })
    };
    if is_last {
        row.schedulable = Some(turned(true));
        return Vec::new();
    }
    let mut failed = Vec::new();
    for pod in pods.iter().filter(|p| waits(p)) {
        let due = pod.created + critical;
        match due < now {
            true => failed.push(*pod),
            false => noted.wake_at(due + JUST_AFTER),
        }
    }
    row.schedulable = Some(match old {
        _ if !failed.is_empty() => turned(false),
        Some(closed) if !closed.holds => {
            let opens = closed.since + closed_for;
            if opens < now {
                noted.event(EventKind::RecoverSchedulable, &row.name);
                turned(true)
            } else {
                noted.wake_at(opens + JUST_AFTER);
                closed
            }
        }
        _ => turned(true),
    });
    failed
}

/// True if a scheduler found no node for a pod.
pub(super) fn waits(pod: &Pod) -> bool {
    !pod.deleting && pod.phase == Phase::Pending && pod.node.is_none() && pod.unschedulable
}
