//! All clusters of a control plane, as watches see them: which are at rest, and the ready pods of their workloads from
//! change to change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use strew_scenario::audit::values::Event;
use xtask_lab::lab::{Kubectl, now, until};

use super::case::{Numbers, Observed};
use super::cluster::{CLUSTER_LABEL, Cluster, ZONE};
use crate::e2e::follow::Follow;
use crate::fidelity::snapshot::{Snapshot, condition, is_terminating, name, node_of};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The time without a change after which a cluster is at rest, at least: one control plane has many to look after.
const CALM: Duration = Duration::from_secs(6);

/// What is watched.
const KINDS: [&str; 6] = [
    "pods",
    "nodes",
    "deployments",
    "replicasets",
    "statefulsets",
    "poddisruptionbudgets",
];

/// The clusters, kept up to date until it is dropped.
pub(super) struct Watched {
    clusters: Arc<Mutex<BTreeMap<String, State>>>,
    _follows: Vec<Follow<()>>,
}

/// A cluster.
struct State {
    /// By uid.
    objects: BTreeMap<String, Value>,
    /// The nodes whose pods do not count, in a loss or a shift.
    away: BTreeSet<String>,
    /// The nodes that are drained, whose pods count until they are evicted.
    drained: BTreeSet<String>,
    /// By `kind/name`.
    tallies: BTreeMap<String, Numbers>,
    changed: Instant,
    /// A node that nothing was done to and that was not ready since the event began: the machine was too busy.
    disturbed: Option<String>,
}

impl Watched {
    /// Begins to watch.
    pub(super) fn start(kubectl: &Kubectl, clusters: &[Cluster]) -> anyhow::Result<Self> {
        let states = clusters.iter().map(|cluster| {
            let state = State::new(cluster.wanted());
            (cluster.name.clone(), state)
        });
        let clusters = Arc::new(Mutex::new(states.collect::<BTreeMap<_, _>>()));
        let follow = |kind: &&str| {
            let clusters = Arc::clone(&clusters);
            Follow::within(
                kubectl,
                kind,
                "--all-namespaces",
                move |(): &mut (), of_type, object| {
                    let mut clusters = lock(&clusters);
                    if let Some(state) = cluster_of(object).and_then(|name| clusters.get_mut(name))
                    {
                        state.take_in(of_type, object);
                    }
                },
            )
        };
        let follows = KINDS.iter().map(follow).collect::<Result<_, _>>()?;
        Ok(Self {
            clusters,
            _follows: follows,
        })
    }

    /// Waits until all of these clusters are at rest, or the time is over; returns those that are not, with what each
    /// still waits for.
    pub(super) fn rest(
        &self,
        names: &BTreeSet<String>,
        within: Duration,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let begin = now();
        until("the clusters at rest", within * 2, PAUSE, || {
            let clusters = lock(&self.clusters);
            let restless = names.iter().filter_map(|name| {
                let why = clusters.get(name)?.unrest()?;
                Some((name.clone(), why))
            });
            let restless: BTreeMap<String, String> = restless.collect();
            let is_over = restless.is_empty() || begin.elapsed() >= within;
            Ok(is_over.then_some(restless))
        })
    }

    /// Begins an event that takes this zone away.
    pub(super) fn begin(&self, cluster: &str, zone: &str, event: Event) {
        if let Some(state) = lock(&self.clusters).get_mut(cluster) {
            state.begin(zone, event);
        }
    }

    /// The zone is back.
    pub(super) fn end(&self, cluster: &str) {
        if let Some(state) = lock(&self.clusters).get_mut(cluster) {
            state.away.clear();
            state.drained.clear();
            state.changed = now();
        }
    }

    /// A node that was not ready though nothing was done to it, since the event began.
    pub(super) fn disturbed(&self, cluster: &str) -> Option<String> {
        lock(&self.clusters).get(cluster)?.disturbed.clone()
    }

    /// A pod that runs and is not ready: kwok does not say so again after its node was lost for a moment, as a kubelet
    /// does.
    pub(super) fn unready(&self, cluster: &str) -> Option<String> {
        lock(&self.clusters).get(cluster)?.unready()
    }

    /// What became of all workloads of a cluster.
    pub(super) fn observed(&self, cluster: &str) -> BTreeMap<String, Observed> {
        let clusters = lock(&self.clusters);
        clusters.get(cluster).map_or_else(BTreeMap::new, |state| {
            let each = state.tallies.iter().map(|(of, numbers)| {
                let mut numbers = numbers.clone();
                numbers.budgets = state.budgets(of, numbers.wanted);
                let is_blocked = state.left().any(|pod| workload_of(pod) == Some(of.clone()));
                (of.clone(), Observed::new(numbers, is_blocked))
            });
            each.collect()
        })
    }
}

