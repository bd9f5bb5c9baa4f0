//! Frees unused objects: see [`Cluster::begin_sweep`](strew_cluster::Cluster::begin_sweep).

use strew_model::{Holds, Marks};

use super::machine::Admission;

impl Admission {
    /// Frees unused objects, if enough of them are new.
    pub(super) fn sweep_if_due(&mut self) {
        if !self.room.is_sweep_due(self.limits.sweep_min) {
            return;
        }
        let Self {
            room,
            kinds,
            workloads,
            spreads,
            queues,
            ready,
            paused,
            effects,
            next_effect: _,
            pending,
            counters,
            dice: _,
            limits: _,
            now: _,
            turns: _,
            cut_off_since: _,
        } = self;
        room.sweep(|marks: &mut Marks| {
            kinds.mark(marks);
            workloads.mark(marks);
            spreads.mark(marks);
            for (key, queue) in queues {
                key.mark(marks);
                queue.mark(marks);
            }
            ready.iter().for_each(|key| key.mark(marks));
            paused.iter().for_each(|(_, key)| key.mark(marks));
            effects.iter().for_each(|effect| effect.mark(marks));
            pending.values().for_each(|(key, _)| key.mark(marks));
            counters
                .injected
                .keys()
                .for_each(|(key, _)| key.mark(marks));
        });
    }
}
