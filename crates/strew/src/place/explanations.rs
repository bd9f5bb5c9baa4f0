//! Why Placements got what they got, for programs.

use serde::Serialize;
use strew_api::placement::debug::DebugResult;

use super::decide::Outcome;
use super::fleet::Fleet;

/// A list of explanations: fields may be added, and none changes its meaning.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplanationList {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<DebugResult>,
}

/// The explanations of the Placements that are shown and not left alone.
pub(super) fn list(
    fleet: &Fleet,
    outcome: &Outcome,
    is_shown: &dyn Fn(&str) -> bool,
) -> ExplanationList {
    let shown = outcome.decided.iter().filter(|d| !d.fact.ignored);
    let shown = shown.filter(|d| is_shown(outcome.names.text(d.fact.namespace)));
    ExplanationList {
        api_version: strew_api::explanation::API_VERSION,
        kind: "PlacementExplanationList",
        items: shown.map(|decided| outcome.why(decided, fleet)).collect(),
    }
}
