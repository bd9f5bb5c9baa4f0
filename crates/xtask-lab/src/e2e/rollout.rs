//! A rollout with a fault in the middle, and how it is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, until};

use super::decisions::{Decision, decisions};
use super::stage::{PAUSE, Stage, name_of, node_of};
use super::watch_log::WatchLog;

const ZONE: &str = "topology.kubernetes.io/zone";

/// The time for a rollout of 2,000 pods on a busy machine.
const DONE_WITHIN: Duration = Duration::from_secs(180);

/// The share of the rollout that is done when the fault comes.
const MIDDLE: f64 = 0.3;

/// The most event objects about one pod: one for its placement, and a few for the reasons of refusals.
const EVENTS_MAX: usize = 6;

/// A Deployment with a hard constraint over zones, for each revision alone.
pub(super) struct Rollout {
    n_pods: usize,
    log: WatchLog,
    /// The pods of the revision before.
    before: BTreeSet<String>,
}

impl Rollout {
    /// Makes nodes and Deployment; the scheduler must run already.
    pub(super) fn prepare(stage: &Stage) -> anyhow::Result<Self> {
        let (n_pods, n_nodes) = if stage.is_full {
            (2000, 500)
        } else {
            (200, 50)
        };
        let log = WatchLog::start(stage)?;
        stage.apply_all((0..n_nodes).map(node).collect())?;
        stage.apply_all(vec![deployment(n_pods)])?;
        let mut rollout = Self {
            n_pods,
            log,
            before: BTreeSet::new(),
        };
        rollout.until_done(stage)?;
        rollout.before = rollout.log.seen().into_keys().collect();
        Ok(rollout)
    }

    /// Begins the next revision; returns in the middle of it.
    pub(super) fn to_the_middle(&self, stage: &Stage) -> anyhow::Result<()> {
        stage.run(&["set", "image", "deployment/web", "web=web:2"])?;
        let wanted = (self.n_pods as f64 * MIDDLE) as usize;
        until(
            "the middle of a rollout",
            DONE_WITHIN,
            Duration::from_millis(5),
            || {
                let placed = self.log.n_bound_beside(&self.before);
                ensure!(placed < self.n_pods, "too quick: the rollout is over");
                Ok((placed >= wanted).then_some(()))
            },
        )
    }

    /// The longest time after this moment in which no pod got a node, while more pods had to come.
    pub(super) fn longest_pause(&self, moment: Instant) -> Duration {
        let mut last = moment;
        let mut longest = Duration::ZERO;
        for at in self.log.bound_after(moment) {
            longest = longest.max(at - last);
            last = at;
        }
        longest
    }

    /// Waits until all pods are of the last revision. It does not wait until they are available: kwok's kubelets report
    /// that, and may miss their moment while the API server is away.
    pub(super) fn until_done(&self, stage: &Stage) -> anyhow::Result<()> {
        self.until_done_within(stage, DONE_WITHIN)
    }

    /// [`Self::until_done`] with another deadline.
    pub(super) fn until_done_within(&self, stage: &Stage, within: Duration) -> anyhow::Result<()> {
        let mut last = Value::Null;
        until("the rollout is done", within, 2 * PAUSE, || {
            let web = stage.get("deployment/web")?;
            last = web["status"].clone();
            let n = json!(self.n_pods);
            let is_done = ["replicas", "updatedReplicas"]
                .iter()
                .all(|field| last[field] == n)
                && last["observedGeneration"] == web["metadata"]["generation"];
            Ok(is_done.then_some(()))
        })
        .with_context(|| last.to_string())
    }

