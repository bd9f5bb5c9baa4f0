//! Placements on a hub: clusters as objects, the controller as processes, and kubectl.
//!
//! Reading order: this file (the helpers that read results), [`definitions`](mod@definitions), [`read`], [`fleet`], [`faults`], [`speed`].

mod definitions;
mod faults;
mod fleet;
mod read;
mod speed;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Value, json};
use xtask_lab::lab::until;

use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

pub(super) use definitions::definitions;
pub(super) use faults::{conflicts, failover, kept, server_killed};
pub(super) use fleet::{fleet, hundred};
pub(super) use read::read;
pub(super) use speed::speed;

const GROUP: &str = "cluster.open-cluster-management.io";

/// A set of all clusters, bound to the case's namespace.
fn bind_all(stage: &Stage) -> anyhow::Result<()> {
    let set = json!({
        "apiVersion": format!("{GROUP}/v1beta2"),
        "kind": "ManagedClusterSet",
        "metadata": {"name": "all"},
        "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
    });
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1beta2"),
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "all"},
        "spec": {"clusterSet": "all"},
    });
    stage.apply_all(vec![set, binding])
}

/// A cluster with these labels and taints.
fn cluster(name: &str, labels: Value, taints: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": true, "taints": taints},
    })
}

/// A Placement with this spec.
fn placement(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1beta1"),
        "kind": "Placement",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// The clusters of a PlacementDecision.
fn clusters_of(decision: &Value) -> impl Iterator<Item = &str> {
    let decisions = decision["status"]["decisions"].as_array();
    decisions
        .into_iter()
        .flatten()
        .filter_map(|d| d["clusterName"].as_str())
}

/// The clusters that a Placement got, over all of its PlacementDecisions.
fn selected(stage: &Stage, placement: &str) -> anyhow::Result<BTreeSet<String>> {
    let of_it = format!("--selector={GROUP}/placement={placement}");
    let text = stage.run(&["get", "placementdecisions", &of_it, "--output=json"])?;
    let list: Value = serde_json::from_str(&text)?;
    let decisions = list["items"].as_array().into_iter().flatten();
    Ok(decisions.flat_map(clusters_of).map(str::to_owned).collect())
}

/// Waits until the clusters of a Placement satisfy `is_so`; returns them.
fn until_selected(
    stage: &Stage,
    placement: &str,
    is_so: impl Fn(&BTreeSet<String>) -> bool,
) -> anyhow::Result<BTreeSet<String>> {
    let mut last = BTreeSet::new();
    let got = until(&format!("clusters of {placement}"), SOON, PAUSE, || {
        last = selected(stage, placement)?;
        Ok(is_so(&last).then(|| last.clone()))
    });
    got.with_context(|| format!("{} clusters: {last:?}", last.len()))
}

/// How many of these clusters have each value of a label.
fn counts(clusters: &BTreeSet<String>, fleet: &[Value], label: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for cluster in fleet.iter().filter(|c| clusters.contains(name_of(c))) {
        let value = cluster["metadata"]["labels"][label].as_str();
        *counts
            .entry(value.unwrap_or_default().to_owned())
            .or_default() += 1;
    }
    counts
}

/// Waits until a condition of a Placement has this status and reason, and the status gives the number of clusters.
fn until_told(
    stage: &Stage,
    placement: &str,
    (condition, status, reason): (&str, &str, &str),
    n_selected: usize,
) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let told = until(&format!("{placement} is told"), SOON, PAUSE, || {
        last = stage.get(&format!("placement/{placement}"))?["status"].take();
        let conditions = last["conditions"].as_array().into_iter().flatten();
        let mut conditions = conditions.filter(|c| c["type"] == condition);
        let is_so = conditions.any(|c| c["status"] == status && c["reason"] == reason)
            && last["numberOfSelectedClusters"] == n_selected;
        Ok(is_so.then_some(()))
    });
    told.with_context(|| last.to_string())
}
