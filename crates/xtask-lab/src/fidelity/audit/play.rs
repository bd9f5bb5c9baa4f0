//! Plays events in many clusters of one control plane at the same time.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use strew_scenario::audit::values::Event;
use xtask_lab::lab::{KUBELET_LABEL, Kubectl, Lab, Options, Scheduler, Timing, now, until};

use super::case::{Case, objects_of};
use super::cluster::{Cluster, ZONE};
use super::watched::Watched;
use crate::fidelity::verb;

/// How long a node may be silent: the order of what follows does not depend on it.
const GRACE: Duration = Duration::from_secs(40);

/// The time for a cluster to come to rest.
const REST_WITHIN: Duration = Duration::from_secs(200);

/// The time that a drain gives each node. kubectl asks again every five seconds, and no cluster has a workload with more
/// than six pods.
const DRAIN_TIMEOUT: &str = "--timeout=45s";

/// What one event in one cluster came to.
pub(super) enum Found {
    /// It is written already.
    Case(Box<Case>),
    /// It could not be observed: its name, and why.
    Void(String, String),
}

/// The clusters of a run.
pub(super) struct Drawn<'a> {
    /// What they are drawn from.
    pub(super) seed: u64,
    pub(super) clusters: Vec<Cluster>,
    /// Where each case is written as soon as it is known.
    pub(super) folder: &'a Path,
}

/// Plays each event for `n_zones` zones in all of these clusters; what is found goes to `found` as soon as it is known.
///
/// # Errors
/// The control plane fails. What one cluster does is none.
pub(super) fn play(
    top: &Path,
    strew: &Path,
    drawn: &Drawn<'_>,
    n_zones: usize,
    found: &Sender<Found>,
) -> anyhow::Result<()> {
    let seconds = |min, max| (Duration::from_secs(min), Duration::from_secs(max));
    let mut lab = Lab::start(
        top,
        &Options {
            // Those of strew's audit.
            timing: Timing::from([
                ("podStart".to_owned(), seconds(1, 3)),
                ("podStop".to_owned(), seconds(1, 2)),
            ]),
            scheduler: Scheduler::Kube(None),
            feature_gates: Vec::new(),
            grace: Some(GRACE),
        },
    )?;
    let watched = Watched::start(lab.kubectl(), &drawn.clusters)?;
    let run = Run {
        kubectl: lab.kubectl(),
        strew,
        drawn,
        watched: &watched,
        found,
    };
    let result = run.all(n_zones);
    lab.expect_running()?;
    result
}

struct Run<'a> {
    kubectl: &'a Kubectl,
    strew: &'a Path,
    drawn: &'a Drawn<'a>,
    watched: &'a Watched,
    found: &'a Sender<Found>,
}

