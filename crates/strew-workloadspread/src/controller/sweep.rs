//! Frees unused strings: see [`Interner::sweep`](strew_model::Interner::sweep).

use strew_model::{Holds, Marks};

use super::machine::SpreadController;

impl SpreadController {
    /// Frees unused strings, if enough strings are new.
    pub(super) fn sweep_if_due(&mut self) {
        if !self.names.is_sweep_due(self.limits.sweep_min) {
            return;
        }
        let mut marks = self.names.marks();
        self.mark(&mut marks);
        self.names.sweep(&marks);
    }
}

impl Holds for SpreadController {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        let Self {
            names: _,
            kinds,
            facts,
            spreads,
            queue,
            // It has the keys of the queue.
            queued: _,
            running,
            later,
            // It has the keys of `later`.
            later_of: _,
            pauses,
            by_value,
            failures,
            told,
            retries: _,
            counters: _,
            effects,
            next_effect: _,
            pending,
            limits: _,
            now: _,
            webhook: _,
        } = self;
        kinds.mark(marks);
        facts.pods.mark(marks);
        facts.workloads.mark(marks);
        for (name, (labels, taints)) in &facts.nodes {
            name.mark(marks);
            labels.mark(marks);
            taints.mark(marks);
        }
        spreads.mark(marks);
        queue.iter().for_each(|key| key.mark(marks));
        for (key, running) in running {
            key.mark(marks);
            running.mark(marks);
        }
        later.iter().for_each(|(_, key)| key.mark(marks));
        pauses.keys().for_each(|key| key.mark(marks));
        by_value.iter().for_each(|key| key.mark(marks));
        failures.keys().for_each(|key| key.mark(marks));
        told.keys().for_each(|key| key.mark(marks));
        effects.iter().for_each(|effect| effect.mark(marks));
        pending.values().for_each(|(key, _)| key.mark(marks));
    }
}
