//! Reads a node's conditions, and writes those of a silent node.

use k8s_openapi::api::core::v1::{NodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use strew_apiserver::object::{Truth, moment};
use strew_manifest::conditions::{READY, node_ready};
use strew_model::time::Instant;

/// Conditions that become Unknown when a kubelet is silent; NetworkUnavailable is not the kubelet's.
const OF_KUBELET: [&str; 4] = [READY, "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The condition of a type.
pub(super) fn find<'a>(status: &'a NodeStatus, kind: &str) -> Option<&'a NodeCondition> {
    let mut all = status.conditions.iter().flatten();
    all.find(|condition| condition.type_ == kind)
}

/// The status of the condition Ready; `None` if there is none.
pub(crate) fn ready(status: &NodeStatus) -> Option<Truth> {
    node_ready(status).map(Truth::of)
}

/// When the kubelet last wrote the condition Ready.
pub(super) fn heartbeat(status: &NodeStatus) -> Option<&Time> {
    find(status, READY)?.last_heartbeat_time.as_ref()
}

/// True if the kubelet's conditions are Unknown.
pub(super) fn is_unknown(status: &NodeStatus) -> bool {
    let is_unknown = |kind| find(status, kind).is_some_and(|known| known.status == "Unknown");
    OF_KUBELET.into_iter().all(is_unknown)
}

/// Sets the kubelet's conditions to Unknown. Returns false if nothing changed. Source: spec/controllers §7.1.
pub(super) fn mark_unknown(status: &mut NodeStatus, created: Instant, now: Instant) -> bool {
    let all = status.conditions.get_or_insert_default();
    let mut is_changed = false;
    for kind in OF_KUBELET {
        let known = all.iter_mut().find(|condition| condition.type_ == kind);
        match known {
            None => all.push(NodeCondition {
                type_: kind.to_owned(),
                status: "Unknown".to_owned(),
                reason: Some("NodeStatusNeverUpdated".to_owned()),
                message: Some("Kubelet never posted node status.".to_owned()),
                last_heartbeat_time: Some(moment::to_wire(created)),
                last_transition_time: Some(moment::to_wire(now)),
            }),
            Some(condition) if condition.status != "Unknown" => {
                "Unknown".clone_into(&mut condition.status);
                condition.reason = Some("NodeStatusUnknown".to_owned());
                condition.message = Some("Kubelet stopped posting node status.".to_owned());
                condition.last_transition_time = Some(moment::to_wire(now));
            }
            Some(_) => continue,
        }
        is_changed = true;
    }
    is_changed
}
