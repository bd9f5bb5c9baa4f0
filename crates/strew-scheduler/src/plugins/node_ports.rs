//! NodePorts: host ports. Source: spec/scheduler §3.7.

use strew_cluster::{HostPort, NodeRow};

use crate::queue::event::Hint;

/// The ports of the pod that are in use on the node.
pub fn conflicts<'a>(
    node: &'a NodeRow,
    ports: &'a [HostPort],
) -> impl Iterator<Item = &'a HostPort> {
    let taken = |port: &&HostPort| node.host_ports().iter().any(|t| port.conflicts_with(t));
    ports.iter().filter(taken)
}

/// True if none of the ports is in use.
pub fn allows(node: &NodeRow, ports: &[HostPort]) -> bool {
    conflicts(node, ports).next().is_none()
}

/// After a pod on a node was deleted: worth a retry if it held a port that the pod needs.
pub(crate) fn hint_after_pod_gone(ports: &[HostPort], freed: &[HostPort]) -> Hint {
    let wanted = |port: &HostPort| freed.iter().any(|f| port.conflicts_with(f));
    Hint::queue_if(ports.iter().any(wanted))
}
