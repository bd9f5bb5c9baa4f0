//! What a simulation may grow to: pods that never stop coming end it, with the reason.

use strew_apiserver::object::{Kind, Object, Pod};
use strew_apiserver::server::Server;
use strew_apiserver::workloads::N_PODS_MAX;
use strew_model::Span;

use super::Stuck;

/// Pods beyond what the workloads ask for that no rollout, eviction or restart makes.
const SURPLUS: u64 = 5_000;

/// Kinds that ask for a number of pods, and the field of their spec that says it.
const ASKING: [(&str, &str); 7] = [
    ("Deployment", "replicas"),
    ("ReplicaSet", "replicas"),
    ("ReplicationController", "replicas"),
    ("StatefulSet", "replicas"),
    ("CloneSet", "replicas"),
    ("StatefulSet.apps.kruise.io", "replicas"),
    ("Job", "parallelism"),
];

/// What a simulation may hold. Checking counts all workloads and pods, so it is done seldom.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// The first objects ask for too many pods: the workload that asks for most.
    refused: Option<Stuck>,
    /// Pods that were there at second 0.
    n_pods_first: u64,
    /// A person changed an object since the last check.
    is_due: bool,
    /// The number of pods from which the next check is due.
    n_pods_next: u64,
}

impl Bounds {
    /// The bounds of a cluster that begins with these objects.
    pub(crate) fn new(objects: &[Object]) -> Self {
        let asked = objects.iter().filter_map(asked_by).collect();
        let pods = objects.iter().filter(|object| object.kind() == Kind::Pod);
        let n_pods_first = pods.count() as u64;
        Self {
            refused: sum(asked).err(),
            n_pods_first,
            is_due: false,
            n_pods_next: n_pods_first.saturating_add(SURPLUS),
        }
    }

    /// A person changed an object: it may ask for any number of pods.
    pub(crate) const fn changed(&mut self) {
        self.is_due = true;
    }

    /// Checks the bounds, if that is due.
    ///
    /// # Errors
    /// The workloads ask for too many pods, or there are many more pods than they ask for.
    pub(crate) fn check(&mut self, server: &Server, after: Span) -> Result<(), Stuck> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        if !self.is_due && n_pods(server) < self.n_pods_next {
            return Ok(());
        }
        self.is_due = false;
        let n_asked = sum(asked(server))?;
        self.n_pods_next = n_pods(server).saturating_add(SURPLUS / 2);
        let active = server.tables().of::<Pod>().iter();
        let n_pods = active.filter(|pod| pod.is_active()).count() as u64;
        let n_meant = n_asked.saturating_mul(2).saturating_add(self.n_pods_first);
        match n_pods > n_meant.saturating_add(SURPLUS) {
            false => Ok(()),
            true => Err(Stuck::Runaway {
                n_pods,
                n_asked,
                after,
            }),
        }
    }
}

fn n_pods(server: &Server) -> u64 {
    server.tables().of::<Pod>().len() as u64
}

/// Each workload, and the pods that it asks for.
fn asked(server: &Server) -> Vec<(String, u64)> {
    let kinds = ASKING.iter().map(|(kind, _)| Kind::of(kind));
    let objects = kinds.flat_map(|kind| server.tables().all_of(&kind));
    objects.filter_map(|object| asked_by(&object)).collect()
}

/// The pods that a workload asks for, unless another one controls it.
fn asked_by(object: &Object) -> Option<(String, u64)> {
    let kind = object.kind();
    let (_, field) = ASKING.iter().find(|(name, _)| *name == kind.name())?;
    if object.meta().controller().is_some() {
        return None;
    }
    let n = object.to_json()["spec"][*field].as_u64().unwrap_or(1);
    Some((format!("{} {}", kind.name(), object.meta().name), n))
}

/// All that is asked for.
fn sum(asked: Vec<(String, u64)>) -> Result<u64, Stuck> {
    let n_asked = asked.iter().map(|(_, n)| n).sum();
    if n_asked <= N_PODS_MAX as u64 {
        return Ok(n_asked);
    }
    let largest = asked.into_iter().max_by_key(|(_, n)| *n);
    let (workload, n) = largest.unwrap_or_default();
    Err(Stuck::TooMany { workload, n })
}
