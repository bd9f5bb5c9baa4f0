//! Several schedulers at once, in one process or in two.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use serde_json::{Value, json};
use xtask_lab::lab::until;

use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, node_of, refusal};

/// Six small pods each: one profile packs, the other spreads.
pub(super) fn profiles(stage: &mut Stage) -> anyhow::Result<()> {
    let configuration = format!(
        "--config={}",
        stage.file("two-profiles.config.yaml").display()
    );
    stage.apply("two-profiles.yaml")?;
    let _scheduler = stage.scheduler(&[&configuration])?;
    let pods = stage.until_placed(12, 0)?;
    let on = |app: &str| -> BTreeSet<&str> {
        let of_app = |pod: &&Value| pod["metadata"]["labels"]["app"] == app;
        pods.iter().filter(of_app).filter_map(node_of).collect()
    };
    ensure!(on("packed").len() == 1, "packed: {:?}", on("packed"));
    ensure!(on("spread").len() == 3, "spread: {:?}", on("spread"));
    expect_controllers(stage, &pods, 12)
}

/// Eight pods for each scheduler on four nodes, and one pod for each that fits on no node.
pub(super) fn alongside(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("alongside.yaml")?;
    let _strew = stage.scheduler(&[])?;
    let kube = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}],
    });
    let _kube = stage.lab.start_kube_scheduler(Some(&kube))?;
    let pods = stage.until_placed(16, 2)?;
    for scheduler in ["default-scheduler", "strew"] {
        let of_it = |pod: &&Value| pod["spec"]["schedulerName"] == scheduler;
        let pods: Vec<Value> = pods.iter().filter(of_it).cloned().collect();
        let hosts = stage.spread(&pods, "kubernetes.io/hostname")?;
        ensure!(hosts.values().all(|&n| n == 2), "{scheduler}: {hosts:?}");
    }
    let said: BTreeSet<&str> = pods.iter().filter_map(refusal).collect();
    ensure!(said.len() == 1, "two texts of one refusal: {said:?}");
    expect_controllers(stage, &pods, 16)
}

/// The event of each placed pod comes from the scheduler that it names.
fn expect_controllers(stage: &Stage, pods: &[Value], n_placed: usize) -> anyhow::Result<()> {
    let events = until("an event of each placed pod", SOON, PAUSE, || {
        let mut events = stage.list("events.events.k8s.io")?;
        events.retain(|e| e["reason"] == "Scheduled");
        Ok((events.len() >= n_placed).then_some(events))
    })?;
    ensure!(events.len() == n_placed, "{} events", events.len());
    let said: BTreeMap<&str, &Value> = events
        .iter()
        .map(|e| {
            (
                e["regarding"]["name"].as_str().unwrap_or_default(),
                &e["reportingController"],
            )
        })
        .collect();
    for pod in pods.iter().filter(|pod| node_of(pod).is_some()) {
        let named = &pod["spec"]["schedulerName"];
        let by = said.get(name_of(pod)).copied();
        ensure!(by == Some(named), "{} by {by:?}, not {named}", name_of(pod));
    }
    Ok(())
}
