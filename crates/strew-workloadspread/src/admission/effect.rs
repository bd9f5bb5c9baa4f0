//! All that admission can do.

use std::sync::Arc;

use strew_model::{Holds, Marks};

use super::request::RequestId;
use crate::choose::Choice;
use crate::facts::spec::{Spec, Subset, TargetRef, WsKey};
use crate::facts::status::Status;
use crate::marker::Marker;

/// Names an effect whose outcome is waited for. Numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// Something to be done in the world.
#[derive(Debug, Clone)]
pub enum Effect {
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
    /// Read a WorkloadSpread from the API server itself.
    ReadSpread {
        /// What the outcome is told under.
        id: EffectId,
        /// Which.
        key: WsKey,
    },
    /// Answer a request. Nobody waits for its outcome.
    Answer(Box<Answer>),
}

/// An answer, and why.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which request.
    pub request: RequestId,
    /// What is answered.
    pub verdict: Verdict,
    /// The WorkloadSpread that handled the pod.
    pub spread: Option<WsKey>,
    /// The revision under which the pod is counted; empty where no ledger was looked at.
    pub revision: Option<Arc<str>>,
    /// How the subset was chosen, on a create that came so far.
    pub choice: Option<Choice>,
    /// The copy of the WorkloadSpread that it was decided by; `None` where no ledger was looked at.
    pub basis: Option<Basis>,
    /// How many times the request lost a race for the status.
    pub conflicts: u32,
}

/// What an answer was decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// The version of the WorkloadSpread.
    pub version: u64,
    /// Whether the answer, and those before it in the same write, are in the status that was written upon it.
    pub is_written: bool,
}

/// What is answered.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// The pod passes as it is.
    Untouched(Untouched),
    /// The pod passes with a subset in it.
    Inject(Box<Injection>),
    /// The pod passes with a scheduling gate: no subset has room ([`GATE`](crate::GATE)).
    Gate,
    /// The delete passes, and is in the ledger; or may be, if the answer to the write was lost.
    Counted,
    /// The request is refused; who asked tries again.
    Deny(Denial),
}

/// A subset to be injected.
#[derive(Debug, Clone)]
pub struct Injection {
    /// The spec that holds the subset.
    pub spec: Arc<Spec>,
    /// The subset's place in it.
    pub place: usize,
    /// The value of the marker annotation.
    pub marker: Marker,
    /// The deletion cost that the controller would write, where it is known: a pod is never without one, and the write
    /// is spared.
    pub cost: Option<i32>,
    /// Whether the subset's patch is applied: not where an owner of the pod would not find it then.
    pub is_patched: bool,
}

impl Injection {
    /// The subset.
    pub fn subset(&self) -> &Subset {
        &self.spec.subsets[self.place]
    }
}

/// Why a pod passes as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untouched {
    /// Nothing is done in earnest.
    DryRun,
    /// It is about a subresource.
    Subresource,
    /// The pod does not count.
    Inactive,
    /// The pod has no controller.
    NoController,
    /// The kind of its controller is not known.
    KindUnknown,
    /// No WorkloadSpread handles it.
    NoSpread,
    /// The WorkloadSpread is gone meanwhile.
    SpreadGone,
    /// No subset has room.
    NoRoom,
    /// The subset of the ledger is not in the spec any more.
    SubsetGone,
    /// A delete of a pod without a readable marker.
    NoMarker,
    /// A delete that the ledger need not know of.
    NothingToCount,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// This owner of the pod is not there.
    OwnerNotFound(TargetRef),
    /// No subset has room, and the WorkloadSpread wants such pods refused.
    NoRoom,
    /// The ledger could not be written in so many attempts.
    Conflicts(u32),
    /// The ledger could not be written or read.
    Failed,
    /// Nobody knows what became of a write.
    Lost,
    /// Too many requests wait for this WorkloadSpread.
    Overloaded,
}

impl Denial {
    /// The HTTP status: creates are answered 500 (403 where there is no room), deletes 400 (spec/workloadspread §4.5).
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
