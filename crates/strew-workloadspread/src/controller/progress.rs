//! Subsets for which a rollout does not end, judged by the pods; and subsets that a rollout leaves with fewer pods,
//! judged by the settings.
//!
//! Source: spec/workloadspread §5.10.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Instant, Span};

use super::assign::Group;
use super::effect::EventKind;
use super::plan::Found;
use super::reschedule::waits;
use super::rows::Noted;
use crate::facts::pod::Pod;
use crate::facts::spec::WorkloadSpread;
use crate::facts::status::{RolloutMisfit, whole_second};
use crate::rollout::Misfit;

/// The earliest time to check pods again: the controller is not triggered when a pod becomes ready.
const LOOK_AGAIN: Span = Span::from_secs(10);

/// The conditions of subsets, by name. A new condition is an event.
pub(super) fn misfits(
    ws: &WorkloadSpread,
    found: &Found<'_>,
    now: Instant,
    noted: &mut Noted,
) -> BTreeMap<Arc<str>, RolloutMisfit> {
    let mut by_place: BTreeMap<usize, Misfit> = found.misfits.iter().copied().collect();
    by_place.extend(stuck(ws, found, now, noted).map(|place| (place, Misfit::Stuck)));
    let mut misfits = BTreeMap::new();
    for (place, what) in by_place {
        let name = &ws.spec.subsets[place].name;
        let before = ws.status.misfits.get(name);
        let is_known = before.is_some_and(|before| {
            std::mem::discriminant(&before.what) == std::mem::discriminant(&what)
        });
        if !is_known {
            let kind = match what {
                Misfit::Stuck | Misfit::NoRoom => EventKind::RolloutStuck,
                Misfit::Short(_) => EventKind::RolloutShort,
            };
            noted.event(kind, name);
        }
        let since = before.map_or(whole_second(now), |before| before.since);
        misfits.insert(Arc::clone(name), RolloutMisfit { what, since });
    }
    misfits
}

/// The subset in which pods of the latest revision wait for nodes that older pods hold, while nothing else can
/// progress: no old pod may go before a new one is ready, and each pod is ready, or waits for a node.
fn stuck(ws: &WorkloadSpread, found: &Found<'_>, now: Instant, noted: &mut Noted) -> Option<usize> {
    let rolling = found.rolling?;
    if rolling.unavailable > 0 || ws.spec.strategy.reschedules().is_some() {
        return None;
    }
    let groups = &found.assignment.groups;
    let (latest, older): (Vec<_>, Vec<_>) = groups
        .iter()
        .partition(|(revision, _)| found.latest.is(revision));
    let of = |groups: &[(&Arc<str>, &Group<'_>)], place: usize, is_meant: fn(&Pod) -> bool| {
        let pods = groups.iter().flat_map(|(_, group)| &group.subsets[place]);
        pods.filter(|pod| is_meant(pod)).count()
    };
    let mut places = 0..ws.spec.subsets.len();
    let place = places
        .find(|&place| of(&latest, place, waits) > 0 && of(&older, place, Pod::is_active) > 0)?;
    let all = || {
        let pods = groups.values().flat_map(|group| {
            let of_subsets = group.subsets.iter().flatten();
            of_subsets.chain(&group.orphans)
        });
        pods.copied()
    };
    let is_ready = |pod: &Pod| pod.is_active() && pod.ready_since.is_some();
    let n_ready = all().filter(|pod| is_ready(pod)).count();
    let is_moving =
        all().any(|pod| pod.deleting || (pod.is_active() && !is_ready(pod) && !waits(pod)));
    if is_moving || n_ready as i64 > found.total {
        // Each wait is as long as the time that it has waited so far.
        let waiting = all().filter(|pod| waits(pod)).map(|pod| pod.created);
        let waited = waiting.max().map_or(LOOK_AGAIN, |since| now.since(since));
        noted.wake_at(now + waited.max(LOOK_AGAIN));
        return None;
    }
    Some(place)
}
