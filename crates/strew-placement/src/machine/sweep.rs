//! Frees rows of clusters, lists of sets that no placement uses, and unused strings.

use strew_model::{Holds, Marks};

use super::placement_machine::{PlacementMachine, Row, Todo};

impl PlacementMachine {
    /// Frees unused objects, if enough strings are new.
    pub(super) fn sweep_if_due(&mut self) {
        if !self.hub.names.is_sweep_due(self.limits.sweep_min) {
            return;
        }
        // Which clusters pass is computed again, so that no list names a freed row.
        self.members_changed();
        self.hub.sweep_rows();
        self.turns.sweep();
        let Self {
            hub,
            limits: _,
            now: _,
            members,
            rows,
            free: _,
            // The keys are the names of the rows.
            by_name: _,
            by_namespace: _,
            turns,
            is_sliced: _,
            wakes: _,
            pending: _,
            deleted,
            doubtful,
            effects,
            next_effect: _,
            resync: _,
            counters: _,
        } = self;
        hub.sweep_names(|marks: &mut Marks| {
            members.keys().for_each(|sets| sets.as_slice().mark(marks));
            turns.mark(marks);
            rows.iter().flatten().for_each(|row| row.mark(marks));
            #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
            for key in deleted.keys() {
                key.mark(marks);
            }
            doubtful.iter().for_each(|key| key.mark(marks));
            effects.iter().for_each(|effect| effect.mark(marks));
        });
    }
}

impl Holds for Row {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            fact,
            // Derived from the fact.
            plan: _,
            sets,
            passed: _,
            slices: _,
            queued: _,
            again: _,
            touched: _,
            bound: _,
            todo,
            waiting: _,
            wake: _,
            after: _,
            failures: _,
            is_decided: _,
            warning: _,
            decision: _,
            score_text: _,
        } = self;
        fact.mark(marks);
        sets.1.as_slice().mark(marks);
        for todo in todo {
            match todo {
                Todo::Write(write) => write.mark(marks),
                Todo::Status(status) => status.mark(marks),
                Todo::Event(event) => event.mark(marks),
            }
        }
    }
}
