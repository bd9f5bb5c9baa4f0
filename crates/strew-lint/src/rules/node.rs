//! Nodes.

use std::collections::HashMap;

use strew_manifest::field::FieldPath;

use crate::Found;
use crate::files::Files;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Nodes with the hostname label of another node: constraints and anti-affinity take them for one node.
pub(crate) fn shared_hostname(files: &Files<'_>) -> Vec<Found> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut found = Vec::new();
    for node in &files.nodes {
        let Some(hostname) = node.written.get(HOSTNAME) else {
            continue;
        };
        let Some(&first) = known.get(hostname.as_str()) else {
            known.insert(hostname, node.object);
            continue;
        };
        let message = format!(
            "node {} has the label {HOSTNAME}={hostname} of {}: constraints and anti-affinity by hostname take both for one node",
            node.text,
            files.objects[first].label()
        );
        let path = FieldPath::root().child("metadata.labels").key(HOSTNAME);
        let mut warning = Found::warning(node.object, path, message)
            .help("give each node its own hostname, or start the kubelet with --hostname-override");
        warning.related.push((first, "the other node"));
        found.push(warning);
    }
    found
}
