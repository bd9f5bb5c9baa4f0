//! Workloads put on nodes pod by pod, by the scheduler's engine: what every count of a rule comes from.
//!
//! A [`Bench`] is a cluster for questions of the form "how many of these pods find a node"; each is asked on a draft.

use std::collections::HashMap;

use strew_cluster::{
    Cluster, Draft, NodeAffinity, NodeFact, NodeIdx, PodFact, PodHistory, PodIdx, PodSpec,
    SpreadConstraint,
};
use strew_manifest::read::KubeObject;
use strew_model::{Interner, Labels, Resources, Selector, Symbol};
use strew_scheduler::{Decision, Engine, Profile, explain};
use strew_view::explanation::PodExplanation;
use strew_wire::facts;

use crate::files::Workload;
use crate::played::REVISION;

/// The most pods of a workload that are placed. Where it asks for more, nothing is said.
pub(crate) const PODS_MAX: i64 = 300;

/// A cluster and the engine that decides in it.
pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    engine: Engine,
    /// The pods that run already, by namespace.
    running: HashMap<Symbol, Vec<PodIdx>>,
}

/// Pods of a workload to place.
#[derive(Clone)]
pub(crate) struct Pods {
    pub(crate) namespace: Symbol,
    pub(crate) labels: Labels,
    pub(crate) spec: PodSpec,
}

/// Where pods went.
pub(crate) struct Placed {
    /// The node of each pod that found one, in order; a pod that finds none is the last one that is tried.
    pub(crate) nodes: Vec<NodeIdx>,
    /// Why the next pod found no node; `None`: all did.
    pub(crate) refused: Option<String>,
}

impl Bench {
    /// The nodes of files, with the pods that run on them and what decides about volumes.
    pub(crate) fn of(objects: &[&KubeObject]) -> Self {
        let mut cluster = Cluster::new();
        for object in objects {
            let is_running = match object {
                KubeObject::Pod(pod) => pod
                    .spec
                    .as_ref()
                    .is_some_and(|spec| spec.node_name.is_some()),
                // Their selectors concern soft constraints only.
                KubeObject::Service(_) | KubeObject::ReplicaSet(_) => false,
                KubeObject::StatefulSet(_) | KubeObject::ReplicationController(_) => false,
                _ => true,
            };
            if is_running {
                // What cannot be converted is an error elsewhere.
                drop(facts::apply(object, &mut cluster));
            }
        }
        Self::new(cluster)
    }

