//! The order in which pods are scheduled, and which pods wait.

use anyhow::ensure;
use xtask_lab::lab::until;

use crate::e2e::decisions::decisions;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, node_of, scheduled_condition};

/// The scheduler places a pod without gates meanwhile; the gated pod has no event until its gate is gone.
pub(super) fn gates(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("scheduling-gates.yaml")?;
    let _scheduler = stage.scheduler(&[])?;
    stage.until_event("free", "Scheduled")?;
    let gated = stage.get("pod/gated")?;
    let reason = scheduled_condition(&gated).map(|c| &c["reason"]);
    ensure!(
        node_of(&gated).is_none() && reason.is_some_and(|r| *r == "SchedulingGated"),
        "a gated pod: {gated}"
    );
    for reason in ["Scheduled", "FailedScheduling"] {
        let events = stage.events("gated", reason)?;
        ensure!(events.is_empty(), "a gated pod was tried: {events:?}");
    }
    let patch = r#"[{"op": "remove", "path": "/spec/schedulingGates"}]"#;
    stage.run(&["patch", "pod", "gated", "--type=json", "--patch", patch])?;
    stage.until_event("gated", "Scheduled")?;
    Ok(())
}

/// Both nodes are full; a budget protects the pod on one of them.
pub(super) fn preemption(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("preemption.yaml")?;
    let scheduler = stage.scheduler(&[])?;
    stage.until_placed(2, 0)?;
    // A budget gives its allowance only after its controller has seen the pods.
    stage.apply("preemption.budget.yaml")?;
    until("a budget that allows nothing", SOON, PAUSE, || {
        let budget = stage.get("poddisruptionbudget/protects")?;
        let status = &budget["status"];
        let is_seen = status["currentHealthy"] == 1 && status["disruptionsAllowed"] == 0;
        Ok(is_seen.then_some(()))
    })?;
    stage.apply("preemption.urgent.yaml")?;
    let pods = stage.until_pods("the urgent pod on a node", |pods| {
        let urgent = pods.iter().find(|pod| name_of(pod) == "urgent")?;
        node_of(urgent).and(Some(pods.to_vec()))
    })?;
    let mut names: Vec<&str> = pods.iter().map(name_of).collect();
    names.sort_unstable();
    ensure!(names == ["protected", "urgent"], "there are {names:?}");
    let urgent = stage.get("pod/urgent")?;
    let uid = urgent["metadata"]["uid"].as_str().unwrap_or_default();
    let node = node_of(&urgent).unwrap_or_default();
    let event = stage.until_event("plain", "Preempted")?;
    let expected = format!("Preempted by pod {uid} on node {node}");
    ensure!(event["note"] == *expected, "{}", event["note"]);
    ensure!(event["related"]["name"] == "urgent", "{event}");
    let decided = decisions(&scheduler.output());
    let victims: Vec<&str> = decided
        .iter()
        .filter(|d| d.verb == "preempt")
        .map(|d| d.pod.as_str())
        .collect();
    ensure!(victims == ["preemption/plain"], "victims: {victims:?}");
    Ok(())
}
