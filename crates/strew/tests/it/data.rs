//! Real manifests and dumps, if the folder with them exists: STREW_DATA, or `shared/data` beside the workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::{first_step, json, only_run, root, stderr, stdout, strew};

/// The folder; if it is missing, says plainly that nothing was checked.
pub(crate) fn data() -> Option<PathBuf> {
    let folder = match std::env::var_os("STREW_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => root().join("../shared/data"),
    };
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "SKIPPED: there are no real files at {}; set STREW_DATA",
        folder.display()
    );
    None
}

/// Simulates manifests on 12 nodes in 3 zones.
#[track_caller]
fn manifest(name: &str, exit: i32) -> Option<(Value, String)> {
    let file = data()?.join("manifests").join(name);
    let run = strew("simulate --nodes 12 --zones 3 --until deploy -o json")
        .arg(file)
        .assert()
        .code(exit);
    Some((json(&run), stderr(&run)))
}

#[test]
fn online_boutique() {
    let Some((report, _)) = manifest("online-boutique.yaml", 0) else {
        return;
    };
    assert_eq!(first_step(&report)["pods"]["workloads"], 12);
    assert_eq!(first_step(&report)["pods"]["placed"], 12);
}

#[test]
fn bank_of_anthos() {
    let Some((report, words)) = manifest("bank-of-anthos.yaml", 0) else {
        return;
    };
    assert_eq!(first_step(&report)["pods"]["workloads"], 9);
    assert!(words.contains("5 ConfigMap"), "{words}");
}

#[test]
fn kube_prometheus() {
    let Some((report, words)) = manifest("kube-prometheus.yaml", 0) else {
        return;
    };
    assert!(
        words.contains("strew has no controller for Prometheus (monitoring.coreos.com)"),
        "{words}"
    );
    assert!(!words.contains("1 Prometheus"), "named once: {words}");
    let exporters = workload(&report, "monitoring", "daemonset/node-exporter");
    assert_eq!(exporters["placed"], 12, "one a node");
}

/// Pods that need a control plane node or a label of Karpenter stay Pending; CoreDNS has no `replicas`.
#[test]
fn kops_addons() {
    let Some((report, words)) = manifest("kops-addons.yaml", 1) else {
        return;
    };
    assert!(words.contains("EC2NodeClass"), "{words}");
    assert_eq!(
        workload(&report, "kube-system", "deployment/coredns")["replicas"],
        1
    );
    let metrics = workload(&report, "kube-system", "deployment/metrics-server");
    assert_eq!(
        metrics["spread"][1]["constraint"]["whenUnsatisfiable"],
        "DoNotSchedule"
    );
    assert_eq!(metrics["placed"], 2);
}

/// Two replicas that must not share a zone are apart at every moment of a rollout: the worker that deletes the old pod
/// acts on the same view as the one that creates the next new pod, so that pod is scheduled without the old one.
#[test]
fn kops_addons_stay_even_while_they_are_rolled_out() {
    let Some(folder) = data() else { return };
    for seed in 0..6 {
        let run = strew(&format!(
            "simulate --nodes 12 --zones 3 --until rollout --seed {seed}"
        ))
        .arg(folder.join("manifests/kops-addons.yaml"))
        .assert()
        .code(1);
        let text = stdout(&run);
        let (_, rollout) = text.split_once("\nrollout  ").unwrap();
        let (_, metrics) = rollout.split_once("deployment/metrics-server").unwrap();
        let by_zone = metrics.lines().nth(1).unwrap();
        assert!(by_zone.ends_with("skew 1 -> 1"), "seed {seed}: {by_zone}");
    }
}

/// The class of its claims is not in the file: volumes are provisioned where the first pod of each goes, and a warning
/// says so.
#[test]
fn cockroachdb_gets_its_claims() {
    let Some(folder) = data() else { return };
    let text = std::fs::read_to_string(folder.join("manifests/cockroachdb-statefulset.yaml"));
    // Its budget is of a version that Kubernetes 1.25 dropped.
    let text = text.unwrap().replace("policy/v1beta1", "policy/v1");
    let run = strew("simulate - --nodes 12 --zones 3 --until deploy -o json");
    let run = run.stdin(text).assert().code(0);
    let (report, words) = (json(&run), stderr(&run));
    let set = workload(&report, "default", "statefulset/cockroachdb");
    assert_eq!(set["placed"], 3);
    assert!(
        words.contains("a default class \"standard\" is assumed"),
        "{words}"
    );
}

#[track_caller]
fn workload<'a>(report: &'a Value, namespace: &str, of: &str) -> &'a Value {
    let all = first_step(report)["workloads"].as_array().unwrap();
    let found = all
        .iter()
        .find(|w| w["of"] == of && w["namespace"] == namespace);
    found.unwrap_or_else(|| panic!("{namespace} {of} is in the report"))
}

