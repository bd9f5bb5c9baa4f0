//! Taints and labels that say what a node is: no advice is to forge them, and none to tolerate a node's trouble.

/// Taints by which controllers tell of a node that does not work, or is about to go.
const TROUBLE: [&str; 5] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
];

/// Prefixes of labels that say what a node is: its role, name, place and hardware. A node that lacks one is not that.
const SAYS_WHAT_A_NODE_IS: [&str; 8] = [
    "node-role.kubernetes.io/",
    "kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "karpenter.sh/",
    "feature.node.kubernetes.io/",
];

/// Words in the last part of a label's key that say the same of it, whoever's label it is: `example.com/node-pool`.
const WORDS: [&str; 14] = [
    "zone",
    "region",
    "rack",
    "role",
    "name",
    "hostname",
    "pool",
    "nodepool",
    "nodegroup",
    "group",
    "arch",
    "os",
    "gpu",
    "instance",
];

/// True if a taint tells of a node's trouble. A pod that tolerates it waits on a node that does not work.
pub(crate) fn is_trouble(key: &str) -> bool {
    TROUBLE.iter().any(|prefix| key.starts_with(prefix))
}

/// True if a label says what a node is.
pub(crate) fn says_what_a_node_is(key: &str) -> bool {
    let last = key.rsplit('/').next().unwrap_or(key).to_lowercase();
    let mut words = last.split(['-', '_', '.']);
    SAYS_WHAT_A_NODE_IS
        .iter()
        .any(|prefix| key.starts_with(prefix))
        || words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_node_are_known_by_any_prefix() {
        for key in [
            "topology.kubernetes.io/zone",
            "node-role.kubernetes.io/control-plane",
            "pool",
            "cloud.google.com/gke-nodepool",
            "eks.amazonaws.com/nodegroup",
            "example.com/Rack",
        ] {
            assert!(says_what_a_node_is(key), "{key}");
        }
        for key in ["team", "example.com/cache", "disk"] {
            assert!(!says_what_a_node_is(key), "{key}");
        }
    }

    #[test]
    fn trouble_is_no_dedication() {
        assert!(is_trouble("node.kubernetes.io/unreachable"));
        assert!(is_trouble("node.cloudprovider.kubernetes.io/uninitialized"));
        assert!(!is_trouble("node-role.kubernetes.io/control-plane"));
        assert!(!is_trouble("dedicated"));
    }
}
