//! A WorkloadSpread, already parsed and validated.
//!
//! Source: spec/workloadspread §2.2. Both API versions read into these types.

use std::sync::Arc;

use strew_model::{
    Holds, Instant, Labels, Marks, NodeSelectorTerm, Selector, Span, Symbol, Toleration,
};

use super::status::Status;

/// What names a WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WsKey {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Arc<str>,
}

/// A WorkloadSpread as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpread {
    /// Namespace and name.
    pub key: WsKey,
    /// What identifies it.
    pub uid: Arc<str>,
    /// `resourceVersion` read as a number: of two copies the greater is the newer.
    pub version: u64,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: Instant,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Annotation [`IGNORE_PATCH_ANNOTATION`](crate::IGNORE_PATCH_ANNOTATION) is `true`: adopted pods get the marker only.
    pub ignore_patch_of_existing: bool,
    /// What is asked for.
    pub spec: Arc<Spec>,
    /// The ledger.
    pub status: Arc<Status>,
}

impl WorkloadSpread {
    /// Of several WorkloadSpreads that take a pod the one with the least rank has it: the oldest, and of the same age the
    /// first by name.
    pub fn rank(&self) -> (Instant, &WsKey) {
        (self.created, &self.key)
    }
}

/// What a WorkloadSpread asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The workload, in the same namespace. Without one nothing is done.
    pub target: Option<TargetRef>,
    /// Further workloads of the namespace, by the labels of their pods; limits hold over the sum. `None`, as in Kruise: none.
    pub also: Option<Selector>,
    /// The target's kind is known by this, whether or not it is listed.
    pub any_kind: bool,
    /// Manages only some of the target's pods.
    pub filter: Option<TargetFilter>,
    /// Earlier subsets come first.
    pub subsets: Box<[Subset]>,
    /// What is done where a subset lacks room on its nodes.
    pub strategy: Strategy,
    /// Over which pods limits hold.
    pub limit_scope: LimitScope,
    /// What becomes of a pod for which no subset has room.
    pub when_no_room: WhenNoRoom,
    /// How often a pod of a later subset may move back to an earlier one that has room; `None`: never, as in Kruise.
    pub move_back: Option<Span>,
    /// Whether pods of a custom kind get deletion costs, too: its controller looks at them.
    pub deletion_costs: bool,
}

/// Over which pods limits hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitScope {
    /// As in Kruise: over the pods of each revision of a Deployment or ReplicaSet, over all pods of other workloads.
    #[default]
    Kind,
    /// Over the pods of each revision, also of a CloneSet: during a rollout a subset may have twice its limit.
    Revision,
    /// Over all pods of the workload.
    Workload,
}

/// What becomes of a pod for which no subset has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenNoRoom {
    /// It passes as it is, as in Kruise.
    #[default]
    Unconstrained,
    /// It passes with a scheduling gate, and is replaced as soon as there is room.
    Pending,
    /// It is refused; its controller tries again.
    Reject,
}

/// The workload that is spread. Its API version does not matter, its group does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetRef {
    /// The group of its API version.
    pub group: Symbol,
    /// Its kind.
    pub kind: Symbol,
    /// Its name.
    pub name: Symbol,
}

/// Which of the target's pods are managed, and how many there are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFilter {
    /// Which pods.
    pub selector: FilterSelector,
    /// Paths into the target; the sum of their numbers is the total for percentages.
    pub replicas_paths: Box<[Arc<str>]>,
}

/// The selector of a target filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterSelector {
    /// Absent: all pods, in admission and controller alike (spec/workloadspread F1; Kruise's webhook takes none).
    Every,
    /// These pods.
    Of(Selector),
    /// It does not parse: the WorkloadSpread is passed over.
    Broken,
}

impl FilterSelector {
    /// Whether a pod of these labels is managed; `None`: that cannot be told.
    pub fn selects(&self, labels: &Labels) -> Option<bool> {
        match self {
            Self::Every => Some(true),
            Self::Of(selector) => Some(selector.matches(labels)),
            Self::Broken => None,
        }
    }
}

impl Spec {
    /// Whether the filter takes a pod of these labels; `None`: that cannot be told.
    pub fn selects(&self, labels: &Labels) -> Option<bool> {
        let filter = self.filter.as_ref();
        filter.map_or(Some(true), |f| f.selector.selects(labels))
    }

    /// The place of a subset.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.subsets.iter().position(|s| &*s.name == name)
    }

    /// Whether there is one subset without limit: no ledger is kept then (spec/workloadspread §4.3, step 0).
    pub fn keeps_no_ledger(&self) -> bool {
        matches!(&*self.subsets, [only] if only.max_replicas.is_none())
    }

    /// Whether some subset's limit is a share of the total.
    pub fn has_percentages(&self) -> bool {
        let limits = self.subsets.iter().filter_map(|s| s.max_replicas);
        limits
            .into_iter()
            .any(|m| matches!(m, MaxReplicas::Percent(_)))
    }
}

