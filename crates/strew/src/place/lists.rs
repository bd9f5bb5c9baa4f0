//! Results for programs: PlacementDecisions as on the hub, or explanations.

use serde_json::{Value, json};
use strew_view::explanation::API_VERSION;

use super::decide::Decided;
use super::difference::Difference;

/// The PlacementDecisions of these Placements, or their explanations, and how they differ from their previous clusters.
/// Fields may be added, but keep their meaning.
pub(super) fn list(shown: &[&Decided], explains: bool, changes: &[&Difference]) -> Value {
    let mut list = match explains {
        true => {
            let shown = shown.iter().filter(|decided| !decided.view.is_ignored());
            let results = shown.filter_map(|decided| Some(&decided.why.as_ref()?.result));
            let items: Vec<_> = results.collect();
            json!({"apiVersion": API_VERSION, "kind": "PlacementExplanationList", "items": items})
        }
        false => {
            let api_version = "cluster.open-cluster-management.io/v1beta1";
            let items = shown.iter().flat_map(|decided| &decided.view.decisions);
            let items: Vec<_> = items.collect();
            json!({"apiVersion": api_version, "kind": "PlacementDecisionList", "items": items})
        }
    };
    if !changes.is_empty() {
        list["changes"] = json!(changes);
    }
    list
}
