//! What pods belong to, as people name it: of a Deployment's pods the Deployment.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use strew_controllers::Tables;
use strew_controllers::object::{self, Job, Kind, Meta, Name, Object, ReplicaSet, Stored};

use crate::typename;

/// Kind, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WorkloadName {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl WorkloadName {
    pub(crate) fn new(kind: &str, metadata: &ObjectMeta, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace_of(metadata).to_owned(),
            name: name.to_owned(),
        }
    }

    /// `deployment/web`.
    pub(crate) fn of(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }

    /// `deployment.apps/web`, as `kubectl get -o name` writes it.
    pub(crate) fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        match typename::group_of_kind(&self.kind) {
            Some(group) => format!("{kind}.{group}/{}", self.name),
            None => format!("{kind}/{}", self.name),
        }
    }
}

/// A workload and its labels.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) name: WorkloadName,
    /// Its own; of something that is not in the files, those of its first pod.
    pub(crate) labels: BTreeMap<String, String>,
}

/// All workloads, in the order of the files; bare pods are workloads of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workloads {
    pub(crate) list: Vec<Workload>,
    by_name: HashMap<WorkloadName, usize>,
    /// Namespace and name of ReplicaSets in the files, with the Deployment's name.
    set_owners: HashMap<(String, String), Option<String>>,
}

const POD_TEMPLATE_HASH: &str = "pod-template-hash";

impl Workloads {
    /// A workload of the files. A ReplicaSet of a Deployment is that Deployment's.
    pub(crate) fn add(&mut self, kind: &str, metadata: &ObjectMeta) -> Option<usize> {
        let own_name = metadata.name.as_deref().unwrap_or_default();
        if kind == "ReplicaSet" {
            let owner = controller(metadata).filter(|o| o.kind == "Deployment");
            let owner = owner.map(|o| o.name.clone());
            let key = (namespace_of(metadata).to_owned(), own_name.to_owned());
            let is_owned = owner.is_some();
            self.set_owners.insert(key, owner);
            if is_owned {
                return None;
            }
        }
        if kind == "Job" && controller(metadata).is_some_and(|o| o.kind == "CronJob") {
            return None;
        }
        let name = WorkloadName::new(kind, metadata, own_name);
        Some(self.ensure(name, metadata))
    }

    /// Those of objects, in their order.
    pub(crate) fn of_objects(objects: &[Object]) -> Self {
        let mut all = Self::default();
        for object in objects.iter().filter(|object| makes_pods(object)) {
            all.add(object.kind().name(), &object.meta().to_wire());
        }
        all
    }

    /// What a pod of the simulated cluster belongs to.
    pub(crate) fn of_live(&mut self, tables: &Tables, pod: &object::Pod) -> usize {
        let name = live_name(tables, &pod.meta);
        match self.find(&name) {
            Some(known) => known,
            None => self.ensure(name, &pod.meta.to_wire()),
        }
    }

    /// A workload by name.
    pub(crate) fn find(&self, name: &WorkloadName) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// What a pod belongs to, by its owner references.
    pub(crate) fn of_pod(&mut self, pod: &Pod) -> usize {
        let metadata = &pod.metadata;
        let own_name = metadata.name.as_deref().unwrap_or_default();
        let name = match controller(metadata) {
            None => WorkloadName::new("Pod", metadata, own_name),
            Some(owner) if owner.kind == "ReplicaSet" => self.of_replica_set(owner, metadata),
            Some(owner) => WorkloadName::new(&owner.kind, metadata, &owner.name),
        };
        self.ensure(name, metadata)
    }

    fn of_replica_set(&self, owner: &OwnerReference, pod: &ObjectMeta) -> WorkloadName {
        let key = (namespace_of(pod).to_owned(), owner.name.clone());
        let deployment = match self.set_owners.get(&key) {
            Some(deployment) => deployment.clone(),
            // The set is not in the files: its name tells, if the pod's hash ends it.
            None => hash_of(pod).and_then(|hash| {
                let name = owner.name.strip_suffix(hash)?.strip_suffix('-')?;
                Some(name.to_owned())
            }),
        };
        match deployment {
            Some(deployment) => WorkloadName::new("Deployment", pod, &deployment),
            None => WorkloadName::new("ReplicaSet", pod, &owner.name),
        }
    }

    fn ensure(&mut self, name: WorkloadName, metadata: &ObjectMeta) -> usize {
        if let Some(known) = self.find(&name) {
            return known;
        }
        self.by_name.insert(name.clone(), self.list.len());
        let labels = metadata.labels.clone().unwrap_or_default();
        self.list.push(Workload { name, labels });
        self.list.len() - 1
    }
}

/// The kinds that make pods.
fn makes_pods(object: &Object) -> bool {
    matches!(
        object.kind(),
        Kind::Deployment
            | Kind::ReplicaSet
            | Kind::ReplicationController
            | Kind::StatefulSet
            | Kind::DaemonSet
            | Kind::Job
            | Kind::CronJob
    )
}

/// The controller of a pod, or that controller's own.
fn live_name(tables: &Tables, pod: &Meta) -> WorkloadName {
    let namespace = &pod.name.namespace;
    let named = |kind: &str, name: &str| WorkloadName {
        kind: kind.to_owned(),
        namespace: namespace.to_string(),
        name: name.to_owned(),
    };
    let Some(owner) = pod.controller() else {
        return named("Pod", &pod.name.name);
    };
    let key = Name::new(namespace.clone(), owner.name.clone());
    let above = match &*owner.kind {
        "ReplicaSet" => controller_of::<ReplicaSet>(tables, &key, "Deployment"),
        "Job" => controller_of::<Job>(tables, &key, "CronJob"),
        _ => None,
    };
    above.unwrap_or_else(|| named(&owner.kind, &owner.name))
}

fn controller_of<T: Stored>(tables: &Tables, key: &Name, kind: &str) -> Option<WorkloadName> {
    let above = tables.get::<T>(key)?.meta().controller()?;
    (*above.kind == *kind).then(|| WorkloadName {
        kind: kind.to_owned(),
        namespace: key.namespace.to_string(),
        name: above.name.to_string(),
    })
}

fn hash_of(metadata: &ObjectMeta) -> Option<&str> {
    metadata
        .labels
        .as_ref()?
        .get(POD_TEMPLATE_HASH)
        .map(String::as_str)
}

/// The revision that a pod with these labels was made from.
pub(crate) fn revision_of_labels(labels: &BTreeMap<String, String>) -> Option<&str> {
    let hash = labels.get(POD_TEMPLATE_HASH);
    let hash = hash.or_else(|| labels.get("controller-revision-hash"));
    hash.map(String::as_str)
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// The namespace; `default` where the object is silent.
pub(crate) fn namespace_of(metadata: &ObjectMeta) -> &str {
    match metadata.namespace.as_deref() {
        None | Some("") => "default",
        Some(namespace) => namespace,
    }
}
