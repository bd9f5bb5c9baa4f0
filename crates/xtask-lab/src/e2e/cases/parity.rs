//! kube-scheduler and strew on the same generated clusters, pod by pod: same nodes, same refusals.
//!
//! Source: spec/scheduler §7, the recipe for an exact comparison. Nodes are made while the scheduler runs, so that it
//! learns of them in a known order.

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use strew_model::Prng;
use xtask_lab::lab::until;

use crate::e2e::generated::{node, pod};
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, node_of, refusal};

/// The number of clusters in ci, and in full size.
const CLUSTERS: (u64, u64) = (5, 50);

const PODS: usize = 12;

/// The scheduler that decides.
#[derive(Debug, Clone, Copy)]
enum Contender {
    Kube,
    Strew,
}

/// Plays each cluster with both schedulers.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let n_clusters = if stage.is_full {
        CLUSTERS.1
    } else {
        CLUSTERS.0
    };
    let (mut n_placed, mut n_refused) = (0, 0);
    let mut differences = Vec::new();
    for seed in 1..=n_clusters {
        let mut dice = Prng::new(seed);
        let n_nodes = dice.between(4, 9);
        let nodes: Vec<Value> = (0..n_nodes).map(|i| node(i, &mut dice)).collect();
        let pods: Vec<Value> = (0..PODS).map(|i| pod(i, &mut dice)).collect();
        let kube = round(stage, Contender::Kube, &nodes, &pods)?;
        let strew = round(stage, Contender::Strew, &nodes, &pods)?;
        n_placed += kube.iter().filter(|o| matches!(o, Outcome::On(_))).count();
        n_refused += kube
            .iter()
            .filter(|o| matches!(o, Outcome::Refused(_)))
            .count();
        for ((pod, kube), strew) in pods.iter().zip(&kube).zip(&strew) {
            if kube != strew {
                let name = name_of(pod);
                differences.push(format!(
                    "seed {seed}, {name}:\n    kube-scheduler: {kube:?}\n    strew: {strew:?}"
                ));
                // Later differences would follow from this one.
                break;
            }
        }
    }
    println!("  {n_clusters} clusters: {n_placed} pods placed, {n_refused} refused");
    ensure!(
        n_placed > 0 && n_refused > 0,
        "the clusters show one kind of answer alone"
    );
    if differences.is_empty() {
        return Ok(());
    }
    bail!(
        "{} clusters differ:\n  {}",
        differences.len(),
        differences.join("\n  ")
    )
}

/// The result for a pod.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    On(String),
    Refused(String),
}

/// Starts a fresh process, and makes the nodes one after another, and then the pods.
fn round(
    stage: &mut Stage,
    contender: Contender,
    nodes: &[Value],
    pods: &[Value],
) -> anyhow::Result<Vec<Outcome>> {
    let process = match contender {
        Contender::Strew => stage.scheduler(&[])?,
        Contender::Kube => stage.lab.start_kube_scheduler(Some(&json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "parallelism": 1,
            "percentageOfNodesToScore": 100,
            "profiles": [{"schedulerName": "strew"}],
        })))?,
    };
    // A scheduler that refuses a pod for want of nodes has begun to watch.
    let probe = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe"},
        "spec": {"schedulerName": "strew", "containers": [{"name": "c", "image": "i"}]},
    });
    let answer = outcome(stage, &probe).with_context(|| process.output())?;
    let no_nodes = Outcome::Refused("no nodes available to schedule pods".to_owned());
    ensure!(answer == no_nodes, "without nodes: {answer:?}");
    stage.apply_all(nodes.to_vec())?;
    let outcomes = pods.iter().map(|pod| outcome(stage, pod)).collect();
    drop(process);
    stage.clear()?;
    outcomes
}

/// Makes a pod and waits for its result. A refused pod is deleted, so that the scheduler does not try it again.
fn outcome(stage: &Stage, pod: &Value) -> anyhow::Result<Outcome> {
    let name = format!("pod/{}", name_of(pod));
    stage.apply_all(vec![pod.clone()])?;
    let what = format!("a decision on {name}");
    let outcome = until(&what, SOON, PAUSE / 4, || {
        let pod = stage.get(&name)?;
        let placed = node_of(&pod).map(|node| Outcome::On(node.to_owned()));
        Ok(placed.or_else(|| refusal(&pod).map(|text| Outcome::Refused(text.to_owned()))))
    })?;
    if matches!(outcome, Outcome::Refused(_)) {
        stage.run(&["delete", &name, "--force", "--grace-period=0"])?;
    }
    Ok(outcome)
}
