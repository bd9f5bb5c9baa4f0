//! A PodDisruptionBudget by zone: while pods of one zone are away, none of another zone is evicted.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use xtask_lab::lab::until;

use super::workloadspread::evict;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, node_of};

/// Longer than a claim is held after the last eviction.
const WHOLE_WITHIN: Duration = Duration::from_secs(90);

const CLAIM: &str = "strew.dev/disrupted-zone";

/// Pods of zone a are evicted, those of zone b are refused until it is whole; without a webhook the plain budget decides.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = stage.scheduler(&["--scheduler-name=default-scheduler"])?;
    let mut spreading = stage.spreading(2)?;
    stage.apply("zone-budget.yaml")?;
    let pods = until_whole(stage)?;
    evict(stage, on(&pods, "n-a", 0)?)?;
    let claim = claim(stage)?.context("the zone is claimed")?;
    ensure!(claim["zone"] == "zone-a" && claim["grants"] == 1, "{claim}");
    // Another replica may be asked each time.
    for _ in 0..4 {
        let Err(error) = evict(stage, on(&pods, "n-b", 0)?) else {
            bail!("two zones are disrupted at once");
        };
        let said = format!("{error:#}");
        let is_told = said
            .contains("lets pods of one topology.kubernetes.io/zone be evicted at a time")
            && said.contains("zone-a");
        ensure!(is_told, "{said}");
    }
    evict(stage, on(&pods, "n-a", 1)?).context("a second pod of the same zone")?;
    until_unclaimed(stage)?;
    let pods = until_whole(stage)?;
    evict(stage, on(&pods, "n-b", 0)?).context("zone a is whole")?;
    let Err(_) = evict(stage, on(&pods, "n-c", 0)?) else {
        bail!("two zones are disrupted at once");
    };
    // It fails open.
    for webhook in &mut spreading.webhooks {
        webhook.process.kill();
    }
    evict(stage, on(&pods, "n-c", 0)?).context("without a webhook the plain budget decides")
}

/// A pod on a node.
fn on<'p>(pods: &'p [Value], node: &str, number: usize) -> anyhow::Result<&'p Value> {
    let mut there = pods.iter().filter(|pod| node_of(pod) == Some(node));
    there
        .nth(number)
        .with_context(|| format!("a pod on {node}"))
}

/// Waits until nine pods are ready and the budget allows four to go.
fn until_whole(stage: &Stage) -> anyhow::Result<Vec<Value>> {
    let pods = stage.until_placed(9, 0)?;
    until("the budget counts", SOON, PAUSE, || {
        let budget = stage.get("poddisruptionbudget/web")?;
        let status = &budget["status"];
        let is_whole = status["currentHealthy"] == 9 && status["disruptionsAllowed"] == 4;
        Ok(is_whole.then_some(()))
    })?;
    Ok(pods)
}

fn claim(stage: &Stage) -> anyhow::Result<Option<Value>> {
    let budget = stage.get("poddisruptionbudget/web")?;
    let text = budget["metadata"]["annotations"][CLAIM].as_str();
    Ok(text.map(serde_json::from_str).transpose()?)
}

/// Waits until the claim is taken out.
fn until_unclaimed(stage: &Stage) -> anyhow::Result<()> {
    let mut last = None;
    let unclaimed = until("the claim is taken out", WHOLE_WITHIN, PAUSE, || {
        last = claim(stage)?;
        Ok(last.is_none().then_some(()))
    });
    unclaimed.with_context(|| format!("{last:?}, {:?}", stage.pods().map(|pods| names(&pods))))
}

fn names(pods: &[Value]) -> Vec<String> {
    pods.iter().map(|pod| name_of(pod).to_owned()).collect()
}
