//! A moment of a cluster as the rows of a page: what decides and what a person looks at, and nothing else of an object.

use serde_json::{Value, json};
use strew_kube::page::Rows;
use strew_view::moment::{Frame, Moment};
use strew_view::values::{self, NodeValues, PodValues, WorkloadDetail};
use strew_view::wrong;

/// The kind of the page's report.
pub(super) const KIND: &str = "Cluster";

/// Rows with the keys `sums`, `finding N`, `workload KIND NAMESPACE/NAME`, `pod NAMESPACE/NAME` and `node NAME`.
pub(super) fn rows(moment: Moment<'_>, frame: &mut Frame) -> Rows {
    let values = values::of(moment, frame);
    let wrong = wrong::of(&values);
    let mut rows = Rows::default();
    rows.set("sums", &json!(wrong.sums));
    for (n, finding) in wrong.findings.iter().enumerate() {
        rows.set(format!("finding {n:05}"), &json!(finding));
    }
    for workload in &values.workloads {
        let id = workload.id();
        for pod in &workload.members {
            let name = format!("pod {}/{}", workload.counts.namespace, pod.name);
            rows.set(name, &of_pod(&id, pod));
        }
        rows.set(format!("workload {id}"), &of_workload(workload));
    }
    for node in &values.nodes {
        rows.set(format!("node {}", node.usage.name), &of_node(node));
    }
    rows
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