/// A subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subset {
    /// Its name, unique in the WorkloadSpread.
    pub name: Arc<str>,
    /// How many pods it takes; `None`: any number.
    pub max_replicas: Option<MaxReplicas>,
    /// Pods that it gets before any subset gets more than its own minimum. 0 unless asked for; Kruise has none.
    pub min_replicas: u32,
    /// `requiredNodeSelector` (v1alpha1 `requiredNodeSelectorTerm`).
    pub required: Option<NodeSelectorTerm>,
    /// Weight and term of `preferredNodeSelector` (v1alpha1 `preferredNodeSelectorTerms`).
    pub preferred: Box<[(i32, NodeSelectorTerm)]>,
    /// What its pods tolerate besides.
    pub tolerations: Box<[Toleration]>,
    /// Its patch, which only a [`PodPatcher`](crate::PodPatcher) can read.
    pub patch: Option<PatchId>,
    /// What the patch makes of a pod's labels; `None`: nothing.
    pub labels: Option<LabelPatch>,
    /// The subset as it is written: what is put into a pod's own text.
    pub form: FormId,
}

/// What a patch makes of a pod's labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelPatch {
    /// Whether the labels that it does not name go.
    pub replaces: bool,
    /// Labels that it names, with their values; `None`: the label goes.
    pub labels: Box<[(Symbol, Option<Symbol>)]>,
}

impl LabelPatch {
    /// The labels of a pod after the patch.
    pub fn applied(&self, labels: &Labels) -> Labels {
        let is_named = |key: Symbol| self.labels.iter().any(|(named, _)| *named == key);
        let kept = labels
            .iter()
            .filter(|(key, _)| !self.replaces && !is_named(*key));
        let set = self.labels.iter();
        let set = set.filter_map(|(key, value)| Some((*key, (*value)?)));
        Labels::new(kept.chain(set).collect())
    }
}

/// Names a subset as it is written. The world gives the ids; equal ids are equal texts. Where no text is made, the
/// default will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FormId(pub u64);

/// Names a patch. The world gives the ids; equal ids are equal patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatchId(pub u64);

/// `maxReplicas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxReplicas {
    /// So many pods; 0 closes the subset.
    Count(u32),
    /// So many percent of the total, rounded up.
    Percent(u32),
    /// It does not parse: stored by somebody who did not validate. Admission takes 0, the controller writes no rows.
    Broken,
}

/// `scheduleStrategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The order of subsets and their limits alone. Also `Adaptive` without its `adaptive`.
    #[default]
    Fixed,
    /// Where the nodes of a subset lack room, too.
    Adaptive(Adaptive),
}

/// `scheduleStrategy.adaptive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Adaptive {
    /// `disableSimulationSchedule`: admission does not ask whether a node takes the pod.
    pub disable_simulation: bool,
    /// `rescheduleCriticalSeconds`; `None`, also for 0: pods are not rescheduled.
    pub critical: Option<Span>,
    /// How long a subset stays closed; `None`: [`CLOSED_FOR`](crate::CLOSED_FOR), as in Kruise.
    pub closed_for: Option<Span>,
}

impl Strategy {
    /// Whether admission asks whether a node takes the pod (spec/workloadspread §4.8).
    pub fn simulates(&self) -> bool {
        matches!(self, Self::Adaptive(adaptive) if !adaptive.disable_simulation)
    }

    /// How long a pod may stay unschedulable, and how long its subset is closed then; `None`: pods stay.
    pub fn reschedules(&self) -> Option<(Span, Span)> {
        let Self::Adaptive(adaptive) = self else {
            return None;
        };
        let critical = adaptive.critical.filter(|s| *s > Span(0))?;
        Some((critical, adaptive.closed_for.unwrap_or(crate::CLOSED_FOR)))
    }
}

// === the symbols in it ===

impl Holds for WsKey {
    fn mark(&self, marks: &mut Marks) {
        self.namespace.mark(marks);
    }
}

impl Holds for TargetRef {
    fn mark(&self, marks: &mut Marks) {
        let Self { group, kind, name } = self;
        group.mark(marks);
        kind.mark(marks);
        name.mark(marks);
    }
}

impl Holds for WorkloadSpread {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            uid: _,
            version: _,
            generation: _,
            created: _,
            deleting: _,
            ignore_patch_of_existing: _,
            spec,
            status: _,
        } = self;
        key.mark(marks);
        spec.mark(marks);
    }
}

impl Holds for Spec {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            target,
            also,
            any_kind: _,
            filter,
            subsets,
            strategy: _,
            limit_scope: _,
            when_no_room: _,
            move_back: _,
            deletion_costs: _,
        } = self;
        target.mark(marks);
        also.mark(marks);
        subsets.mark(marks);
        if let Some(FilterSelector::Of(selector)) = filter.as_ref().map(|f| &f.selector) {
            selector.mark(marks);
        }
    }
}

impl Holds for Subset {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            name: _,
            max_replicas: _,
            min_replicas: _,
            required,
            preferred,
            tolerations,
            patch: _,
            labels,
            form: _,
        } = self;
        for (key, value) in labels.iter().flat_map(|patch| &patch.labels) {
            key.mark(marks);
            value.mark(marks);
        }
        required.mark(marks);
        preferred.mark(marks);
        tolerations.mark(marks);
    }
}
