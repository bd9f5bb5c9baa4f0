//! Converts a Pod to the controller's fact.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_model::{Instant, Interner};
use strew_workloadspread::{COST_ANNOTATION, GATE, MARKER_ANNOTATION, Marked, Phase, Pod};

use super::{controller_of, namespace};
use crate::facts::{labels, required_node_affinity, tolerations};
use crate::workloadspread::marker;
use crate::workloadspread::status::instant;

/// A pod as a fact, also if it has finished.
pub fn pod(wire: &core::Pod, names: &mut Interner) -> Pod {
    let metadata = &wire.metadata;
    let (spec, status) = (wire.spec.as_ref(), wire.status.as_ref());
    let conditions = status.and_then(|s| s.conditions.as_deref());
    let condition = |type_: &str| {
        conditions
            .unwrap_or_default()
            .iter()
            .find(|c| c.type_ == type_)
    };
    let unschedulable = condition("PodScheduled")
        .is_some_and(|c| c.status == "False" && c.reason.as_deref() == Some("Unschedulable"));
    let ready = condition("Ready").filter(|c| c.status == "True");
    let ready_since = ready.map(|c| c.last_transition_time.as_ref().map_or(Instant(0), instant));
    let containers = status.and_then(|s| s.container_statuses.as_deref());
    let restarts = containers
        .unwrap_or_default()
        .iter()
        .map(|c| c.restart_count);
    let node = spec
        .and_then(|s| s.node_name.as_deref())
        .filter(|n| !n.is_empty());
    let gates = spec.and_then(|s| s.scheduling_gates.as_ref());
    let owners = metadata.owner_references.iter().flatten();
    Pod {
        uid: uid(metadata),
        name: metadata.name.as_deref().unwrap_or_default().into(),
        namespace: namespace(metadata, names),
        labels: labels(metadata.labels.as_ref(), names),
        owners: owners.map(|owner| owner.uid.as_str().into()).collect(),
        controller: controller_of(metadata, names),
        phase: phase(wire),
        deleting: metadata.deletion_timestamp.is_some(),
        node: node.map(|node| names.intern(node)),
        created: metadata
            .creation_timestamp
            .as_ref()
            .map_or(Instant(0), instant),
        unschedulable,
        gated: gates.is_some_and(|all| all.iter().any(|gate| gate.name == GATE)),
        ready_since,
        restarts: restarts.max().unwrap_or(0),
        marker: marked(metadata),
        cost: annotation(metadata, COST_ANNOTATION).map(Into::into),
        node_affinity: spec
            .map(|s| required_node_affinity(s, names))
            .unwrap_or_default(),
        tolerations: spec.map(|s| tolerations(s, names)).unwrap_or_default(),
    }
}

/// The phase; a pod without one is pending.
pub fn phase(wire: &core::Pod) -> Phase {
    match wire.status.as_ref().and_then(|s| s.phase.as_deref()) {
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some("Unknown") => Phase::Unknown,
        _ => Phase::Pending,
    }
}

/// A pod's identity: its uid, or namespace and name in files without uids.
pub fn uid(metadata: &ObjectMeta) -> Arc<str> {
    match metadata.uid.as_deref() {
        None | Some("") => {
            let namespace = metadata.namespace.as_deref().filter(|n| !n.is_empty());
            let name = metadata.name.as_deref().unwrap_or_default();
            format!("{}/{name}", namespace.unwrap_or("default")).into()
        }
        Some(uid) => uid.into(),
    }
}

/// The marker of a pod.
pub fn marked(metadata: &ObjectMeta) -> Marked {
    marker::read(annotation(metadata, MARKER_ANNOTATION))
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let all = metadata.annotations.as_ref()?;
    all.get(key).map(String::as_str)
}