impl State {
    fn new(wanted: BTreeMap<String, u64>) -> Self {
        let tally = |wanted| Numbers {
            wanted,
            ..Numbers::default()
        };
        Self {
            objects: BTreeMap::new(),
            away: BTreeSet::new(),
            drained: BTreeSet::new(),
            tallies: wanted.into_iter().map(|(of, n)| (of, tally(n))).collect(),
            changed: now(),
            disturbed: None,
        }
    }

    fn take_in(&mut self, of_type: &str, object: &Value) {
        let Some(uid) = object["metadata"]["uid"].as_str() else {
            return;
        };
        let known = match of_type {
            "DELETED" => self.objects.remove(uid),
            _ => self.objects.insert(uid.to_owned(), object.clone()),
        };
        let is_beat = of_type != "DELETED" && known.is_some_and(|known| is_beat(&known, object));
        if !is_beat {
            self.changed = now();
        }
        match object["kind"].as_str() {
            Some("Pod") => self.count(),
            Some("Node") if !self.is_meant(object) && !has_reported(object) => {
                self.disturbed = Some(name(object).to_owned());
            }
            _ => {}
        }
    }

    fn is_meant(&self, node: &Value) -> bool {
        self.away.contains(name(node))
    }

    /// Counts the ready pods of all workloads outside the zone that is away.
    fn count(&mut self) {
        let mut ready: BTreeMap<String, u64> = BTreeMap::new();
        for pod in self.objects.values().filter(|o| o["kind"] == "Pod") {
            let is_away = node_of(pod).is_some_and(|node| self.away.contains(node));
            if is_ready(pod)
                && !is_away
                && let Some(of) = workload_of(pod)
            {
                *ready.entry(of).or_default() += 1;
            }
        }
        for (of, tally) in &mut self.tallies {
            tally.ready = ready.get(of).copied().unwrap_or(0);
            tally.fewest = tally.fewest.min(tally.ready);
        }
    }

    fn begin(&mut self, zone: &str, event: Event) {
        (self.away, self.drained) = Default::default();
        let pods = self.objects.values().filter(|o| o["kind"] == "Pod");
        let there: BTreeSet<String> = pods.filter_map(workload_of).collect();
        // A pod without a workload that an earlier event took is made by nothing again.
        self.tallies
            .retain(|of, _| !of.starts_with("pod/") || there.contains(of));
        self.count();
        for tally in self.tallies.values_mut() {
            tally.before = tally.ready;
        }
        let nodes = self.objects.values().filter(|o| o["kind"] == "Node");
        let its = nodes.filter(|node| node["metadata"]["labels"][ZONE] == zone);
        let its = its.map(|node| name(node).to_owned()).collect();
        match event {
            Event::Loss | Event::Shift => self.away = its,
            Event::Drain => self.drained = its,
        }
        self.changed = now();
        self.disturbed = None;
        self.count();
        for tally in self.tallies.values_mut() {
            (tally.at_once, tally.fewest) = (tally.ready, tally.ready);
        }
    }

    /// The budgets that select its pods.
    fn budgets(&self, of: &str, wanted: u64) -> Vec<[u64; 2]> {
        let app = of.split_once('/').map_or(of, |(_, name)| name);
        let budgets = self.objects.values();
        let budgets = budgets.filter(|o| o["kind"] == "PodDisruptionBudget");
        let its = budgets.filter(|o| o["spec"]["selector"]["matchLabels"]["app"] == app);
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        its.map(|budget| {
            let status = &budget["status"];
            let asks = number(&status["desiredHealthy"]).min(wanted);
            [number(&status["currentHealthy"]), asks]
        })
        .collect()
    }

    /// The pods that are left on drained nodes, and do not terminate.
    fn left(&self) -> impl Iterator<Item = &Value> {
        let pods = self.objects.values().filter(|o| o["kind"] == "Pod");
        pods.filter(|pod| {
            node_of(pod).is_some_and(|node| self.drained.contains(node)) && !is_terminating(pod)
        })
    }

    fn unready(&self) -> Option<String> {
        let mut pods = self.objects.values().filter(|o| o["kind"] == "Pod");
        let unready = pods.find(|pod| pod["status"]["phase"] == "Running" && !is_ready(pod));
        unready.map(|pod| name(pod).to_owned())
    }