    /// Empty nodes with room for everything, each with these labels.
    pub(crate) fn ideal<'l>(nodes: impl IntoIterator<Item = Vec<(&'l str, String)>>) -> Self {
        let mut cluster = Cluster::new();
        for (number, labels) in nodes.into_iter().enumerate() {
            let name = cluster.names.intern(&format!("node-{number}"));
            let labels = labels.iter();
            let labels = labels.map(|(key, value)| {
                let names = &mut cluster.names;
                (names.intern(key), names.intern(value))
            });
            let labels = Labels::new(labels.collect());
            cluster.set_node(NodeFact {
                name,
                labels,
                taints: Box::default(),
                unschedulable: false,
                allocatable: Resources::default(),
                pods_max: PODS_MAX,
                images: Box::default(),
            });
        }
        Self::new(cluster)
    }

    fn new(cluster: Cluster) -> Self {
        let mut running: HashMap<Symbol, Vec<PodIdx>> = HashMap::new();
        for (pod, _) in cluster.pods() {
            let namespace = cluster.class_of(pod).key.namespace;
            running.entry(namespace).or_default().push(pod);
        }
        Self {
            cluster,
            running,
            engine: Engine::new(Profile::default()),
        }
    }

    /// The pods of a workload; `None` if they have an amount that cannot be used.
    pub(crate) fn pods(&mut self, workload: &Workload<'_>) -> Option<Pods> {
        let names = &mut self.cluster.names;
        let spec = facts::template_spec(workload.spec, names).ok()?;
        let mut labels: Vec<(Symbol, Symbol)> = facts::labels(Some(workload.written), names)
            .iter()
            .collect();
        let value = names.intern("old");
        for key in workload.of_controller {
            if !workload.written.contains_key(*key) {
                labels.push((names.intern(key), value));
            }
        }
        Some(Pods {
            namespace: names.intern(workload.namespace),
            labels: Labels::new(labels),
            spec,
        })
    }

    /// Places pods one after the other until one finds no node.
    pub(crate) fn place(&mut self, pods: &Pods, n_pods: i64) -> Placed {
        self.place_beside(&[(pods, n_pods)])
    }

    /// Places these pods, group by group, until one finds no node.
    pub(crate) fn place_beside(&mut self, groups: &[(&Pods, i64)]) -> Placed {
        let mut placed = Placed {
            nodes: Vec::new(),
            refused: None,
        };
        let Self {
            cluster, engine, ..
        } = self;
        let mut draft = Draft::new(cluster);
        for (pods, n_pods) in groups {
            for _ in 0..*n_pods {
                let number = draft.n_changes();
                let pod = draft.add_pod(PodFact {
                    uid: format!("lint-{number}").into(),
                    name: format!("pod-{number}").into(),
                    namespace: pods.namespace,
                    labels: pods.labels.clone(),
                    owner: None,
                    terminating: false,
                    node: None,
                    spec: pods.spec.clone(),
                    history: PodHistory::default(),
                });
                match engine.decide(draft.deciding(), pod) {
                    Decision::Place { node, .. } => {
                        draft.bind(pod, node);
                        placed.nodes.push(node);
                    }
                    Decision::Unfit(_) => {
                        placed.refused = Some(reason(engine, draft.deciding(), pod));
                        return placed;
                    }
                }
            }
        }
        placed
    }

    /// How many pods are on nodes with each value of a label, by value; nodes without the label are left out. Every
    /// value of a node is named.
    pub(crate) fn by_value(&self, key: &str, nodes: &[NodeIdx]) -> Vec<(String, i64)> {
        let names = &self.cluster.names;
        let Some(key) = names.get(key) else {
            return Vec::new();
        };
        let mut counts = std::collections::BTreeMap::new();
        let value = |node: NodeIdx| {
            let fact = self.cluster.node(node).fact()?;
            fact.labels
                .get(key)
                .map(|value| names.text(value).to_owned())
        };
        for row in 0..self.cluster.node_rows() {
            if let Some(value) = value(NodeIdx::from(row)) {
                counts.entry(value).or_insert(0);
            }
        }
        for value in nodes.iter().filter_map(|node| value(*node)) {
            *counts.entry(value).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// The nodes of the pods that run already and have these labels.
    pub(crate) fn running(&self, namespace: Symbol, selector: &Selector) -> Vec<NodeIdx> {
        let pods = self.running.get(&namespace).into_iter().flatten();
        let pods = pods.filter(|pod| selector.matches(self.cluster.labels_of(**pod)));
        pods.filter_map(|pod| self.cluster.pod(*pod).node).collect()
    }

    pub(crate) fn symbol(&mut self, text: &str) -> Symbol {
        self.cluster.names.intern(text)
    }
}

fn reason(engine: &mut Engine, cluster: &mut Cluster, pod: PodIdx) -> String {
    let explanation = explain(engine, cluster, pod);
    let wire = PodExplanation::of(&explanation, None, cluster);
    let reason = wire.summary.unwrap_or(wire.message);
    reason.trim_end_matches('.').to_owned()
}

impl Pods {
    /// The same pods with only this constraint, which may go to any node.
    pub(crate) fn alone(&self, constraint: &SpreadConstraint) -> Self {
        let spec = PodSpec {
            spread: Box::new([constraint.clone()]),
            scheduler_name: self.spec.scheduler_name,
            ..PodSpec::default()
        };
        Self {
            spec,
            ..self.clone()
        }
    }

    /// The same pods of another revision.
    pub(crate) fn of_next_revision(&self, names: &mut Interner) -> Self {
        let (key, value) = (names.intern(REVISION), names.intern("new"));
        Self {
            labels: self.labels.with([(key, value)]),
            ..self.clone()
        }
    }

    /// The same pods, changed.
    pub(crate) fn with(&self, change: impl FnOnce(&mut PodSpec)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.spec);
        changed
    }

    /// The same pods without what asks for nodes by their labels.
    pub(crate) fn anywhere(&self) -> Self {
        self.with(|spec| spec.node_affinity = NodeAffinity::default())
    }
}
