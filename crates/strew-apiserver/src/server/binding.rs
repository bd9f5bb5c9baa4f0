//! Binding a pod to a node. Source: spec/scheduler §3.15, spec/controllers §10.

use std::sync::Arc;

use strew_model::time::Instant;

use super::Server;
use super::write::pod_key;
use crate::ApiError;
use crate::admission::bind_labels;
use crate::object::pod::POD_SCHEDULED;
use crate::object::{Name, Node, Object, Pairs, Pod, Truth};

impl Server {
    /// Binds a pod to a node.
    pub(super) fn bind(
        &mut self,
        now: Instant,
        name: &Name,
        uid: &str,
        node: &str,
    ) -> Result<(), ApiError> {
        let Some(pod) = self.tables.get::<Pod>(name) else {
            return Err(ApiError::NotFound(pod_key(name)));
        };
        if !uid.is_empty() && *pod.meta.uid != *uid {
            let found = &pod.meta.uid;
            return Err(ApiError::Conflict(
                format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
                )
                .into(),
            ));
        }
        let text = &name.name;
        if pod.meta.is_terminating() {
            return Err(ApiError::Conflict(
                format!("pod {text} is being deleted, cannot be assigned to a host").into(),
            ));
        }
        if let Some(at) = &pod.node {
            return Err(ApiError::Conflict(
                format!("pod {text} is already assigned to node {at:?}").into(),
            ));
        }
        if pod
            .spec
            .scheduling_gates
            .as_ref()
            .is_some_and(|gates| !gates.is_empty())
        {
            return Err(ApiError::Conflict(
                format!("pod {text} has non-empty .spec.schedulingGates").into(),
            ));
        }
        let mut pod = (**pod).clone();
        let node_object = self.tables.get::<Node>(&Name::new("", node));
        if let Some(node) = node_object {
            copy_labels(&mut pod, node);
        }
        pod.node = Some(node_object.map_or_else(|| node.into(), |n| Arc::clone(&n.meta.name.name)));
        pod.status.nominated = None;
        pod.status
            .set_condition(POD_SCHEDULED, Truth::True, "", "", now);
        self.put(Object::from(pod));
        Ok(())
    }
}

/// Copies the node's zone and region to the pod. Pods of one template on nodes of one zone share the result only if
/// they shared their labels: labels are compared, and not copied if nothing changes.
pub(super) fn copy_labels(pod: &mut Pod, node: &Node) {
    let copied: Pairs = bind_labels(&node.meta.labels);
    let is_new = |(key, value): (&String, &String)| pod.meta.labels.get(key) != Some(value);
    if copied.iter().any(is_new) {
        Arc::make_mut(&mut pod.meta.labels).extend(copied);
    }
}
