//! The labels by which workloads and namespaces ask strew for something.
//!
//! Source: docs/keep.md, docs/rebalance.md

use strew_cluster::scale_down::DELETION_COST;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{KubeObject, nearest};
use strew_scenario::rebalance::rounds;
use strew_wire::keep;

use crate::Found;
use crate::files::Files;

/// The domains of these labels, each with its only label.
const LABELS: [&str; 2] = [keep::LABEL, rounds::LABEL];

fn labels(object: &KubeObject) -> impl Iterator<Item = (&str, &str)> {
    let labels = object
        .metadata()
        .and_then(|metadata| metadata.labels.as_ref());
    labels
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

fn path_of(key: &str) -> FieldPath {
    FieldPath::root().child("metadata.labels").key(key)
}

/// Labels that are nearly one of these, and values that ask for nothing.
pub(crate) fn unknown(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, object) in files.objects.iter().enumerate() {
        for (key, value) in labels(object) {
            let path = path_of(key);
            if LABELS.contains(&key) {
                if !["true", "false"].contains(&value) {
                    let message =
                        format!("{key}={value} asks for nothing: its values are true and false");
                    let warning = Found::warning(number, path, message);
                    let meant = value.to_ascii_lowercase();
                    found.push(match ["true", "false"].contains(&meant.as_str()) {
                        true => warning.help(format!("did you mean {meant}?")),
                        false => warning,
                    });
                }
                continue;
            }
            let domain = |label: &str| label.split_once('/').map(|(domain, _)| domain.to_owned());
            let same_domain = LABELS.iter().find(|label| domain(label) == domain(key));
            let meant = same_domain.copied().or_else(|| nearest(key, LABELS));
            if let Some(meant) = meant {
                let message = format!("strew has no label {key}, so that nothing is asked for");
                let warning = Found::warning(number, path, message);
                found.push(warning.help(format!("did you mean {meant}?")));
            }
        }
    }
    found
}

/// Workloads with the label whose deletion costs no controller reads, or strew does not write.
pub(crate) fn kept_in_vain(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, workload) in files.workloads.iter().enumerate() {
        let object = files.objects[workload.object];
        let asks = labels(object).any(|label| label == (keep::LABEL, "true"));
        if !asks {
            continue;
        }
        let template = object
            .pod_template()
            .and_then(|(template, _)| template.metadata.as_ref());
        let annotations = template.and_then(|metadata| metadata.annotations.as_ref());
        let has_cost = annotations.is_some_and(|all| all.contains_key(DELETION_COST));
        let why = match workload.kind {
            "Deployment" | "ReplicaSet" if has_cost => {
                "its pods have a deletion cost of the template, which strew does not change"
            }
            "Deployment" | "ReplicaSet" if files.spread.contains_key(&index) => {
                "its WorkloadSpread gives its pods deletion costs, which strew does not change"
            }
            "Deployment" | "ReplicaSet" => continue,
            _ => "only the controller of ReplicaSets looks at deletion costs",
        };
        let message = format!("the label has no effect on this {}: {why}", workload.kind);
        found.push(Found::warning(
            workload.object,
            path_of(keep::LABEL),
            message,
        ));
    }
    found
}
