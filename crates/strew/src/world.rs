//! A loaded world: the cluster, the engine that decides in it, and what belongs to which workload.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use strew_api::admission::bind_labels;
use strew_api::facts;
use strew_api::field::FieldError;
use strew_api::read::{Diagnostic, KubeObject, Locator, Origin, Sources};
use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Labels, Symbol};
use strew_scheduler::preemption::Nominations;

use crate::configuration::CompatArg;
use crate::load::{Loaded, LoadedPod};
use crate::schedulers::Schedulers;
use crate::workload::{Workload, namespace_of, revision_of_labels};

/// The step that later ones go on from.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) schedulers: Schedulers,
    pub(crate) compat: CompatArg,
    pub(crate) workloads: Vec<Workload>,
    /// Pods that have not finished, in order of arrival.
    pub(crate) pods: Vec<PodEntry>,
    /// Per workload its pods.
    pub(crate) members: Vec<Vec<usize>>,
    /// Namespaces and names of pods that are Succeeded or Failed: they count nowhere.
    pub(crate) finished: Vec<(Box<str>, Box<str>)>,
    /// Per node the labels that binding copies to a pod.
    bind_labels: Vec<Vec<(Symbol, Symbol)>>,
}

/// A pod that has not finished.
#[derive(Debug, Clone)]
pub(crate) struct PodEntry {
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) workload: usize,
    pub(crate) pod: PodIdx,
    pub(crate) standing: Standing,
    /// Its containers are up, or will be as soon as it is on a node.
    pub(crate) can_be_ready: bool,
    /// It is being deleted: it counts for no spread.
    pub(crate) is_leaving: bool,
    pub(crate) revision: Option<Arc<str>>,
}

/// How a pod stands when nothing has been decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// On a node, by the files.
    Bound,
    /// In the queue.
    Waiting,
    /// It has scheduling gates.
    Gated,
    /// It is another scheduler's.
    OfAnother(Arc<str>),
    /// It is being deleted, and was on no node.
    Leaving,
}

/// Builds the world of loaded objects. The names in the schedulers are those of the cluster.
///
/// # Errors
/// What no decision could be made from, with its place.
pub(crate) fn build(
    loaded: Loaded,
    cluster: Cluster,
    schedulers: Schedulers,
    compat: CompatArg,
    sources: &Sources,
) -> Result<World, Vec<Diagnostic>> {
    let mut builder = Builder {
        world: World::empty(cluster, schedulers, compat),
        locator: Locator::new(sources),
        diagnostics: Vec::new(),
    };
    for (node, origin) in &loaded.nodes {
        builder.node(node, origin.as_ref());
    }
    builder.imply_namespaces(&loaded.pods);
    for (object, origin) in &loaded.others {
        let World {
            cluster,
            schedulers,
            ..
        } = &mut builder.world;
        if let KubeObject::PodDisruptionBudget(budget) = object {
            facts::set_budget(budget, cluster, &mut schedulers.budgets);
        }
        let applied = facts::apply(object, cluster);
        if let Err(errors) = applied {
            builder.refuse(errors, &object.label(), origin.as_ref());
        }
    }
    builder.world.workloads = loaded.workloads.list;
    builder.world.members = vec![Vec::new(); builder.world.workloads.len()];
    for pod in &loaded.pods {
        builder.pod(pod);
    }
    let world = &mut builder.world;
    world.schedulers.nominations = Nominations::of(&world.cluster);
    match builder.diagnostics.is_empty() {
        true => Ok(builder.world),
        false => Err(builder.diagnostics),
    }
}

impl World {
    pub(crate) fn empty(cluster: Cluster, schedulers: Schedulers, compat: CompatArg) -> Self {
        Self {
            cluster,
            schedulers,
            compat,
            workloads: Vec::new(),
            pods: Vec::new(),
            members: Vec::new(),
            finished: Vec::new(),
            bind_labels: Vec::new(),
        }
    }

    /// The same world again, nothing decided in either.
    pub(crate) fn fork(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            schedulers: self.schedulers.fork(),
            compat: self.compat,
            workloads: self.workloads.clone(),
            pods: self.pods.clone(),
            members: self.members.clone(),
            finished: self.finished.clone(),
            bind_labels: self.bind_labels.clone(),
        }
    }

    /// Puts a pod on a node as binding does: with the node's topology labels on the pod.
    pub(crate) fn bind(&mut self, entry: usize, node: NodeIdx) {
        let pod = self.pods[entry].pod;
        let copied = self
            .bind_labels
            .get(node.index())
            .filter(|pairs| !pairs.is_empty());
        if let Some(pairs) = copied {
            let own = self.cluster.labels_of(pod);
            let labels = own.with(pairs.iter().copied());
            if labels != *own {
                self.cluster.relabel(pod, &labels);
            }
        }
        self.cluster.bind(pod, node);
    }

    /// The node's name.
    pub(crate) fn node_name(&self, node: NodeIdx) -> &str {
        self.cluster.names.text(self.cluster.node(node).name())
    }

    /// The node that a pod is on.
    pub(crate) fn node_of(&self, entry: usize) -> Option<NodeIdx> {
        self.cluster.pod(self.pods[entry].pod).node
    }
}

