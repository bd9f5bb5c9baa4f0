//! Workloads as far as they decide: who owns whom, how many there are to be, and which revision is the latest.
//!
//! Source: spec/workloadspread §3, §4.2, §5.3.

use std::sync::Arc;

use strew_model::{Holds, Labels, Marks, Selector, Symbol};

use super::spec::TargetRef;

/// What names a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    /// Its namespace.
    pub namespace: Symbol,
    /// Group, kind and name.
    pub target: TargetRef,
}

/// The owner of an object that is marked as its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Group, kind and name.
    pub target: TargetRef,
    /// Its uid.
    pub uid: Arc<str>,
}

/// A template, its label `pod-template-hash` left out. The world gives the ids; equal ids are equal templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TemplateId(pub u128);

/// A workload as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadFact {
    /// What names it.
    pub key: WorkloadKey,
    /// What identifies it.
    pub uid: Arc<str>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Its own controller.
    pub controller: Option<Controller>,
    /// What it asks for: `spec.replicas`, of a Job `spec.parallelism`, of others what their scale says.
    /// `None`: nobody can tell.
    pub replicas: Option<i64>,
    /// Numbers at paths that filters name, where there is an integer.
    pub numbers: Box<[(Arc<str>, i64)]>,
    /// The selector of a Job, or of the scale of another kind.
    pub selector: Option<Selector>,
    /// The selector by which its controller finds its pods, of whatever kind it is; `None`: it is not known.
    pub finds: Option<Selector>,
    /// The labels of its pods, where these may be spread together with those of other workloads; `None`: its kind has no
    /// template, or another workload controls it, or its pods go by ordinals.
    pub pod_labels: Option<Labels>,
    /// Its pod template.
    pub template: Option<TemplateId>,
    /// Its label `pod-template-hash`.
    pub template_hash: Option<Symbol>,
    /// Its annotation `deployment.kubernetes.io/revision`.
    pub revision: Option<i64>,
    /// Of a CloneSet: `status.currentRevision` and `status.updateRevision`.
    pub revisions: Option<[Symbol; 2]>,
    /// Of a StatefulSet: the ordinal of its first pod.
    pub first_ordinal: i64,
    /// Of Kruise's StatefulSet: ordinals that no pod has (`reserveOrdinals`), inclusive ranges.
    pub reserved_ordinals: Box<[(i64, i64)]>,
    /// Of a Job: a pod that is evicted does not count as failed (`podFailurePolicy`).
    pub ignores_disruption: bool,
    /// How it replaces its pods by those of a new revision; `None`: it takes the old ones first, or not at all.
    pub rolling: Option<Rolling>,
}

/// How a rollout goes on while the workload serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rolling {
    /// How many more pods than asked for there may be.
    pub surge: i64,
    /// How many pods less than asked for may be available.
    pub unavailable: i64,
}

impl WorkloadFact {
    /// The number at a path.
    pub fn number(&self, path: &str) -> Option<i64> {
        let found = self.numbers.iter().find(|(p, _)| &**p == path);
        found.map(|&(_, number)| number)
    }

    /// How many ordinals from `first` up to `below`, which does not count, are reserved. Ranges may overlap.
    pub fn n_reserved(&self, first: i64, below: i64) -> i64 {
        let mut ranges: Vec<(i64, i64)> = self.reserved_ordinals.to_vec();
        ranges.sort_unstable();
        let (mut n, mut next) = (0, first);
        for (from, to) in ranges {
            let (from, end) = (from.max(next), to.saturating_add(1).min(below));
            n += (end - from).max(0);
            next = next.max(end);
        }
        n
    }
}

// === the symbols in it ===

impl Holds for WorkloadKey {
    fn mark(&self, marks: &mut Marks) {
        let Self { namespace, target } = self;
        namespace.mark(marks);
        target.mark(marks);
    }
}

impl Holds for Controller {
    fn mark(&self, marks: &mut Marks) {
        self.target.mark(marks);
    }
}

impl Holds for WorkloadFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            uid: _,
            deleting: _,
            controller,
            replicas: _,
            numbers: _,
            selector,
            finds,
            pod_labels,
            template: _,
            template_hash,
            revision: _,
            revisions,
            first_ordinal: _,
            reserved_ordinals: _,
            ignores_disruption: _,
            rolling: _,
        } = self;
        key.mark(marks);
        controller.mark(marks);
        selector.mark(marks);
        finds.mark(marks);
        pod_labels.mark(marks);
        template_hash.mark(marks);
        revisions
            .iter()
            .for_each(|both| both.as_slice().mark(marks));
    }
}
