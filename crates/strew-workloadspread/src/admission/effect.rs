//! The effects of admission.

use std::sync::Arc;

use strew_model::{Holds, Marks};

use super::request::RequestId;
use crate::choose::Choice;
use crate::facts::spec::{Spec, Subset, TargetRef, WsKey};
use crate::facts::status::Status;
use crate::marker::Marker;

/// Identifies an effect whose outcome the machine waits for. Numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// An effect.
#[derive(Debug, Clone)]
pub enum Effect {
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
    /// Read a WorkloadSpread from the API server.
    ReadSpread {
        /// The id for its outcome.
        id: EffectId,
        /// The WorkloadSpread.
        key: WsKey,
    },
    /// Answer a request. It has no outcome.
    Answer(Box<Answer>),
}

/// An answer with its reasons.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The request.
    pub request: RequestId,
    /// The answer.
    pub verdict: Verdict,
    /// The WorkloadSpread that handled the pod.
    pub spread: Option<WsKey>,
    /// The revision under which the pod is counted; `None` if no ledger was read.
    pub revision: Option<Arc<str>>,
    /// How the subset was chosen; `None` unless a create came to a choice.
    pub choice: Option<Choice>,
    /// The copy of the WorkloadSpread that the answer was decided with; `None` if no ledger was read.
    pub basis: Option<Basis>,
    /// The number of conflicts that the request met.
    pub conflicts: u32,
}

/// The state that an answer was decided with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// The version of the WorkloadSpread.
    pub version: u64,
    /// True if the status that was written upon this version contains the answer and the previous ones of the same
    /// write.
    pub is_written: bool,
}

/// The answers.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// The pod passes unchanged.
    Untouched(Untouched),
    /// The pod passes with a subset injected.
    Inject(Box<Injection>),
    /// The pod passes with a scheduling gate: no subset has room ([`GATE`](crate::GATE)).
    Gate,
    /// The deletion passes and is in the ledger; or may be, if the answer to the write was lost.
    Counted,
    /// The request is refused; the client retries.
    Deny(Denial),
}

/// A subset to inject.
#[derive(Debug, Clone)]
pub struct Injection {
    /// The spec with the subset.
    pub spec: Arc<Spec>,
    /// The index of the subset in the spec.
    pub place: usize,
    /// The value of the marker annotation.
    pub marker: Marker,
    /// The deletion cost that the controller would write, if it is known. So a pod always has a cost, and a write is
    /// saved.
    pub cost: Option<i32>,
    /// True if the subset's patch is applied; false if an owner of the pod would not find it then.
    pub is_patched: bool,
}

impl Injection {
    /// The subset.
    pub fn subset(&self) -> &Subset {
        &self.spec.subsets[self.place]
    }
}

/// Why a pod passes unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untouched {
    /// It is a dry run.
    DryRun,
    /// It is about a subresource.
    Subresource,
    /// The pod does not count.
    Inactive,
    /// The pod has no controller.
    NoController,
    /// Its controller's kind is unknown.
    KindUnknown,
    /// No WorkloadSpread handles it.
    NoSpread,
    /// The WorkloadSpread was deleted in the meantime.
    SpreadGone,
    /// No subset has room.
    NoRoom,
    /// The subset in the ledger is not in the spec any more.
    SubsetGone,
    /// A delete of a pod without a readable marker.
    NoMarker,
    /// A deletion that does not change the ledger.
    NothingToCount,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// This owner of the pod does not exist.
    OwnerNotFound(TargetRef),
    /// No subset has room, and the WorkloadSpread refuses such pods.
    NoRoom,
    /// The ledger could not be written in this number of attempts.
    Conflicts(u32),
    /// The ledger could not be written or read.
    Failed,
    /// The result of a write is unknown.
    Lost,
    /// Too many requests wait for this WorkloadSpread.
    Overloaded,
}

impl Denial {
    /// The HTTP status: 500 for creates (403 if there is no room), 400 for deletions (spec/workloadspread §4.5).
    pub fn code(self, is_create: bool) -> u16 {
        match self {
            Self::NoRoom => 403,
            _ if is_create => 500,
            _ => 400,
        }
    }
}

// === the symbols in it ===

impl Holds for Effect {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::WriteStatus { key, .. } | Self::ReadSpread { key, .. } => key.mark(marks),
            Self::Answer(answer) => {
                let Answer {
                    request: _,
                    verdict,
                    spread,
                    revision: _,
                    choice,
                    basis: _,
                    conflicts: _,
                } = &**answer;
                verdict.mark(marks);
                spread.mark(marks);
                choice.mark(marks);
            }
        }
    }
}

impl Holds for Verdict {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Inject(injection) => injection.spec.mark(marks),
            Self::Deny(Denial::OwnerNotFound(owner)) => owner.mark(marks),
            Self::Untouched(_) | Self::Gate | Self::Counted | Self::Deny(_) => {}
        }
    }
}
