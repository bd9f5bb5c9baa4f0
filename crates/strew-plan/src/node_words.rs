//! Taints and labels that say what a node is: no advice is to forge them.

/// Taints by which the node controller tells of a node that does not work.
pub(crate) const TROUBLE: &str = "node.kubernetes.io/";

/// Labels that say what a node is: its role, name, place and hardware. A node that lacks one is not that.
pub(crate) const SAYS_WHAT_A_NODE_IS: [&str; 6] = [
    "node-role.kubernetes.io/",
    "kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
];
