//! All that the controller can see.

use std::sync::Arc;

use strew_model::{Labels, Symbol, Taint};

use super::effect::EffectId;
use crate::facts::kinds::GroupKind;
use crate::facts::pod::Pod;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::status::Webhook;
use crate::facts::workload::{WorkloadFact, WorkloadKey};

/// What the world tells the controller. Facts are whole and idempotent; they may come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A WorkloadSpread is there, and like this.
    SpreadSet(Box<WorkloadSpread>),
    /// A WorkloadSpread is gone.
    SpreadGone(WsKey),
    /// A workload is there, and like this.
    WorkloadSet(Box<WorkloadFact>),
    /// A workload is gone.
    WorkloadGone(WorkloadKey),
    /// The kinds that are known besides the built-in ones.
    KindsListed(Box<[GroupKind]>),
    /// A pod is there, and like this; finished ones are, too.
    PodSet(Box<Pod>),
    /// The pod of this uid is gone.
    PodGone(Arc<str>),
    /// A node is there with these labels and taints.
    NodeSet(Symbol, Labels, Box<[Taint]>),
    /// A node is gone.
    NodeGone(Symbol),
    /// How the creation of pods meets the webhook.
    Webhook(Webhook),
    /// What became of an effect.
    Outcome(EffectId, Outcome),
    /// Nothing but time.
    Tick,
}

/// What became of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Ok,
    /// Its precondition did not hold.
    Conflict,
    /// Its object is not there.
    Gone,
    /// It was not carried out, or nobody knows.
    Failed,
}
