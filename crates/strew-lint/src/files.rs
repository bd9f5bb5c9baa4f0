//! What rules look at: the workloads, nodes, budgets and other objects of files, with their labels as symbols.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use k8s_openapi::api::core::v1::{PodSpec, TopologySpreadConstraint};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::{self, Pods};
use strew_manifest::read::KubeObject;
use strew_model::{Interner, Labels, Selector, Symbol, Taint};

use crate::Memory;
use crate::placings::Placings;
use crate::played::Plays;
use crate::scheduling::Scheduling;
use crate::stage::Stage;
use strew_wire::facts;

/// The value of labels that a controller gives to pods, which no file has.
const UNWRITTEN: &str = "<of the controller>";

/// The objects of files.
pub(super) struct Files<'a> {
    pub(super) objects: &'a [&'a KubeObject],
    pub(super) names: RefCell<Interner>,
    pub(super) workloads: Vec<Workload<'a>>,
    by_namespace: HashMap<&'a str, Vec<usize>>,
    /// The indexes of workloads by key and value of a label of their pods.
    by_label: HashMap<(Symbol, Symbol), Vec<usize>>,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) budgets: Vec<Budget<'a>>,
    /// Objects may come later: what is missing is no mistake yet.
    pub(super) more_come: bool,
    /// Something may add nodes: an autoscaler among the objects, or objects that come later.
    pub(super) grows: bool,
    /// The namespaces with a ResourceQuota.
    pub(super) with_quota: BTreeSet<&'a str>,
    /// The indexes of the workloads that are targets of WorkloadSpreads; true if a patch gives labels to their pods.
    pub(super) spread: HashMap<usize, bool>,
    placings: OnceCell<Placings>,
    stage: OnceCell<Stage>,
    /// The scheduler of the files' cluster.
    pub(super) scheduling: &'a Scheduling,
    /// Rollouts that were played already.
    pub(super) played: &'a RefCell<Plays>,
}

/// Something that makes pods, or a pod of its own. Pods without their owner in the files are one workload together.
pub(super) struct Workload<'a> {
    /// The index of its object.
    pub(super) object: usize,
    pub(super) kind: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// The spec of its pods.
    pub(super) spec: &'a PodSpec,
    /// The path of that spec.
    pub(super) spec_path: FieldPath,
    /// The labels of its pods as they are written.
    pub(super) written: &'a BTreeMap<String, String>,
    /// The labels of its pods, with those of their controller; their values are unknown.
    pub(super) labels: Labels,
    /// The labels that its controller adds.
    pub(super) of_controller: &'static [&'static str],
    /// The number of its pods; `None` if the nodes decide.
    pub(super) n_pods: Option<i64>,
    /// Its selector.
    pub(super) selector: Option<&'a LabelSelector>,
}

/// A node.
pub(super) struct Node<'a> {
    pub(super) object: usize,
    pub(super) text: &'a str,
    pub(super) name: Symbol,
    pub(super) written: &'a BTreeMap<String, String>,
    pub(super) labels: Labels,
    pub(super) taints: Box<[Taint]>,
    pub(super) is_cordoned: bool,
}

/// What an autoscaler scales.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) namespace: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    /// The smallest number of pods; `None` if strew cannot read it.
    pub(super) min: Option<i64>,
    /// The field of that number.
    pub(super) field: &'static str,
    /// True if strew knows its kind.
    pub(super) is_read: bool,
}

impl<'a> Target<'a> {
    /// `None` if the object is no autoscaler.
    pub(super) fn of(object: &'a KubeObject) -> Option<Self> {
        let namespace = object.namespace().unwrap_or("default");
        match object {
            KubeObject::HorizontalPodAutoscaler(autoscaler) => {
                let spec = &autoscaler.spec;
                Some(Self {
                    namespace,
                    kind: &spec.scale_target_ref.kind,
                    name: &spec.scale_target_ref.name,
                    min: Some(spec.min_replicas.unwrap_or(1).into()),
                    field: "minReplicas",
                    is_read: true,
                })
            }
            KubeObject::Other(other) => {
                let target = other.scales.as_deref()?;
                Some(Self {
                    namespace,
                    kind: &target.kind,
                    name: &target.name,
                    min: target.least,
                    field: "minReplicaCount",
                    is_read: target.least.is_some(),
                })
            }
            _ => None,
        }
    }

    /// Namespace, kind and name of the workload.
    pub(super) fn reference(&self) -> (&'a str, &'a str, &'a str) {
        (self.namespace, self.kind, self.name)
    }
}