/// The production cluster: objects that were derived by rule are found again, and its Pending pods are scheduled.
#[test]
fn openb() {
    let Some(folder) = data() else { return };
    let dump = folder.join("openb/dump");
    let run = strew("simulate --until deploy -o json")
        .args(["nodes.json", "pods.json", "workloads.json"].map(|name| dump.join(name)))
        .assert()
        .code(1);
    let report = json(&run);
    let facts: Value =
        serde_json::from_slice(&std::fs::read(dump.join("facts.json")).unwrap()).unwrap();
    let summary = &first_step(&report)["pods"];
    let number = |value: &Value| value.as_i64().unwrap();
    assert_eq!(summary["nodes"], facts["nodes"]);
    assert_eq!(summary["workloads"], facts["deployments"]);
    assert_eq!(
        number(&summary["pods"]) + number(&summary["finished"]),
        number(&facts["pods"])
    );
    assert_eq!(summary["boundBefore"], facts["phases"]["Running"]);
    let pending = number(&summary["placed"]) + number(&summary["pending"]);
    assert_eq!(pending, number(&facts["phases"]["Pending"]));
    let mut zones = BTreeMap::<&str, i64>::new();
    for node in first_step(&report)["nodes"].as_array().unwrap() {
        *zones.entry(node["zone"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(serde_json::to_value(zones).unwrap(), facts["nodesPerZone"]);
    assert!(number(&summary["placed"]) > 0);
    zone_counts(
        &report,
        &std::fs::read_to_string(dump.join("zone_counts.csv")).unwrap(),
    );
}

#[test]
fn a_pending_pod_of_openb_is_explained() {
    let Some(folder) = data() else { return };
    let dump = folder.join("openb/dump");
    let files = ["nodes.json", "pods.json", "workloads.json"].map(|name| dump.join(name));
    let run = strew("explain deployment/openb-app-365 -n online -o json")
        .args(files)
        .assert()
        .code(0);
    let explanation = json(&run);
    assert_eq!(explanation["standing"], "Pending");
    let message = explanation["message"].as_str().unwrap();
    assert!(
        message.starts_with("0/1523 nodes are available: "),
        "{message}"
    );
    let changes = explanation["whatIf"]["suggestions"].as_array().unwrap();
    assert!(!changes.is_empty(), "{:#}", explanation["whatIf"]);
}

/// Running pods by application and zone, before anything is scheduled.
fn zone_counts(report: &Value, csv: &str) {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let zones = &header[3..6];
    let mut n_rows = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let of = format!("deployment/{}", cells[1]);
        let workload = workload(report, cells[0], &of);
        assert_eq!(workload["boundBefore"].to_string(), cells[2], "{of}");
        let spread = &workload["spread"][0];
        assert_eq!(spread["by"], "topology.kubernetes.io/zone");
        let counts = &spread["before"]["counts"];
        for (zone, count) in zones.iter().zip(&cells[3..6]) {
            // A zone without a node that the pods can use is not one of their domains.
            let found = counts.get(zone).map_or("0".to_owned(), Value::to_string);
            assert_eq!(found, *count, "{of} in {zone}");
        }
        if spread["domains"] == 3 {
            assert_eq!(spread["before"]["skew"].to_string(), cells[6], "{of}");
        }
        n_rows += 1;
    }
    assert!(n_rows > 300, "{n_rows} rows");
}

/// The clusters that the messages of two dumped pods imply reproduce kube-scheduler's first sentence.
#[test]
fn support_bundle() {
    let Some(folder) = data() else { return };
    let node = "apiVersion: v1
kind: Node
metadata: {name: only, labels: {kubernetes.io/hostname: only, kubernetes.io/os: linux, kubernetes.io/arch: arm64}}
status: {allocatable: {cpu: '64', memory: 256Gi, pods: '110', ephemeral-storage: 1Ti}}
";
    for file in [
        "pods-message-pending-node-affinity.json",
        "pods-message-pending-pod-resources.json",
    ] {
        let file = folder.join("support-bundle").join(file);
        let dump: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let conditions = dump["items"][0]["status"]["conditions"].as_array().unwrap();
        let theirs = conditions[0]["message"].as_str().unwrap();
        let (first, _) = theirs.split_once(" preemption: ").unwrap();
        let run = strew("simulate - --until deploy -o json")
            .arg(&file)
            .stdin(node)
            .assert()
            .code(1);
        let report = json(&run);
        let ours = &only_run(&report)["steps"][0]["workloads"][0]["pending"][0]["message"];
        // Since then, DynamicResources runs before preemption.
        let ours = ours
            .as_str()
            .unwrap()
            .split_once(" no new claims to deallocate, preemption: ");
        assert_eq!(ours.map(|(first, _)| first), Some(first));
    }
}

/// A NodeList of old versions without zones, and lists whose items lack apiVersion and kind.
#[test]
fn support_bundle_as_a_whole() {
    let Some(folder) = data() else { return };
    let bundle = folder.join("support-bundle");
    let files = [
        "nodes.json",
        "deployments-default.json",
        "deployments-monitoring.json",
        "replicasets-default.json",
        "statefulsets-monitoring.json",
    ];
    let run = strew("simulate --until deploy -o json")
        .args(files.map(|name| bundle.join(name)))
        .assert();
    let report = json(&run);
    assert_eq!(report["kind"], "SimulationReport", "{}", stderr(&run));
    assert_eq!(first_step(&report)["pods"]["nodes"], 6);
}
