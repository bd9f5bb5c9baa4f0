//! Judges PodDisruptionBudgets at rest: their statuses are recounted from the pods. Source: spec/controllers §8.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::object::{Budget, Key, Kind, Name, Owner, Pairs, Pod};
use strew_apiserver::{Selection, Tables};
use strew_model::time::Span;

use super::rest::Resting;
use super::{Rule, Witness};

/// The most that one watch can be later than another.
const LATE_MAX: Span = Span::from_secs(25);

/// The status of every budget equals a recount.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    let tables = world.server.tables();
    for budget in tables.of::<Budget>().iter() {
        let Some(recount) = recount(budget, tables) else {
            continue;
        };
        let status = &budget.status;
        let mut found = [
            i64::from(status.current_healthy.unwrap_or(-1)),
            status.observed_generation.unwrap_or(-1),
            status.disrupted_pods.as_ref().map_or(0, |d| d.len() as i64),
            i64::from(status.expected_pods.unwrap_or(-1)),
            i64::from(status.desired_healthy.unwrap_or(-1)),
            i64::from(status.disruptions_allowed.unwrap_or(-1)),
        ]
        .to_vec();
        let mut wanted = recount.figures.to_vec();
        if is_size_stale(budget, &recount, witness) {
            found.truncate(3);
            wanted.truncate(3);
        }
        if found != wanted {
            let text = format!(
                "(healthy, generation, disrupted, expected, desired, allowed) is {found:?}, recounted {wanted:?}"
            );
            witness.blame(Rule::Budget, budget.meta.name.to_string(), text);
        }
    }
}

/// True if a workload was resized after the last change of its pods. Then the figures that depend on the size may be
/// old: a resize does not wake the disruption controller, neither here nor in Kubernetes.
fn is_size_stale(budget: &Budget, recount: &Recount, witness: &Witness) -> bool {
    let selection = budget.spec.selector.as_ref().and_then(Selection::of);
    let matches = |labels: &Pairs| selection.as_ref().is_some_and(|s| s.matches(labels));
    let pods = witness.pods_written(&budget.meta.name.namespace, matches);
    let resized = recount.sized.iter().filter_map(|uid| witness.resized(uid));
    resized.max().is_some_and(|at| Some(at + LATE_MAX) > pods)
}

struct Recount {
    figures: [i64; 6],
    /// The workloads whose sizes count, by uid.
    sized: Vec<Arc<str>>,
}

/// `None` if a controller has no size: then the budget has no figures either.
fn recount(budget: &Budget, tables: &Tables) -> Option<Recount> {
    let selection = budget.spec.selector.as_ref().and_then(Selection::of)?;
    let in_namespace = tables.of::<Pod>().in_namespace(&budget.meta.name.namespace);
    let pods: Vec<&Arc<Pod>> = in_namespace
        .filter(|pod| selection.matches(&pod.meta.labels))
        .collect();
    let healthy = pods
        .iter()
        .filter(|p| p.is_ready() && !p.meta.is_terminating());
    let healthy = healthy.count() as i64;
    let spec = &budget.spec;
    let mut sized = Vec::new();
    let mut size = || -> Option<i64> {
        let sizes = sizes(&pods, tables)?;
        sized.extend(sizes.keys().cloned());
        Some(sizes.values().sum())
    };
    let (expected, desired) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(share), _) => {
            let size = size()?;
            (size, (size - portion(share, size)?).max(0))
        }
        (None, Some(IntOrString::Int(number))) => (pods.len() as i64, i64::from(*number)),
        (None, Some(share)) => {
            let size = size()?;
            (size, portion(share, size)?)
        }
        (None, None) => (0, 0),
    };
    let allowed = match expected {
        1.. => (healthy - desired).max(0),
        _ => 0,
    };
    let generation = budget.meta.generation;
    Some(Recount {
        figures: [healthy, generation, 0, expected, desired, allowed],
        sized,
    })
}

fn portion(share: &IntOrString, of: i64) -> Option<i64> {
    match share {
        IntOrString::Int(number) => Some(i64::from(*number)),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            Some((percent * of + 99) / 100)
        }
    }
}

/// The sizes of the pods' controllers, by uid; `None` if one has no size.
fn sizes(pods: &[&Arc<Pod>], tables: &Tables) -> Option<BTreeMap<Arc<str>, i64>> {
    let mut sizes: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = pod.meta.controller() else {
            continue;
        };
        let (uid, size) = of_owner(owner, &pod.meta.name.namespace, tables)?;
        sizes.insert(uid, size);
    }
    Some(sizes)
}

/// `None` if the controller does not exist (any more), or has no size.
fn of_owner(owner: &Owner, namespace: &Arc<str>, tables: &Tables) -> Option<(Arc<str>, i64)> {
    let key = Key {
        kind: Kind::of(&owner.kind),
        name: Name::new(Arc::clone(namespace), Arc::clone(&owner.name)),
    };
    // A different object of that name did not make the pod.
    let object = tables
        .find(&key)
        .filter(|object| object.meta().uid == owner.uid)?;
    match (object.kind(), object.meta().controller()) {
        (Kind::ReplicaSet, Some(above)) => of_owner(above, namespace, tables),
        _ => Some((Arc::clone(&owner.uid), i64::from(object.replicas()?))),
    }
}
