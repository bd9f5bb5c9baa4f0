//! Conditions of objects that several crates read.

use k8s_openapi::api::core::v1::NodeStatus;

/// The type of the condition Ready.
pub const READY: &str = "Ready";

/// The status of a node's condition Ready: `True`, `False` or `Unknown`. `None` if a kubelet has not reported yet.
pub fn node_ready(status: &NodeStatus) -> Option<&str> {
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == READY)?;
    Some(&ready.status)
}
