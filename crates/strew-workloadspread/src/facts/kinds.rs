//! The kinds of workloads that are known by name.
//!
//! Source: spec/workloadspread §3, §4.2, §5.5, §6.3.

use rustc_hash::{FxHashMap, FxHashSet};
use strew_model::{Holds, Interner, Marks, Symbol};

use super::spec::{Spec, TargetRef, WorkloadSpread};

/// A group and a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupKind {
    /// The group; empty for the core group.
    pub group: Symbol,
    /// The kind.
    pub kind: Symbol,
}

/// The meaning of a target's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `apps` Deployment: its ReplicaSets own the pods.
    Deployment,
    /// `apps` ReplicaSet.
    ReplicaSet,
    /// `apps.kruise.io` CloneSet.
    CloneSet,
    /// `batch` Job.
    Job,
    /// `apps` or `apps.kruise.io` StatefulSet, or any kind of that name.
    StatefulSet,
    /// Any other kind.
    Custom,
}

/// The symbols of kinds and labels that decisions need, and the kinds whose owners are followed.
#[derive(Debug, Clone)]
pub struct Kinds {
    deployment: Symbol,
    replica_set: Symbol,
    clone_set: Symbol,
    job: Symbol,
    stateful_set: Symbol,
    known: FxHashSet<GroupKind>,
    builtin: FxHashSet<GroupKind>,
    /// Kinds of targets that a WorkloadSpread declares known, with the number of such WorkloadSpreads.
    asked: FxHashMap<GroupKind, u32>,
    /// The label `pod-template-hash`.
    pub(crate) template_hash: Symbol,
    /// The label `controller-revision-hash`.
    pub(crate) controller_revision: Symbol,
}

impl Kinds {
    /// The built-in kinds.
    pub fn new(names: &mut Interner) -> Self {
        let mut of = |group: &str, kind: &str| GroupKind {
            group: names.intern(group),
            kind: names.intern(kind),
        };
        let deployment = of("apps", "Deployment");
        let replica_set = of("apps", "ReplicaSet");
        let stateful_set = of("apps", "StatefulSet");
        let job = of("batch", "Job");
        let clone_set = of("apps.kruise.io", "CloneSet");
        let advanced = of("apps.kruise.io", "StatefulSet");
        let all = [
            deployment,
            replica_set,
            stateful_set,
            job,
            clone_set,
            advanced,
        ];
        let builtin: FxHashSet<GroupKind> = all.into_iter().collect();
        Self {
            deployment: deployment.kind,
            replica_set: replica_set.kind,
            clone_set: clone_set.kind,
            job: job.kind,
            stateful_set: stateful_set.kind,
            known: builtin.clone(),
            builtin,
            asked: FxHashMap::default(),
            template_hash: names.intern("pod-template-hash"),
            controller_revision: names.intern("controller-revision-hash"),
        }
    }

    /// Replaces the other known kinds: the white list and its `subResources`.
    pub fn set_listed(&mut self, listed: impl IntoIterator<Item = GroupKind>) {
        self.known = self.builtin.clone();
        self.known.extend(listed);
    }

    /// True if objects of this kind are read.
    pub fn is_known(&self, target: &TargetRef) -> bool {
        let TargetRef { group, kind, .. } = *target;
        let asked = GroupKind { group, kind };
        self.known.contains(&asked) || self.asked.contains_key(&asked)
    }

    /// A WorkloadSpread was added, changed or deleted: the kind that it declares known may change.
    pub(crate) fn follow(&mut self, old: Option<&WorkloadSpread>, new: Option<&WorkloadSpread>) {
        let (old, new) = (old.and_then(asks_for), new.and_then(asks_for));
        if old == new {
            return;
        }
        if let Some(kind) = new {
            *self.asked.entry(kind).or_default() += 1;
        }
        if let Some(kind) = old
            && let Some(n) = self.asked.get_mut(&kind)
        {
            *n -= 1;
            if *n == 0 {
                self.asked.remove(&kind);
            }
        }
    }

    /// True if the kind needs no white list.
    pub fn is_builtin(&self, target: &TargetRef) -> bool {
        let TargetRef { group, kind, .. } = *target;
        self.builtin.contains(&GroupKind { group, kind })
    }

    /// The meaning of a kind. By the kind's name alone, as in Kruise.
    pub fn of(&self, kind: Symbol) -> Kind {
        match kind {
            k if k == self.deployment => Kind::Deployment,
            k if k == self.replica_set => Kind::ReplicaSet,
            k if k == self.clone_set => Kind::CloneSet,
            k if k == self.job => Kind::Job,
            k if k == self.stateful_set => Kind::StatefulSet,
            _ => Kind::Custom,
        }
    }

    /// True if pods of this controller are counted by revision, as Kruise counts them.
    pub fn is_versioned(&self, kind: Symbol) -> bool {
        matches!(self.of(kind), Kind::Deployment | Kind::ReplicaSet)
    }

    /// True if the target's pods get deletion costs: its controller reads them, because of its kind
    /// (spec/workloadspread §5.5) or, for a custom kind, because the WorkloadSpread says so.
    pub fn has_costs(&self, spec: &Spec) -> bool {
        match spec.target.map(|target| self.of(target.kind)) {
            Some(Kind::Deployment | Kind::ReplicaSet | Kind::CloneSet) => true,
            Some(Kind::Custom) => spec.deletion_costs,
            Some(Kind::Job | Kind::StatefulSet) | None => false,
        }
    }
}

/// The kind that a WorkloadSpread declares known.
fn asks_for(ws: &WorkloadSpread) -> Option<GroupKind> {
    let target = ws.spec.target.filter(|_| ws.spec.any_kind)?;
    let TargetRef { group, kind, .. } = target;
    Some(GroupKind { group, kind })
}

impl Holds for Kinds {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        // The other symbols are created by `Kinds::new`, after which the machines pin their strings.
        for GroupKind { group, kind } in self.known.iter().chain(self.asked.keys()) {
            (*group, *kind).mark(marks);
        }
    }
}
