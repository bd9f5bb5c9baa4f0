//! The largest skew of each workload and key over a run: of all its pods, whatever their revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use strew_apiserver::Tables;
use strew_apiserver::object::{Job, Meta, Name, Pod, ReplicaSet};
use strew_apiserver::server::Cursor;
use strew_scenario::expect::spread::{ByDomain, by_domain, skew};
use strew_sim::Simulation;

/// Keys of workloads that say nothing of spreading.
const USUAL_KEYS: [&str; 2] = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"];

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
    /// The place in the log of the last look.
    seen: Option<Cursor>,
}

impl Skews {
    /// Looks at a simulation, if something was written since.
    pub(super) fn look(&mut self, simulation: &Simulation) {
        let server = simulation.server();
        if !server.has_changed(&mut self.seen) {
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

/// Pods by workload.
fn grouped(tables: &Tables) -> BTreeMap<Whose, Vec<&Arc<Pod>>> {
    let mut groups = BTreeMap::new();
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
