//! Plays events in many clusters of one control plane at the same time.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::Timestamp;
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

/// For how long pods must stay in one bucket of age when a shift begins: rollouts of six pods take less.
const ALIKE_FOR: Duration = Duration::from_secs(45);

/// The time in which pods that were created within half a minute come to be in one bucket of age.
const ALIKE_WITHIN: Duration = Duration::from_secs(200);

/// The order of events: the shift comes before other pods have taken the place of lost ones.
const ORDER: [Event; 3] = [Event::Shift, Event::Loss, Event::Drain];

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
            for (place, event) in ORDER.into_iter().enumerate() {
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
        let dump = match event {
            Event::Shift => self.snapshot_of_one_age()?,
            Event::Loss | Event::Drain => self.snapshot()?,
        };
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

    /// A snapshot in which a rollout deletes old pods in the order that they have in strew's audit minutes later: a
    /// ReplicaSet compares ages by powers of two, and within one of them it goes by uids.
    fn snapshot_of_one_age(&self) -> anyhow::Result<Value> {
        let pause = Duration::from_secs(2);
        until("pods of one age", ALIKE_WITHIN, pause, || {
            let dump = self.snapshot()?;
            Ok(is_of_one_age(&dump, Timestamp::now()).then_some(dump))
        })
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

/// True if the times since the creation of all pods, and since they are ready, are between the same powers of two of
/// nanoseconds, and stay so for [`ALIKE_FOR`].
fn is_of_one_age(dump: &Value, now: Timestamp) -> bool {
    let items = dump["items"].as_array().into_iter().flatten();
    let pods = items.filter(|item| item["kind"] == "Pod");
    let times = pods.flat_map(|pod| {
        let conditions = pod["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten();
        let ready = ready.filter(|condition| condition["type"] == "Ready");
        let ready = ready.map(|condition| &condition["lastTransitionTime"]);
        std::iter::once(&pod["metadata"]["creationTimestamp"]).chain(ready)
    });
    let ages = times.filter_map(|time| {
        let time: Timestamp = time.as_str()?.parse().ok()?;
        Duration::try_from(now.duration_since(time)).ok()
    });
    let ages: Vec<Duration> = ages.collect();
    let bucket = |age: Duration| age.as_nanos().checked_ilog2();
    let youngest = ages.iter().min().map(|age| bucket(*age));
    let oldest = ages.iter().max().map(|age| bucket(*age + ALIKE_FOR));
    youngest == oldest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_of_one_age_between_two_powers_of_two() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let pod = |created: &str, ready: &str| {
            json!({
                "kind": "Pod", "metadata": {"creationTimestamp": created},
                "status": {"conditions": [{"type": "Ready", "lastTransitionTime": ready}]},
            })
        };
        let is = |pods: &[Value]| is_of_one_age(&json!({"items": pods}), now);
        // 2^36 ns are 68.7 s, 2^37 are 137.4 s.
        let at_90 = pod("2026-01-01T00:58:30Z", "2026-01-01T00:58:31Z");
        let at_60 = pod("2026-01-01T00:59:00Z", "2026-01-01T00:59:01Z");
        let at_100 = pod("2026-01-01T00:58:20Z", "2026-01-01T00:58:21Z");
        let became_ready_late = pod("2026-01-01T00:58:30Z", "2026-01-01T00:59:01Z");
        assert!(is(std::slice::from_ref(&at_90)));
        assert!(!is(&[at_90, at_60]), "between them is a power of two");
        assert!(!is(&[at_100]), "the power of two comes too soon");
        assert!(!is(&[became_ready_late]));
    }
}
