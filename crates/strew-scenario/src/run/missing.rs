//! Adds the objects between workloads and their pods that files leave out, and what their pods' status leaves out.
//!
//! `kubectl get sts,ds,pods` does not list ControllerRevisions, and a user may forget ReplicaSets. Without the object that
//! its pods belong to, a workload would count them as of an old template, or not at all, and make all of them again.

mod made_from;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_apiserver::object::pod::READY;
use strew_apiserver::object::{Deployment, Kind, Object, Owner, Phase, Pod, Stored, Truth};
use strew_apiserver::selection::Selection;
use strew_controllers::rollout::{
    POD_TEMPLATE_HASH, REVISION_LABEL, present_revision, replica_set_of_pods, revision_of_pods,
};

use made_from::is_made_from;

/// What was added, and what could not be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Completed {
    /// The ReplicaSets that were made from their pods: `shop/web-5d4f6`.
    pub(super) replica_sets: Vec<String>,
    /// StatefulSets, DaemonSets and CloneSets none of whose pods is made from the template: `statefulset/db`.
    pub(super) with_old_pods: Vec<String>,
    /// Running pods of workloads without the condition Ready, which are taken as ready.
    pub(super) n_taken_as_ready: usize,
}

impl Completed {
    /// The notes for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.replica_sets.as_slice() {
            [] => {}
            [only] => notes.push(format!("ReplicaSet {only} is not in the files, and is made from its pods")),
            [first, ..] => notes.push(format!(
                "{} ReplicaSets are not in the files, and are made from their pods: {first} and others",
                self.replica_sets.len()
            )),
        }
        if !self.with_old_pods.is_empty() {
            notes.push(format!(
                "no pod of {} has the template in the files: a rollout begins at second 0",
                self.with_old_pods.join(", ")
            ));
        }
        match self.n_taken_as_ready {
            0 => {}
            n => notes.push(format!(
                "{n} Running pods have no condition Ready in the files, and are taken as ready"
            )),
        }
        notes
    }
}

/// Adds the ReplicaSets of Deployments, and the ControllerRevisions of the other workloads.
pub(super) fn complete(objects: &mut Vec<Object>) -> Completed {
    let mut completed = Completed {
        n_taken_as_ready: take_as_ready(objects),
        ..Completed::default()
    };
    let sets = replica_sets(objects);
    let names = sets.iter().map(|set| set.meta().name.to_string());
    completed.replica_sets = names.collect();
    objects.extend(sets);
    let known = Known::of(objects);
    let mut added = Vec::new();
    for object in &*objects {
        let found = match object {
            Object::StatefulSet(set) => {
                let latest = set.status.update_revision.as_deref();
                known.revision(&**set, &set.spec.template, latest)
            }
            Object::DaemonSet(set) => known.revision(&**set, &set.spec.template, None),
            Object::CloneSet(set) => {
                let latest = set.status.update_revision.as_deref();
                known.revision(&**set, &set.spec.template, latest)
            }
            _ => continue,
        };
        match found {
            Found::Revision(revision) => added.push(revision),
            Found::OnlyOldPods => {
                let kind = object.kind().name().to_ascii_lowercase();
                let name = format!("{kind}/{}", object.meta().name.name);
                completed.with_old_pods.push(name);
            }
            Found::Nothing => {}
        }
    }
    objects.extend(added);
    completed
}

/// Makes running pods of workloads ready since they were made, if their status does not say whether they are: a kubelet
/// always does. Returns how many.
fn take_as_ready(objects: &mut [Object]) -> usize {
    let mut n_taken = 0;
    for object in objects {
        let Object::Pod(pod) = object else {
            continue;
        };
        let is_meant = pod.node.is_some()
            && pod.status.phase == Phase::Running
            && pod.meta.controller().is_some()
            && pod.status.condition(READY).is_none();
        if is_meant {
            let pod = Arc::make_mut(pod);
            let created = pod.meta.created;
            pod.status
                .set_condition(READY, Truth::True, "", "", created);
            n_taken += 1;
        }
    }
    n_taken
}

// === ReplicaSets ===

/// The pods of one ReplicaSet that is not in the files.
struct Orphans<'a> {
    owner: &'a Owner,
    hash: &'a str,
    pods: Vec<&'a Pod>,
}

