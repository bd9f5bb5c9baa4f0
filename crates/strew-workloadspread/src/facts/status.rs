//! The status of a WorkloadSpread: the ledger that admission and controller share.
//!
//! Source: spec/workloadspread §2.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::Instant;

use crate::rollout::Misfit;

/// `missingReplicas` of a subset without limit.
pub const UNLIMITED: i32 = -1;

/// The status of a WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The generation of the last successful sync.
    pub observed_generation: i64,
    /// `subsetStatuses`: over all revisions, written only by the controller.
    pub overall: Vec<Row>,
    /// `versionedSubsetStatuses`: the ledger, by revision.
    pub versioned: BTreeMap<Arc<str>, Vec<Row>>,
    /// The condition `WebhookReady` of all rows of `overall`; `None` if the webhook is ready, as far as is known.
    pub webhook: Option<WebhookCondition>,
    /// The condition `PatchApplied`, which is False, of rows of `overall`: subsets whose patch is not applied to pods,
    /// since an owner would not find them then; with the time since when, a whole second.
    pub unpatched: BTreeMap<Arc<str>, Instant>,
    /// The condition `OwnsPods`, which is False, of all rows of `overall`; `None` if no older WorkloadSpread matches
    /// the same pods.
    pub outranked: Option<Outranked>,
    /// The condition `RolloutFits`, which is False, of rows of `overall`.
    pub misfits: BTreeMap<Arc<str>, RolloutMisfit>,
}

/// The condition `RolloutFits`, which is False.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutMisfit {
    /// What a rollout does with the subset.
    pub what: Misfit,
    /// `lastTransitionTime`, a whole second.
    pub since: Instant,
}

/// The condition `OwnsPods`, which is False.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outranked {
    /// The name of the older WorkloadSpread.
    pub by: Arc<str>,
    /// `lastTransitionTime`, a whole second.
    pub since: Instant,
}

/// The state of the webhook, as the creation of pods sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Webhook {
    /// Not known yet.
    #[default]
    Unknown,
    /// The webhook is ready, or another program registers it.
    Answers,
    /// No replica is ready, so the webhook is not registered: pods are created in no subset.
    NotRegistered,
    /// No replica is ready and the webhook stays registered: creations are refused.
    NotReady,
}

/// The condition `WebhookReady`, which is False.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookCondition {
    /// Why: [`NotRegistered`](Webhook::NotRegistered) or [`NotReady`](Webhook::NotReady).
    pub why: Webhook,
    /// `lastTransitionTime`, a whole second.
    pub since: Instant,
}

impl Webhook {
    /// The condition for a state, if the condition was `before`.
    pub fn condition(
        self,
        before: Option<WebhookCondition>,
        now: Instant,
    ) -> Option<WebhookCondition> {
        match self {
            Self::Unknown => before,
            Self::Answers => None,
            Self::NotRegistered | Self::NotReady => Some(WebhookCondition {
                why: self,
                since: before.map_or(whole_second(now), |before| before.since),
            }),
        }
    }
}

/// `creatingPods` or `deletingPods`: ids with whole seconds.
pub type Entries = BTreeMap<Arc<str>, Instant>;

/// The status of one subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The subset.
    pub name: Arc<str>,
    /// The number of its active pods at the last sync.
    pub replicas: i32,
    /// [`UNLIMITED`], or the number of further pods that it takes.
    pub missing: i32,
    /// Admitted pods that are not seen yet: by name, or by the uid of the marker if the name was unknown.
    pub creating: Entries,
    /// Pods whose deletion was seen and that are still active: by name.
    pub deleting: Entries,
    /// The condition `Schedulable`; `None` while rescheduling is off.
    pub schedulable: Option<Schedulable>,
}

/// The condition `Schedulable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedulable {
    /// True with reason `Sufficient`, or False with reason `PodUnschedulable`.
    pub holds: bool,
    /// `lastTransitionTime`, a whole second.
    pub since: Instant,
}

impl Schedulable {
    /// The reason of the condition.
    pub fn reason(self) -> &'static str {
        match self.holds {
            true => "Sufficient",
            false => "PodUnschedulable",
        }
    }
}

impl Row {
    /// A row of a subset without pods.
    pub fn new(name: Arc<str>, missing: i32) -> Self {
        Self {
            name,
            replicas: 0,
            missing,
            creating: Entries::new(),
            deleting: Entries::new(),
            schedulable: None,
        }
    }

    /// True if its condition is False.
    pub fn is_closed(&self) -> bool {
        self.schedulable.is_some_and(|s| !s.holds)
    }

    /// True if it takes one more pod.
    pub fn has_room(&self) -> bool {
        self.missing > 0 || self.missing == UNLIMITED
    }

    /// True if a pod of this name is being created or deleted.
    pub fn knows(&self, pod: &str) -> bool {
        self.creating.contains_key(pod) || self.deleting.contains_key(pod)
    }

    /// Its pods and admitted ones, without those being deleted.
    pub fn expected(&self) -> i64 {
        let entries = self.creating.len() as i64 - self.deleting.len() as i64;
        i64::from(self.replicas) + entries
    }
}

impl Status {
    /// The row of a subset over all revisions.
    pub fn overall_row(&self, subset: &str) -> Option<&Row> {
        self.overall.iter().find(|r| &*r.name == subset)
    }

    /// The rows of a revision; empty if there are none.
    pub fn rows(&self, revision: &str) -> &[Row] {
        self.versioned.get(revision).map_or(&[], |rows| rows)
    }

    /// True if a row takes one more pod: it has room, and is not closed.
    pub fn is_open(&self, row: &Row) -> bool {
        row.has_room() && !self.is_closed(row)
    }

    /// True if a subset takes no pods for now: the overall row **or** the revision's says so. A revision's row may be
    /// rebuilt without its condition (spec/workloadspread F8).
    pub fn is_closed(&self, row: &Row) -> bool {
        row.is_closed() || self.overall_row(&row.name).is_some_and(Row::is_closed)
    }
}

/// The time in whole seconds, as entries and conditions store it.
pub fn whole_second(moment: Instant) -> Instant {
    Instant::from_secs(moment.secs())
}
