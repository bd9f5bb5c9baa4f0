//! A sweep of seeds as a Job: a pod of it is killed and a node is lost, and its result is that of one process.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use xtask_lab::lab::{STREW_IMAGE, now, until};

use super::super::super::stage::{PAUSE, name_of, node_of};
use super::{Field, WITHIN};

const FILE: &str = "scenarios/rollout-match-label-keys.yaml";

/// Enough for some ten seconds a shard.
const SEEDS: &str = "--seeds=0..1200";

const SHARDS: &str = "--shards=6";

/// The longest time until the Job is complete: the node lifecycle controller gives a silent node 50 s, its pods stay for
/// another 30 s, and are played again then.
const COMPLETE_WITHIN: Duration = Duration::from_secs(300);

pub(super) fn play(field: &Field<'_>) -> anyhow::Result<String> {
    let image = format!("--image={STREW_IMAGE}");
    let list = field.printed(&["sweep", FILE, SEEDS, SHARDS, "--pod-memory=256Mi", &image])?;
    field.apply(&list)?;
    let begin = now();
    let items = list["items"].as_array().context("no list is printed")?;
    let job = items.iter().find(|item| item["kind"] == "Job");
    let job = job.map(name_of).context("no Job is printed")?;
    let selection = format!("--selector=batch.kubernetes.io/job-name={job}");
    let on_two_nodes = until("no two nodes play shards", WITHIN, PAUSE, || {
        let mut pods = field.list(&["pods", &selection])?;
        pods.retain(|pod| pod["status"]["phase"] == "Running" && node_of(pod).is_some());
        let other = |pod: &&Value| node_of(pod) != node_of(&pods[0]);
        let found = pods.iter().find(other).zip(pods.first());
        Ok(found.map(|(lost, killed)| (lost.clone(), name_of(killed).to_owned())))
    })?;
    let (lost, killed) = on_two_nodes;
    let node = node_of(&lost).context("the pod has no node")?;
    field.lab.set_link(node, false)?;
    let complete = field
        .run(&["delete", "pod", &killed, "--wait=false", "--grace-period=1"])
        .and_then(|_| {
            until("the Job is not complete", COMPLETE_WITHIN, PAUSE, || {
                let succeeded = "--output=jsonpath={.status.succeeded}";
                let succeeded = field.run(&["get", "job", job, succeeded])?;
                Ok((succeeded == "6").then(|| begin.elapsed()))
            })
        });
    field.lab.set_link(node, true)?;
    let complete = complete?;
    field.parts_are_ready()?;
    let merged = field.said(&["sweep", "--collect", job, "--output=summary"])?;
    let alone = field.said(&["simulate", FILE, SEEDS, "--output=summary"])?;
    ensure!(
        merged == alone,
        "of the Job: {merged}\nof one process: {alone}"
    );
    let pods = field.list(&["pods", &selection])?;
    field.run(&["delete", "job,configmap", job, "--ignore-not-found"])?;
    Ok(format!(
        "six shards, one killed and {node} lost: complete after {:.1} s, {} pods, the result of one process to the byte",
        complete.as_secs_f64(),
        pods.len()
    ))
}
