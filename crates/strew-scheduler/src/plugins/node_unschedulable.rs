//! NodeUnschedulable: cordoned nodes. Source: spec/scheduler §3.3.

use strew_cluster::NodeFact;
use strew_model::{Taint, Toleration};

/// Whether the node is not cordoned, or the pod tolerates that.
pub fn allows(node: &NodeFact, tolerations: &[Toleration]) -> bool {
    !node.unschedulable
        || tolerations
            .iter()
            .any(|t| t.tolerates(&Taint::UNSCHEDULABLE))
}
