//! Computes how many pods of each revision a CloneSet should have, and which pods are deleted.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;
use strew_apiserver::object::Pod;
use strew_manifest::kruise::workloads::CloneSetSpec;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_wire::rolling::{self, Rounding};

use crate::replica_set::ranking::{Candidate, candidate, first_to_go};
use crate::sets::{REVISION_LABEL, available_at};

/// The active pods of a set.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Pods of the present template.
    pub(super) updated: Vec<Arc<Pod>>,
    /// Pods of other templates.
    pub(super) old: Vec<Arc<Pod>>,
    pub(super) n_ready: usize,
    pub(super) n_available: usize,
    pub(super) n_updated_ready: usize,
    pub(super) n_updated_available: usize,
    /// When the next pod becomes available.
    pub(super) next_available: Option<Instant>,
    now: Instant,
    min_ready: Span,
}

impl Counted {
    pub(super) fn new(pods: &[Arc<Pod>], update: &str, min_ready: Span, now: Instant) -> Self {
        let mut counted = Self {
            now,
            min_ready,
            ..Self::default()
        };
        for pod in pods {
            let is_updated = pod.meta.label(REVISION_LABEL) == Some(update);
            let at = available_at(pod, min_ready);
            let is_available = counted.is_available(pod);
            if let Some(at) = at.filter(|_| !is_available) {
                let next = counted.next_available.map_or(at, |next| next.min(at));
                counted.next_available = Some(next);
            }
            counted.n_ready += usize::from(at.is_some());
            counted.n_available += usize::from(is_available);
            if is_updated {
                counted.n_updated_ready += usize::from(at.is_some());
                counted.n_updated_available += usize::from(is_available);
                counted.updated.push(Arc::clone(pod));
            } else {
                counted.old.push(Arc::clone(pod));
            }
        }
        counted
    }

    pub(super) fn n_active(&self) -> usize {
        self.updated.len() + self.old.len()
    }

    fn is_available(&self, pod: &Pod) -> bool {
        available_at(pod, self.min_ready).is_some_and(|at| at <= self.now)
    }

    /// Candidates for deletion, with the number of the set's pods on the node of each.
    fn candidates<'a>(&'a self, pods: &'a [Arc<Pod>]) -> Vec<Candidate<'a>> {
        let mut on_node: FxHashMap<&str, usize> = FxHashMap::default();
        for pod in self.updated.iter().chain(&self.old) {
            if let Some(node) = pod.node.as_deref() {
                *on_node.entry(node).or_default() += 1;
            }
        }
        let rank = |pod: &Arc<Pod>| pod.node.as_deref().map_or(0, |node| on_node[node]);
        pods.iter().map(|pod| candidate(pod, rank(pod))).collect()
    }
}

/// The numbers that a set asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// `spec.replicas`
    pub(super) replicas: usize,
    /// The number of pods that keep old revisions: `partition`; while the update is paused, at least all that exist.
    pub(super) old: usize,
    /// All pods, with those that `maxSurge` adds during an update.
    pub(super) total: usize,
    max_unavailable: usize,
}

impl Wanted {
    pub(super) fn of(spec: &CloneSetSpec, counted: &Counted) -> Self {
        let replicas = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let strategy = spec.update_strategy.as_ref();
        let field = |name: &str| strategy.and_then(|s| s.get(name));
        let partition = field("partition").and_then(rolling::amount);
        let partition = partition.map_or(0, |partition| {
            let whole = i64::try_from(replicas).unwrap_or(i64::MAX);
            let n = rolling::scaled(&partition, whole, Rounding::Up);
            usize::try_from(n).unwrap_or(0).min(replicas)
        });
        let is_paused = field("paused").and_then(Value::as_bool) == Some(true);
        let old = match is_paused {
            true => partition.max(counted.old.len().min(replicas)),
            false => partition,
        };
        let to_update = counted.old.len().saturating_sub(old);
        let rolling = rolling::of_clone_set(spec);
        let surge = usize::try_from(rolling.surge).unwrap_or(0);
        let max_unavailable = usize::try_from(rolling.unavailable).unwrap_or(0);
        Self {
            replicas,
            old,
            total: replicas + surge.min(to_update),
            max_unavailable,
        }
    }
}

/// The surplus pods: first those of old revisions beyond what should stay of them, then the others. Of equal pods, as
/// in a ReplicaSet: not on a node, not running, not ready, with low deletion cost.
pub(super) fn to_delete(
    counted: &Counted,
    wanted: &Wanted,
    now: Instant,
    dice: &mut Prng,
) -> Vec<Arc<Pod>> {
    let n = counted.n_active() - wanted.total;
    let n_old = counted.old.len().saturating_sub(wanted.old).min(n);
    let mut gone = choose(counted, &counted.old, n_old, now, dice);
    let n_updated = (n - gone.len()).min(counted.updated.len());
    gone.extend(choose(counted, &counted.updated, n_updated, now, dice));
    // There are more old pods than should stay, and too few others: the rest is taken from the old pods.
    let missing = n - gone.len();
    if missing > 0 {
        gone = choose(counted, &counted.old, n_old + missing, now, dice)
            .into_iter()
            .chain(counted.updated.iter().cloned())
            .collect();
    }
    gone
}

/// Old pods to replace: all that are not available, and others while enough pods are available.
pub(super) fn to_update(
    counted: &Counted,
    wanted: &Wanted,
    now: Instant,
    dice: &mut Prng,
) -> Vec<Arc<Pod>> {
    let n = counted.old.len().saturating_sub(wanted.old);
    let needed = wanted.replicas.saturating_sub(wanted.max_unavailable);
    // Surge pods count as available: otherwise no pod could be replaced if none may be unavailable.
    let mut spare = counted.n_available.saturating_sub(needed);
    let mut gone = Vec::new();
    for pod in choose(counted, &counted.old, n, now, dice) {
        if counted.is_available(&pod) {
            if spare == 0 {
                continue;
            }
            spare -= 1;
        }
        gone.push(pod);
    }
    gone
}

fn choose(
    counted: &Counted,
    pods: &[Arc<Pod>],
    n: usize,
    now: Instant,
    dice: &mut Prng,
) -> Vec<Arc<Pod>> {
    let chosen = first_to_go(counted.candidates(pods), n, now, dice);
    chosen.into_iter().cloned().collect()
}