struct Builder<'a> {
    world: World,
    locator: Locator<'a>,
    diagnostics: Vec<Diagnostic>,
}

impl Builder<'_> {
    fn node(&mut self, node: &k8s_openapi::api::core::v1::Node, origin: Option<&Origin>) {
        let cluster = &mut self.world.cluster;
        let label = || format!("Node {}", node.metadata.name.as_deref().unwrap_or_default());
        match facts::node(node, &mut cluster.names) {
            Err(errors) => self.refuse(errors, &label(), origin),
            Ok(fact) => {
                let index = cluster.set_node(fact).index();
                let labels = node.metadata.labels.clone().unwrap_or_default();
                let pairs = bind_labels(&labels);
                let pairs = pairs
                    .iter()
                    .map(|(k, v)| (cluster.names.intern(k), cluster.names.intern(v)));
                let pairs = pairs.collect();
                let all = &mut self.world.bind_labels;
                all.resize(all.len().max(index + 1), Vec::new());
                all[index] = pairs;
            }
        }
    }

    /// A namespace that only pods name is there too, with the label that every namespace has.
    fn imply_namespaces(&mut self, pods: &[LoadedPod]) {
        let cluster = &mut self.world.cluster;
        let named: BTreeSet<&str> = pods.iter().map(|p| namespace_of(&p.pod.metadata)).collect();
        let key = cluster.names.intern("kubernetes.io/metadata.name");
        for name in named {
            let name = cluster.names.intern(name);
            cluster.set_namespace(name, Some(Labels::new(vec![(key, name)])));
        }
    }

    fn pod(&mut self, loaded: &LoadedPod) {
        let LoadedPod {
            pod,
            workload,
            origin,
        } = loaded;
        let fact = match facts::pod(pod, &mut self.world.cluster.names) {
            Ok(Some(fact)) => fact,
            Ok(None) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let namespace = namespace_of(&pod.metadata);
                self.world.finished.push((namespace.into(), name.into()));
                return;
            }
            Err(errors) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let label = format!("Pod {}/{name}", namespace_of(&pod.metadata));
                return self.refuse(errors, &label, Some(origin));
            }
        };
        let world = &mut self.world;
        let scheduler = fact.spec.scheduler_name;
        let standing = match () {
            () if fact.node.is_some() => Standing::Bound,
            () if fact.terminating => Standing::Leaving,
            () if !world.schedulers.has(scheduler) => {
                Standing::OfAnother(world.cluster.names.text(scheduler).into())
            }
            () if !fact.spec.gates.is_empty() => Standing::Gated,
            () => Standing::Waiting,
        };
        let entry = PodEntry {
            name: fact.name.clone(),
            namespace: namespace_of(&pod.metadata).into(),
            workload: *workload,
            can_be_ready: !fact.terminating && !is_unready(pod),
            revision: pod
                .metadata
                .labels
                .as_ref()
                .and_then(revision_of_labels)
                .map(Into::into),
            standing,
            is_leaving: fact.terminating,
            pod: world.cluster.set_pod(fact),
        };
        world.members[*workload].push(world.pods.len());
        world.pods.push(entry);
    }

    fn refuse(&mut self, errors: Vec<FieldError>, label: &str, origin: Option<&Origin>) {
        for error in errors {
            let diagnostic = match origin {
                Some(origin) => {
                    let place = self.locator.place(origin, &error.path);
                    Diagnostic::from_field_error(&error, label, place)
                }
                None => Diagnostic::error("invalid-field", error.to_string()).about(label),
            };
            self.diagnostics.push(diagnostic);
        }
    }
}

/// A pod on a node whose kubelet says that it is not ready.
fn is_unready(pod: &Pod) -> bool {
    let is_bound = pod.spec.as_ref().is_some_and(|s| s.node_name.is_some());
    let status = pod.status.as_ref();
    let mut conditions = status
        .and_then(|s| s.conditions.as_ref())
        .into_iter()
        .flatten();
    is_bound && conditions.any(|c| c.type_ == "Ready" && c.status != "True")
}
