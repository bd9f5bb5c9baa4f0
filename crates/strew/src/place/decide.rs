//! Decides a fleet's Placements one after another, on a hub whose controller rests after each.

use std::collections::{BTreeMap, BTreeSet};

use strew_manifest::ocm::PlacementDecision;
use strew_model::Instant;
use strew_placement::explain::Detail;
use strew_view::placement::{PlacementKey, PlacementView};
use strew_wire::placement::debug::Explained;

use super::fleet::Fleet;
use super::help;

/// The result of a Placement.
pub(super) struct Decided {
    pub(super) view: PlacementView,
    /// The explanation at the time of the decision, if one was asked for.
    pub(super) why: Option<Explained>,
    /// What each filter left, where that is fewer than were asked for.
    pub(super) shortage: Option<String>,
}

/// The PlacementDecisions of Placements.
pub(super) type Held = BTreeMap<PlacementKey, Vec<PlacementDecision>>;

/// The detail of each Placement's explanation; `None`: there are no explanations.
pub(super) type Wanted<'a> = Option<&'a dyn Fn(&PlacementKey) -> Detail>;

/// The number of rounds after which decisions that are in no file must be stable.
const ROUNDS_MAX: usize = 4;

/// Decides all Placements in the order of namespace and name. `held` replaces their PlacementDecisions.
pub(super) fn decide(fleet: &Fleet, held: &Held, now: Instant, wanted: Wanted<'_>) -> Vec<Decided> {
    let mut hub = fleet.hub(held, now);
    let mut all_why = Vec::new();
    for (key, placement) in &fleet.placements {
        all_why.push(wanted.map(|detail| hub.explain(placement, detail(key))));
        hub.add(placement.clone().into());
    }
    let mut views = PlacementView::all(hub.tables());
    let each = fleet.placements.iter().zip(all_why);
    let decided = each.map(|((key, placement), why)| {
        let mut view = views.remove(key).unwrap_or_default();
        // A Placement of a manifest has no uid yet.
        let is_owner = placement.metadata.uid.is_some();
        view.decisions.iter_mut().for_each(|d| plain(d, is_owner));
        Decided {
            view,
            why,
            shortage: None,
        }
    });
    decided.collect()
}

/// The most Placements whose shortage is looked at.
const SHORT_MAX: usize = 50;

/// Adds what the filters left to Placements with fewer clusters than they ask for: they are explained once more, in full.
pub(super) fn explain_shortages(decided: &mut [Decided], fleet: &Fleet, held: &Held, now: Instant) {
    let short = decided
        .iter()
        .filter(|decided| help::is_short(&decided.view));
    let short: BTreeSet<PlacementKey> = short.take(SHORT_MAX).map(|d| d.view.key()).collect();
    if short.is_empty() {
        return;
    }
    let detail = |key: &PlacementKey| match short.contains(key) {
        true => Detail::Everything,
        false => Detail::Outline,
    };
    let again = decide(fleet, held, now, Some(&detail));
    for (decided, again) in decided.iter_mut().zip(again) {
        let why = again.why.filter(|_| short.contains(&again.view.key()));
        decided.shortage = why.map(|why| help::shortage(&why.result));
    }
}

/// Takes away what only this hub's server set.
fn plain(decision: &mut PlacementDecision, is_owned: bool) {
    let metadata = &mut decision.metadata;
    (metadata.uid, metadata.resource_version) = (None, None);
    (metadata.creation_timestamp, metadata.generation) = (None, None);
    metadata.owner_references.take_if(|_| !is_owned);
    decision.status.get_or_insert_default();
}

/// The PlacementDecisions before a change: the stored ones, and for Placements without any the result after their
/// decisions are stable. Then the result of all Placements without a change.
pub(super) fn before(fleet: &Fleet, now: Instant) -> (Held, Vec<Decided>) {
    let stored = fleet.stored();
    let mut held = stored.clone();
    let mut all = decide(fleet, &held, now, None);
    for _ in 1..ROUNDS_MAX {
        let mut moved = false;
        for decided in &all {
            let (key, decisions) = (decided.view.key(), &decided.view.decisions);
            if !stored.contains_key(&key) && held.get(&key) != Some(decisions) {
                held.insert(key, decisions.clone());
                moved = true;
            }
        }
        if !moved {
            break;
        }
        all = decide(fleet, &held, now, None);
    }
    (held, all)
}
