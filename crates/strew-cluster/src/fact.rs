//! Facts: the cluster's input as plain values.

use std::sync::Arc;

use strew_model::{Holds, Labels, Marks, Resources, Symbol, Taint};

use crate::owners::OwnerRef;
use crate::pod_spec::PodSpec;

/// The current state of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFact {
    /// Its name.
    pub name: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// Its taints, in the order of the spec.
    pub taints: Box<[Taint]>,
    /// True if it is cordoned.
    pub unschedulable: bool,
    /// The resources that its pods may request in total.
    pub allocatable: Resources,
    /// The number of pods that it takes; 0 if unknown.
    pub pods_max: i64,
    /// Its images, each name with its size in bytes.
    pub images: Box<[(Symbol, i64)]>,
}

/// The current state of a pod. A finished pod has no fact: it counts as deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFact {
    /// Its identity.
    pub uid: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// Its controller.
    pub owner: Option<OwnerRef>,
    /// True if it has a deletion timestamp.
    pub terminating: bool,
    /// The node that it is bound to.
    pub node: Option<Symbol>,
    /// The deciding part of its spec.
    pub spec: PodSpec,
    /// The parts of its status that preemption reads.
    pub history: PodHistory,
}

/// Parts of a pod's status that are not part of its class: pods of one class may differ in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodHistory {
    /// `status.nominatedNodeName`.
    pub nominated: Option<Symbol>,
    /// `status.startTime`, in seconds since 1970.
    pub started_s: Option<i64>,
    /// True if its first `DisruptionTarget` condition is true with reason `PreemptionByScheduler`.
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
