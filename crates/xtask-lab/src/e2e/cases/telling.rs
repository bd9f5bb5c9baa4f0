//! What users see: conditions and events.

use anyhow::ensure;
use serde_json::{Value, json};
use xtask_lab::lab::until;

use crate::e2e::decisions::{decisions, says};
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, node_of, scheduled_condition};

/// A sentence of kube-scheduler v1.36.3. Source: spec/scheduler §2.9, an example that was run.
const REFUSAL: &str = "0/5 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread \
                       constraints (missing required label), 1 node(s) had untolerated taint(s), 2 node(s) didn't \
                       match pod topology spread constraints. no new claims to deallocate, preemption: 0/5 nodes are \
                       available: 2 No preemption victims found for incoming pod, 3 Preemption is not helpful for \
                       scheduling.";

/// Five nodes, each of which refuses the pod for another reason.
pub(super) fn messages(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("messages.yaml")?;
    let scheduler = stage.scheduler(&[])?;
    let pods = stage.until_pods("a pod that is refused", |pods| {
        let told = pods.iter().filter(|pod| scheduled_condition(pod).is_some());
        (told.count() == 2).then(|| pods.to_vec())
    })?;
    for pod in &pods {
        let condition = scheduled_condition(pod).unwrap_or(&Value::Null);
        match name_of(pod) {
            "refused" => {
                expect("status", &condition["status"], "False")?;
                expect("reason", &condition["reason"], "Unschedulable")?;
                expect("message", &condition["message"], REFUSAL)?;
                let event = stage.until_event("refused", "FailedScheduling")?;
                expect_event(&event, "Warning", "Scheduling", REFUSAL)?;
            }
            "placed" => {
                expect("status", &condition["status"], "True")?;
                let event = stage.until_event("placed", "Scheduled")?;
                let node = node_of(pod).unwrap_or_default();
                let note = format!("Successfully assigned {}/placed to {node}", stage.namespace);
                expect_event(&event, "Normal", "Binding", &note)?;
            }
            // They were on nodes before.
            _ => {}
        }
    }
    // As a user looks.
    let described = stage.run(&["describe", "pod", "refused"])?;
    ensure!(described.contains(REFUSAL), "kubectl describe: {described}");
    let log = scheduler.output();
    ensure!(says(&log, "the cluster is known"), "the log says nothing");
    let decided = decisions(&log);
    let binds: Vec<&str> = decided.iter().map(|d| d.pod.as_str()).collect();
    ensure!(binds == ["messages/placed"], "decided: {decided:?}");
    Ok(())
}

fn expect_event(event: &Value, of_type: &str, action: &str, note: &str) -> anyhow::Result<()> {
    expect("type", &event["type"], of_type)?;
    expect("action", &event["action"], action)?;
    expect("note", &event["note"], note)?;
    expect("controller", &event["reportingController"], "strew")?;
    let instance = event["reportingInstance"].as_str().unwrap_or_default();
    ensure!(instance.starts_with("strew-"), "instance is {instance:?}");
    Ok(())
}

fn expect(what: &str, found: &Value, expected: &str) -> anyhow::Result<()> {
    ensure!(*found == expected, "{what} is {found}, not {expected:?}");
    Ok(())
}

/// Another pod with the same labels makes the scheduler try the refused pod again, with the same result.
pub(super) fn series(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("event-series.yaml")?;
    let configuration = stage.file("event-series.config.yaml");
    let _scheduler = stage.scheduler(&[&format!("--config={}", configuration.display())])?;
    stage.until_event("refused", "FailedScheduling")?;
    let mut n_others = 0;
    let event = until("a count of four tries", SOON, PAUSE, || {
        n_others += 1;
        stage.apply_all(vec![json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("other-{n_others}"), "labels": {"app": "web"}},
            "spec": {"nodeName": "n-1", "containers": [{"name": "web", "image": "web"}]},
        })])?;
        let events = stage.events("refused", "FailedScheduling")?;
        ensure!(events.len() == 1, "{} events of one sentence", events.len());
        let count = events[0]["series"]["count"].as_u64();
        Ok(count.filter(|&n| n >= 4).map(|_| events[0].clone()))
    })?;
    let note = event["note"].as_str().unwrap_or_default();
    ensure!(
        note.starts_with("0/1 nodes are available: 1 node(s) didn't match pod topology spread"),
        "note is {note:?}"
    );
    // The event as kubectl shows it.
    let shown = stage.run(&["get", "events", "--output=wide"])?;
    let lines = shown.lines().filter(|l| l.contains("FailedScheduling"));
    ensure!(lines.count() == 1, "kubectl get events:\n{shown}");
    Ok(())
}
