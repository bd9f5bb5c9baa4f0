//! Processes that are killed or stopped during a rollout.

use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use xtask_lab::lab::{Component, now, until};

use crate::e2e::decisions::{decisions, moment_of, says};
use crate::e2e::rollout::{Rollout, tell};
use crate::e2e::stage::{PAUSE, SOON, Stage};

const LEADS: &str = "this replica leads";

/// The time a rollout takes if kwok has not missed its moment.
const KUBELETS_WITHIN: Duration = Duration::from_secs(30);

/// A follower acts within this time after the lease is free.
const TAKE_OVER: SignedDuration = SignedDuration::from_secs(2);

/// kill -9 of the leader, with a warm follower.
pub(super) fn leader(stage: &mut Stage) -> anyhow::Result<()> {
    let mut first = candidate(stage)?;
    until_says(&first, LEADS)?;
    let second = candidate(stage)?;
    until_says(&second, "the cluster is known")?;
    let rollout = Rollout::prepare(stage)?;
    rollout.to_the_middle(stage)?;
    first.kill();
    let fault = now();
    let free = free_at(stage)?;
    until_says(&second, LEADS)?;
    rollout.until_done(stage)?;
    let verdict = rollout.judge(stage, &[&first, &second])?;
    expect_take_over(&second, free)?;
    tell(&rollout, fault, &verdict);
    Ok(())
}

/// kill -9 of the only replica, and another start: the lease of the killed replica must run out.
pub(super) fn only(stage: &mut Stage) -> anyhow::Result<()> {
    let mut only = candidate(stage)?;
    let rollout = Rollout::prepare(stage)?;
    rollout.to_the_middle(stage)?;
    only.kill();
    let fault = now();
    only.restart()?;
    rollout.until_done(stage)?;
    let verdict = rollout.judge(stage, &[&only])?;
    tell(&rollout, fault, &verdict);
    Ok(())
}

/// kill -9 of the API server, and a restart.
pub(super) fn server(stage: &mut Stage) -> anyhow::Result<()> {
    below(stage, "apiserver")
}

/// kill -9 of the store, and a restart.
pub(super) fn store(stage: &mut Stage) -> anyhow::Result<()> {
    below(stage, "etcd")
}

fn below(stage: &mut Stage, name: &str) -> anyhow::Result<()> {
    let mut only = candidate(stage)?;
    let rollout = Rollout::prepare(stage)?;
    rollout.to_the_middle(stage)?;
    let component = stage.lab.component(name)?;
    component.kill();
    let fault = now();
    component.restart()?;
    stage.lab.wait_for_server()?;
    let served = now();
    if rollout.until_done_within(stage, KUBELETS_WITHIN).is_err() {
        // kwok does not repeat a request that the API server refused. The case does not judge kubelets, so they start
        // anew.
        println!("  kwok has given up: it is started again, and waits for its leases");
        let kubelets = stage.lab.component("kwok")?;
        kubelets.kill();
        kubelets.restart()?;
        rollout.until_done(stage)?;
    }
    only.expect_running()?;
    let verdict = rollout.judge(stage, &[&only])?;
    let answered = (served - fault).as_secs_f64();
    println!("  the API server serves again {answered:.1} s after the fault");
    tell(&rollout, fault, &verdict);
    Ok(())
}

/// SIGSTOP of the leader until another replica leads, and for a while longer: when the old leader goes on, it sends
/// nothing.
pub(super) fn stopped(stage: &mut Stage) -> anyhow::Result<()> {
    let mut first = candidate(stage)?;
    until_says(&first, LEADS)?;
    let mut second = candidate(stage)?;
    until_says(&second, "the cluster is known")?;
    let rollout = Rollout::prepare(stage)?;
    rollout.to_the_middle(stage)?;
    first.signal("STOP")?;
    let fault = now();
    let free = free_at(stage)?;
    let at_least = Duration::from_secs(if stage.is_full { 30 } else { 10 });
    until_says(&second, LEADS)?;
    until("the stop is over", 2 * at_least, PAUSE, || {
        Ok((fault.elapsed() >= at_least).then_some(()))
    })?;
    let woken = Timestamp::now();
    first.signal("CONT")?;
    until(
        "the first one sees that it does not lead",
        SOON,
        PAUSE,
        || {
            Ok(first
                .output()
                .contains("keep the lead failed")
                .then_some(()))
        },
    )?;
    rollout.until_done(stage)?;
    first.expect_running()?;
    second.expect_running()?;
    let late: Vec<_> = decisions(&first.output())
        .into_iter()
        .filter(|d| moment_of(&d.timestamp).is_none_or(|at| at >= woken))
        .collect();
    ensure!(late.is_empty(), "decided after it woke up: {late:?}");
    let verdict = rollout.judge(stage, &[&first, &second])?;
    expect_take_over(&second, free)?;
    tell(&rollout, fault, &verdict);
    Ok(())
}

/// A replica with a lease in the case's namespace. The lease is short, except in full size.
fn candidate(stage: &mut Stage) -> anyhow::Result<Component> {
    let namespace = format!("--leader-elect-resource-namespace={}", stage.namespace);
    let mut args = vec![namespace.as_str()];
    if !stage.is_full {
        args.extend([
            "--leader-elect-lease-duration=8s",
            "--leader-elect-renew-deadline=3s",
            "--leader-elect-retry-period=2s",
        ]);
    }
    stage.replica(&args)
}

fn until_says(replica: &Component, message: &str) -> anyhow::Result<()> {
    let said = || Ok(says(&replica.output(), message).then_some(()));
    until(message, SOON, PAUSE, said).with_context(|| replica.output())
}

/// When the lease is free, if no replica renews it.
fn free_at(stage: &Stage) -> anyhow::Result<Timestamp> {
    let lease = stage.get("lease/strew-scheduler")?;
    let renewed = lease["spec"]["renewTime"].as_str().and_then(moment_of);
    let holds = lease["spec"]["leaseDurationSeconds"].as_i64();
    let (renewed, holds) = renewed.zip(holds).context("a lease that nobody holds")?;
    Ok(renewed + SignedDuration::from_secs(holds))
}

/// The follower decided on a pod within two seconds of the lease's end, and not before.
fn expect_take_over(follower: &Component, free: Timestamp) -> anyhow::Result<()> {
    let log = follower.output();
    let mut lines = log
        .lines()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok());
    let led = lines.find(|line| line["message"] == LEADS);
    let led = led.and_then(|line| moment_of(line["timestamp"].as_str()?));
    let first = decisions(&log).into_iter().next();
    let first = first.and_then(|d| moment_of(&d.timestamp));
    let (led, first) = led.zip(first).context("the follower did nothing")?;
    let after = |moment: Timestamp| moment.duration_since(free);
    println!(
        "  the follower leads {:.2} s after the lease's end, and decides {:.2} s after it",
        after(led).as_secs_f64(),
        after(first).as_secs_f64()
    );
    ensure!(after(led) <= TAKE_OVER, "it took over too late");
    Ok(())
}
