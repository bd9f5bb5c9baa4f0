//! WorkloadSpreads: webhook and controller as processes, workloads by Kubernetes' own controllers, and kubectl.
//!
//! Reading order: this file (the helpers that read results), [`by_hand`] (pods without a controller),
//! [`webhook`], [`given`], [`registered`] (when the API server asks), [`unreached`] (when it cannot),
//! [`bounded`] (what strew's accounts may write),
//! [`callers`] (which clients may ask), [`asked`] (what Kruise's users asked for), [`faults`], [`wrong`], [`prompt`] (how soon status and costs are right),
//! [`speed`].

mod asked;
mod bounded;
mod by_hand;
mod callers;
mod faults;
mod given;
mod prompt;
mod registered;
mod speed;
mod unreached;
mod webhook;
mod wrong;

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, until};

use crate::e2e::stage::{PAUSE, SOON, Stage};

pub(super) use asked::{evict, two_owners};
pub(super) use bounded::bounded;
pub(super) use callers::callers;
pub(super) use faults::{down, killed, rotated, server_killed};
pub(super) use given::given;
pub(super) use prompt::prompt;
pub(super) use registered::registered;
pub(super) use speed::speed;
pub(super) use unreached::{deleted, half_dead, half_dead_beside, killed_at_once, wrong_port};
pub(super) use webhook::{burst, versions};
pub(super) use wrong::wrong;

const MARKER: &str = "apps.kruise.io/matched-workloadspread";

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The number of pods by their subsets' names; pods in no subset are under "".
type Counts = BTreeMap<String, usize>;

/// Starts a scheduler that places all pods of a case, as a cluster's own scheduler does.
fn scheduler(stage: &mut Stage) -> anyhow::Result<Component> {
    stage.scheduler(&["--scheduler-name=default-scheduler"])
}

fn counts(expected: &[(&str, usize)]) -> Counts {
    let each = expected.iter().filter(|(_, n)| *n > 0);
    each.map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

/// Whether a pod is neither finished nor being deleted.
fn is_active(pod: &Value) -> bool {
    let is_finished = pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed";
    !is_finished && pod["metadata"]["deletionTimestamp"].is_null()
}

/// The subset that a pod's marker names; empty without one.
fn subset_of(pod: &Value) -> String {
    let marker = pod["metadata"]["annotations"][MARKER].as_str();
    let marker = marker.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let subset = marker.and_then(|marker| Some(marker["subset"].as_str()?.to_owned()));
    subset.unwrap_or_default()
}

/// Active pods by subset.
fn subsets<'a>(pods: impl IntoIterator<Item = &'a Value>) -> Counts {
    let mut counts = Counts::new();
    for pod in pods.into_iter().filter(|pod| is_active(pod)) {
        *counts.entry(subset_of(pod)).or_default() += 1;
    }
    counts
}

/// Waits until the case's pods are in these subsets, and none is being deleted.
fn until_subsets(stage: &Stage, expected: &[(&str, usize)]) -> anyhow::Result<Vec<Value>> {
    let expected = counts(expected);
    let mut last = Counts::new();
    let pods = until("pods in subsets", SOON, PAUSE, || {
        let pods = stage.pods()?;
        last = subsets(&pods);
        let is_so = last == expected && pods.iter().all(is_active);
        Ok(is_so.then_some(pods))
    });
    pods.with_context(|| format!("{last:?}, not {expected:?}"))
}

/// Waits until the controller has seen the current generation of a WorkloadSpread; returns the object.
fn until_observed(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    until("the controller has seen it", SOON, PAUSE, || {
        let spread = stage.get(&format!("workloadspread/{name}"))?;
        let status = &spread["status"];
        let is_so = status["observedGeneration"] == spread["metadata"]["generation"]
            && !status["subsetStatuses"].is_null();
        Ok(is_so.then_some(spread))
    })
}

/// Waits until a ledger is at rest with these rows: subset, replicas, missing replicas.
fn until_ledger(stage: &Stage, name: &str, expected: &[(&str, i64, i64)]) -> anyhow::Result<()> {
    let expected: Vec<Value> = expected.iter().map(|row| json!(row)).collect();
    let mut last = Value::Null;
    let told = until("the ledger", SOON, PAUSE, || {
        let spread = stage.get(&format!("workloadspread/{name}"))?;
        last = spread["status"].clone();
        let is_so = is_at_rest(&last) && rows_of(&last["subsetStatuses"]) == expected;
        Ok(is_so.then_some(()))
    });
    told.with_context(|| format!("{last}, not {expected:?}"))
}

/// The subset, replicas and missing replicas of each row of a ledger.
fn rows_of(rows: &Value) -> Vec<Value> {
    let rows = rows.as_array().into_iter().flatten();
    rows.map(|row| json!([row["name"], row["replicas"], row["missingReplicas"]]))
        .collect()
}