/// A budget whose selector is valid.
pub(super) struct Budget<'a> {
    pub(super) object: usize,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) budget: &'a PodDisruptionBudget,
    pub(super) selector: Selector,
}

/// The label that every kubelet sets on its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// A text that is not empty, or the namespace `default`.
pub(super) fn namespace_of(metadata: &ObjectMeta) -> &str {
    let given = metadata.namespace.as_deref();
    given.filter(|name| !name.is_empty()).unwrap_or("default")
}

impl<'a> Files<'a> {
    pub(super) fn of(
        objects: &'a [&'a KubeObject],
        more_come: bool,
        memory: &'a Memory<'_>,
    ) -> Self {
        let mut names = Interner::new();
        let mut workloads = workloads(objects, &mut names);
        scale(objects, &mut workloads);
        let budgets = objects.iter().enumerate();
        let budgets = budgets.filter_map(|(object, found)| match found {
            KubeObject::PodDisruptionBudget(budget) => {
                let wire = budget.spec.as_ref().and_then(|s| s.selector.as_ref());
                Some(Budget {
                    object,
                    namespace: namespace_of(&budget.metadata),
                    name: found.name(),
                    budget,
                    selector: facts::selector(wire, &mut names).ok()?,
                })
            }
            _ => None,
        });
        let budgets = budgets.collect();
        let nodes = objects.iter().enumerate();
        let nodes = nodes.filter_map(|(object, found)| match found {
            KubeObject::Node(node) => {
                let (name, labels) = facts::labelled(&node.metadata, &mut names);
                let spec = node.spec.as_ref();
                let taints = spec.and_then(|s| s.taints.as_deref()).unwrap_or_default();
                Some(Node {
                    object,
                    text: found.name(),
                    name,
                    written: node.metadata.labels.as_ref().unwrap_or(&NO_LABELS),
                    labels,
                    taints: facts::taints(taints, &mut names),
                    is_cordoned: spec.and_then(|s| s.unschedulable).unwrap_or(false),
                })
            }
            _ => None,
        });
        let nodes = nodes.collect();
        let spread = spread(objects, &workloads);
        let quotas = { objects.iter() }.filter(|o| matches!(o, KubeObject::ResourceQuota(_)));
        let with_quota = quotas.filter_map(|quota| quota.metadata().map(namespace_of));
        let mut by_namespace: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_label: HashMap<(Symbol, Symbol), Vec<usize>> = HashMap::new();
        for (number, workload) in workloads.iter().enumerate() {
            let of_namespace = by_namespace.entry(workload.namespace);
            of_namespace.or_default().push(number);
            for label in workload.labels.iter() {
                by_label.entry(label).or_default().push(number);
            }
        }
        Self {
            objects,
            names: RefCell::new(names),
            workloads,
            by_namespace,
            by_label,
            nodes,
            budgets,
            more_come,
            grows: more_come || objects.iter().any(|object| adds_nodes(object)),
            with_quota: with_quota.collect(),
            spread,
            placings: OnceCell::new(),
            stage: OnceCell::new(),
            scheduling: memory.scheduling,
            played: &memory.played,
        }
    }

    /// The object of a workload as it is played: with the number of pods that it is judged with.
    pub(super) fn played_form(&self, workload: &Workload<'_>) -> Value {
        let mut value = self.objects[workload.object].to_json();
        if let (Some(n), Some(spec)) = (workload.n_pods, value["spec"].as_object_mut()) {
            spec.entry("replicas").or_insert_with(|| n.into());
        }
        value
    }

    /// The workloads on the nodes of the files, placed once for all rules.
    pub(super) fn placings(&self) -> &Placings {
        self.placings.get_or_init(|| Placings::of(self))
    }

    /// The cluster of the files, made once for all rollouts that are played on it.
    pub(super) fn stage(&self) -> &Stage {
        self.stage
            .get_or_init(|| Stage::of(self.objects, self.scheduling))
    }

    /// A selector; `None` if it is invalid, which is an error elsewhere.
    pub(super) fn selector(&self, wire: Option<&LabelSelector>) -> Option<Selector> {
        facts::selector(wire, &mut self.names.borrow_mut()).ok()
    }

    /// A selector in the form of `kubectl -l`.
    pub(super) fn text(&self, selector: &Selector) -> String {
        selector.text(&self.names.borrow())
    }

    pub(super) fn symbol(&self, text: &str) -> Symbol {
        self.names.borrow_mut().intern(text)
    }

    /// The workloads of a namespace, with their indexes.
    pub(super) fn of_namespace(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (usize, &Workload<'a>)> {
        let own = self.by_namespace.get(namespace).into_iter().flatten();
        own.map(|number| (*number, &self.workloads[*number]))
    }

    /// The workloads of a namespace whose pods a selector selects, with their indexes. Cost: those with one of its labels.
    pub(super) fn selected(
        &self,
        namespace: &str,
        selector: &Selector,
    ) -> impl Iterator<Item = (usize, &Workload<'a>)> {
        let candidates = match selector.a_label() {
            Some(label) => self.by_label.get(&label),
            None => self.by_namespace.get(namespace),
        };
        let candidates = candidates.into_iter().flatten();
        let candidates = candidates.map(|number| (*number, &self.workloads[*number]));
        candidates.filter(move |(_, workload)| {
            workload.namespace == namespace && selector.matches(&workload.labels)
        })
    }

    /// True if the selector selects a pod of the files in this namespace.
    pub(super) fn has_pod(&self, namespace: &str, selector: &Selector) -> bool {
        let mut pods = self.objects.iter().filter_map(|object| match object {
            KubeObject::Pod(pod) if object.namespace().unwrap_or("default") == namespace => {
                Some(pod.metadata.labels.as_ref())
            }
            _ => None,
        });
        pods.any(|written| {
            let labels = facts::labels(written, &mut self.names.borrow_mut());
            selector.matches(&labels)
        })
    }

    /// The constraints of each workload that has pods: the index of the workload, the index of the constraint.
    pub(super) fn constraints(
        &self,
    ) -> impl Iterator<Item = (usize, usize, &'a TopologySpreadConstraint)> {
        let with_pods = self.workloads.iter().enumerate();
        let with_pods = with_pods.filter(|(_, workload)| workload.n_pods != Some(0));
        with_pods.flat_map(|(number, workload)| {
            let constraints = workload.spec.topology_spread_constraints.iter().flatten();
            let each = constraints.enumerate();
            each.map(move |(index, constraint)| (number, index, constraint))
        })
    }

    /// True if the files have objects of kinds that strew does not know in this namespace: they may make pods.
    pub(super) fn has_unknown(&self, namespace: &str) -> bool {
        self.objects.iter().any(|object| {
            matches!(object, KubeObject::Other(other)
                if other.namespace.as_deref().unwrap_or("default") == namespace)
        })
    }
}

