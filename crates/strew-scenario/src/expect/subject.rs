//! The pods that a claim is about.

use std::sync::Arc;

use strew_apiserver::object::{
    CloneSet, DaemonSet, Deployment, Kind, Meta, Name, Object, Pod, ReplicaSet, StatefulSet,
};
use strew_apiserver::{OwnedPods, Selection, Tables};
use strew_manifest::kinds::Pods;

use crate::format::{ObjectTarget, Revision, Subject};

/// The pods of a subject that have not finished, by name; terminating pods are included.
pub fn pods<'a>(tables: &'a Tables, subject: &Subject) -> Vec<&'a Arc<Pod>> {
    let mut pods = match subject {
        Subject::Workload(target) => of_target(tables, target),
        Subject::Selector {
            selector,
            namespace,
        } => {
            let Some(selection) = Selection::of(selector) else {
                return Vec::new();
            };
            let namespace = Arc::from(namespace.as_str());
            let pods = tables.of::<Pod>().in_namespace(&namespace);
            pods.filter(|pod| selection.matches(&pod.meta.labels))
                .collect()
        }
    };
    pods.retain(|pod| !pod.is_finished());
    pods
}

/// The pods of an object, finished ones included: the pod itself, or the pods that the object controls, directly or
/// through ReplicaSets and Jobs.
pub fn of_target<'a>(tables: &'a Tables, target: &ObjectTarget) -> Vec<&'a Arc<Pod>> {
    let key = target.key();
    if key.kind == Kind::Pod {
        return tables.get::<Pod>(&key.name).into_iter().collect();
    }
    let makes_pods = |object: &Object| {
        let kind = object.kind();
        kind.row().is_some_and(|row| row.pods == Pods::Make)
    };
    let Some(object) = tables.find(&key).filter(makes_pods) else {
        return Vec::new();
    };
    let uid = &object.meta().uid;
    let is_controlled = |meta: &Meta| meta.controller().is_some_and(|owner| owner.uid == *uid);
    let below = tables.iter_dependents(uid).filter(makes_pods);
    let below = below.filter(|object| is_controlled(object.meta()));
    let owners = below.map(|object| Arc::clone(&object.meta().uid));
    let owners: Vec<Arc<str>> = [Arc::clone(uid)].into_iter().chain(owners).collect();
    let pods = owners.iter().filter_map(|uid| tables.pods_of(uid));
    pods.flat_map(OwnedPods::iter).collect()
}

/// The label and value that mark the pods of the newest revision; `None` if it is not known.
pub fn latest_revision(tables: &Tables, target: &ObjectTarget) -> Option<(&'static str, String)> {
    const HASH: &str = "pod-template-hash";
    const REVISION: &str = "controller-revision-hash";
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let name = Name::new(namespace, target.name.as_str());
    match Kind::of(target.type_name.kind) {
        Kind::Deployment => {
            let owner = tables.get::<Deployment>(&name)?;
            let sets = tables.of::<ReplicaSet>().in_namespace(&name.namespace);
            let own = sets.filter(|set| {
                set.meta
                    .controller()
                    .is_some_and(|o| o.uid == owner.meta.uid)
            });
            let number = |set: &&Arc<ReplicaSet>| {
                let text = set.meta.annotation("deployment.kubernetes.io/revision");
                text.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
            };
            let newest = own.max_by_key(number)?;
            Some((HASH, newest.meta.label(HASH)?.to_owned()))
        }
        Kind::StatefulSet => {
            let set = tables.get::<StatefulSet>(&name)?;
            Some((REVISION, set.status.update_revision.clone()?))
        }
        Kind::CloneSet => {
            let set = tables.get::<CloneSet>(&name)?;
            Some((REVISION, set.status.update_revision.clone()?))
        }
        Kind::DaemonSet => {
            let set = tables.get::<DaemonSet>(&name)?;
            let revisions = tables
                .of::<strew_apiserver::object::ControllerRevision>()
                .in_namespace(&name.namespace);
            let own = revisions.filter(|revision| {
                revision
                    .meta
                    .controller()
                    .is_some_and(|o| o.uid == set.meta.uid)
            });
            let newest = own.max_by_key(|revision| revision.spec.revision)?;
            Some((REVISION, newest.meta.label(REVISION)?.to_owned()))
        }
        _ => None,
    }
}

/// Keeps the pods of the revisions that a claim counts.
pub fn keep_revision(
    tables: &Tables,
    subject: &Subject,
    revision: Revision,
    pods: &mut Vec<&Arc<Pod>>,
) {
    let (Revision::Latest, Subject::Workload(target)) = (revision, subject) else {
        return;
    };
    if let Some((key, value)) = latest_revision(tables, target) {
        pods.retain(|pod| pod.meta.label(key) == Some(value.as_str()));
    }
}
