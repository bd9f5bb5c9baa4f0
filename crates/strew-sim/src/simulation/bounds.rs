//! Bounds of a simulation: it ends with a reason if pods are created without end.

use std::collections::BTreeMap;

use strew_apiserver::object::{Kind, Object, Pod};
use strew_apiserver::server::Server;
use strew_model::Span;
use strew_model::time::Instant;

use super::Stuck;

/// More pods than this are refused.
pub const N_PODS_MAX: u64 = 1_000_000;

/// More pods than any rollout, eviction or restart adds to what the workloads ask for.
const SURPLUS: u64 = 5_000;

/// Kinds with a number of pods, and the field of their spec that has it.
const ASKING: [(&str, &str); 7] = [
    ("Deployment", "replicas"),
    ("ReplicaSet", "replicas"),
    ("ReplicationController", "replicas"),
    ("StatefulSet", "replicas"),
    ("CloneSet", "replicas"),
    ("StatefulSet.apps.kruise.io", "replicas"),
    ("Job", "parallelism"),
];

/// The number of pods, nodes and workloads of a simulation that begins with some objects; its memory use grows with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Pods that exist or that workloads ask for.
    pub n_pods: u64,
    /// Nodes that exist.
    pub n_nodes: u64,
    /// Workloads that no other one controls: reports count each of them on each node.
    pub n_workloads: u64,
}

impl Size {
    /// The size of a simulation of these objects.
    pub fn of(objects: &[Object]) -> Self {
        let of_kind = |kind: Kind| objects.iter().filter(move |object| object.kind() == kind);
        let (owned, alone): (Vec<_>, Vec<_>) =
            of_kind(Kind::Pod).partition(|pod| pod.meta().controller().is_some());
        let asked: Vec<u64> = objects
            .iter()
            .filter_map(asked_by)
            .map(|(_, n)| n)
            .collect();
        let n_asked = asked.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        let n_owned = owned.len() as u64;
        Self {
            n_pods: n_asked.max(n_owned).saturating_add(alone.len() as u64),
            n_nodes: of_kind(Kind::Node).count() as u64,
            n_workloads: asked.len() as u64,
        }
    }
}

/// The bounds of a simulation. A check counts all workloads and pods, so it is done rarely.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// Set if the first objects ask for too many pods.
    refused: Option<Stuck>,
    /// The pods at second 0.
    n_pods_first: u64,
    /// True if a user changed an object since the last check.
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

    /// A user changed an object, which may now ask for any number of pods.
    pub(crate) const fn changed(&mut self) {
        self.is_due = true;
    }

    /// Checks the bounds, if a check is due.
    ///
    /// # Errors
    /// The workloads ask for too many pods, or many more pods exist than they ask for.
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

/// More pods than this that one object makes in an instant that does not end are the work of a loop.
const CHURNED_MIN: usize = 100;

/// The loop that makes pods and deletes them within one instant, as its events tell; `None` if there is none.
pub(crate) fn churn(server: &Server, now: Instant, after: Span) -> Option<Stuck> {
    let recent = || {
        server
            .events()
            .iter()
            .rev()
            .take_while(|event| event.at == now)
    };
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for event in recent().filter(|event| &*event.reason == "SuccessfulCreate") {
        let n_pods = made.entry(event.regarding.to_string()).or_default();
        *n_pods = n_pods.saturating_add(1);
    }
    let (workload, n_pods) = made.into_iter().max_by_key(|(_, n)| *n)?;
    if n_pods < CHURNED_MIN {
        return None;
    }
    let mut of_pods = recent().filter(|event| event.regarding.kind == Kind::Pod);
    let deletion = of_pods.find(|event| &*event.reason != "Scheduled");
    let why = deletion.map(|event| format!(": {}: {}", event.reason, event.note));
    Some(Stuck::Churn {
        workload,
        n_pods,
        after,
        why: why.unwrap_or_default(),
    })
}

fn n_pods(server: &Server) -> u64 {
    server.tables().of::<Pod>().len() as u64
}

/// Each workload, with the pods that it asks for.
fn asked(server: &Server) -> Vec<(String, u64)> {
    let kinds = ASKING.iter().map(|(kind, _)| Kind::of(kind));
    let objects = kinds.flat_map(|kind| server.tables().all_of(&kind));
    objects.filter_map(|object| asked_by(&object)).collect()
}

/// The pods that a workload asks for; `None` if another workload controls it.
fn asked_by(object: &Object) -> Option<(String, u64)> {
    let kind = object.kind();
    let (_, field) = ASKING.iter().find(|(name, _)| *name == kind.name())?;
    if object.meta().controller().is_some() {
        return None;
    }
    let n = object.to_json()["spec"][*field].as_u64().unwrap_or(1);
    Some((format!("{} {}", kind.name(), object.meta().name), n))
}

/// The sum of requested sizes.
fn sum(asked: Vec<(String, u64)>) -> Result<u64, Stuck> {
    let n_asked = asked.iter().map(|(_, n)| n).sum();
    if n_asked <= N_PODS_MAX {
        return Ok(n_asked);
    }
    let largest = asked.into_iter().max_by_key(|(_, n)| *n);
    let (workload, n) = largest.unwrap_or_default();
    Err(Stuck::TooMany { workload, n })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use strew_manifest::read::KubeObject;
    use strew_model::Prng;
    use strew_model::time::Instant;
    use strew_wire::config::AdmissionOptions;

    use super::*;

    fn object(kind: &str, name: &str, rest: Value) -> Object {
        let api_version = if kind == "Deployment" {
            "apps/v1"
        } else {
            "v1"
        };
        let mut object = rest;
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = "default".into();
        Object::of_wire(KubeObject::of_json(object).expect("an object"))
    }

    fn deployment(replicas: u32) -> Object {
        let labels = json!({"app": "web"});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": []}});
        let selector = json!({"matchLabels": labels});
        let spec = json!({"replicas": replicas, "selector": selector, "template": template});
        object("Deployment", "web", json!({"spec": spec}))
    }

    #[test]
    fn pods_that_come_without_end_end_the_simulation() {
        let now = Instant::from_secs(100);
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(2));
        let objects = [deployment(3)];
        let mut bounds = Bounds::new(&objects);
        for object in objects {
            server.preload(now, object);
        }
        for n in 0..2 * SURPLUS {
            let expected = n <= 2 * 3 + SURPLUS;
            assert_eq!(bounds.check(&server, Span(0)).is_ok(), expected, "{n} pods");
            if !expected {
                return;
            }
            // Each check counts all pods.
            if n % 500 == 0 || n >= SURPLUS {
                bounds.changed();
            }
            server.preload(
                now,
                object(
                    "Pod",
                    &format!("p-{n}"),
                    json!({"spec": {"containers": []}}),
                ),
            );
        }
        panic!("they come without end");
    }

    #[test]
    fn a_size_is_what_objects_ask_for() {
        let pod = |name: &str, owner: Value| {
            object(
                "Pod",
                name,
                json!({"metadata": {"ownerReferences": owner}, "spec": {"containers": []}}),
            )
        };
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1", "controller": true,
        }]);
        let node = object("Node", "n", json!({}));
        let objects = [deployment(7), pod("a", owner), pod("b", Value::Null), node];
        let expected = Size {
            n_pods: 8,
            n_nodes: 1,
            n_workloads: 1,
        };
        assert_eq!(Size::of(&objects), expected);
    }
}
