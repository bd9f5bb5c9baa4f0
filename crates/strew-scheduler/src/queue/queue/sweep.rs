//! The classes and symbols that a queue holds.

use rustc_hash::FxHashSet;
use strew_cluster::ClassId;
use strew_model::{Holds, Marks};

use super::Queue;

impl Queue {
    /// The classes that entries and events name, even if no pod has them any more.
    pub(crate) fn classes(&self) -> FxHashSet<ClassId> {
        let entries = self.entries.values().map(|entry| entry.class);
        let events = self.in_flight.events().flat_map(|event| event.classes());
        entries.chain(events).collect()
    }

    /// Drops what can be found again.
    pub(crate) fn sweep(&mut self) {
        self.hints.sweep();
    }
}

impl Holds for Queue {
    fn mark(&self, marks: &mut Marks) {
        self.in_flight.events().for_each(|event| event.mark(marks));
    }
}
