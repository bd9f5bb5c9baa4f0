//! NodeUnschedulable: cordoned nodes. Source: spec/scheduler §3.3.

use strew_cluster::NodeFact;
use strew_model::{Taint, Toleration};

use crate::queue::event::Hint;

/// True if the node is not cordoned, or the pod tolerates that.
pub fn allows(node: &NodeFact, tolerations: &[Toleration]) -> bool {
    !node.unschedulable
        || tolerations
            .iter()
            .any(|t| t.tolerates(&Taint::UNSCHEDULABLE))
}

/// After a node was created or changed: worth a retry if it is not cordoned.
pub(crate) fn hint_after_node(new: Option<&NodeFact>) -> Hint {
    Hint::queue_if(new.is_some_and(|node| !node.unschedulable))
}

/// After the pod's own tolerations changed.
pub(crate) fn hint_after_own_tolerations(tolerations: &[Toleration]) -> Hint {
    Hint::queue_if(
        tolerations
            .iter()
            .any(|t| t.tolerates(&Taint::UNSCHEDULABLE)),
    )
}
