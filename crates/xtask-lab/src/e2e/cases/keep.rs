//! `strew controller --controllers=keep` on a cluster: scale-downs stay even, with the rights that `strew install keep`
//! gives.

use anyhow::ensure;
use serde_json::Value;

use crate::e2e::stage::{Stage, node_of};

const ZONE: &str = "topology.kubernetes.io/zone";

/// 12 to 6 to 3 pods over three zones, again and again; then the label goes, and with it the costs.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = stage.scheduler(&["--scheduler-name=default-scheduler"])?;
    stage.install(&["keep"])?;
    let mut process = stage.keep_controller()?;
    stage.apply("keep.yaml")?;
    let rounds = if stage.is_full { 20 } else { 5 };
    for round in 1..=rounds {
        scaled(stage, 12)?;
        stage.until_pods("costs of all pods but one at most", |pods| {
            let with_cost = pods.iter().filter(|pod| cost(pod).is_some());
            (with_cost.count() >= 11).then_some(())
        })?;
        for n in [6, 3] {
            let pods = scaled(stage, n)?;
            let zones = stage.spread(&pods, ZONE)?;
            let is_even = zones.len() == 3 && zones.values().all(|&of_zone| of_zone == n / 3);
            ensure!(is_even, "round {round}: {zones:?} of {n}");
        }
    }
    let labelled = "keep.strew.dev/spread-";
    stage.run(&["label", "deployment/web", labelled])?;
    stage.until_pods("no costs", |pods| {
        pods.iter().all(|pod| cost(pod).is_none()).then_some(())
    })?;
    process.expect_running()
}

/// Scales the Deployment, and waits until as many pods are ready and no other one is there.
fn scaled(stage: &Stage, n: usize) -> anyhow::Result<Vec<Value>> {
    let replicas = format!("--replicas={n}");
    stage.run(&["scale", "deployment/web", &replicas])?;
    stage.until_pods("that many ready pods", |pods| {
        let is_ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
        };
        let all = pods.len() == n && pods.iter().all(|p| node_of(p).is_some() && is_ready(p));
        all.then(|| pods.to_vec())
    })
}

fn cost(pod: &Value) -> Option<&str> {
    pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"].as_str()
}
