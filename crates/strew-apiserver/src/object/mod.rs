//! Objects as the store keeps them and controllers read them.
//!
//! Every object consists of metadata, a shared spec and a status, so that a change copies only what it changes.
//! Patches, expectations and output use the wire types, which are made from these.
//!
//! Reading order: [`meta`], [`pod`], [`kinds`] (all other kinds), [`moment`] (times), [`scheduling`] (objects that a
//! scheduler reads).

pub mod kinds;
pub mod meta;
pub mod moment;
pub mod pod;
pub mod scheduling;
mod view;
mod wire;
mod workload;

/// The part of an object that a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Metadata and spec.
    Main,
    /// The status.
    Status,
}

pub use kinds::{
    Autoscaler, Budget, CloneSet, ControllerRevision, CronJob, DaemonSet, Deployment, Job, Key,
    Kind, Node, Object, Plain, ReplicaSet, ReplicationController, Resource, RevisionData,
    StatefulSet, Stored, WorkloadSpread,
};
pub use meta::{Deletion, Meta, Name, Owner, Pairs};
pub use pod::{Condition, Exit, Phase, Pod, PodStatus, Truth};

use strew_manifest::kinds::Pods;
use strew_manifest::read::KubeObject;

/// True if kubectl applies the object while the controllers watch: if it makes pods and does not come from a dump
/// (objects of a dump have uids). All other objects exist before the controllers start.
pub fn is_applied(object: &Object) -> bool {
    object.meta().uid.is_empty()
        && object
            .kind()
            .row()
            .is_some_and(|row| row.pods == Pods::Make)
}

/// True for a Namespace that is being deleted, in which nothing is created.
pub fn is_ending_namespace(object: &Object) -> bool {
    let Object::Plain(plain) = object else {
        return false;
    };
    let KubeObject::Namespace(namespace) = &plain.object else {
        return false;
    };
    let status = namespace.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    plain.meta.is_terminating() || phase == Some("Terminating")
}
