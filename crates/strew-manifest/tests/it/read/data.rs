//! Real inputs of other projects, if this machine has them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use strew_manifest::read::{KubeObject, NO_CONTROLLER, Reading, Sources, read, render};

/// The folder with the shared data: `STREW_DATA`, or beside the workspace; `None` is said aloud.
fn data_dir() -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dir = std::env::var_os("STREW_DATA").map_or_else(beside, PathBuf::from);
    let is_there = dir.is_dir();
    if !is_there {
        println!("shared data not found: {}", dir.display());
    }
    is_there.then_some(dir)
}

/// Reads files that must be without a word to say.
#[track_caller]
fn read_clean(paths: &[&str]) -> Option<Reading> {
    let dir = data_dir()?;
    let mut sources = Sources::new();
    for path in paths {
        sources.add(
            *path,
            std::fs::read(dir.join(path)).expect("a readable file"),
        );
    }
    let reading = read(&sources);
    let text = render(&reading.diagnostics, &sources, false);
    let mut diagnostics = reading.diagnostics.iter();
    assert!(diagnostics.all(|d| d.code == NO_CONTROLLER), "{text}");
    Some(reading)
}

/// How many objects of each kind.
fn counts(reading: &Reading) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for located in &reading.objects {
        *counts.entry(located.object.kind()).or_default() += 1;
    }
    counts
}

#[test]
fn manifests() {
    let cases: [(&str, &[(&str, usize)]); 4] = [
        (
            "manifests/online-boutique.yaml",
            &[("Deployment", 12), ("Service", 12)],
        ),
        (
            "manifests/bank-of-anthos.yaml",
            &[("Deployment", 7), ("StatefulSet", 2), ("Service", 8)],
        ),
        (
            "manifests/kube-prometheus.yaml",
            &[
                ("Deployment", 5),
                ("DaemonSet", 1),
                ("PodDisruptionBudget", 3),
                ("Prometheus", 1),
                ("Alertmanager", 1),
            ],
        ),
        (
            "manifests/kops-addons.yaml",
            &[("EC2NodeClass", 2), ("CSIDriver", 1)],
        ),
    ];
    for (path, expected) in cases {
        let Some(reading) = read_clean(&[path]) else {
            return;
        };
        let counts = counts(&reading);
        for (kind, count) in expected {
            assert_eq!(counts.get(kind), Some(count), "{path}: {kind}");
        }
        assert!(reading.objects.iter().all(|located| !located.from_dump));
    }
}

/// An old example: its disruption budget is of a version that Kubernetes 1.25 dropped.
#[test]
fn cockroachdb() {
    let Some(dir) = data_dir() else {
        return;
    };
    let path = "manifests/cockroachdb-statefulset.yaml";
    let mut sources = Sources::new();
    sources.add(
        "in",
        std::fs::read(dir.join(path)).expect("a readable file"),
    );
    let reading = read(&sources);
    assert_eq!(counts(&reading).get("StatefulSet"), Some(&1));
    assert_eq!(
        super::diagnostics_text(&reading, &sources),
        "in:57:13: error[unknown-version]: Kubernetes 1.36 has no PodDisruptionBudget in \"policy/v1beta1\"\n  \
           in PodDisruptionBudget default/cockroachdb-budget: apiVersion\n  \
           help: use apiVersion: policy/v1\n"
    );
}

#[test]
fn openb_dump() {
    let paths = ["nodes", "pods", "workloads"].map(|name| format!("openb/dump/{name}.json"));
    let Some(reading) = read_clean(&[&paths[0], &paths[1], &paths[2]]) else {
        return;
    };
    let counts = counts(&reading);
    assert_eq!((counts["Node"], counts["Pod"]), (1523, 8152));
    assert!(reading.objects.iter().all(|located| located.from_dump));
}

#[test]
fn support_bundles() {
    let cases = [
        ("deployments-default", "Deployment"),
        ("deployments-monitoring", "Deployment"),
        ("replicasets-default", "ReplicaSet"),
        ("statefulsets-monitoring", "StatefulSet"),
        ("nodes", "Node"),
        ("pods-message-pending-node-affinity", "Pod"),
        ("pods-message-pending-pod-resources", "Pod"),
    ];
    for (name, kind) in cases {
        let Some(reading) = read_clean(&[&format!("support-bundle/{name}.json")]) else {
            return;
        };
        assert!(!reading.objects.is_empty());
        assert!(
            reading
                .objects
                .iter()
                .all(|located| located.object.kind() == kind)
        );
    }
}

/// The trace itself is no Kubernetes object; those it applies are read as a list.
#[test]
fn simkube_trace() {
    let Some(dir) = data_dir() else {
        return;
    };
    let text = std::fs::read_to_string(dir.join("simkube/dsb_social_network_trace.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut applied = BTreeMap::new();
    for event in trace["events"].as_array().unwrap() {
        for object in event["applied_objs"].as_array().unwrap() {
            applied.insert(object["metadata"]["name"].to_string(), object.clone());
        }
    }
    let items: Vec<_> = applied.into_values().collect();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
    let sources = super::sources_of(list.to_string());
    let reading = read(&sources);
    let text = render(&reading.diagnostics, &sources, false);
    assert!(!reading.has_errors(), "{text}");
    assert_eq!(reading.objects.len(), 27);
    let is_deployment = |object: &KubeObject| matches!(object, KubeObject::Deployment(_));
    assert!(
        reading
            .objects
            .iter()
            .all(|located| is_deployment(&located.object))
    );
}
