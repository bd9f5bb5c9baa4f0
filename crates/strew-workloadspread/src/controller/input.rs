//! The inputs of the controller.

use std::sync::Arc;

use strew_model::{Labels, Symbol, Taint};

use super::effect::EffectId;
use crate::facts::kinds::GroupKind;
use crate::facts::pod::Pod;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::status::Webhook;
use crate::facts::workload::{WorkloadFact, WorkloadKey};

/// An input. Facts are complete and idempotent, and come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A WorkloadSpread was added or changed.
    SpreadSet(Box<WorkloadSpread>),
    /// A WorkloadSpread was deleted.
    SpreadGone(WsKey),
    /// A workload was added or changed.
    WorkloadSet(Box<WorkloadFact>),
    /// A workload was deleted.
    WorkloadGone(WorkloadKey),
    /// The known kinds besides the built-in ones.
    KindsListed(Box<[GroupKind]>),
    /// A pod was added or changed; finished pods are included.
    PodSet(Box<Pod>),
    /// The pod of this uid was deleted.
    PodGone(Arc<str>),
    /// A node was added or changed, with these labels and taints.
    NodeSet(Symbol, Labels, Box<[Taint]>),
    /// A node was deleted.
    NodeGone(Symbol),
    /// The state of the webhook, as the creation of pods sees it.
    Webhook(Webhook),
    /// The outcome of an effect.
    Outcome(EffectId, Outcome),
    /// Only time has passed.
    Tick,
}

/// The outcome of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Ok,
    /// Its precondition failed.
    Conflict,
    /// Its object does not exist.
    Gone,
    /// It failed, or its result is unknown.
    Failed,
}