/// Whether the ledger has no pod that is being created or deleted.
fn is_at_rest(status: &Value) -> bool {
    let versioned = status["versionedSubsetStatuses"].as_object();
    let mut rows = versioned
        .into_iter()
        .flatten()
        .flat_map(|(_, rows)| rows.as_array())
        .flatten();
    let is_empty = |map: &Value| map.as_object().is_none_or(serde_json::Map::is_empty);
    rows.all(|row| is_empty(&row["creatingPods"]) && is_empty(&row["deletingPods"]))
}

/// Scales a workload as people and autoscalers do.
fn scale(stage: &Stage, workload: &str, replicas: usize) -> anyhow::Result<()> {
    let replicas = format!("--replicas={replicas}");
    stage.run(&["scale", workload, &replicas]).map(drop)
}

/// Sets how many pods the subset at an index takes.
fn limit(stage: &Stage, name: &str, index: usize, max_replicas: Value) -> anyhow::Result<()> {
    let path = format!("/spec/subsets/{index}/maxReplicas");
    let patch = json!([{"op": "replace", "path": path, "value": max_replicas}]).to_string();
    let spread = format!("workloadspread/{name}");
    let args = ["patch", &spread, "--type=json", "--patch", &patch];
    stage.run(&args).map(drop)
}

/// The number of pods by subset and deletion cost.
type Costs = BTreeMap<(String, i64), usize>;

fn costs(expected: &[(&str, i64, usize)]) -> Costs {
    let each = expected.iter();
    each.map(|(subset, cost, n)| (((*subset).to_owned(), *cost), *n))
        .collect()
}

/// The deletion costs of active pods; 0 without one.
fn costs_of(pods: &[Value]) -> Costs {
    let mut costs = Costs::new();
    for pod in pods.iter().filter(|pod| is_active(pod)) {
        let cost = pod["metadata"]["annotations"][COST].as_str();
        let cost = cost.and_then(|cost| cost.parse().ok()).unwrap_or(0);
        *costs.entry((subset_of(pod), cost)).or_default() += 1;
    }
    costs
}

/// Expects a ledger at rest that agrees with the pods: no subset has too many pods, and it misses as many as it has
/// room for.
fn expect_truth(stage: &Stage, name: &str) -> anyhow::Result<Counts> {
    let mut last = String::new();
    let found = until("the ledger is the truth", SOON, PAUSE, || {
        let pods = stage.pods()?;
        let spread = stage.get(&format!("workloadspread/{name}"))?;
        let found = subsets(&pods);
        let status = &spread["status"];
        let wrong = untrue(&spread, &found);
        last = format!(
            "{}: {found:?}, and the ledger says {status}",
            wrong.join(", ")
        );
        let is_so = wrong.is_empty() && is_at_rest(status) && pods.iter().all(is_active);
        Ok(is_so.then_some(found))
    });
    let found = found.with_context(|| last)?;
    for (subset, limit) in limits(&stage.get(&format!("workloadspread/{name}"))?) {
        let n = found.get(&subset).copied().unwrap_or_default();
        ensure!(limit.is_none_or(|limit| n <= limit), "{n} pods in {subset}");
    }
    Ok(found)
}

/// How many writes of a WorkloadSpread's status the API server has carried out, by its own count: a watch would be a
/// load that the other measurements do not have.
fn writes(stage: &Stage) -> anyhow::Result<usize> {
    let counted = stage.run(&["get", "--raw", "/metrics"])?;
    let of_status = |line: &&str| {
        let labels = [
            "resource=\"workloadspreads\"",
            "subresource=\"status\"",
            "code=\"200\"",
        ];
        line.starts_with("apiserver_request_total{")
            && labels.iter().all(|label| line.contains(label))
            && !line.contains("verb=\"GET\"")
    };
    let mut sum = 0;
    for line in counted.lines().filter(of_status) {
        let (_, n) = line.rsplit_once(' ').context("a metric without a value")?;
        sum += n.parse::<usize>().context(line.to_owned())?;
    }
    Ok(sum)
}

/// The subsets whose overall row differs from `found`.
fn untrue(spread: &Value, found: &Counts) -> Vec<String> {
    let limits = limits(spread);
    let rows = spread["status"]["subsetStatuses"].as_array();
    let rows = rows.into_iter().flatten().zip(limits);
    let wrong = rows.filter(|(row, (subset, limit))| {
        let n = found.get(subset).copied().unwrap_or_default();
        let missing = limit.map_or(json!(-1), |limit| json!(limit.saturating_sub(n)));
        name_in(row) != subset || row["replicas"] != n || row["missingReplicas"] != missing
    });
    wrong.map(|(_, (subset, _))| subset).collect()
}

fn name_in(row: &Value) -> &str {
    row["name"].as_str().unwrap_or_default()
}

/// Subsets, and how many pods each takes; `None` if that is no number.
fn limits(spread: &Value) -> Vec<(String, Option<usize>)> {
    let subsets = spread["spec"]["subsets"].as_array().into_iter().flatten();
    subsets
        .map(|subset| {
            let limit = subset["maxReplicas"].as_u64();
            let limit = limit.and_then(|limit| usize::try_from(limit).ok());
            (name_in(subset).to_owned(), limit)
        })
        .collect()
}
