//! Faults of and around the processes.

use std::time::Duration;

use anyhow::Context;
use xtask_lab::lab::{now, until};

use super::phases::Field;
use crate::e2e::stage::PAUSE;

/// The time for which API server or store are frozen.
const FROZEN: Duration = Duration::from_secs(10);

/// Longer than a lease of 15 s, and long enough for another replica to take it.
const STOPPED: Duration = Duration::from_secs(20);

/// Between two cuts.
const CUT_EVERY: Duration = Duration::from_secs(1);

/// Ends all connections of the processes to the API server, and those of the API server to the webhook.
pub(super) fn cut(field: &mut Field<'_>) -> anyhow::Result<()> {
    for _ in 0..10 {
        field.stage.api.as_ref().context("a Service")?.cut();
        field.parts.hooks.cut();
        pass(CUT_EVERY)?;
    }
    Ok(())
}

pub(super) fn server_frozen(field: &mut Field<'_>) -> anyhow::Result<()> {
    frozen(field, "apiserver")
}

pub(super) fn store_frozen(field: &mut Field<'_>) -> anyhow::Result<()> {
    frozen(field, "etcd")
}

fn frozen(field: &mut Field<'_>, name: &str) -> anyhow::Result<()> {
    let component = field.stage.lab.component(name)?;
    component.signal("STOP")?;
    pass(FROZEN)?;
    component.signal("CONT")?;
    field.stage.lab.wait_for_server()
}

pub(super) fn server_killed(field: &mut Field<'_>) -> anyhow::Result<()> {
    killed(field, "apiserver")
}

pub(super) fn store_killed(field: &mut Field<'_>) -> anyhow::Result<()> {
    killed(field, "etcd")
}

fn killed(field: &mut Field<'_>, name: &str) -> anyhow::Result<()> {
    let component = field.stage.lab.component(name)?;
    component.kill();
    component.restart()?;
    field.stage.lab.wait_for_server()?;
    // kwok does not retry a refused request. Kubelets are not under test, so they start again.
    field.stage.renew_kubelets()?;
    field.stage.until_nodes_are_ready()
}

/// Freezes the scheduler that leads; the other replica takes over during the scale-up.
pub(super) fn leader_stopped(field: &mut Field<'_>) -> anyhow::Result<()> {
    let name = leader(field)?;
    field.observer.set_stopped(name, true);
    let process = |field: &Field<'_>, signal: &str| {
        let part = field.parts.all.iter().find(|part| part.name == name);
        part.context("it was found before")?.process.signal(signal)
    };
    process(field, "STOP")?;
    let passed = pass(STOPPED);
    process(field, "CONT")?;
    field.observer.set_stopped(name, false);
    passed
}

/// The replica that holds the lease.
fn leader(field: &Field<'_>) -> anyhow::Result<&'static str> {
    let mut last = None;
    for part in &field.parts.all {
        if part.name == "scheduler" || part.name == "follower" {
            let log = part.process.output();
            let led = log.rfind("this replica leads");
            let lost = log.rfind("this replica does not lead any more");
            if led > lost {
                last = Some(part.name);
            }
        }
    }
    last.context("no replica of the scheduler leads")
}

/// Waits for a time.
fn pass(time: Duration) -> anyhow::Result<()> {
    let begin = now();
    until("time passes", 2 * time, PAUSE, || {
        Ok((begin.elapsed() >= time).then_some(()))
    })
}
