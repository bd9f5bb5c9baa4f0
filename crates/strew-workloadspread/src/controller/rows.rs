//! The rows of the status, from the pods: repairs the ledger.
//!
//! Source: spec/workloadspread §5.6.

use std::sync::Arc;

use strew_model::{Instant, Span};

use super::effect::EventKind;
use super::reschedule::{self, JUST_AFTER};
use crate::facts::pod::Pod;
use crate::facts::spec::Spec;
use crate::facts::status::{Entries, Row};
use crate::quota::{self, Total};

/// How long an admitted pod may stay unseen.
pub const CREATING_FOR: Span = Span::from_secs(30);

/// How long a pod may stay active after its deletion was seen.
pub const DELETING_FOR: Span = Span::from_secs(15);

/// Results besides the rows.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// Events, in order.
    pub events: Vec<(EventKind, Arc<str>)>,
    /// The time of the next timeout.
    pub wake: Option<Instant>,
}

impl Noted {
    pub(super) fn event(&mut self, kind: EventKind, subject: &Arc<str>) {
        self.events.push((kind, Arc::clone(subject)));
    }

    pub(super) fn wake_at(&mut self, moment: Instant) {
        self.wake = Some(self.wake.map_or(moment, |w| w.min(moment)));
    }
}

/// New rows in the order of the spec, old ones matched by name, and the pods that cannot be scheduled. Empty if a limit
/// is invalid.
pub fn rows<'a>(
    spec: &Spec,
    old: &[Row],
    pods: &[Vec<&'a Pod>],
    total: Total,
    now: Instant,
    noted: &mut Noted,
) -> (Vec<Row>, Vec<&'a Pod>) {
    let limits = spec
        .subsets
        .iter()
        .map(|s| quota::scaled(s.max_replicas, total));
    let Some(limits) = limits.collect::<Option<Vec<i32>>>() else {
        return (Vec::new(), Vec::new());
    };
    let mut rows = Vec::with_capacity(limits.len());
    let mut failed = Vec::new();
    let last = spec.subsets.len().saturating_sub(1);
    for (i, (subset, max)) in spec.subsets.iter().zip(limits).enumerate() {
        let old = old.iter().find(|r| r.name == subset.name);
        let there = pods.get(i).map_or(&[][..], |p| p);
        let mut row = count(&subset.name, old, there, max, now, noted);
        let condition = old.and_then(|r| r.schedulable);
        let strategy = &spec.strategy;
        let waiting =
            reschedule::update(&mut row, condition, there, strategy, i == last, now, noted);
        failed.extend(waiting);
        rows.push(row);
    }
    (rows, failed)
}

fn count(
    name: &Arc<str>,
    old: Option<&Row>,
    pods: &[&Pod],
    max: i32,
    now: Instant,
    noted: &mut Noted,
) -> Row {
    let mut creating: Entries = old.map(|r| r.creating.clone()).unwrap_or_default();
    let mut deleting = Entries::new();
    let mut active: i64 = 0;
    for pod in pods {
        if !creating.is_empty() {
            let uid = pod.marker.marker().and_then(|m| m.uid.as_ref());
            creating.remove(uid.unwrap_or(&pod.name));
        }
        if !pod.is_active() {
            continue;
        }
        active += 1;
        let since = old.and_then(|r| r.deleting.get(&pod.name));
        if let Some(&since) = since {
            match since + DELETING_FOR < now {
                true => noted.event(EventKind::DeletePodFailed, &pod.name),
                false => {
                    noted.wake_at(since + DELETING_FOR + JUST_AFTER);
                    deleting.insert(pod.name.clone(), since);
                }
            }
        }
    }
    creating.retain(|id, since| {
        let expired = *since + CREATING_FOR < now;
        match expired {
            true => noted.event(EventKind::CreatePodFailed, id),
            false => noted.wake_at(*since + CREATING_FOR + JUST_AFTER),
        }
        !expired
    });
    let (coming, going) = (creating.len() as i64, deleting.len() as i64);
    let mut row = Row::new(Arc::clone(name), quota::missing(max, active, going, coming));
    row.replicas = i32::try_from(active).unwrap_or(i32::MAX);
    (row.creating, row.deleting) = (creating, deleting);
    row
}
