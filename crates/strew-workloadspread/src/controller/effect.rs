//! The effects of the controller.

use std::sync::Arc;

use strew_model::{Holds, Marks};
pub use strew_scheduler::machine::PodName;

pub use crate::admission::EffectId;
use crate::facts::spec::{PatchId, WsKey};
use crate::facts::status::Status;
use crate::marker::Marker;

/// An effect. It may be carried out twice.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Patch the marker onto a pod, and the metadata of its subset's patch.
    Adopt {
        /// The id for its outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// The marker.
        marker: Marker,
        /// The patch whose whole `metadata` is written to the pod, too.
        metadata_of: Option<PatchId>,
    },
    /// Patch the annotation [`COST_ANNOTATION`](crate::COST_ANNOTATION), a decimal number.
    SetCost {
        /// The id for its outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// The cost.
        cost: i32,
    },
    /// Put the status of a WorkloadSpread. Precondition: it has this uid and version.
    WriteStatus {
        /// The id for its outcome.
        id: EffectId,
        /// The WorkloadSpread.
        key: WsKey,
        /// Its uid.
        uid: Arc<str>,
        /// Its version.
        version: u64,
        /// The whole new status.
        status: Arc<Status>,
    },
    /// Remove a pod that could not be scheduled, with its own grace period.
    DeletePod {
        /// The id for its outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// How it is removed.
        how: Removal,
    },
    /// Record an event on the WorkloadSpread. It has no outcome.
    Event(Event),
}

/// How a pod is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is deleted.
    Delete,
    /// It is evicted, so that it has the condition `DisruptionTarget`, because of which a Job does not count it as
    /// failed.
    Evict,
}

/// An event on a WorkloadSpread. Source: spec/workloadspread §5.11.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The WorkloadSpread.
    pub key: WsKey,
    /// The kind of the event.
    pub kind: EventKind,
    /// The pod (or the uid that identifies it), or the subset.
    pub subject: Arc<str>,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// An admitted pod did not appear in time.
    CreatePodFailed,
    /// A pod with a requested deletion still exists, or could not be deleted.
    DeletePodFailed,
    /// A cost could not be written.
    PatchPodDeletionCostFailed,
    /// A subset was opened again.
    RecoverSchedulable,
    /// A subset's patch is not applied: an owner of the pods would not find them by their labels.
    PatchNotApplied,
    /// An older WorkloadSpread, the event's subject, has pods that this one names.
    PodsOfAnother,
    /// A rollout does not end, or would not end: new pods wait for room of the subset that old pods hold.
    RolloutStuck,
    /// A rollout may leave the subset with fewer pods.
    RolloutShort,
    /// No replica of the webhook is ready, and it is not registered.
    WebhookNotRegistered,
    /// No replica of the webhook is ready, and it stays registered.
    WebhookNotReady,
    /// A replica of the webhook is ready again.
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
