//! All that placement can do.

use std::sync::Arc;

use strew_model::{Holds, Marks, Symbol};

use crate::decisions::writes::Write;
use crate::facts::status::PlacementStatus;

/// Names an effect whose outcome is waited for. Numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// A Placement as an effect names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementName {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// Its uid: another placement of this name is another placement.
    pub uid: Arc<str>,
}

/// Something to be done in the world. A placement's writes come one by one, each after the outcome of the one before:
/// their order is what keeps clusters from being missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Create, change or delete a PlacementDecision of a placement.
    WriteDecision {
        /// What the outcome is told under.
        id: EffectId,
        /// Which of this placer's decisions it carries out. A decision's writes follow each other, whatever other
        /// placements write meanwhile.
        decision: u64,
        /// Whose it is: owner reference and label.
        placement: PlacementName,
        /// What is done.
        write: Write,
        /// The resourceVersion that it must have; `None` for a new one.
        revision: Option<u64>,
    },
    /// Patch the status of a Placement.
    WriteStatus {
        /// What the outcome is told under.
        id: EffectId,
        /// Which one.
        placement: PlacementName,
        /// The whole status.
        status: PlacementStatus,
        /// The resourceVersion that it must have.
        revision: u64,
    },
    /// Record an event. Nobody waits for its outcome.
    Event(Event),
}

/// What an event tells of. Source: spec/placement §2.9, §3.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A PlacementDecision was made.
    DecisionCreate,
    /// What one holds was changed.
    DecisionUpdate,
    /// With which scores.
    ScoreUpdate,
    /// A PlacementDecision was deleted.
    DecisionDelete,
    /// A hard term leaves clusters out.
    SpreadLimited,
}

impl EventKind {
    /// Its reason and action.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::DecisionCreate => ("DecisionCreate", "DecisionCreated"),
            Self::DecisionUpdate => ("DecisionUpdate", "DecisionUpdated"),
            Self::ScoreUpdate => ("ScoreUpdate", "ScoreUpdated"),
            Self::DecisionDelete => ("DecisionDelete", "DecisionDeleted"),
            Self::SpreadLimited => ("SpreadLimited", "SpreadLimited"),
        }
    }
}

/// An event of `events.k8s.io/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Reason and action.
    pub kind: EventKind,
    /// Whether its type is Warning.
    pub warning: bool,
    /// The placement that it is about.
    pub placement: PlacementName,
    /// The PlacementDecision that it is about.
    pub decision: Option<Symbol>,
    /// The text.
    pub note: Arc<str>,
}

// === the symbols in it ===

impl Holds for PlacementName {
    fn mark(&self, marks: &mut Marks) {
        (self.namespace, self.name).mark(marks);
    }
}

impl Holds for Event {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            kind: _,
            warning: _,
            placement,
            decision,
            note: _,
        } = self;
        placement.mark(marks);
        decision.mark(marks);
    }
}

impl Holds for Effect {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::WriteDecision {
                id: _,
                decision: _,
                placement,
                write,
                revision: _,
            } => {
                placement.mark(marks);
                write.mark(marks);
            }
            Self::WriteStatus {
                id: _,
                placement,
                status,
                revision: _,
            } => {
                placement.mark(marks);
                status.mark(marks);
            }
            Self::Event(event) => event.mark(marks),
        }
    }
}
