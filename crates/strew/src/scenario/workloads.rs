//! Workloads of a running simulation, as the report tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use strew_controllers::Tables;
use strew_controllers::object::{
    DaemonSet, Deployment, Job, Meta, Name, Pod, ReplicaSet, ReplicationController, StatefulSet,
    Stored,
};
use strew_scenario::expect::pods::{blocked_by, message};
use strew_scenario::expect::spread::{ByDomain, by_domain, skew};
use strew_sim::Simulation;

/// Keys of workloads that say nothing of spreading.
const USUAL_KEYS: [&str; 2] = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"];

/// A workload at the end of a step.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Workload {
    /// TYPE/NAME
    of: String,
    namespace: String,
    /// Pods that have neither finished nor been asked to go.
    replicas: usize,
    ready: usize,
    pending: Vec<Pending>,
    spread: Vec<Spread>,
}

/// Pods on no node for the same.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pending {
    count: usize,
    blocked_by: Vec<&'static str>,
    message: String,
}

#[derive(Debug, Clone, Serialize)]
struct Spread {
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraint: Option<Constraint>,
    counts: ByDomain,
    skew: u32,
    /// Pods on nodes by revision, where there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    revisions: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Constraint {
    when_unsatisfiable: String,
    max_skew: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_domains: Option<i32>,
}

/// The largest skew of a workload by a key, over a run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MaxSkew {
    of: String,
    namespace: String,
    by: String,
    skew: u32,
}

/// Namespace, then TYPE/NAME: of whom a pod is.
type Whose = (Arc<str>, String);

/// The largest skew so far of each workload and key.
#[derive(Debug, Default)]
pub(super) struct Skews {
    largest: BTreeMap<(Whose, String), u32>,
    /// The resourceVersion of the last look.
    seen: Option<u64>,
}

impl Skews {
    /// Looks at a simulation, if something was written since.
    pub(super) fn look(&mut self, simulation: &Simulation) {
        let server = simulation.server();
        if self.seen.replace(server.version()) == Some(server.version()) {
            return;
        }
        for (whose, pods) in grouped(server.tables()) {
            for (key, counts) in spreads(server.tables(), &pods) {
                let largest = self.largest.entry((whose.clone(), key)).or_default();
                *largest = (*largest).max(skew(&counts));
            }
        }
    }

    /// What was found.
    pub(super) fn finish(self) -> Vec<MaxSkew> {
        let each = self.largest.into_iter();
        let each = each.map(|(((namespace, of), by), skew)| MaxSkew {
            of,
            namespace: namespace.to_string(),
            by,
            skew,
        });
        each.collect()
    }
}

/// All workloads, by namespace and name.
pub(super) fn workloads(simulation: &Simulation) -> Vec<Workload> {
    let tables = simulation.server().tables();
    let each = grouped(tables).into_iter();
    let each = each.map(|((namespace, of), pods)| Workload {
        of,
        namespace: namespace.to_string(),
        replicas: pods.len(),
        ready: pods.iter().filter(|pod| pod.is_ready()).count(),
        pending: pending(simulation, &pods),
        spread: spreads(tables, &pods)
            .into_iter()
            .map(|(by, counts)| Spread {
                constraint: constraint(&pods, &by),
                skew: skew(&counts),
                counts,
                revisions: revisions(&pods),
                by,
            })
            .collect(),
    });
    each.collect()
}

/// Pods by workload; workloads without any pod, too.
fn grouped(tables: &Tables) -> BTreeMap<Whose, Vec<&Arc<Pod>>> {
    let mut groups = BTreeMap::new();
    let mut add = |kind: &str, meta: &Meta| {
        if meta.controller().is_none() {
            groups.insert(whose(kind, &meta.name), Vec::new());
        }
    };
    fn all<T: Stored>(tables: &Tables, kind: &str, add: &mut impl FnMut(&str, &Meta)) {
        tables
            .of::<T>()
            .iter()
            .for_each(|one| add(kind, one.meta()));
    }
    all::<Deployment>(tables, "deployment", &mut add);
    all::<StatefulSet>(tables, "statefulset", &mut add);
    all::<DaemonSet>(tables, "daemonset", &mut add);
    all::<ReplicaSet>(tables, "replicaset", &mut add);
    all::<ReplicationController>(tables, "replicationcontroller", &mut add);
    for pod in tables.of::<Pod>().iter().filter(|pod| pod.is_active()) {
        groups
            .entry(of_pod(tables, pod))
            .or_insert_with(Vec::new)
            .push(pod);
    }
    groups
}