impl Run<'_> {
    fn all(&self, n_zones: usize) -> anyhow::Result<()> {
        let begin = now();
        let tell = |what: &str| {
            println!("  {:>5.0} s  {what}", begin.elapsed().as_secs_f64());
        };
        self.make()?;
        let mut alive: BTreeSet<String> = { self.drawn.clusters.iter() }
            .map(|cluster| cluster.name.clone())
            .collect();
        self.settle(&mut alive, "after its creation")?;
        for turn in 0..n_zones {
            for (place, event) in Event::ALL.into_iter().enumerate() {
                tell(&format!("{} of {} clusters", event.name(), alive.len()));
                self.event(event, turn + place, &mut alive)?;
            }
        }
        tell("done");
        Ok(())
    }

    /// Makes namespaces, nodes, and then all objects.
    fn make(&self) -> anyhow::Result<()> {
        let namespace = |cluster: &Cluster| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.name}});
        let namespaces: Vec<Value> = self.drawn.clusters.iter().map(namespace).collect();
        verb::apply(self.kubectl, "create", &namespaces)?;
        let nodes: Vec<Value> = { self.drawn.clusters.iter() }
            .flat_map(|cluster| cluster.nodes.clone())
            .collect();
        verb::apply(self.kubectl, "create", &nodes)?;
        let names = self
            .drawn
            .clusters
            .iter()
            .map(|cluster| cluster.name.clone());
        let restless = self.watched.rest(&names.collect(), REST_WITHIN)?;
        ensure!(
            restless.is_empty(),
            "nodes do not become ready: {restless:?}"
        );
        // A pod is refused while its namespace has no service account.
        until(
            "service accounts",
            REST_WITHIN,
            Duration::from_secs(1),
            || {
                let accounts = self.kubectl.objects("serviceaccounts")?;
                let of: BTreeSet<_> = { accounts.iter() }
                    .filter_map(|account| account["metadata"]["namespace"].as_str())
                    .collect();
                let has_all = self
                    .drawn
                    .clusters
                    .iter()
                    .all(|c| of.contains(c.name.as_str()));
                Ok(has_all.then_some(()))
            },
        )?;
        let objects: Vec<Value> = { self.drawn.clusters.iter() }
            .flat_map(|cluster| cluster.objects.clone())
            .collect();
        verb::apply(self.kubectl, "create", &objects)
    }

    /// Waits for rest; those that do not come to rest take no further part.
    fn settle(&self, alive: &mut BTreeSet<String>, when: &str) -> anyhow::Result<()> {
        for (name, why) in self.watched.rest(alive, REST_WITHIN)? {
            alive.remove(&name);
            self.void(&name, format!("no rest {when}: {why}"))?;
        }
        Ok(())
    }

    /// A cluster that takes no further part.
    fn void(&self, cluster: &str, why: String) -> anyhow::Result<()> {
        let name = format!("s{}-{cluster}", self.drawn.seed);
        Ok(self.found.send(Found::Void(name, why))?)
    }

    /// Plays an event in a zone of each cluster, and gives the zone back.
    fn event(&self, event: Event, turn: usize, alive: &mut BTreeSet<String>) -> anyhow::Result<()> {
        for cluster in alive.clone() {
            if let Some(pod) = self.watched.unready(&cluster) {
                alive.remove(&cluster);
                let why = format!("{pod} runs, and is not ready before the {}", event.name());
                self.void(&cluster, why)?;
            }
        }
        let dump = self.snapshot()?;
        let parts = self.drawn.clusters.iter().enumerate();
        let parts = parts.filter(|(_, cluster)| alive.contains(&cluster.name));
        let parts: Vec<Part<'_>> = parts
            .map(|(index, cluster)| Part {
                cluster,
                zone: cluster.zones()[(index + turn) % 3].clone(),
                objects: objects_of(&dump, &cluster.name),
            })
            .collect();
        for part in &parts {
            self.watched.begin(&part.cluster.name, &part.zone, event);
        }
        match event {
            Event::Loss => self.on_nodes(&parts, &["label"], &format!("{KUBELET_LABEL}-"))?,
            Event::Shift => self.shift(&parts)?,
            Event::Drain => self.drain(&parts)?,
        }
        let restless = self.watched.rest(alive, REST_WITHIN)?;
        for part in &parts {
            let cluster = &part.cluster.name;
            let zone = part.zone.strip_prefix(cluster).unwrap_or_default();
            let name = format!("s{}-{cluster}{zone}-{}", self.drawn.seed, event.name());
            let disturbed = self.watched.disturbed(cluster);
            self.found.send(match (restless.get(cluster), disturbed) {
                (Some(why), _) => Found::Void(name, format!("no rest: {why}")),
                (None, Some(node)) => Found::Void(name, format!("{node} was lost beside it")),
                (None, None) => {
                    let case = Case {
                        name,
                        event,
                        zone: part.zone.clone(),
                        observed: self.watched.observed(cluster),
                        objects: part.objects.clone(),
                    };
                    case.write(self.drawn.folder)?;
                    Found::Case(Box::new(case))
                }
            })?;
            self.watched.end(cluster);
        }
        match event {
            Event::Loss => self.on_nodes(&parts, &["label"], &format!("{KUBELET_LABEL}=runs"))?,
            Event::Shift | Event::Drain => self.on_nodes(&parts, &["uncordon"], "")?,
        }
        self.settle(alive, &format!("after its {}", event.name()))
    }

    fn snapshot(&self) -> anyhow::Result<Value> {
        let kubectl = self.kubectl.command(&[]);
        let environment = kubectl.get_envs();
        let kubeconfig = environment
            .filter(|(name, _)| *name == "KUBECONFIG")
            .find_map(|(_, value)| value);
        let output = Command::new(self.strew)
            .arg("snapshot")
            .arg("--kubeconfig")
            .arg(kubeconfig.context("the lab's kubeconfig")?)
            .output()?;
        ensure!(
            output.status.success(),
            "strew snapshot: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Runs kubectl for all nodes of all zones.
    fn on_nodes(&self, parts: &[Part<'_>], verb: &[&str], last: &str) -> anyhow::Result<()> {
        if parts.is_empty() {
            return Ok(());
        }
        let zones: Vec<&str> = parts.iter().map(|part| part.zone.as_str()).collect();
        let selector = format!("--selector={ZONE} in ({})", zones.join(","));
        let mut arguments = verb.to_vec();
        if verb == ["label"] {
            arguments.extend(["nodes", "--overwrite"]);
        }
        arguments.push(&selector);
        if !last.is_empty() {
            arguments.push(last);
        }
        self.kubectl.run(&arguments).map(drop)
    }

    /// Cordons the zones, whose pods no longer count, and restarts every workload.
    fn shift(&self, parts: &[Part<'_>]) -> anyhow::Result<()> {
        self.on_nodes(parts, &["cordon"], "")?;
        for part in parts {
            let workloads = part.cluster.wanted().into_keys();
            let workloads: Vec<String> = workloads.filter(|of| !of.starts_with("pod/")).collect();
            let namespace = format!("--namespace={}", part.cluster.name);
            let mut arguments = vec!["rollout", "restart", &namespace];
            arguments.extend(workloads.iter().map(String::as_str));
            if !workloads.is_empty() {
                self.kubectl.run(&arguments)?;
            }
        }
        Ok(())
    }

    /// Drains all zones with kubectl, which leaves a node that budgets refuse for a while.
    fn drain(&self, parts: &[Part<'_>]) -> anyhow::Result<()> {
        let drains = parts.iter().map(|part| self.start_drain(part));
        let mut drains: Vec<Child> = drains.collect::<Result<_, _>>()?;
        for drain in &mut drains {
            // What it leaves on its nodes says how it ended.
            let _ = drain.wait()?;
        }
        Ok(())
    }

    fn start_drain(&self, part: &Part<'_>) -> anyhow::Result<Child> {
        let selector = format!("--selector={ZONE}={}", part.zone);
        let arguments = [
            "drain",
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            DRAIN_TIMEOUT,
            &selector,
        ];
        let mut kubectl = self.kubectl.command(&arguments);
        kubectl
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(kubectl.spawn()?)
    }
}

/// A cluster in an event.
struct Part<'a> {
    cluster: &'a Cluster,
    zone: String,
    /// Its objects before.
    objects: Vec<Value>,
}
