//! The autoscaler's input: the cluster as its watch shows it, in the form that the scheduler's engine reads.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rustc_hash::FxHashMap;
use strew_apiserver::Tables;
use strew_apiserver::object::pod::POD_SCHEDULED;
use strew_apiserver::object::{DaemonSet, Node, Object, Pod, Truth};
use strew_apiserver::workloads::{DaemonTemplate, NodeView};
use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_manifest::conditions::node_ready;
use strew_manifest::read::KubeObject;
use strew_scheduler::{Engine, Profile};
use strew_wire::facts::{self, PodFacts};

use crate::scheduler::Blueprint;

/// Pending pods of a lower priority do not make groups grow. Source: `--expendable-pods-priority-cutoff`.
const PRIORITY_MIN: i32 = -10;

/// The pods known to fit nowhere, in the order of names.
pub(super) fn waiting(seen: &Tables) -> Vec<Arc<Pod>> {
    let waits = |pod: &&Arc<Pod>| {
        let condition = pod.status.condition(POD_SCHEDULED);
        pod.node.is_none()
            && pod.is_active()
            && pod.spec.priority.unwrap_or(0) >= PRIORITY_MIN
            && condition.is_some_and(|c| c.status == Truth::False && &*c.reason == "Unschedulable")
    };
    seen.of::<Pod>().iter().filter(waits).cloned().collect()
}

/// True for a node that is starting, or is ready and still has its startup taint, which will go. Source:
/// `--max-node-provision-time`.
fn is_starting(node: &Node) -> bool {
    node_ready(&node.status).is_none_or(|ready| ready == "True")
}

/// The taint of a node that the node lifecycle controller has not seen yet.
fn is_of_start(taint: &k8s_openapi::api::core::v1::Taint) -> bool {
    taint.key == "node.kubernetes.io/not-ready"
}

/// The pod that a DaemonSet will have on a node; `None` if the node gets none.
fn daemon_on(set: &DaemonSet, node: &core::Node, name: &str) -> Option<core::Pod> {
    let mut template = DaemonTemplate::new(&set.spec.template);
    if !template.fit(NodeView::of(node)).should_run {
        return None;
    }
    let labels = set.spec.template.metadata.as_ref();
    Some(core::Pod {
        metadata: ObjectMeta {
            namespace: Some(set.meta.name.namespace.to_string()),
            name: Some(format!("{}-{name}", set.meta.name.name)),
            labels: labels.and_then(|metadata| metadata.labels.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(core::PodSpec {
            node_name: Some(name.to_owned()),
            ..template.pod_spec(name)
        }),
        status: None,
    })
}

/// A copy of the cluster for trial placements.
pub(super) struct View {
    pub(super) cluster: Cluster,
    engines: Vec<(String, Engine)>,
    pods: FxHashMap<Arc<str>, PodIdx>,
    daemons: Vec<Arc<DaemonSet>>,
}

impl View {
    pub(super) fn new(seen: &Tables, blueprint: &Blueprint) -> Self {
        let mut cluster = Cluster::new();
        cluster.names = blueprint.names.clone();
        let mut known = PodFacts::default();
        let mut pods = FxHashMap::default();
        for node in seen.of::<Node>().iter() {
            let mut node = (**node).clone();
            if is_starting(&node) {
                let taints = &mut Arc::make_mut(&mut node.spec).taints;
                taints
                    .iter_mut()
                    .for_each(|taints| taints.retain(|taint| !is_of_start(taint)));
            }
            // An object that cannot be decoded into facts gets no pods.
            let _ = facts::apply(&Object::from(node).to_kube(), &mut cluster);
        }
        for object in seen.all_plain().cloned().map(Object::Plain) {
            let _ = facts::apply(&object.to_kube(), &mut cluster);
        }
        for pod in seen.of::<Pod>().iter().filter(|pod| !pod.is_finished()) {
            if let Ok(Some(fact)) = known.fact(&**pod, &mut cluster.names) {
                pods.insert(Arc::clone(&pod.meta.uid), cluster.set_pod(fact));
            }
        }
        let engine =
            |profile: &Profile| (profile.scheduler_name.clone(), Engine::new(profile.clone()));
        Self {
            engines: blueprint.profiles.iter().map(engine).collect(),
            cluster,
            pods,
            daemons: seen.of::<DaemonSet>().iter().cloned().collect(),
        }
    }

    /// A copy, for a further trial.
    pub(super) fn fork(&self) -> Self {
        let engine = |(name, engine): &(String, Engine)| {
            (name.clone(), Engine::new(engine.profile().clone()))
        };
        Self {
            cluster: self.cluster.clone(),
            engines: self.engines.iter().map(engine).collect(),
            pods: self.pods.clone(),
            daemons: self.daemons.clone(),
        }
    }

    pub(super) fn pod(&self, pod: &Pod) -> Option<PodIdx> {
        self.pods.get(&pod.meta.uid).copied()
    }

    /// Adds a node made from a template, with the daemon pods that it will get; it counts as ready.
    pub(super) fn add_node(&mut self, node: core::Node) -> Option<NodeIdx> {
        let name = node.metadata.name.clone().unwrap_or_default();
        let daemons = self.daemons.iter();
        let pods = daemons.filter_map(|set| daemon_on(set, &node, &name));
        let pods: Vec<core::Pod> = pods.collect();
        facts::apply(&KubeObject::from(node), &mut self.cluster).ok()?;
        for pod in pods {
            // An object that cannot be decoded into facts takes no room.
            let _ = facts::apply(&KubeObject::from(pod), &mut self.cluster);
        }
        let name = self.cluster.names.intern(&name);
        self.cluster.find_node(name)
    }

    /// Removes a node and unbinds its pods, which are returned.
    pub(super) fn remove_node(&mut self, node: &str) {
        let name = self.cluster.names.intern(node);
        self.cluster.remove_node(name);
    }

    fn engine_of(&mut self, pod: PodIdx) -> usize {
        let scheduler = self.cluster.spec_of(pod).scheduler_name;
        let scheduler = self.cluster.names.text(scheduler);
        let mut engines = self.engines.iter();
        engines.position(|(name, _)| name == scheduler).unwrap_or(0)
    }

    /// Places a pod on a node that the filters allow. Returns false if there is none.
    pub(super) fn place(&mut self, pod: PodIdx) -> bool {
        let engine = self.engine_of(pod);
        let Some((_, engine)) = self.engines.get_mut(engine) else {
            return false;
        };
        match engine.decide(&mut self.cluster, pod) {
            strew_scheduler::Decision::Place { node, .. } => {
                self.cluster.bind(pod, node);
                true
            }
            strew_scheduler::Decision::Unfit(_) => false,
        }
    }

    /// Places a pod on this node if the filters allow it. Returns false if they do not.
    pub(super) fn place_on(&mut self, pod: PodIdx, node: NodeIdx) -> bool {
        let engine = self.engine_of(pod);
        let Some((_, engine)) = self.engines.get_mut(engine) else {
            return false;
        };
        let fits = engine.refusal_on(&mut self.cluster, pod, node).is_none();
        if fits {
            self.cluster.bind(pod, node);
        }
        fits
    }
}