fn whose(kind: &str, name: &Name) -> Whose {
    let of = format!("{}/{}", kind.to_lowercase(), name.name);
    (Arc::clone(&name.namespace), of)
}

/// The topmost owner of a pod.
fn of_pod(tables: &Tables, pod: &Pod) -> Whose {
    let namespace = &pod.meta.name.namespace;
    let Some(owner) = pod.meta.controller() else {
        return whose("pod", &pod.meta.name);
    };
    let name = Name::new(Arc::clone(namespace), Arc::clone(&owner.name));
    let meta = match &*owner.kind {
        "ReplicaSet" => tables.get::<ReplicaSet>(&name).map(|set| &set.meta),
        "Job" => tables.get::<Job>(&name).map(|job| &job.meta),
        _ => None,
    };
    match meta.and_then(Meta::controller) {
        Some(above) => whose(
            &above.kind,
            &Name::new(Arc::clone(namespace), Arc::clone(&above.name)),
        ),
        None => whose(&owner.kind, &name),
    }
}

/// Each key that the pods' constraints name, or the usual ones, with the counts.
fn spreads(tables: &Tables, pods: &[&Arc<Pod>]) -> Vec<(String, ByDomain)> {
    let constraints = pods
        .iter()
        .flat_map(|pod| &pod.spec.topology_spread_constraints);
    let mut keys: BTreeSet<&str> = constraints
        .flatten()
        .map(|constraint| constraint.topology_key.as_str())
        .collect();
    if keys.is_empty() {
        keys.extend(USUAL_KEYS);
    }
    let each = keys.into_iter();
    let each = each.map(|key| (key.to_owned(), by_domain(tables, pods, key)));
    each.filter(|(_, counts)| !counts.is_empty()).collect()
}

/// The first constraint on a key, of the pod that was made last.
fn constraint(pods: &[&Arc<Pod>], key: &str) -> Option<Constraint> {
    let newest = pods.iter().max_by_key(|pod| pod.meta.created)?;
    let mut all = newest.spec.topology_spread_constraints.iter().flatten();
    let found = all.find(|constraint| constraint.topology_key == key)?;
    Some(Constraint {
        when_unsatisfiable: found.when_unsatisfiable.clone(),
        max_skew: found.max_skew,
        min_domains: found.min_domains,
    })
}

fn revisions(pods: &[&Arc<Pod>]) -> BTreeMap<String, u32> {
    let mut revisions = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.node.is_some()) {
        let labels = ["pod-template-hash", "controller-revision-hash"];
        if let Some(revision) = labels.iter().find_map(|label| pod.meta.label(label)) {
            *revisions.entry(revision.to_owned()).or_default() += 1;
        }
    }
    if revisions.len() < 2 {
        revisions.clear();
    }
    revisions
}

/// Groups of pods on no node, the largest first.
fn pending(simulation: &Simulation, pods: &[&Arc<Pod>]) -> Vec<Pending> {
    let mut groups = BTreeMap::<_, usize>::new();
    for pod in pods.iter().filter(|pod| pod.node.is_none()) {
        let why = (blocked_by(simulation, pod), message(pod));
        *groups.entry(why).or_default() += 1;
    }
    let each = groups.into_iter();
    let each = each.map(|((blocked_by, message), count)| Pending {
        count,
        blocked_by,
        message: message.to_owned(),
    });
    let mut all: Vec<Pending> = each.collect();
    // A stable sort: equally large ones stay in order.
    all.sort_by_key(|group| std::cmp::Reverse(group.count));
    all
}