/// True for what adds nodes to a cluster.
pub(super) fn adds_nodes(object: &KubeObject) -> bool {
    match object {
        KubeObject::Other(other) => {
            ["NodePool", "Provisioner", "MachineDeployment"].contains(&&*other.kind)
        }
        object => ["cluster-autoscaler", "karpenter"].contains(&object.name()),
    }
}

impl<'a> Node<'a> {
    /// The value of a label. Every kubelet sets that of its hostname.
    pub(super) fn label(&self, key: &str) -> Option<&'a str> {
        let written = self.written.get(key).map(String::as_str);
        written.or((key == HOSTNAME).then_some(self.text))
    }
}

impl<'a> Workload<'a> {
    /// Namespace, kind and name.
    pub(super) fn reference(&self) -> (&'a str, &'a str, &'a str) {
        (self.namespace, self.kind, self.name)
    }

    /// The path of a constraint.
    pub(super) fn constraint_path(&self, index: usize) -> FieldPath {
        let path = self.spec_path.child("topologySpreadConstraints");
        path.index(index)
    }

    /// `the 6 pods`, or `the pods` if the nodes decide how many there are.
    pub(super) fn n_text(&self) -> String {
        match self.n_pods {
            Some(n) => format!("the {n} pods"),
            None => "the pods".to_owned(),
        }
    }
}

