//! Checks that a real API server accepts the CustomResourceDefinitions of `deploy/crds/` and obeys them.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Kubectl, merge};

/// Every definition is structural and served.
pub(crate) fn check(kubectl: &Kubectl, top: &Path) -> anyhow::Result<()> {
    let folder = top.join("deploy/crds");
    let folder = folder.to_str().context("the path is no text")?;
    kubectl.run(&["apply", "--server-side", "--filename", folder])?;
    for definition in kubectl.objects("crds")? {
        let name = definition["metadata"]["name"]
            .as_str()
            .context("it has a name")?;
        let condition = "--for=condition=Established";
        kubectl.run(&["wait", condition, "--timeout=60s", &format!("crd/{name}")])?;
        let conditions = definition["status"]["conditions"].as_array();
        for condition in conditions.into_iter().flatten() {
            let is_bad =
                condition["type"] == "NonStructuralSchema" && condition["status"] == "True";
            ensure!(
                !is_bad,
                "the schema of {name} is not structural: {condition}"
            );
        }
    }
    workload_spread(kubectl)?;
    placement(kubectl)
}

/// Objects of the stored version are created and shown with its columns, their status is a resource of its own, and the
/// schema refuses what it must.
///
/// The other version needs the conversion webhook, which this lab lacks: the server's error says so.
fn workload_spread(kubectl: &Kubectl) -> anyhow::Result<()> {
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

/// The server sets the defaults of a Placement as OCM's definition does, and refuses what it must not contain.
fn placement(kubectl: &Kubectl) -> anyhow::Result<()> {
    let placement = |name: &str, spec: &Value| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
        })
    };
    let create = ["create", "--filename=-"];
    kubectl.run_with(&create, &placement("empty", &json!({})))?;
    let term = |more: Value| {
        let mut term = json!({"topologyKey": "zone", "topologyKeyType": "Label"});
        merge(&mut term, &more);
        json!({"spreadPolicy": {"spreadConstraints": [term]}})
    };
    let weights = json!([{"value": "a", "weight": 2}]);
    let ours = json!({"topologyWeights": weights, "minGroups": 1, "maxGroups": 2});
    let spread = placement("spread", &term(ours));
    kubectl.run_with(&create, &spread)?;
    let stored = |name: &str| -> anyhow::Result<Value> {
        let stored = kubectl.run(&["get", "placement", name, "--output=json"])?;
        Ok(serde_json::from_str::<Value>(&stored)?["spec"].take())
    };
    let empty = stored("empty")?;
    let filled = json!({"sortBy": "ClusterName", "scoreRateLimit": "1m"});
    ensure!(empty == filled, "an empty spec is {empty}");
    let spread = stored("spread")?;
    let filled = json!([{
        "topologyKey": "zone", "topologyKeyType": "Label", "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway", "topologyWeights": weights,
        "minGroups": 1, "maxGroups": 2,
    }]);
    let terms = &spread["spreadPolicy"]["spreadConstraints"];
    ensure!(*terms == filled, "the terms are {terms}");
    let table = kubectl.run(&["get", "placements"])?;
    let columns: Vec<&str> = table
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    ensure!(
        columns == ["NAME", "SUCCEEDED", "REASON", "SELECTEDCLUSTERS"],
        "the columns are {columns:?}"
    );
    for wrong in [
        json!({"sortBy": "Age"}),
        json!({"tolerations": [{"key": "-"}]}),
        term(json!({"maxSkew": 0})),
        term(json!({"topologyKeyType": "Taint"})),
        term(json!({"topologyWeights": [{"value": "a", "weight": 1001}]})),
        term(json!({"minGroups": 0})),
        json!({"prioritizerPolicy": {"configurations": [{"weight": 1}]}}),
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "0%"}}}),
    ] {
        let dry_run = ["create", "--dry-run=server", "--filename=-"];
        let refused = kubectl.run_with(&dry_run, &placement("wrong", &wrong));
        ensure!(refused.is_err(), "the schema lets pass {wrong}");
    }
    // A set may be empty, and a cluster's amounts may be numbers.
    let group = "cluster.open-cluster-management.io";
    let set = json!({"apiVersion": format!("{group}/v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": "s"}});
    kubectl.run_with(&create, &set)?;
    let set = kubectl.run(&["get", "mclset", "s", "--output=json"])?;
    let set: Value = serde_json::from_str(&set)?;
    let selector = &set["spec"]["clusterSelector"]["selectorType"];
    ensure!(*selector == "ExclusiveClusterSetLabel", "{set}");
    let cluster = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ManagedCluster", "metadata": {"name": "c"},
        "spec": {"taints": [{"key": "a", "effect": "NoSelect", "timeAdded": null}]},
    });
    kubectl.run_with(&create, &cluster)?;
    let patch = r#"{"status": {"allocatable": {"cpu": 4, "memory": "1Gi"}}}"#;
    let as_status = [
        "patch",
        "mcl/c",
        "--type=merge",
        "--subresource=status",
        "--patch",
        patch,
    ];
    kubectl.run(&as_status).map(drop)
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
