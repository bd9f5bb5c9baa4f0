//! `strew rebalance` on a cluster: a plan is saved, checked and carried out, is cut off in the middle, and is carried out
//! by two processes at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use xtask_lab::lab::{now, until};

use crate::e2e::stage::{PAUSE, SOON, Stage, node_of};

const ZONE: &str = "topology.kubernetes.io/zone";

/// The deadline of a plan that is carried out: a step waits for its budget and for a new pod.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(120);

/// Nine pods in two zones of three: three evictions make them even.
const N_MOVES: usize = 3;

/// Each eviction is one of a plan, whatever becomes of the processes: of nine pods three are evicted, and none twice.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = stage.scheduler(&["--scheduler-name=default-scheduler"])?;
    stage.apply("rebalanced-nodes.yaml")?;

    // Saved, checked by the API server, carried out.
    let before = uneven(stage)?;
    let plan = saved(stage, "plan.yaml")?;
    let plan = plan.as_str();
    let checked = rebalance(stage, &["--apply", plan, "--dry-run=server"])?;
    let said = said(&checked);
    ensure!(said.contains("0 of 3 evictions refused"), "{said}");
    ensure!(evicted(stage, &before)? == 0, "a dry run evicts nothing");
    let refused = rebalance(stage, &["--apply", plan])?;
    ensure!(
        refused.status.code() == Some(2) && evicted(stage, &before)? == 0,
        "without a terminal and without --yes nothing is evicted: {refused:?}"
    );
    let done = rebalance(stage, &["--apply", plan, "--yes"])?;
    ensure!(done.status.success(), "{done:?}");
    until_even(stage)?;
    ensure!(evicted(stage, &before)? == N_MOVES);
    // The plan is spent: its pods are gone.
    let again = rebalance(stage, &["--apply", plan, "--yes"])?;
    ensure!(again.status.code() == Some(1), "{again:?}");
    ensure!(evicted(stage, &before)? == N_MOVES);

    // Cut off in the middle of a step, then the same plan, then a new one.
    let before = uneven(stage)?;
    let plan = saved(stage, "cut-off.yaml")?;
    let mut process = carrying(stage, &plan)?;
    until("an eviction", CARRIED_OUT_WITHIN, PAUSE, || {
        Ok((evicted(stage, &before)? > 0).then_some(()))
    })?;
    process.kill();
    let same = rebalance(stage, &["--apply", &plan, "--yes"])?;
    ensure!(same.status.code() == Some(1), "{same:?}");
    ensure!(
        evicted(stage, &before)? <= 2,
        "a step ends with one eviction"
    );
    finished(stage, &before)?;

    // Two processes with one plan.
    let before = uneven(stage)?;
    let plan = saved(stage, "both.yaml")?;
    let mut both = [carrying(stage, &plan)?, carrying(stage, &plan)?];
    for process in &mut both {
        process.ended(CARRIED_OUT_WITHIN)?;
    }
    ensure!(evicted(stage, &before)? <= N_MOVES);
    finished(stage, &before)
}

/// Two replicas of the controller. Without the label nothing is evicted; with it each move is one eviction, though a replica
/// is killed after the first one; without it again nothing is.
pub(super) fn kept(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = stage.scheduler(&["--scheduler-name=default-scheduler"])?;
    stage.apply("rebalanced-nodes.yaml")?;
    stage.install(&["rebalance"])?;
    let before = uneven(stage)?;
    let mut first = stage.rebalance_controller()?;
    until("a plan without a workload", SOON, PAUSE, || {
        first.expect_running()?;
        let said = first.output();
        Ok(said.contains("nothing is evicted").then_some(()))
    })
    .with_context(|| first.output())?;
    let second = stage.rebalance_controller()?;
    ensure!(evicted(stage, &before)? == 0, "{}", first.output());

    stage.run(&["label", "deployment/web", "rebalance.strew.dev/spread=true"])?;
    until("an eviction", CARRIED_OUT_WITHIN, PAUSE, || {
        Ok((evicted(stage, &before)? > 0).then_some(()))
    })
    .with_context(|| first.output())?;
    first.kill();
    until("an even workload", CARRIED_OUT_WITHIN, PAUSE, || {
        let pods = stage.pods()?;
        let is_placed = pods.len() == 9 && pods.iter().all(|pod| node_of(pod).is_some());
        let spread = stage.spread(&pods, ZONE)?;
        Ok((is_placed && spread.len() == 3 && spread.values().all(|&n| n == 3)).then_some(()))
    })
    .with_context(|| second.output())?;
    let n = evicted(stage, &before)?;
    ensure!(n == N_MOVES, "{n} evictions\n{}", second.output());

    let before = uneven(stage)?;
    let begin = now();
    until("two looks at the cluster", SOON, PAUSE, || {
        ensure!(evicted(stage, &before)? == 0, "{}", second.output());
        Ok((begin.elapsed() > TWO_LOOKS).then_some(()))
    })
}