/// The numbers of pods that autoscalers choose: those of workloads that do not say how many they want.
fn scale(objects: &[&KubeObject], workloads: &mut [Workload<'_>]) {
    let targets = objects.iter().filter_map(|object| Target::of(object));
    let mut least: HashMap<(&str, &str, &str), Option<i64>> = HashMap::new();
    for target in targets {
        let known = least.entry(target.reference()).or_insert(target.min);
        *known = (*known).min(target.min);
    }
    for workload in workloads {
        let is_written = objects[workload.object].asked_replicas().is_some();
        if let Some(min) = least.get(&workload.reference()).filter(|_| !is_written) {
            workload.n_pods = min.map(|min| min.max(1));
        }
    }
}

fn spread(objects: &[&KubeObject], workloads: &[Workload<'_>]) -> HashMap<usize, bool> {
    let targets = objects.iter().filter_map(|object| match object {
        KubeObject::WorkloadSpread(spread) => {
            let spec = spread.spec.as_ref()?;
            let target = spec.target_reference.as_ref()?;
            let patches = spec.subsets.iter().filter_map(|s| s.patch.as_ref());
            let relabels = patches
                .into_iter()
                .any(|patch| patch.pointer("/metadata/labels").is_some());
            let namespace = namespace_of(&spread.metadata);
            let name = (namespace, target.kind.as_str(), target.name.as_str());
            Some((name, relabels))
        }
        _ => None,
    });
    let targets: HashMap<(&str, &str, &str), bool> = targets.collect();
    let all = workloads.iter().enumerate();
    let relabels = |w: &Workload<'_>| targets.get(&(w.namespace, w.kind, w.name)).copied();
    all.filter_map(|(number, workload)| Some((number, relabels(workload)?)))
        .collect()
}

fn workloads<'a>(objects: &'a [&'a KubeObject], names: &mut Interner) -> Vec<Workload<'a>> {
    let makers = objects.iter().filter(|object| {
        kinds::of_kind(object.kind()).is_some_and(|row| row.pods == Pods::Make)
            || matches!(object, KubeObject::AdvancedStatefulSet(_))
    });
    let known: HashSet<(&str, &str, &str)> = makers
        .map(|object| {
            (
                object.kind(),
                object.namespace().unwrap_or("default"),
                object.name(),
            )
        })
        .collect();
    let mut found: Vec<Workload<'a>> = Vec::new();
    let mut orphans: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (object, wire) in objects.iter().enumerate() {
        let Some(metadata) = wire.metadata() else {
            continue;
        };
        let namespace = namespace_of(metadata);
        let owners = metadata.owner_references.iter().flatten();
        let owner = owners
            .clone()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| (owner.kind.as_str(), namespace, owner.name.as_str()));
        // What another workload of the files made is a part of that one.
        if owner.is_some_and(|owner| known.contains(&owner)) {
            continue;
        }
        if let KubeObject::Pod(pod) = wire {
            let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
            let Some(spec) = pod
                .spec
                .as_ref()
                .filter(|_| !matches!(phase, Some("Succeeded" | "Failed")))
            else {
                continue;
            };
            if let Some(owner) = owner {
                if let Some(&known) = orphans.get(&owner) {
                    found[known].n_pods = found[known].n_pods.map(|n| n + 1);
                    continue;
                }
                orphans.insert(owner, found.len());
            }
            found.push(Workload {
                object,
                kind: "Pod",
                namespace,
                name: wire.name(),
                spec,
                spec_path: FieldPath::root().child("spec"),
                written: metadata.labels.as_ref().unwrap_or(&NO_LABELS),
                labels: facts::labels(metadata.labels.as_ref(), names),
                of_controller: &[],
                n_pods: Some(1),
                selector: None,
            });
        } else if let Some((template, path)) = wire.pod_template()
            && let Some(spec) = &template.spec
        {
            let labels = template.metadata.as_ref().and_then(|m| m.labels.as_ref());
            let written = labels.unwrap_or(&NO_LABELS);
            let of_controller = of_controller(wire);
            let value = names.intern(UNWRITTEN);
            let added = of_controller.iter();
            let added: Vec<(Symbol, Symbol)> = added
                .filter(|key| !written.contains_key(**key))
                .map(|key| (names.intern(key), value))
                .collect();
            found.push(Workload {
                object,
                kind: wire.kind(),
                namespace,
                name: wire.name(),
                spec,
                spec_path: path.child("spec"),
                written,
                labels: facts::labels(Some(written), names).with(added),
                of_controller,
                n_pods: wire.replicas().map(i64::from),
                selector: wire.pod_selector(),
            });
        }
    }
    found
}

/// The labels that a kind's controller gives to pods.
///
/// Source: spec/controllers §2, §3, §4, §5
fn of_controller(object: &KubeObject) -> &'static [&'static str] {
    match object {
        KubeObject::Deployment(_) => &["pod-template-hash"],
        KubeObject::StatefulSet(_) | KubeObject::AdvancedStatefulSet(_) => {
            &["controller-revision-hash", POD_NAME, POD_INDEX]
        }
        KubeObject::DaemonSet(_) => &["controller-revision-hash", "pod-template-generation"],
        KubeObject::Job(_) | KubeObject::CronJob(_) => &[
            "batch.kubernetes.io/controller-uid",
            "batch.kubernetes.io/job-completion-index",
            "batch.kubernetes.io/job-name",
            "controller-uid",
            "job-name",
        ],
        KubeObject::CloneSet(_) => &[
            "apps.kruise.io/cloneset-instance-id",
            "controller-revision-hash",
            "pod-template-hash",
        ],
        _ => &[],
    }
}

/// Labels of which each pod of a StatefulSet has a value of its own.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