    /// Why it is not at rest; `None` if it is.
    fn unrest(&self) -> Option<String> {
        let changed = |calm: Duration| {
            let is_new = self.changed.elapsed() < calm;
            is_new.then(|| format!("it changed in the last {} s", calm.as_secs()))
        };
        if let Some(why) = changed(CALM) {
            return Some(why);
        }
        let snapshot = Snapshot::of(self.objects.values().cloned().collect());
        if let Some(why) = changed(snapshot.calm()) {
            return Some(why);
        }
        snapshot.unrest().or_else(|| self.evicting(&snapshot))
    }

    /// The pods of lost nodes are evicted one node after the other, each after its toleration.
    fn evicting(&self, snapshot: &Snapshot) -> Option<String> {
        let lost = snapshot.all("Node").iter().filter(|node| is_lost(node));
        let lost: BTreeMap<&str, &Value> = lost.map(|node| (name(node), node)).collect();
        if let Some(node) = lost.values().find(|node| !evicts(node)) {
            return Some(format!("the pods of {} are not evicted yet", name(node)));
        }
        let pods = snapshot
            .all("Pod")
            .iter()
            .filter(|pod| !is_terminating(pod));
        let mut stay = pods.filter(|pod| node_of(pod).is_some_and(|node| lost.contains_key(node)));
        stay.next()
            .map(|pod| format!("{} is not evicted yet", name(pod)))
    }
}

fn has_reported(node: &Value) -> bool {
    condition(node, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// True for a node that reports no more.
fn is_lost(node: &Value) -> bool {
    condition(node, "Ready").is_some_and(|ready| ready["status"] == "Unknown")
}

/// True for a node whose taint evicts its pods.
fn evicts(node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| {
        taint["key"] == "node.kubernetes.io/unreachable" && taint["effect"] == "NoExecute"
    })
}

/// True if a node has only said that it is there.
fn is_beat(known: &Value, object: &Value) -> bool {
    let ready = |node: &Value| condition(node, "Ready").map(|ready| ready["status"].clone());
    object["kind"] == "Node"
        && known["spec"] == object["spec"]
        && known["metadata"]["labels"] == object["metadata"]["labels"]
        && ready(known) == ready(object)
}

fn is_ready(pod: &Value) -> bool {
    let is_running = pod["status"]["phase"] == "Running";
    let ready = condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
    is_running && ready && !is_terminating(pod)
}

/// The workload of a pod: that of its label, of its owner's kind.
fn workload_of(pod: &Value) -> Option<String> {
    let metadata = &pod["metadata"];
    let app = metadata["labels"]["app"].as_str()?;
    let owner = metadata["ownerReferences"][0]["kind"].as_str();
    let kind = match owner {
        Some("ReplicaSet") => "deployment",
        Some("StatefulSet") => "statefulset",
        _ => "pod",
    };
    Some(format!("{kind}/{app}"))
}

fn cluster_of(object: &Value) -> Option<&str> {
    let metadata = &object["metadata"];
    match object["kind"].as_str()? {
        "Node" => metadata["labels"][CLUSTER_LABEL].as_str(),
        _ => metadata["namespace"].as_str(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, node: &str, ready: bool) -> Value {
        let status = if ready { "True" } else { "False" };
        json!({
            "kind": "Pod",
            "metadata": {
                "uid": uid, "name": uid, "labels": {"app": "web"},
                "ownerReferences": [{"kind": "ReplicaSet"}],
            },
            "spec": {"nodeName": node},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]},
        })
    }

    #[test]
    fn the_fewest_ready_pods_are_those_of_any_moment_after_the_event() {
        let mut state = State::new(BTreeMap::from([("deployment/web".to_owned(), 2)]));
        let node = |name: &str, zone: &str| json!({"kind": "Node", "metadata": {"uid": name, "name": name, "labels": {ZONE: zone}}});
        state.take_in("ADDED", &node("n1", "a"));
        state.take_in("ADDED", &node("n2", "b"));
        state.take_in("ADDED", &pod("p1", "n1", true));
        state.take_in("ADDED", &pod("p2", "n2", true));
        state.begin("a", Event::Loss);
        state.take_in("MODIFIED", &pod("p2", "n2", false));
        assert_eq!(state.unready().as_deref(), Some("p2"));
        state.take_in("ADDED", &pod("p3", "n2", true));
        state.take_in("MODIFIED", &pod("p2", "n2", true));
        let web = &state.tallies["deployment/web"];
        let seen = [web.before, web.at_once, web.fewest, web.ready];
        assert_eq!(seen, [2, 1, 0, 2]);
        state.begin("a", Event::Drain);
        let web = &state.tallies["deployment/web"];
        assert_eq!((web.at_once, web.fewest), (3, 3));
        let left: Vec<&str> = state.left().map(name).collect();
        assert_eq!(left, ["p1"]);
    }
}