    /// Waits for the end, and judges the result from the logs of all replicas.
    pub(super) fn judge(&self, stage: &Stage, replicas: &[&Component]) -> anyhow::Result<Verdict> {
        let is_ending = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        let current = stage.until_pods("all pods on nodes", |pods| {
            let current: Vec<Value> = pods.iter().filter(|p| !is_ending(p)).cloned().collect();
            let is_done = current.len() == self.n_pods
                && current
                    .iter()
                    .all(|pod| is_next(pod) && node_of(pod).is_some());
            is_done.then_some(current)
        })?;
        let zones = stage.spread(&current, ZONE)?;
        let (least, most) = (zones.values().min(), zones.values().max());
        ensure!(
            most.zip(least)
                .is_some_and(|(most, least)| most - least <= 1),
            "the hard constraint is broken at rest: {zones:?}"
        );
        let decided: Vec<Decision> = replicas
            .iter()
            .flat_map(|r| decisions(&r.output()))
            .collect();
        let n_again = judge_binds(&current, &self.log, &decided)?;
        Ok(Verdict {
            n_again,
            n_events_max: judge_events(stage)?,
        })
    }
}

/// The figures of a rollout that was judged good.
pub(super) struct Verdict {
    /// The number of pods that were decided on more than once, because the result of the first decision was unknown.
    pub(super) n_again: usize,
    /// The most events about one pod.
    pub(super) n_events_max: usize,
}

/// Expects every pod on the node that was decided, and never on another.
fn judge_binds(pods: &[Value], log: &WatchLog, decided: &[Decision]) -> anyhow::Result<usize> {
    let mut nodes_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for decision in decided.iter().filter(|d| d.verb == "bind") {
        let node = decision.node.as_deref().unwrap_or_default();
        nodes_of.entry(&decision.uid).or_default().push(node);
    }
    for pod in pods {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let node = node_of(pod).with_context(|| format!("{} is on no node", name_of(pod)))?;
        let decided = nodes_of.get(uid).map(Vec::as_slice).unwrap_or_default();
        ensure!(
            decided.contains(&node),
            "{} is on {node}; decided was {decided:?}",
            name_of(pod)
        );
    }
    for pod in log.seen().values() {
        ensure!(pod.nodes.len() <= 1, "{} was on {:?}", pod.name, pod.nodes);
    }
    Ok(nodes_of.values().filter(|nodes| nodes.len() > 1).count())
}

/// Expects no pod with more event objects than it has different messages.
fn judge_events(stage: &Stage) -> anyhow::Result<usize> {
    let mut n_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut n_placed: BTreeMap<String, usize> = BTreeMap::new();
    for event in stage.list("events.events.k8s.io")? {
        if event["reportingController"] != "strew" {
            continue;
        }
        let about = event["regarding"]["uid"].as_str().unwrap_or_default();
        *n_of.entry(about.to_owned()).or_default() += 1;
        if event["reason"] == "Scheduled" {
            *n_placed.entry(about.to_owned()).or_default() += 1;
        }
    }
    let most = n_of.values().max().copied().unwrap_or_default();
    ensure!(most <= EVENTS_MAX, "{most} events about one pod");
    ensure!(
        n_placed.values().all(|&n| n == 1),
        "a pod was told twice that it is placed"
    );
    Ok(most)
}

fn is_next(pod: &Value) -> bool {
    pod["spec"]["containers"][0]["image"] == "web:2"
}

fn node(number: usize) -> Value {
    let zone = ["a", "b", "c"][number % 3];
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("n-{number:03}"), "labels": {ZONE: zone}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    })
}

fn deployment(replicas: usize) -> Value {
    let labels = json!({"app": "web"});
    let constraint = |key: &str, when: &str| {
        json!({
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": labels},
            "matchLabelKeys": ["pod-template-hash"],
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "50%"}},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "schedulerName": "strew",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "web",
                        "image": "web:1",
                        "resources": {"requests": {"cpu": "100m"}},
                    }],
                    "topologySpreadConstraints": [
                        constraint(ZONE, "DoNotSchedule"),
                        constraint("kubernetes.io/hostname", "ScheduleAnyway"),
                    ],
                },
            },
        },
    })
}

/// Prints the course of the rollout in one line.
pub(super) fn tell(rollout: &Rollout, fault: Instant, verdict: &Verdict) {
    println!(
        "  the longest pause without a pod on a node was {:.1} s, the rollout was done {:.1} s after the fault; {} pods \
         decided again, at most {} events a pod",
        rollout.longest_pause(fault).as_secs_f64(),
        fault.elapsed().as_secs_f64(),
        verdict.n_again,
        verdict.n_events_max
    );
}
