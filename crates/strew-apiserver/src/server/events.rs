//! What was recorded for people.

use std::sync::Arc;

use strew_model::time::Instant;

use crate::object::Key;

/// An event, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// When.
    pub at: Instant,
    /// About which object.
    pub regarding: Key,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether it is of type Warning.
    pub is_warning: bool,
    /// `reason`
    pub reason: Arc<str>,
    /// The text.
    pub note: Arc<str>,
    /// Who told it.
    pub source: Arc<str>,
}

/// All events, in the order in which they were recorded.
#[derive(Debug, Default)]
pub struct EventLog(Vec<Recorded>);

impl EventLog {
    /// Adds one.
    pub fn push(&mut self, event: Recorded) {
        self.0.push(event);
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Recorded> {
        self.0.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those from a number on.
    pub fn from(&self, first: usize) -> &[Recorded] {
        self.0.get(first..).unwrap_or_default()
    }
}
