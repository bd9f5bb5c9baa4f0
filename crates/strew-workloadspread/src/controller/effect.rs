//! All that the controller can do.

use std::sync::Arc;

use strew_model::{Holds, Marks, Symbol};

pub use crate::admission::EffectId;
use crate::facts::spec::{PatchId, WsKey};
use crate::facts::status::Status;
use crate::marker::Marker;

/// A pod as an effect names it. The uid is the precondition of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodName {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Arc<str>,
}

/// Something to be done in the world. Safe to carry out twice.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Patch the marker onto a pod, and the metadata of its subset's patch.
    Adopt {
        /// What the outcome is told under.
        id: EffectId,
        /// Which pod.
        pod: PodName,
        /// The marker.
        marker: Marker,
        /// The whole `metadata` of this patch goes onto the pod as well.
        metadata_of: Option<PatchId>,
    },
    /// Patch the annotation [`COST_ANNOTATION`](crate::COST_ANNOTATION): the number in decimal.
    SetCost {
        /// What the outcome is told under.
        id: EffectId,
        /// Which pod.
        pod: PodName,
        /// The cost.
        cost: i32,
    },
    /// Put the status of a WorkloadSpread. Precondition: it has this uid and version.
    WriteStatus {
        /// What the outcome is told under.
        id: EffectId,
        /// Which.
        key: WsKey,
        /// Its uid.
        uid: Arc<str>,
        /// Its version.
        version: u64,
        /// The whole new status.
        status: Arc<Status>,
    },
    /// Take a pod that could not be scheduled, with its own grace.
    DeletePod {
        /// What the outcome is told under.
        id: EffectId,
        /// Which pod.
        pod: PodName,
        /// How.
        how: Removal,
    },
    /// Record an event on the WorkloadSpread. Nobody waits for its outcome.
    Event(Event),
}

/// How a pod is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is deleted.
    Delete,
    /// It is evicted, so that it has the condition `DisruptionTarget` by which a Job does not count it as failed.
    Evict,
}

/// An event on a WorkloadSpread. Source: spec/workloadspread §5.11.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Which.
    pub key: WsKey,
    /// What happened.
    pub kind: EventKind,
    /// The pod (or the uid that stands for it), or the subset.
    pub subject: Arc<str>,
}

/// What an event tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// A pod was admitted and did not appear in time.
    CreatePodFailed,
    /// A pod was to be deleted and is still there, or could not be deleted.
    DeletePodFailed,
    /// A cost could not be written.
    PatchPodDeletionCostFailed,
    /// A subset takes pods again.
    RecoverSchedulable,
    /// A subset's patch is not applied: an owner of the pods would not find them by their labels.
    PatchNotApplied,
    /// Pods that it names are an older WorkloadSpread's, which is the event's subject.
    PodsOfAnother,
    /// A rollout does not end, or would not: new pods wait for room of the subset that old ones hold.
    RolloutStuck,
    /// A rollout may leave the subset with fewer pods.
    RolloutShort,
    /// No replica of the webhook is ready, and it is not registered.
    WebhookNotRegistered,
    /// No replica of the webhook is ready, and it stays registered.
    WebhookNotReady,
    /// The webhook answers again.
    WebhookReady,
}

impl EventKind {
    /// Its type and reason.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::CreatePodFailed => ("Warning", "CreatePodFailed"),
            Self::DeletePodFailed => ("Warning", "DeletePodFailed"),
            Self::PatchPodDeletionCostFailed => ("Warning", "PatchPodDeletionCostFailed"),
            Self::RecoverSchedulable => ("Normal", "RecoverSchedulable"),
            Self::PatchNotApplied => ("Warning", "PatchNotApplied"),
            Self::PodsOfAnother => ("Warning", "PodsOfAnother"),
            Self::RolloutStuck => ("Warning", "RolloutStuck"),
            Self::RolloutShort => ("Warning", "RolloutShort"),
            Self::WebhookNotRegistered => ("Warning", "WebhookNotRegistered"),
            Self::WebhookNotReady => ("Warning", "WebhookNotReady"),
            Self::WebhookReady => ("Normal", "WebhookReady"),
        }
    }
}

// === the symbols in it ===

impl Holds for PodName {
    fn mark(&self, marks: &mut Marks) {
        self.namespace.mark(marks);
    }
}

impl Holds for Effect {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Adopt { pod, .. } | Self::SetCost { pod, .. } | Self::DeletePod { pod, .. } => {
                pod.mark(marks);
            }
            Self::WriteStatus { key, .. } => key.mark(marks),
            Self::Event(event) => event.key.mark(marks),
        }
    }
}
