//! A moment of a cluster as the rows of a page: what decides and what a person looks at, and nothing else of an object.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strew_kube::page::Rows;
use strew_suite::ledgers;
use strew_view::moment::{Frame, Moment};
use strew_view::values::{self, ClusterValues, NodeValues, PodValues, WorkloadDetail};
use strew_view::wrong;
use strew_view::{fleet, heat};

use crate::html::sums;

/// The kind of the page's report.
pub(super) const KIND: &str = "Cluster";

/// Rows with the keys `sums`, `finding N`, `workload KIND NAMESPACE/NAME`, `pod NAMESPACE/NAME`, `node NAME`,
/// `ledger WorkloadSpread NAMESPACE/NAME`, `placement NAMESPACE/NAME` and `cluster NAME`. A large cluster has `heat`
/// instead of nodes and pods.
pub(super) fn rows(moment: Moment<'_>, frame: &mut Frame) -> Rows {
    let tables = moment.tables;
    let values = values::of(moment, frame);
    let wrong = wrong::of(&values);
    let mut rows = Rows::default();
    rows.set("sums", &json!(wrong.sums));
    for (n, finding) in wrong.findings.iter().enumerate() {
        rows.set(format!("finding {n:05}"), &json!(finding));
    }
    match heat::of(&values) {
        Some(heat) => {
            let workloads = values.workloads.iter().zip(&heat.workloads);
            for (workload, boxes) in workloads {
                rows.set(key_of(workload), &of_many(workload, boxes));
            }
            rows.set("heat", &json!(heat));
        }
        None => each(&values, &mut rows),
    }
    for ledger in ledgers::of_tables(tables) {
        let of = ledger["of"].as_str().unwrap_or_default();
        rows.set(format!("ledger {of}"), &ledger);
    }
    for (key, row) in fleet::rows(tables) {
        rows.set(key, &row);
    }
    rows
}

/// Each workload, pod and node.
fn each(values: &ClusterValues, rows: &mut Rows) {
    for workload in &values.workloads {
        let id = workload.id();
        for pod in &workload.members {
            let name = format!("pod {}/{}", workload.counts.namespace, pod.name);
            rows.set(name, &of_pod(&id, pod));
        }
        rows.set(key_of(workload), &of_workload(workload));
    }
    for node in &values.nodes {
        rows.set(format!("node {}", node.usage.name), &of_node(node));
    }
}

fn key_of(workload: &WorkloadDetail) -> String {
    format!("workload {}", workload.id())
}

/// A workload of a large cluster: its pods by box, and many domains by their counts.
fn of_many(workload: &WorkloadDetail, boxes: &BTreeMap<usize, usize>) -> Value {
    let mut row = of_workload(workload);
    let spreads = row["spread"].as_array_mut().into_iter().flatten();
    spreads.for_each(sums::fold);
    row["boxes"] = json!(boxes);
    row
}

fn of_workload(workload: &WorkloadDetail) -> Value {
    let counts = &workload.counts;
    json!({
        "of": counts.of,
        "namespace": counts.namespace,
        "replicas": counts.replicas,
        "ready": counts.ready,
        "terminating": counts.terminating,
        "leftAlone": counts.left_alone,
        "pending": counts.pending,
        "spread": counts.spread,
    })
}

fn of_pod(workload: &str, pod: &PodValues) -> Value {
    json!({
        "of": workload,
        "node": pod.node,
        "ready": pod.ready,
        "terminating": pod.terminating,
        "revision": pod.revision,
        "created": pod.created,
    })
}

fn of_node(node: &NodeValues) -> Value {
    let usage = json!(node.usage);
    json!({
        "labels": node.labels,
        "ready": node.ready,
        "cordoned": node.usage.unschedulable,
        "tainted": !node.taints.is_empty(),
        "allocatable": usage["allocatable"]["cpu"],
        "requested": usage["requested"]["cpu"],
    })
}
