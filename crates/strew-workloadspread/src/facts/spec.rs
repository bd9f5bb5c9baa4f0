//! A WorkloadSpread, parsed and validated.
//!
//! Source: spec/workloadspread §2.2. Both API versions are read into these types.

use std::sync::Arc;

use strew_model::{
    Holds, Instant, Labels, Marks, NodeSelectorTerm, Selector, Span, Symbol, Toleration,
};

use super::status::Status;

/// The key of a WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WsKey {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Arc<str>,
}

/// A WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpread {
    /// Namespace and name.
    pub key: WsKey,
    /// Its uid.
    pub uid: Arc<str>,
    /// `resourceVersion` as a number: of two copies, the one with the larger number is newer.
    pub version: u64,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: Instant,
    /// True if it has a deletion timestamp.
    pub deleting: bool,
    /// Annotation [`IGNORE_PATCH_ANNOTATION`](crate::IGNORE_PATCH_ANNOTATION) is `true`: adopted pods get the marker only.
    pub ignore_patch_of_existing: bool,
    /// Its spec.
    pub spec: Arc<Spec>,
    /// Its status, which holds the ledger.
    pub status: Arc<Status>,
}

impl WorkloadSpread {
    /// If several WorkloadSpreads match a pod, the one with the lowest rank has it: the oldest, and of equal age the
    /// first by name.
    pub fn rank(&self) -> (Instant, &WsKey) {
        (self.created, &self.key)
    }
}

/// The spec of a WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The workload, in the same namespace. `None`: nothing is done.
    pub target: Option<TargetRef>,
    /// Selects further workloads of the namespace, by the labels of their pods; limits hold over the sum. `None`, as in
    /// Kruise: none.
    pub also: Option<Selector>,
    /// True if the target's kind is accepted although it is not listed.
    pub any_kind: bool,
    /// Selects some of the target's pods; `None`: all.
    pub filter: Option<TargetFilter>,
    /// Earlier subsets come first.
    pub subsets: Box<[Subset]>,
    /// What is done if a subset lacks room on its nodes.
    pub strategy: Strategy,
    /// The pods that limits count.
    pub limit_scope: LimitScope,
    /// What happens to a pod for which no subset has room.
    pub when_no_room: WhenNoRoom,
    /// The interval at which a pod of a later subset may move back to an earlier one with room; `None`: never, as in
    /// Kruise.
    pub move_back: Option<Span>,
    /// True if pods of a custom kind get deletion costs, too: its controller reads them.
    pub deletion_costs: bool,
}

/// The pods that limits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitScope {
    /// As in Kruise: the pods of each revision of a Deployment or ReplicaSet, all pods of other workloads.
    #[default]
    Kind,
    /// The pods of each revision, also of a CloneSet: during a rollout a subset may have twice its limit.
    Revision,
    /// All pods of the workload.
    Workload,
}

/// What happens to a pod for which no subset has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenNoRoom {
    /// It passes unchanged, as in Kruise.
    #[default]
    Unconstrained,
    /// It passes with a scheduling gate, and is replaced as soon as there is room.
    Pending,
    /// It is refused; its controller tries again.
    Reject,
}

/// The workload that is spread. The version of its API does not matter, its group does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetRef {
    /// The group of its API version.
    pub group: Symbol,
    /// Its kind.
    pub kind: Symbol,
    /// Its name.
    pub name: Symbol,
}

/// The pods of the target that are managed, and the number of replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFilter {
    /// The pods.
    pub selector: FilterSelector,
    /// Paths into the target; the sum of their numbers is the total for percentages.
    pub replicas_paths: Box<[Arc<str>]>,
}

/// The selector of a target filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterSelector {
    /// No selector: all pods, in admission and controller alike (spec/workloadspread F1; Kruise's webhook matches
    /// none).
    Every,
    /// A selector.
    Of(Selector),
    /// The selector cannot be parsed: the WorkloadSpread is ignored.
    Broken,
}

impl FilterSelector {
    /// True if a pod of these labels is managed; `None` if that is unknown.
    pub fn selects(&self, labels: &Labels) -> Option<bool> {
        match self {
            Self::Every => Some(true),
            Self::Of(selector) => Some(selector.matches(labels)),
            Self::Broken => None,
        }
    }
}

impl Spec {
    /// True if the filter matches a pod of these labels; `None` if that is unknown.
    pub fn selects(&self, labels: &Labels) -> Option<bool> {
        let filter = self.filter.as_ref();
        filter.map_or(Some(true), |f| f.selector.selects(labels))
    }

    /// The index of a subset.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.subsets.iter().position(|s| &*s.name == name)
    }

    /// True if there is one subset without limit: then no ledger is kept (spec/workloadspread §4.3, step 0).
    pub fn keeps_no_ledger(&self) -> bool {
        matches!(&*self.subsets, [only] if only.max_replicas.is_none())
    }

    /// True if some subset's limit is a percentage.
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
    /// Its limit; `None`: none.
    pub max_replicas: Option<MaxReplicas>,
    /// The number of pods that it gets before any subset gets more than its own minimum. 0 by default; Kruise has none.
    pub min_replicas: u32,
    /// `requiredNodeSelector` (v1alpha1 `requiredNodeSelectorTerm`).
    pub required: Option<NodeSelectorTerm>,
    /// Weight and term of `preferredNodeSelector` (v1alpha1 `preferredNodeSelectorTerms`).
    pub preferred: Box<[(i32, NodeSelectorTerm)]>,
    /// Tolerations that its pods get in addition.
    pub tolerations: Box<[Toleration]>,
    /// Its patch, which only a [`PodPatcher`](crate::PodPatcher) can read.
    pub patch: Option<PatchId>,
    /// How the patch changes a pod's labels; `None`: not at all.
    pub labels: Option<LabelPatch>,
    /// The subset as written: its contents are put into the pod's JSON.
    pub form: FormId,
}

/// How a patch changes a pod's labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelPatch {
    /// True if labels that it does not name are removed.
    pub replaces: bool,
    /// The labels that it names, with their values; `None`: the label is removed.
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

/// Identifies a subset as written. The caller assigns the ids; equal ids mean equal texts. If no JSON is made, the
/// default suffices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FormId(pub u64);

/// Identifies a patch. The caller assigns the ids; equal ids mean equal patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatchId(pub u64);

/// `maxReplicas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxReplicas {
    /// A number of pods; 0 closes the subset.
    Count(u32),
    /// A percentage of the total, rounded up.
    Percent(u32),
    /// It cannot be parsed: it was stored without validation. Admission takes it as 0, the controller writes no rows.
    Broken,
}

/// `scheduleStrategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Only the order of subsets and their limits count. Also `Adaptive` without its `adaptive`.
    #[default]
    Fixed,
    /// Room on the nodes of a subset counts, too.
    Adaptive(Adaptive),
}

/// `scheduleStrategy.adaptive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Adaptive {
    /// `disableSimulationSchedule`: admission does not simulate scheduling.
    pub disable_simulation: bool,
    /// `rescheduleCriticalSeconds`; `None`, also for 0: pods are not rescheduled.
    pub critical: Option<Span>,
    /// How long a subset stays closed; `None`: [`CLOSED_FOR`](crate::CLOSED_FOR), as in Kruise.
    pub closed_for: Option<Span>,
}

impl Strategy {
    /// True if admission simulates scheduling (spec/workloadspread §4.8).
    pub fn simulates(&self) -> bool {
        matches!(self, Self::Adaptive(adaptive) if !adaptive.disable_simulation)
    }

    /// How long a pod may stay unschedulable, and how long its subset is closed then; `None` if pods are not
    /// rescheduled.
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
