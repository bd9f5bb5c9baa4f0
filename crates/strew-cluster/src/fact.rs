//! Facts: the cluster's input as plain values.

use std::sync::Arc;

use strew_model::{Holds, Labels, Marks, Resources, Symbol, Taint};

use crate::owners::OwnerRef;
use crate::pod_spec::PodSpec;

/// A node as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFact {
    /// Its name.
    pub name: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// Its taints, in the order of the spec.
    pub taints: Box<[Taint]>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// What pods may ask for in all.
    pub allocatable: Resources,
    /// How many pods it takes; 0 if unknown.
    pub pods_max: i64,
    /// Images that it has, each name with its size in bytes.
    pub images: Box<[(Symbol, i64)]>,
}

/// A pod as it is now. A pod that has finished is not a fact: it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFact {
    /// What identifies it.
    pub uid: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// Its controller.
    pub owner: Option<OwnerRef>,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// The node that it is bound to.
    pub node: Option<Symbol>,
    /// What it asks for.
    pub spec: PodSpec,
    /// What has become of it, as far as preemption looks at it.
    pub history: PodHistory,
}

/// What has become of a pod. It is no part of its class: pods of one class differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodHistory {
    /// `status.nominatedNodeName`.
    pub nominated: Option<Symbol>,
    /// `status.startTime`, in seconds since 1970.
    pub started_s: Option<i64>,
    /// Whether its first `DisruptionTarget` condition is true with reason `PreemptionByScheduler`.
    pub preempted: bool,
}

impl Holds for NodeFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            name,
            labels,
            taints,
            unschedulable: _,
            allocatable,
            pods_max: _,
            images,
        } = self;
        name.mark(marks);
        labels.mark(marks);
        taints.mark(marks);
        allocatable.mark(marks);
        images.mark(marks);
    }
}

impl Holds for PodFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            uid: _,
            name: _,
            namespace,
            labels,
            owner,
            terminating: _,
            node,
            spec,
            history,
        } = self;
        namespace.mark(marks);
        labels.mark(marks);
        owner.map(|owner| owner.name).mark(marks);
        node.mark(marks);
        spec.mark(marks);
        history.nominated.mark(marks);
    }
}
