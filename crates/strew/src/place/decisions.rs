//! PlacementDecisions in the form of the hub.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use strew_manifest::ocm::{
    ClusterDecision, GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL, PlacementDecision,
    PlacementDecisionStatus, REPLICAS_ANNOTATION,
};
use strew_placement::facts::decision::DecisionFact;
use strew_placement::facts::placement::PlacementFact;
use strew_wire::placement::facts::replicas::annotation;

use super::decide::{Decided, Outcome};
use super::difference::Difference;

const API_VERSION: &str = "cluster.open-cluster-management.io/v1beta1";

/// The decisions of the Placements that are shown, and how they differ from the previous ones.
pub(super) fn list(
    outcome: &Outcome,
    is_shown: &dyn Fn(&PlacementFact) -> bool,
    changes: &[&Difference],
) -> Value {
    let shown = outcome.decided.iter().filter(|d| is_shown(&d.fact));
    let each = shown.flat_map(|decided| decided.decisions.iter().map(move |d| (decided, d)));
    let items: Vec<PlacementDecision> = each
        .map(|(decided, d)| decision(outcome, decided, d))
        .collect();
    let mut list =
        json!({"apiVersion": API_VERSION, "kind": "PlacementDecisionList", "items": items});
    if !changes.is_empty() {
        list["changes"] = json!(changes);
    }
    list
}

fn decision(outcome: &Outcome, decided: &Decided, fact: &DecisionFact) -> PlacementDecision {
    let text = |symbol| outcome.names.text(symbol).to_owned();
    let placement = text(decided.fact.name);
    let labels = [
        (PLACEMENT_LABEL, placement.clone()),
        (GROUP_INDEX_LABEL, fact.group.index.unwrap_or(0).to_string()),
        (
            GROUP_NAME_LABEL,
            fact.group.name.map(text).unwrap_or_default(),
        ),
    ];
    let labels: BTreeMap<String, String> =
        labels.map(|(key, value)| (key.to_owned(), value)).into();
    let owner = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "Placement".to_owned(),
        name: placement,
        uid: decided.fact.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let mut object = PlacementDecision::default();
    object.metadata.name = Some(text(fact.name));
    object.metadata.namespace = Some(text(fact.namespace));
    object.metadata.labels = Some(labels);
    object.metadata.annotations = annotation(&fact.replicas, &outcome.names)
        .map(|text| [(REPLICAS_ANNOTATION.to_owned(), text)].into());
    // An object of a file has no uid yet.
    object.metadata.owner_references = (!owner.uid.is_empty()).then(|| vec![owner]);
    let clusters = fact.decisions.iter().map(|d| ClusterDecision {
        cluster_name: text(d.cluster),
        reason: String::new(),
        score: d.score,
    });
    object.status = Some(PlacementDecisionStatus {
        decisions: clusters.collect(),
    });
    object
}
