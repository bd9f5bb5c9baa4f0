//! When the webhook is registered: from the first ready replica to the last one that shuts down.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use xtask_lab::lab::{now, until};

use super::{scale, scheduler, until_observed, until_subsets};
use crate::e2e::parts::SYSTEM;
use crate::e2e::stage::{PAUSE, SOON, Stage};

/// How long the controller waits for a replica.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// The time of an orderly end: the configuration goes, and the replica still answers calls for a moment.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// Installed, served, killed, served again, ended.
pub(crate) fn registered(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let gone_after = format!("--webhook-gone-after={}s", GONE_AFTER.as_secs());
    let mut spreading = stage.installed_spreading(&[], &[&gone_after])?;
    let n_calls = stage.n_calls()?;
    stage.try_a_pod(&stage.namespace)?;
    ensure!(
        stage.n_calls()? == n_calls,
        "a webhook without a replica is called"
    );

    for _ in 0..2 {
        stage.add_webhook(&mut spreading, &[])?;
    }
    stage.until_ready(&spreading, 2)?;
    stage.until_called()?;
    stage.apply("ws-elastic.yaml")?;
    until_observed(stage, "front")?;
    scale(stage, "deployment/front", 2)?;
    until_subsets(stage, &[("own", 2)])?;

    // One of two replicas ends in good order: the API server goes on to ask the other.
    spreading.webhooks[0].process.signal("TERM")?;
    spreading.webhooks[0].process.ended(ENDS_WITHIN)?;
    ensure!(
        is_registered(stage)?,
        "taken out beside a replica that is ready"
    );
    stage.until_called()?;
    spreading.webhooks[0].process.kill();
    spreading.webhooks[0].process.restart()?;
    stage.until_ready(&spreading, 2)?;

    for webhook in &mut spreading.webhooks {
        webhook.process.kill();
    }
    let begin = now();
    if stage.try_a_pod(&stage.namespace).is_ok() {
        bail!("a pod passed at once without a replica");
    }
    until("the controller takes the webhook out", SOON, PAUSE, || {
        Ok((!is_registered(stage)?).then_some(()))
    })?;
    let took = begin.elapsed();
    println!(
        "  taken out {:.1} s after both were killed",
        took.as_secs_f64()
    );
    // The last sign of a replica may be two seconds older, and the controller looks every two seconds.
    let bounds = GONE_AFTER - Duration::from_secs(4)..GONE_AFTER + Duration::from_secs(6);
    ensure!(bounds.contains(&took), "not within {bounds:?}");
    until("pods are created", SOON, PAUSE, || {
        Ok(stage.try_a_pod(&stage.namespace).ok())
    })?;
    scale(stage, "deployment/front", 3)?;
    stage.until_placed(3, 0)?;
    until_condition(stage, Some("WebhookNotRegistered"))?;
    stage.until_event("front", "WebhookNotRegistered")?;

    spreading.webhooks[1].process.restart()?;
    stage.until_ready(&spreading, 1)?;
    stage.until_called()?;
    until_condition(stage, None)?;
    stage.until_event("front", "WebhookReady")?;

    // A killed replica counts as ready until its sign is too old.
    until_renewed(stage, 3)?;
    let begin = now();
    let last = &mut spreading.webhooks[1].process;
    last.signal("TERM")?;
    last.ended(ENDS_WITHIN)?;
    println!(
        "  the last one ended within {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    ensure!(
        !is_registered(stage)?,
        "the last replica left it registered"
    );
    stage.try_a_pod(&stage.namespace)
}

pub(super) fn is_registered(stage: &Stage) -> anyhow::Result<bool> {
    let configuration = stage.get("mutatingwebhookconfiguration/strew-webhook")?;
    Ok(configuration["webhooks"][0].is_object())
}

/// Waits until replicas have reported `times` times that they are ready.
fn until_renewed(stage: &Stage, times: usize) -> anyhow::Result<()> {
    let mut versions = BTreeSet::new();
    until("replicas say that they are ready", SOON, PAUSE, || {
        let lease = ["--namespace", SYSTEM, "get", "lease/strew-webhook-replicas"];
        let version = "--output=jsonpath={.metadata.resourceVersion}";
        let mut ask = lease.to_vec();
        ask.push(version);
        versions.insert(stage.kubectl().run(&ask)?);
        Ok((versions.len() > times).then_some(()))
    })
}

/// Waits until every subset has the condition WebhookReady with this reason, or none has it.
pub(super) fn until_condition(stage: &Stage, reason: Option<&str>) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let said = until("the condition", SOON, PAUSE, || {
        last = stage.get("workloadspread/front")?["status"]["subsetStatuses"].take();
        let mut rows = last.as_array().context("rows")?.iter();
        let is_so = rows.all(|row| {
            let mut conditions = row["conditions"].as_array().into_iter().flatten();
            let found = conditions.find(|c| c["type"] == "WebhookReady");
            found.and_then(|c| c["reason"].as_str()) == reason
        });
        Ok(is_so.then_some(()))
    });
    said.with_context(|| format!("{last}, not {reason:?}"))
}
