//! The inputs of admission.

use std::sync::Arc;

use strew_cluster::{NodeFact, OwnerRef, PodFact};
use strew_model::{Labels, Selector, Symbol};

use super::effect::EffectId;
use super::request::{Request, RequestId};
use crate::facts::kinds::GroupKind;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::workload::{WorkloadFact, WorkloadKey};
use crate::marker::Marker;

/// An input. Facts are complete and idempotent, and come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A request to create or delete a pod, which must be answered.
    AdmitAsked(Box<Request>),
    /// A WorkloadSpread was added or changed.
    SpreadSet(Box<WorkloadSpread>),
    /// A WorkloadSpread was deleted.
    SpreadGone(WsKey),
    /// A workload was added or changed.
    WorkloadSet(Box<WorkloadFact>),
    /// A workload was deleted.
    WorkloadGone(WorkloadKey),
    /// The known kinds besides the built-in ones: the white list and its `subResources`.
    KindsListed(Box<[GroupKind]>),
    /// A node was added or changed.
    NodeSet(Box<NodeFact>),
    /// A node was deleted.
    NodeGone(Symbol),
    /// A pod was added or changed; with its marker, if it has one.
    PodSet(Box<PodFact>, Option<Marker>),
    /// The pod of this uid was deleted, or has finished.
    PodGone(Arc<str>),
    /// A Service has this selector; `None`: it has none, or was deleted. For default constraints.
    ServiceSet(Symbol, Symbol, Option<Labels>),
    /// A controller has this selector; `None`: it was deleted. For default constraints.
    ControllerSet(Symbol, OwnerRef, Option<Selector>),
    /// A namespace has these labels; `None`: it was deleted.
    NamespaceSet(Symbol, Option<Labels>),
    /// The client has given up this request. If it is not decided yet, it never will be: the client has retried, and a
    /// deletion must not be counted after its pod is gone.
    GivenUp(RequestId),
    /// The outcome of an effect.
    Outcome(EffectId, Outcome),
    /// Only time has passed.
    Tick,
}

/// The outcome of an effect.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The status was written; the object has this version.
    Written(u64),
    /// Conflict: the object has another version.
    Conflict,
    /// The object was read.
    Read(Box<WorkloadSpread>),
    /// The object does not exist.
    Gone,
    /// The API server refused the write, or the read has no result.
    Failed,
    /// The write did not reach the API server.
    Unsent,
    /// The result is unknown.
    Lost,
}
