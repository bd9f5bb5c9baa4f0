//! NodePorts: ports of the host. Source: spec/scheduler §3.7.

use strew_cluster::{HostPort, NodeRow};

/// Whether none of the ports is taken.
pub fn allows(node: &NodeRow, ports: &[HostPort]) -> bool {
    !ports.iter().any(|port| {
        node.host_ports()
            .iter()
            .any(|taken| port.conflicts_with(taken))
    })
}
