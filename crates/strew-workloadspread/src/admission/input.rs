//! All that admission can see.

use std::sync::Arc;

use strew_cluster::{NodeFact, OwnerRef, PodFact};
use strew_model::{Labels, Selector, Symbol};

use super::effect::EffectId;
use super::request::{Request, RequestId};
use crate::facts::kinds::GroupKind;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::workload::{WorkloadFact, WorkloadKey};
use crate::marker::Marker;

/// What the world tells admission. Facts are whole and idempotent; they may come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A pod is to be created or deleted, and somebody waits for the answer.
    AdmitAsked(Box<Request>),
    /// A WorkloadSpread is there, and like this.
    SpreadSet(Box<WorkloadSpread>),
    /// A WorkloadSpread is gone.
    SpreadGone(WsKey),
    /// A workload is there, and like this.
    WorkloadSet(Box<WorkloadFact>),
    /// A workload is gone.
    WorkloadGone(WorkloadKey),
    /// The kinds that are known besides the built-in ones: the white list and its `subResources`.
    KindsListed(Box<[GroupKind]>),
    /// A node is there, and like this.
    NodeSet(Box<NodeFact>),
    /// A node is gone.
    NodeGone(Symbol),
    /// A pod is there, and like this; with its marker, if it has one.
    PodSet(Box<PodFact>, Option<Marker>),
    /// The pod of this uid is gone, or has finished.
    PodGone(Arc<str>),
    /// A Service is there with this selector; `None`: it has none, or is gone. For default constraints.
    ServiceSet(Symbol, Symbol, Option<Labels>),
    /// A controller is there with this selector; `None`: it is gone. For default constraints.
    ControllerSet(Symbol, OwnerRef, Option<Selector>),
    /// A namespace is there with these labels; `None`: it is gone.
    NamespaceSet(Symbol, Option<Labels>),
    /// Nobody waits for this request any more. If nothing is decided on it yet, nothing will be: whoever asked has asked
    /// again, and a deletion must not be counted after its pod is gone.
    GivenUp(RequestId),
    /// What became of an effect.
    Outcome(EffectId, Outcome),
    /// Nothing but time.
    Tick,
}

/// What became of an effect.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The status was written; the version of the object now.
    Written(u64),
    /// The status was not written: the object has another version.
    Conflict,
    /// The object was read.
    Read(Box<WorkloadSpread>),
    /// The object is not there.
    Gone,
    /// It was not carried out.
    Failed,
    /// Nobody knows whether it was carried out.
    Lost,
}