/// The ReplicaSets that pods name as their controllers and that are not in the files, for each Deployment that has been
/// stored before.
fn replica_sets(objects: &[Object]) -> Vec<Object> {
    let known: BTreeSet<&str> = objects
        .iter()
        .filter(|object| object.kind() == Kind::ReplicaSet)
        .map(|object| &*object.meta().uid)
        .collect();
    let mut orphans: BTreeMap<&str, Orphans<'_>> = BTreeMap::new();
    for object in objects {
        let Object::Pod(pod) = object else {
            continue;
        };
        let owner = pod
            .meta
            .controller()
            .filter(|owner| *owner.kind == *"ReplicaSet");
        let hash = pod.meta.label(POD_TEMPLATE_HASH);
        let (Some(owner), Some(hash)) = (owner, hash) else {
            continue;
        };
        if !known.contains(&*owner.uid) {
            let of_set = orphans.entry(&owner.uid).or_insert_with(|| Orphans {
                owner,
                hash,
                pods: Vec::new(),
            });
            of_set.pods.push(pod);
        }
    }
    if orphans.is_empty() {
        return Vec::new();
    }
    let deployments = objects.iter().filter_map(Deployment::of_object);
    let stored = deployments.filter(|deployment| !deployment.meta.uid.is_empty());
    stored
        .flat_map(|deployment| sets_of(deployment, orphans.values()))
        .collect()
}

/// The ReplicaSets of one Deployment: those of old templates first.
fn sets_of<'a>(
    deployment: &Deployment,
    orphans: impl Iterator<Item = &'a Orphans<'a>>,
) -> Vec<Object> {
    let name = &deployment.meta.name;
    let Some(selection) = Selection::of(&deployment.spec.selector) else {
        return Vec::new();
    };
    let is_own = |orphans: &&Orphans<'_>| {
        let meta = &orphans.pods[0].meta;
        let prefix = orphans.owner.name.strip_suffix(orphans.hash);
        prefix.and_then(|prefix| prefix.strip_suffix('-')) == Some(&*name.name)
            && meta.name.namespace == name.namespace
            && selection.matches(&meta.labels)
    };
    let template = &deployment.spec.template;
    let (present, old): (Vec<_>, Vec<_>) = orphans
        .filter(is_own)
        .partition(|orphans| is_made_from(orphans.pods[0], template));
    let n_old = i64::try_from(old.len()).unwrap_or(i64::MAX);
    let number = present_revision(deployment).unwrap_or(n_old + 1);
    let old = old.iter().zip(number.saturating_sub(n_old)..);
    let old = old.map(|(of, number)| (of, number.max(1), template_of(of.pods[0])));
    let present = present.iter().map(|of| (of, number, template.clone()));
    let made = old.chain(present).map(|(of, number, template)| {
        replica_set_of_pods(deployment, of.owner, template, of.hash, number, &of.pods)
    });
    made.collect()
}

/// A template that makes pods like this one, as far as its pod tells.
fn template_of(pod: &Pod) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some((*pod.meta.labels).clone()),
            ..ObjectMeta::default()
        }),
        spec: pod.to_wire().spec.map(|spec| PodSpec {
            node_name: None,
            ..spec
        }),
    }
}

// === ControllerRevisions ===

enum Found {
    /// The revision of the set's template.
    Revision(Object),
    /// The set has pods, but none is made from its template.
    OnlyOldPods,
    /// The set has no pods, or has revisions.
    Nothing,
}

/// What the files say about sets, by their uids.
struct Known<'a> {
    /// Sets with revisions.
    with_revisions: BTreeSet<&'a str>,
    /// The first pod of each revision.
    pods: BTreeMap<&'a str, BTreeMap<&'a str, &'a Pod>>,
}

impl<'a> Known<'a> {
    fn of(objects: &'a [Object]) -> Self {
        let mut known = Self {
            with_revisions: BTreeSet::new(),
            pods: BTreeMap::new(),
        };
        for object in objects {
            let Some(owner) = object.meta().controller() else {
                continue;
            };
            match object {
                Object::ControllerRevision(_) => {
                    known.with_revisions.insert(&owner.uid);
                }
                Object::Pod(pod) => {
                    if let Some(label) = pod.meta.label(REVISION_LABEL) {
                        let of_set = known.pods.entry(&owner.uid).or_default();
                        of_set.entry(label).or_insert(pod);
                    }
                }
                _ => {}
            }
        }
        known
    }

    /// `latest`: the revision of the template as the set's status names it.
    fn revision<T: Stored>(
        &self,
        set: &T,
        template: &PodTemplateSpec,
        latest: Option<&str>,
    ) -> Found {
        let uid = &*set.meta().uid;
        let (false, Some(pods)) = (self.with_revisions.contains(uid), self.pods.get(uid)) else {
            return Found::Nothing;
        };
        let mut made = pods.iter().filter(|(_, pod)| is_made_from(pod, template));
        let first = made.clone().next();
        let found = made.find(|(label, _)| Some(**label) == latest).or(first);
        match found {
            Some((label, _)) => Found::Revision(revision_of_pods(set, template, label)),
            None => Found::OnlyOldPods,
        }
    }
}
