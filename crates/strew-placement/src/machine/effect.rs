//! The effects of the placement machine.

use std::sync::Arc;

use strew_model::{Holds, Marks, Symbol};

use crate::decisions::writes::Write;
use crate::facts::status::PlacementStatus;

/// Identifies an effect whose outcome the machine waits for. Numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// A Placement as effects name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementName {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// Its uid: another Placement of the same name has another uid.
    pub uid: Arc<str>,
}

/// An effect. A placement's writes come one by one, each after the outcome of the previous one: their order keeps
/// clusters from being missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Create, change or delete a PlacementDecision of a placement.
    WriteDecision {
        /// The id for its outcome.
        id: EffectId,
        /// The number of the decision that it carries out. All writes of one decision have the same number, whatever
        /// other placements write in between.
        decision: u64,
        /// The placement that becomes its owner, and that its label names.
        placement: PlacementName,
        /// The write.
        write: Write,
        /// The resourceVersion that the object must have; `None` to create it.
        revision: Option<u64>,
    },
    /// Patch the status of a Placement.
    WriteStatus {
        /// The id for its outcome.
        id: EffectId,
        /// The placement.
        placement: PlacementName,
        /// The whole status.
        status: PlacementStatus,
        /// The resourceVersion that the object must have.
        revision: u64,
    },
    /// Record an event. It has no outcome.
    Event(Event),
}

/// The kinds of events. Source: spec/placement §2.9, §3.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A PlacementDecision was created.
    DecisionCreate,
    /// The clusters of a PlacementDecision were changed.
    DecisionUpdate,
    /// The scores of the clusters.
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
    /// True for type Warning.
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
