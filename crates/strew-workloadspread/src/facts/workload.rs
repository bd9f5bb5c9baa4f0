//! Workloads, with the fields that decisions need: owners, numbers of replicas, and the latest revision.
//!
//! Source: spec/workloadspread §3, §4.2, §5.3.

use std::sync::Arc;

use strew_model::{Holds, Labels, Marks, Selector, Symbol};

use super::spec::TargetRef;

/// The key of a workload.
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

/// A template without its label `pod-template-hash`. The caller assigns the ids; equal ids mean equal templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TemplateId(pub u128);

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadFact {
    /// Its key.
    pub key: WorkloadKey,
    /// Its uid.
    pub uid: Arc<str>,
    /// True if it has a deletion timestamp.
    pub deleting: bool,
    /// Its own controller.
    pub controller: Option<Controller>,
    /// The number of pods that it asks for: `spec.replicas`, for a Job `spec.parallelism`, for other kinds from their
    /// scale. `None`: unknown.
    pub replicas: Option<i64>,
    /// The integers at paths that filters name.
    pub numbers: Box<[(Arc<str>, i64)]>,
    /// The selector of a Job, or of the scale of another kind.
    pub selector: Option<Selector>,
    /// The selector by which its controller finds its pods, for any kind; `None` if it is unknown.
    pub finds: Option<Selector>,
    /// The labels of its pods, if these can be spread together with pods of other workloads; `None` if its kind has no
    /// template, another workload controls it, or its pods have ordinals.
    pub pod_labels: Option<Labels>,
    /// Its pod template.
    pub template: Option<TemplateId>,
    /// Its label `pod-template-hash`.
    pub template_hash: Option<Symbol>,
    /// Its annotation `deployment.kubernetes.io/revision`.
    pub revision: Option<i64>,
    /// Of a CloneSet: `status.currentRevision` and `status.updateRevision`.
    pub revisions: Option<[Symbol; 2]>,
    /// For a StatefulSet: the ordinal of its first pod.
    pub first_ordinal: i64,
    /// For Kruise's StatefulSet: reserved ordinals (`reserveOrdinals`), as inclusive ranges.
    pub reserved_ordinals: Box<[(i64, i64)]>,
    /// For a Job: true if an evicted pod does not count as failed (`podFailurePolicy`).
    pub ignores_disruption: bool,
    /// How it replaces pods by those of a new revision; `None` if it deletes the old ones first, or never replaces
    /// them.
    pub rolling: Option<Rolling>,
}

/// How a rollout proceeds while the workload serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rolling {
    /// The number of pods beyond those asked for.
    pub surge: i64,
    /// The number of pods that may be unavailable.
    pub unavailable: i64,
}

impl WorkloadFact {
    /// The number at a path.
    pub fn number(&self, path: &str) -> Option<i64> {
        let found = self.numbers.iter().find(|(p, _)| &**p == path);
        found.map(|&(_, number)| number)
    }

    /// The number of reserved ordinals from `first` up to `below`, exclusive. Ranges may overlap.
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
