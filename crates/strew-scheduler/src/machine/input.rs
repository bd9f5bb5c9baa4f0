//! The inputs of a scheduler.

use std::sync::Arc;

use strew_cluster::{
    AttachLimits, ClaimFact, NodeFact, OwnerRef, PodFact, StorageClassFact, VolumeFact,
};
use strew_model::{Labels, Selector, Symbol};

use super::effect::{Condition, EffectId};
use crate::preemption::Budget;

/// An input of a scheduler. Facts are complete and idempotent; they may come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A node is there, and like this.
    NodeSet(NodeFact),
    /// A node is gone.
    NodeGone(Symbol),
    /// A pod is there, and like this.
    PodSet {
        /// The pod.
        fact: Box<PodFact>,
        /// Its `PodScheduled` condition, if it is one that a scheduler writes.
        condition: Option<Condition>,
    },
    /// A pod on no node is there that no decision can be made from. It is not tried, and its condition says why.
    PodUnreadable {
        /// What can be read of it.
        fact: Box<PodFact>,
        /// Its `PodScheduled` condition, if it is one that a scheduler writes.
        condition: Option<Condition>,
        /// What cannot be read, and why.
        why: Arc<str>,
    },
    /// The pod with this uid is gone, or has finished.
    PodGone(Arc<str>),
    /// A Service is there with this selector; `None`: it has none, or is gone.
    ServiceSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// Its selector.
        selector: Option<Labels>,
    },
    /// A controller is there with this selector; `None`: it is gone.
    ControllerSet {
        /// Its namespace.
        namespace: Symbol,
        /// Which.
        owner: OwnerRef,
        /// Its selector.
        selector: Option<Selector>,
    },
    /// A namespace is there with these labels; `None`: it is gone.
    NamespaceSet {
        /// Its name.
        name: Symbol,
        /// Its labels.
        labels: Option<Labels>,
    },
    /// A PodDisruptionBudget is there, and like this; `None`: it is gone, or its selector does not parse.
    BudgetSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// The budget.
        budget: Option<Budget>,
    },
    /// A PersistentVolumeClaim is there, and like this; `None`: it is gone.
    ClaimSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// The claim.
        claim: Option<ClaimFact>,
    },
    /// A PersistentVolume is there, and like this; `None`: it is gone.
    VolumeSet {
        /// Its name.
        name: Symbol,
        /// The volume.
        volume: Option<VolumeFact>,
    },
    /// A StorageClass is there, and like this; `None`: it is gone.
    StorageClassSet {
        /// Its name.
        name: Symbol,
        /// The class.
        class: Option<StorageClassFact>,
    },
    /// A CSINode is there, and says how many volumes the node's drivers attach; `None`: it is gone.
    AttachLimitsSet {
        /// The node's name.
        node: Symbol,
        /// The limits.
        limits: Option<AttachLimits>,
    },
    /// What became of an effect. One that never comes is found out by facts, or given up after a while.
    Outcome {
        /// Which effect.
        effect: EffectId,
        /// What became of it.
        outcome: Outcome,
    },
    /// Nothing but time.
    Tick,
}

/// What became of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Ok,
    /// Its precondition did not hold.
    Conflict(Arc<str>),
    /// Its object is not there.
    Gone,
    /// It was not carried out, or the result is unknown.
    Failed(Arc<str>),
}

impl Outcome {
    /// What went wrong, in words.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Self::Ok => None,
            Self::Gone => Some("not found"),
            Self::Conflict(text) | Self::Failed(text) => Some(text),
        }
    }
}
