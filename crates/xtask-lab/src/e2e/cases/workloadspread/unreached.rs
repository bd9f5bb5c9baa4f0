//! A webhook that the API server does not reach: it is never registered, or soon registered no longer.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use xtask_lab::lab::https::ask;
use xtask_lab::lab::{Service, now, until};

use super::registered::{is_registered, until_condition};
use super::{scale, scheduler, until_observed, until_subsets};
use crate::e2e::parts::Spreading;
use crate::e2e::stage::{PAUSE, SOON, Stage};

/// The longest time of refused creations for which a replica is the reason: docs/webhook.md promises it.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);

/// How long a wrong registration would take to appear: a replica that is ready registers within its first seconds.
const STAYS_OUT: Duration = Duration::from_secs(8);

/// The URL of the registration has a port that is not served.
pub(crate) fn wrong_port(stage: &mut Stage) -> anyhow::Result<()> {
    let mut spreading = stage.installed_spreading(&[], &[])?;
    let service = Service::start()?;
    let closed = service.port();
    let webhook = stage.webhook(&service, &[])?;
    drop(service);
    spreading.service.add(webhook.port, webhook.pages);
    spreading.webhooks.push(webhook);
    stage.until_ready(&spreading, 1)?;
    let webhook = &spreading.webhooks[0];
    let why = format!("https://127.0.0.1:{closed}/admit/own: ");
    until("the log says why", SOON, PAUSE, || {
        Ok(webhook.process.output().contains(&why).then_some(()))
    })?;
    let begin = now();
    while begin.elapsed() < STAYS_OUT {
        ensure!(!is_registered(stage)?, "a closed port is registered");
        stage.try_a_pod(&stage.namespace)?;
    }
    let page = ask(webhook.pages, SOON, "GET", "/readyz?verbose", &[], b"")?;
    let page = page.context("no answer")?.body;
    ensure!(page.contains(&why), "/readyz does not say why: {page}");
    Ok(())
}

/// The replica is reached, and does not reach the API server.
pub(crate) fn half_dead(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let mut spreading = stage.installed_spreading(&[], &[])?;
    let api = half_dying(stage, &mut spreading)?;
    registered_and_used(stage, &spreading)?;
    // No process listens there.
    api.give_only(1);
    api.cut();
    scale(stage, "deployment/front", 3)?;
    passes_again(stage, "its way to the API server was cut")
}

/// As [`half_dead`], beside a healthy replica, while the API server is connected to the other one.
pub(crate) fn half_dead_beside(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let mut spreading = stage.installed_spreading(&[], &[])?;
    let api = half_dying(stage, &mut spreading)?;
    // The API server has its connection to it before the other one is there, and keeps it.
    registered_and_used(stage, &spreading)?;
    stage.add_webhook(&mut spreading, &[])?;
    stage.until_ready(&spreading, 2)?;
    api.give_only(1);
    api.cut();
    let begin = now();
    scale(stage, "deployment/front", 4)?;
    // A pod that is reviewed: what the half-dead replica answers is a refusal.
    until_subsets(stage, &[("own", 4)])?;
    ensure!(is_registered(stage)?, "the healthy replica was taken out");
    within(begin.elapsed(), "pods have their subset", "its way was cut")
}

/// A webhook whose way to the API server can be cut: the stand-in through which it goes.
fn half_dying(stage: &mut Stage, spreading: &mut Spreading) -> anyhow::Result<Service> {
    let own = stage.run(&["config", "view", "--raw", "--output=json"])?;
    let own: Value = serde_json::from_str(&own)?;
    let server = own["clusters"][0]["cluster"]["server"].as_str();
    let port = server.and_then(|server| server.rsplit(':').next()?.parse().ok());
    let port = port.context("no port in the kubeconfig")?;
    let api = Service::start()?;
    api.add(port, port);
    until("the API server is ready", SOON, PAUSE, || {
        Ok((api.n_ready() == 1).then_some(()))
    })?;
    stage.api = Some(api);
    let added = stage.add_webhook(spreading, &[]);
    let api = stage.api.take().context("it was set")?;
    added?;
    Ok(api)
}

/// All replicas and the leading controller are killed at once; the other controller goes on.
pub(crate) fn killed_at_once(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let mut spreading = stage.installed_spreading(&[], &[])?;
    let _other = stage.spread_controller(&[])?;
    for _ in 0..2 {
        stage.add_webhook(&mut spreading, &[])?;
    }
    registered_and_used(stage, &spreading)?;
    // The first one leads.
    spreading.controller.kill();
    for webhook in &mut spreading.webhooks {
        webhook.process.kill();
    }
    passes_again(stage, "all were killed")
}

/// Somebody deletes the configuration: that is said, and pods get subsets soon after it is there again.
pub(crate) fn deleted(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let mut spreading = stage.installed_spreading(&[], &[])?;
    stage.add_webhook(&mut spreading, &[])?;
    registered_and_used(stage, &spreading)?;
    let configuration = "mutatingwebhookconfiguration/strew-webhook";
    stage.run(&["delete", configuration])?;
    let begin = now();
    stage.try_a_pod(&stage.namespace)?;
    until_condition(stage, Some("WebhookNotRegistered"))?;
    within(begin.elapsed(), "the condition says so", "it was deleted")?;
    let url = format!(
        "--webhook-url=https://127.0.0.1:{}",
        spreading.service.port()
    );
    let mut list = stage.printed(&["workloadspread", "--crds=always", &url])?;
    let items = list["items"].as_array_mut().context("a list has items")?;
    items.retain(|object| object["kind"] == "MutatingWebhookConfiguration");
    let apply = ["apply", "--server-side", "--filename=-"];
    stage.kubectl().run_with(&apply, &list)?;
    let begin = now();
    until("it is registered again", SOON, PAUSE, || {
        Ok(is_registered(stage)?.then_some(()))
    })?;
    stage.until_called()?;
    within(begin.elapsed(), "registered", "it was applied again")?;
    scale(stage, "deployment/front", 3)?;
    until_subsets(stage, &[("own", 3)])?;
    until_condition(stage, None)
}

fn registered_and_used(stage: &Stage, spreading: &Spreading) -> anyhow::Result<()> {
    stage.until_ready(spreading, spreading.webhooks.len())?;
    stage.until_called()?;
    stage.apply("ws-elastic.yaml")?;
    until_observed(stage, "front")?;
    scale(stage, "deployment/front", 2)?;
    until_subsets(stage, &[("own", 2)]).map(drop)
}

/// Pods of controllers can be created again in time: the registration is gone, and nobody refuses.
fn passes_again(stage: &Stage, what: &str) -> anyhow::Result<()> {
    let begin = now();
    until("the webhook is taken out", SOON, PAUSE, || {
        Ok((!is_registered(stage)?).then_some(()))
    })?;
    until("a pod is created", SOON, PAUSE, || {
        Ok(stage.try_a_pod(&stage.namespace).ok())
    })?;
    within(begin.elapsed(), "pods are created", what)
}

fn within(took: Duration, what: &str, since: &str) -> anyhow::Result<()> {
    println!("  {what} {:.1} s after {since}", took.as_secs_f64());
    ensure!(took <= REFUSED_WITHIN, "{what} after {took:?}");
    Ok(())
}
