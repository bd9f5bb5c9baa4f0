//! The explanations of Placements, for programs.

use serde::Serialize;
use strew_placement::facts::placement::PlacementFact;
use strew_wire::placement::debug::DebugResult;

use super::decide::Outcome;
use super::difference::Difference;
use super::fleet::Fleet;

/// A list of explanations: fields may be added, but keep their meaning.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplanationList<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<DebugResult>,
    /// How Placements differ from their previous clusters.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [&'a Difference],
}

/// The explanations of the Placements that are shown and not ignored.
pub(super) fn list<'a>(
    fleet: &Fleet,
    outcome: &Outcome,
    is_shown: &dyn Fn(&PlacementFact) -> bool,
    changes: &'a [&'a Difference],
) -> ExplanationList<'a> {
    let shown = outcome.decided.iter().filter(|d| !d.fact.ignored);
    let shown = shown.filter(|d| is_shown(&d.fact));
    ExplanationList {
        api_version: strew_view::explanation::API_VERSION,
        kind: "PlacementExplanationList",
        items: shown
            .filter_map(|decided| outcome.why(decided, fleet))
            .collect(),
        changes,
    }
}
