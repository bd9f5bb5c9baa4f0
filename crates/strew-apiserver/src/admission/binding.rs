//! The changes that the API server makes to a pod when it is bound to a node.

use std::collections::BTreeMap;

/// The labels that binding copies from the node to the pod.
const COPIED: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// The labels to set on a pod that is bound to a node with `node_labels`; they override its own.
///
/// Source: admission plug-in PodTopologyLabels (`plugin/pkg/admission/podtopologylabels`, v1.36;
/// gate PodTopologyLabelsAdmission, on).
pub fn bind_labels(node_labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    COPIED
        .iter()
        .filter_map(|&key| Some((key.to_string(), node_labels.get(key)?.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_and_region_go_to_the_pod() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect()
        };
        let node = labels(&[
            ("topology.kubernetes.io/zone", "a"),
            ("kubernetes.io/hostname", "n"),
        ]);
        assert_eq!(
            bind_labels(&node),
            labels(&[("topology.kubernetes.io/zone", "a")])
        );
        assert!(bind_labels(&BTreeMap::new()).is_empty());
    }
}