/// How long two looks at the cluster take.
const TWO_LOOKS: Duration = Duration::from_secs(25);

/// Waits until no pod is on its way, then makes a new plan and carries it out: all in all each move is one eviction.
fn finished(stage: &Stage, before: &BTreeSet<String>) -> anyhow::Result<()> {
    stage.until_placed(9, 0)?;
    until_ready(stage)?;
    let plan = saved(stage, "rest.yaml")?;
    let done = rebalance(stage, &["--apply", &plan, "--yes"])?;
    ensure!(done.status.success(), "{done:?}");
    until_even(stage)?;
    let n = evicted(stage, before)?;
    ensure!(n == N_MOVES, "{n} evictions instead of {N_MOVES}");
    Ok(())
}

/// Nine pods while zone c is cordoned, which then takes pods again. Returns the uids of the pods.
fn uneven(stage: &Stage) -> anyhow::Result<BTreeSet<String>> {
    if stage.get("deployment/web").is_ok() {
        stage.run(&["delete", "deployment/web", "--cascade=foreground"])?;
        stage.until_placed(0, 0)?;
    }
    stage.run(&["cordon", "n-c"])?;
    stage.apply("rebalanced.yaml")?;
    let pods = stage.until_placed(9, 0)?;
    ensure!(pods.iter().all(|pod| node_of(pod) != Some("n-c")));
    stage.run(&["uncordon", "n-c"])?;
    until_ready(stage)?;
    Ok(uids(&pods))
}

/// Waits until all pods are ready and the budget says so.
fn until_ready(stage: &Stage) -> anyhow::Result<()> {
    until("the budget counts", SOON, PAUSE, || {
        let budget = stage.get("poddisruptionbudget/web")?;
        let status = &budget["status"];
        let is_whole = status["currentHealthy"] == 9 && status["disruptionsAllowed"] == 1;
        Ok(is_whole.then_some(()))
    })
}

fn until_even(stage: &Stage) -> anyhow::Result<()> {
    let pods = stage.until_placed(9, 0)?;
    let spread = stage.spread(&pods, ZONE)?;
    ensure!(spread.values().all(|&n| n == 3), "{spread:?}");
    Ok(())
}

/// Saves a plan; returns its path.
fn saved(stage: &Stage, name: &str) -> anyhow::Result<String> {
    let file: PathBuf = stage.lab.folder().join(name);
    let path = file.display().to_string();
    let namespace = format!("--namespace={}", stage.namespace);
    stage.strew(&["rebalance", &namespace, "-o", "yaml", "--out", &path])?;
    let text = fs::read_to_string(&file).with_context(|| path.clone())?;
    let plan: Value = serde_saphyr::from_str(&text)?;
    ensure!(plan["summary"]["unevenAfter"] == 0, "{text}");
    Ok(path)
}

/// Runs the command to its end.
fn rebalance(stage: &Stage, args: &[&str]) -> anyhow::Result<Output> {
    let output = Command::new(&stage.strew)
        .arg("rebalance")
        .args(args)
        .env("KUBECONFIG", stage.lab.folder().join("kubeconfig"))
        .stdin(std::process::Stdio::null())
        .output()?;
    Ok(output)
}

/// A process that carries a plan out.
fn carrying(stage: &mut Stage, plan: &str) -> anyhow::Result<xtask_lab::lab::Component> {
    let args = [
        "rebalance",
        "--kubeconfig=kubeconfig",
        "--apply",
        plan,
        "--yes",
    ];
    stage.lab.start_strew(&stage.strew, &args)
}

fn said(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr];
    parts.map(|part| String::from_utf8_lossy(part)).concat()
}

fn uids(pods: &[Value]) -> BTreeSet<String> {
    let uid = |pod: &Value| pod["metadata"]["uid"].as_str().map(str::to_owned);
    pods.iter().filter_map(uid).collect()
}

/// How many of these pods are gone.
fn evicted(stage: &Stage, before: &BTreeSet<String>) -> anyhow::Result<usize> {
    let now = uids(&stage.pods()?);
    Ok(before.difference(&now).count())
}
