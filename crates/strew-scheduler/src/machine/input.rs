//! The inputs of a scheduler.

use std::sync::Arc;

use strew_cluster::{
    AttachLimits, ClaimFact, NodeFact, OwnerRef, PodFact, StorageClassFact, VolumeFact,
};
use strew_model::{Labels, Selector, Symbol};

use super::effect::{Condition, EffectId};
use crate::preemption::Budget;

/// An input of a scheduler. Facts are complete and idempotent, and may arrive in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// The current state of a node.
    NodeSet(NodeFact),
    /// A node was deleted.
    NodeGone(Symbol),
    /// The current state of a pod.
    PodSet {
        /// The pod.
        fact: Box<PodFact>,
        /// Its condition `PodScheduled`, if a scheduler wrote it.
        condition: Option<Condition>,
    },
    /// The current state of a pod without a node on which no decision can be based. It is not tried, and its condition
    /// says why.
    PodUnreadable {
        /// The readable parts.
        fact: Box<PodFact>,
        /// Its condition `PodScheduled`, if a scheduler wrote it.
        condition: Option<Condition>,
        /// The unreadable parts, and why.
        why: Arc<str>,
    },
    /// The pod with this uid was deleted, or has finished.
    PodGone(Arc<str>),
    /// The selector of a Service; `None` if it has none, or was deleted.
    ServiceSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// Its selector.
        selector: Option<Labels>,
    },
    /// The selector of a controller; `None` if it was deleted.
    ControllerSet {
        /// Its namespace.
        namespace: Symbol,
        /// The controller.
        owner: OwnerRef,
        /// Its selector.
        selector: Option<Selector>,
    },
    /// The labels of a namespace; `None` if it was deleted.
    NamespaceSet {
        /// Its name.
        name: Symbol,
        /// Its labels.
        labels: Option<Labels>,
    },
    /// The current state of a PodDisruptionBudget; `None` if it was deleted, or its selector is invalid.
    BudgetSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// The budget.
        budget: Option<Budget>,
    },
    /// The current state of a PersistentVolumeClaim; `None` if it was deleted.
    ClaimSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// The claim.
        claim: Option<ClaimFact>,
    },
    /// The current state of a PersistentVolume; `None` if it was deleted.
    VolumeSet {
        /// Its name.
        name: Symbol,
        /// The volume.
        volume: Option<VolumeFact>,
    },
    /// The current state of a StorageClass; `None` if it was deleted.
    StorageClassSet {
        /// Its name.
        name: Symbol,
        /// The class.
        class: Option<StorageClassFact>,
    },
    /// The limits in a CSINode for the volumes of the node's drivers; `None` if it was deleted.
    AttachLimitsSet {
        /// The node's name.
        node: Symbol,
        /// The limits.
        limits: Option<AttachLimits>,
    },
    /// The outcome of an effect. If it never arrives, later facts show it, or it counts as failed after a while.
    Outcome {
        /// The effect.
        effect: EffectId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// Only time has passed.
    Tick,
}

/// The outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Ok,
    /// Its precondition did not hold.
    Conflict(Arc<str>),
    /// Its object does not exist.
    Gone,
    /// It was not carried out, or the result is unknown.
    Failed(Arc<str>),
}

impl Outcome {
    /// The error, in words.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Self::Ok => None,
            Self::Gone => Some("not found"),
            Self::Conflict(text) | Self::Failed(text) => Some(text),
        }
    }
}
