//! Spreading, as the KEPs describe it.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::e2e::stage::{Stage, name_of, node_of, refusal};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "topology.example.com/rack";
const NOT_SPREAD: &str = "node(s) didn't match pod topology spread constraints";

/// Only the configuration has constraints; the ReplicaSet has none.
pub(super) fn racks(stage: &mut Stage) -> anyhow::Result<()> {
    let configuration = stage.file("defaults-racks.config.yaml");
    stage.apply("defaults-racks.yaml")?;
    let configuration = format!("--config={}", configuration.display());
    let _scheduler = stage.scheduler(&[&configuration])?;
    // Rack c has room for one pod: the racks may then have 2, 2 and 1.
    let pods = stage.until_placed(5, 4)?;
    expect(stage.spread(&pods, RACK)?, &[("a", 2), ("b", 2), ("c", 1)])?;
    let hosts = stage.spread(&pods, HOSTNAME)?;
    ensure!(
        hosts.values().all(|&n| n <= 1),
        "two pods on a host while others are empty: {hosts:?}"
    );
    let expected = format!("0/5 nodes are available: 1 Insufficient cpu, 4 {NOT_SPREAD}.");
    for text in pods.iter().filter_map(refusal) {
        ensure!(text.starts_with(&expected), "{text:?} is not {expected:?}");
    }
    let has_constraints = |pod: &Value| !pod["spec"]["topologySpreadConstraints"].is_null();
    ensure!(!pods.iter().any(has_constraints), "defaults are not stored");
    Ok(())
}

/// The default constraints.
pub(super) fn zones(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("defaults-zones.yaml")?;
    let _scheduler = stage.scheduler(&[])?;
    let pods = stage.until_placed(14, 0)?;
    for app in ["behind-service", "replicated"] {
        let of_app = |pod: &&Value| pod["metadata"]["labels"]["app"] == app;
        let pods: Vec<Value> = pods.iter().filter(of_app).cloned().collect();
        let zones = stage.spread(&pods, ZONE)?;
        let (least, most) = (zones.values().min(), zones.values().max());
        let skew = most.zip(least).map(|(most, least)| most - least);
        ensure!(pods.len() == 7 && skew == Some(1), "{app}: {zones:?}");
    }
    Ok(())
}

/// Six pods fit on three nodes; the other pods wait for two more domains.
pub(super) fn min_domains(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("min-domains.yaml")?;
    let _scheduler = stage.scheduler(&[])?;
    let pods = stage.until_placed(6, 4)?;
    let two_each = [("n-1", 2), ("n-2", 2), ("n-3", 2)];
    expect(stage.spread(&pods, HOSTNAME)?, &two_each)?;
    let expected = format!("0/3 nodes are available: 3 {NOT_SPREAD}.");
    for text in pods.iter().filter_map(refusal) {
        ensure!(text.starts_with(&expected), "{text:?} is not {expected:?}");
    }
    stage.apply("min-domains.more.yaml")?;
    let pods = stage.until_placed(10, 0)?;
    let hosts = stage.spread(&pods, HOSTNAME)?;
    let (least, most) = (hosts.values().min(), hosts.values().max());
    ensure!(
        hosts.len() == 5 && least >= Some(&1) && most <= Some(&3),
        "a skew above 2: {hosts:?}"
    );
    Ok(())
}

/// Spreading of a revision ignores the pods of the revision before.
pub(super) fn match_label_keys(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("match-label-keys.yaml")?;
    let _scheduler = stage.scheduler(&[])?;
    let four_each = [("n-1", 4), ("n-2", 4), ("n-3", 4)];
    let pods = stage.until_placed(12, 0)?;
    expect(stage.spread(&pods, HOSTNAME)?, &four_each)?;
    stage.run(&["set", "image", "deployment/nginx", "nginx=nginx:1.15.0"])?;
    stage.run(&["rollout", "status", "deployment/nginx", "--timeout=60s"])?;
    let pods = stage.until_pods("twelve pods of the next revision", |pods| {
        let is_next = |pod: &Value| {
            pod["spec"]["containers"][0]["image"] == "nginx:1.15.0" && node_of(pod).is_some()
        };
        (pods.len() == 12 && pods.iter().all(is_next)).then(|| pods.to_vec())
    })?;
    expect(stage.spread(&pods, HOSTNAME)?, &four_each)
}

/// Two API servers of one cluster, of which one does not merge the keys yet.
pub(super) fn before_the_merge(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("before-the-merge.yaml")?;
    let gate = "MatchLabelKeysInPodTopologySpreadSelectorMerge".to_owned();
    let (older, url) = stage.lab.start_other_server(&[(gate, false)], &[])?;
    let file = stage.file("before-the-merge.pods.yaml");
    let file = format!("--filename={}", file.display());
    stage.run(&["create", &file, &format!("--server={url}")])?;
    drop(older);
    let stored = stage.get("pod/with-keys")?;
    let constraint = &stored["spec"]["topologySpreadConstraints"][0];
    ensure!(
        constraint["labelSelector"] == json!({"matchLabels": {"app": "web"}})
            && constraint["matchLabelKeys"] == json!(["revision"]),
        "it was merged after all: {constraint}"
    );
    let _scheduler = stage.scheduler(&[])?;
    // Both pods may go to n-1 alone, where a pod of the revision before is. Only one of the two counts by revision.
    let pods = stage.until_placed(2, 1)?;
    let is_placed = |name| {
        pods.iter()
            .any(|p| name_of(p) == name && node_of(p) == Some("n-1"))
    };
    ensure!(is_placed("with-keys"), "counted with the revision before");
    Ok(())
}

fn expect(found: BTreeMap<String, usize>, expected: &[(&str, usize)]) -> anyhow::Result<()> {
    let found: Vec<(&str, usize)> = found.iter().map(|(d, &n)| (d.as_str(), n)).collect();
    ensure!(found == expected, "spread is {found:?}, not {expected:?}");
    Ok(())
}
