//! The workloads that pods belong to, under the names that users know: for a Deployment's pods, the Deployment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{
    Job, Kind, Meta, Name, Object, Owner, Pairs, Pod, ReplicaSet, Stored,
};

use strew_manifest::kinds::{self, KINDS, Pods};

/// Kind, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkloadName {
    /// `Deployment`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl WorkloadName {
    /// In the namespace of an object.
    pub fn new(kind: &str, meta: &Meta, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: meta.name.namespace.to_string(),
            name: name.to_owned(),
        }
    }

    /// `deployment/web`.
    pub fn of(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }

    /// `deployment.apps/web`, in the form of `kubectl get -o name`.
    pub fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        match kinds::of_kind(&self.kind).map_or("", |row| row.group) {
            "" => format!("{kind}/{}", self.name),
            group => format!("{kind}.{group}/{}", self.name),
        }
    }
}

/// A workload and its labels.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: WorkloadName,
    /// Its own labels; if it is not in the files, those of its first pod.
    pub labels: BTreeMap<String, String>,
    /// The labels of its pods: those of its template, or of its first pod.
    pub pod_labels: BTreeMap<String, String>,
}

/// All workloads, in the order of the files; a bare pod is a workload of one pod.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    /// All workloads; indexes refer to this list.
    pub list: Vec<Workload>,
    by_name: HashMap<WorkloadName, usize>,
    /// Pods whose owners are not in the files.
    orphans: BTreeMap<Name, usize>,
}

const POD_TEMPLATE_HASH: &str = "pod-template-hash";

impl Workloads {
    /// The workloads among objects, in their order.
    pub fn of_objects(objects: &[Object]) -> Self {
        let mut all = Self::default();
        for object in objects.iter().filter(|object| makes_pods(object)) {
            all.add(object);
        }
        all
    }

    /// Appends the stored workloads that are not in the list yet, kind by kind, with or without pods.
    pub fn add_stored(&mut self, tables: &Tables) {
        let kinds = KINDS.iter().filter(|row| row.pods == Pods::Make);
        for object in kinds.flat_map(|row| tables.all_of(&Kind::of(row.kind))) {
            self.add(&object);
        }
    }

    /// Adds an object that makes pods, unless another workload made the object.
    fn add(&mut self, object: &Object) {
        let meta = object.meta();
        let above = meta.controller().map(|owner| &*owner.kind);
        let is_anothers = matches!(
            (object.kind(), above),
            (Kind::ReplicaSet, Some("Deployment")) | (Kind::Job, Some("CronJob"))
        );
        if !is_anothers {
            let name = WorkloadName::new(object.kind().name(), meta, &meta.name.name);
            let pod_labels = pod_labels(object).cloned().unwrap_or_default();
            self.ensure(name, &meta.labels, pod_labels);
        }
    }

    /// Adds pods without an owner, in their order; `had` has the former owners of some.
    pub fn add_pods(&mut self, objects: &[Object], had: &BTreeMap<Name, WorkloadName>) {
        for object in objects {
            let meta = object.meta();
            if object.kind() != Kind::Pod || meta.controller().is_some() {
                continue;
            }
            match had.get(&meta.name) {
                Some(name) => {
                    let labels = &meta.labels;
                    let workload = self.ensure(name.clone(), labels, Pairs::clone(labels));
                    self.orphans.insert(meta.name.clone(), workload);
                }
                None => {
                    let name = WorkloadName::new("Pod", meta, &meta.name.name);
                    self.ensure(name, &meta.labels, Pairs::clone(&meta.labels));
                }
            }
        }
    }

    /// The index of the workload of a pod in the simulated cluster.
    pub fn of_live(&mut self, tables: &Tables, pod: &Pod) -> usize {
        if pod.meta.controller().is_none()
            && let Some(&workload) = self.orphans.get(&pod.meta.name)
        {
            return workload;
        }
        let name = live_name(tables, &pod.meta);
        self.ensure(name, &pod.meta.labels, Pairs::clone(&pod.meta.labels))
    }

    /// As [`Self::of_live`]; `None` if the workload is not in the list.
    pub fn find_live(&self, tables: &Tables, pod: &Pod) -> Option<usize> {
        let orphan = self.orphans.get(&pod.meta.name);
        let orphan = orphan.filter(|_| pod.meta.controller().is_none());
        let known = || self.by_name.get(&live_name(tables, &pod.meta));
        orphan.or_else(known).copied()
    }

    /// The names of pods whose controller is not among the objects.
    pub fn orphans(&self) -> impl Iterator<Item = &Name> {
        self.orphans.keys()
    }

    /// True for the name of a pod whose controller is not among the objects.
    pub fn is_orphan(&self, pod: &Name) -> bool {
        self.orphans.contains_key(pod)
    }

    fn ensure(&mut self, name: WorkloadName, labels: &Pairs, pod_labels: Pairs) -> usize {
        if let Some(&known) = self.by_name.get(&name) {
            return known;
        }
        self.by_name.insert(name.clone(), self.list.len());
        self.list.push(Workload {
            name,
            labels: labels.clone(),
            pod_labels,
        });
        self.list.len() - 1
    }
}

/// The kinds that make pods.
fn makes_pods(object: &Object) -> bool {
    kinds::of_kind(object.kind().name()).is_some_and(|row| row.pods == Pods::Make)
}

/// The labels of the pods that an object makes; `None`: it makes none, or gives them none.
pub fn pod_labels(object: &Object) -> Option<&Pairs> {
    let template = object.pod_template()?;
    template.metadata.as_ref()?.labels.as_ref()
}

/// The controller of a pod, or that controller's own.
fn live_name(tables: &Tables, pod: &Meta) -> WorkloadName {
    let Some(owner) = pod.controller() else {
        return WorkloadName::new("Pod", pod, &pod.name.name);
    };
    let key = Name::new(Arc::clone(&pod.name.namespace), Arc::clone(&owner.name));
    let above = match &*owner.kind {
        "ReplicaSet" => controller_of::<ReplicaSet>(tables, &key, "Deployment"),
        "Job" => controller_of::<Job>(tables, &key, "CronJob"),
        _ => None,
    };
    above.unwrap_or_else(|| WorkloadName::new(&owner.kind, pod, &owner.name))
}

fn controller_of<T: Stored>(tables: &Tables, key: &Name, kind: &str) -> Option<WorkloadName> {
    let meta = tables.get::<T>(key)?.meta();
    let above = meta.controller().filter(|above| *above.kind == *kind)?;
    Some(WorkloadName::new(kind, meta, &above.name))
}

/// What a pod was of whose controller is not there: the name of a ReplicaSet tells its Deployment, if the pod's hash
/// ends it.
pub fn missing_name(pod: &Meta, owner: &Owner) -> WorkloadName {
    let deployment = || {
        let hash = pod.label(POD_TEMPLATE_HASH)?;
        owner.name.strip_suffix(hash)?.strip_suffix('-')
    };
    match deployment().filter(|_| &*owner.kind == "ReplicaSet") {
        Some(deployment) => WorkloadName::new("Deployment", pod, deployment),
        None => WorkloadName::new(&owner.kind, pod, &owner.name),
    }
}

/// The revision that a pod with these labels was made from.
pub fn revision_of_labels(labels: &BTreeMap<String, String>) -> Option<&str> {
    let hash = labels.get(POD_TEMPLATE_HASH);
    let hash = hash.or_else(|| labels.get("controller-revision-hash"));
    hash.map(String::as_str)
}
