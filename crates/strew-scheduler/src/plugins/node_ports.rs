//! NodePorts: ports of the host. Source: spec/scheduler §3.7.

use strew_cluster::{HostPort, NodeRow};

/// The ports of the pod that are taken on the node.
pub fn conflicts<'a>(
    node: &'a NodeRow,
    ports: &'a [HostPort],
) -> impl Iterator<Item = &'a HostPort> {
    let taken = |port: &&HostPort| node.host_ports().iter().any(|t| port.conflicts_with(t));
    ports.iter().filter(taken)
}

/// Whether none of the ports is taken.
pub fn allows(node: &NodeRow, ports: &[HostPort]) -> bool {
    conflicts(node, ports).next().is_none()
}
