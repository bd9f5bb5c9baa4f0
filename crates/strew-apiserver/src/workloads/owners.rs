//! The owners of the given objects.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{ExpandError, Workload, WorkloadKind, name_of, namespace_of};

pub(super) const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Kind, namespace and name.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Pods and ReplicaSets by their controllers.
pub(super) struct Owners<'a> {
    pods: BTreeMap<Key<'a>, Vec<&'a Pod>>,
    replica_sets: BTreeMap<Key<'a>, Vec<&'a ReplicaSet>>,
    deployments: BTreeMap<Key<'a>, &'a Deployment>,
}

impl<'a> Owners<'a> {
    /// Fails on a cycle of owner references.
    pub(super) fn new(workloads: &[Workload<'a>], pods: &'a [Pod]) -> Result<Self, ExpandError> {
        check_cycles(workloads, pods)?;
        let mut owners = Self {
            pods: BTreeMap::new(),
            replica_sets: BTreeMap::new(),
            deployments: BTreeMap::new(),
        };
        let mut known_sets = BTreeSet::new();
        for &workload in workloads {
            match workload {
                Workload::Deployment(object) => {
                    let key = key(WorkloadKind::Deployment.as_str(), &object.metadata);
                    owners.deployments.insert(key, object);
                }
                Workload::ReplicaSet(object) => {
                    known_sets.insert(key(WorkloadKind::ReplicaSet.as_str(), &object.metadata));
                    if let Some(owner) = controller_key(&object.metadata) {
                        owners.replica_sets.entry(owner).or_default().push(object);
                    }
                }
                _ => {}
            }
        }
        for pod in pods {
            if let Some(owner) = controller_key(&pod.metadata) {
                let owner = if known_sets.contains(&owner) {
                    owner
                } else {
                    deployment_by_hash(owner, pod).unwrap_or(owner)
                };
                owners.pods.entry(owner).or_default().push(pod);
            }
        }
        Ok(owners)
    }

    /// The pods of a workload, in the order given. For a Deployment: those of ReplicaSets that are not among the
    /// objects.
    pub(super) fn pods_of(
        &self,
        kind: WorkloadKind,
        owner: &'a ObjectMeta,
    ) -> impl Iterator<Item = &'a Pod> {
        let pods = self.pods.get(&key(kind.as_str(), owner));
        // A pod filed under its Deployment names the ReplicaSet's uid.
        let by_uid = kind != WorkloadKind::Deployment;
        let pods = pods.into_iter().flatten().copied();
        pods.filter(move |pod| !by_uid || same_uid(&pod.metadata, owner))
    }

    /// The ReplicaSets of a Deployment, in the order given.
    pub(super) fn replica_sets_of(
        &self,
        deployment: &'a Deployment,
    ) -> impl Iterator<Item = &'a ReplicaSet> {
        let owner = &deployment.metadata;
        let sets = self
            .replica_sets
            .get(&key(WorkloadKind::Deployment.as_str(), owner));
        let sets = sets.into_iter().flatten().copied();
        sets.filter(move |set| same_uid(&set.metadata, owner))
    }

    /// The Deployment of a ReplicaSet, if it is among the objects.
    pub(super) fn deployment_of(&self, set: &'a ReplicaSet) -> Option<&'a Deployment> {
        let owner = controller_key(&set.metadata)?;
        let deployment = self.deployments.get(&owner)?;
        same_uid(&set.metadata, &deployment.metadata).then_some(deployment)
    }
}

fn key<'a>(kind: &'a str, metadata: &'a ObjectMeta) -> Key<'a> {
    (kind, namespace_of(metadata), name_of(metadata))
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

fn controller_key(metadata: &ObjectMeta) -> Option<Key<'_>> {
    let owner = controller(metadata)?;
    Some((&owner.kind, namespace_of(metadata), &owner.name))
}

/// Hand-written objects have no uid: then the name decides.
fn same_uid(owned: &ObjectMeta, owner: &ObjectMeta) -> bool {
    let named = controller(owned).map_or("", |reference| reference.uid.as_str());
    let actual = owner.uid.as_deref().unwrap_or_default();
    named.is_empty() || actual.is_empty() || named == actual
}

/// `Deployment web` for a pod of `ReplicaSet web-HASH` with that hash.
fn deployment_by_hash<'a>((kind, namespace, name): Key<'a>, pod: &Pod) -> Option<Key<'a>> {
    if kind != WorkloadKind::ReplicaSet.as_str() {
        return None;
    }
    let hash = pod.metadata.labels.as_ref()?.get(POD_TEMPLATE_HASH)?;
    let deployment = name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
    Some((WorkloadKind::Deployment.as_str(), namespace, deployment))
}

/// Every object has few owners, so the walk is linear in the objects; it keeps its own stack, for
/// a chain may be as long as the input.
fn check_cycles(workloads: &[Workload<'_>], pods: &[Pod]) -> Result<(), ExpandError> {
    let mut owners_of: BTreeMap<Key<'_>, Vec<Key<'_>>> = BTreeMap::new();
    let objects = workloads.iter().map(|w| (w.kind().as_str(), w.metadata()));
    let objects = objects.chain(pods.iter().map(|pod| ("Pod", &pod.metadata)));
    for (kind, metadata) in objects {
        let owners = metadata.owner_references.iter().flatten();
        let owners = owners.map(|o| (o.kind.as_str(), namespace_of(metadata), o.name.as_str()));
        owners_of
            .entry(key(kind, metadata))
            .or_default()
            .extend(owners);
    }
    let mut finished = BTreeSet::new();
    for &start in owners_of.keys() {
        // The path from `start`, each with the number of its owners that were looked at.
        let mut path = vec![(start, 0)];
        let mut on_path = BTreeSet::from([start]);
        while let Some((object, n_seen)) = path.last_mut() {
            let owner = owners_of.get(object).and_then(|owners| owners.get(*n_seen));
            *n_seen += 1;
            match owner {
                None => {
                    on_path.remove(object);
                    finished.insert(*object);
                    path.pop();
                }
                Some(owner) if on_path.contains(owner) => {
                    let cycle = path.iter().map(|(object, _)| *object);
                    let cycle = cycle.skip_while(|object| object != owner).chain([*owner]);
                    let cycle = cycle.map(|(kind, ns, name)| format!("{kind} {ns}/{name}"));
                    return Err(ExpandError::OwnerCycle(cycle.collect()));
                }
                Some(owner) if finished.contains(owner) => {}
                Some(owner) => {
                    on_path.insert(*owner);
                    path.push((*owner, 0));
                }
            }
        }
    }
    Ok(())
}
