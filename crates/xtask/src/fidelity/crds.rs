//! Whether a real API server takes the CustomResourceDefinitions of `deploy/crds/`, and serves what they say.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask::lab::Kubectl;

const NAME: &str = "workloadspreads.apps.kruise.io";

/// Applies the definition of WorkloadSpread: it is structural and served, objects of the stored version are created and
/// shown with its columns, their status is a resource of its own, and the schema refuses what it must.
///
/// The other version needs the webhook that converts, which is no part of a lab: without it the server says so.
pub(crate) fn check(kubectl: &Kubectl, top: &Path) -> anyhow::Result<()> {
    let file = top.join(format!("deploy/crds/{NAME}.yaml"));
    let file = file.to_str().context("the path is no text")?;
    kubectl.run(&["apply", "--server-side", "--filename", file])?;
    let condition = "--for=condition=Established";
    kubectl.run(&["wait", condition, "--timeout=60s", &format!("crd/{NAME}")])?;
    let definition = kubectl.run(&["get", "crd", NAME, "--output=json"])?;
    let definition: Value = serde_json::from_str(&definition)?;
    let conditions = definition["status"]["conditions"].as_array();
    for condition in conditions.into_iter().flatten() {
        let is_bad = condition["type"] == "NonStructuralSchema" && condition["status"] == "True";
        ensure!(!is_bad, "the schema is not structural: {condition}");
    }

    kubectl.run_with(
        &["create", "--filename=-"],
        &spread(json!("80%"), "Adaptive"),
    )?;
    let table = kubectl.run(&["get", "ws"])?;
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut lines = table.lines().map(words);
    let columns = lines.next().unwrap_or_default();
    let expected = ["NAME", "WORKLOADNAME", "WORKLOADKIND", "ADAPTIVE", "AGE"];
    ensure!(columns == expected, "the columns are {columns:?}");
    let row = lines.next().unwrap_or_default();
    // Kruise's path of Adaptive finds nothing in a text: the column is empty on a real server, as with Kruise.
    let expected = ["ws", "web", "Deployment"].map(str::to_owned);
    ensure!(row.starts_with(&expected), "the row is {row:?}");

    let row = json!({"name": "own", "replicas": 1, "missingReplicas": 2, "creatingPods": {"web-1": "2026-01-01T00:00:00Z"}});
    let status = json!({"status": {"observedGeneration": 1, "subsetStatuses": [row], "versionedSubsetStatuses": {"7": [row]}}});
    let patch = format!("--patch={status}");
    let as_status = [
        "patch",
        "ws/ws",
        "--type=merge",
        "--subresource=status",
        &patch,
    ];
    kubectl.run(&as_status)?;
    let stored = kubectl.run(&["get", "ws/ws", "--output=json"])?;
    let stored: Value = serde_json::from_str(&stored)?;
    ensure!(
        stored["status"] == status["status"],
        "the status is {}, not {}",
        stored["status"],
        status["status"]
    );
    ensure!(
        stored["metadata"]["generation"] == 1,
        "a status is no new spec"
    );

    for (limit, strategy) in [(json!(true), "Fixed"), (json!(1), "Sometimes")] {
        let wrong = spread(limit, strategy);
        let refused = kubectl.run_with(&["create", "--dry-run=server", "--filename=-"], &wrong);
        if refused.is_ok() {
            bail!("the schema lets pass {wrong}");
        }
    }
    let other = ["get", "workloadspreads.v1alpha1.apps.kruise.io"];
    let Err(error) = kubectl.run(&other) else {
        bail!("v1alpha1 is served without the webhook that converts");
    };
    let text = format!("{error:#}");
    ensure!(text.contains("conversion webhook"), "{text}");
    Ok(())
}

fn spread(limit: Value, strategy: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "ws", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "scheduleStrategy": {"type": strategy},
            "subsets": [
                {"name": "own", "maxReplicas": limit, "patch": {"metadata": {"labels": {"subset": "own"}}}},
                {"name": "elastic"},
            ],
        },
    })
}
