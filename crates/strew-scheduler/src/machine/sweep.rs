//! Frees unused classes, plans and strings: see [`Cluster::begin_sweep`](strew_cluster::Cluster::begin_sweep).

use strew_model::{Holds, Marks};

use super::scheduler::Scheduler;

impl Scheduler {
    /// Frees what is unused, if enough is new since the last time.
    pub(super) fn sweep_if_due(&mut self) {
        if !self.cluster.is_sweep_due(self.limits.sweep_min) {
            return;
        }
        let mut sweep = self.cluster.begin_sweep(&self.queue.classes());
        for engine in self.profiles.engines_mut() {
            engine.sweep(&mut self.cluster, &mut sweep);
        }
        self.queue.sweep();
        self.making.sweep();
        let Self {
            cluster,
            profiles,
            queue,
            limits: _,
            now: _,
            effects,
            next_effect: _,
            pending: _,
            assumed: _,
            told: _,
            nodes_aside,
            pods_aside: _,
            making,
            counters: _,
        } = self;
        cluster.end_sweep(sweep, |marks: &mut Marks| {
            profiles.engines().for_each(|engine| engine.mark(marks));
            queue.mark(marks);
            effects.iter().for_each(|effect| effect.mark(marks));
            nodes_aside.keys().for_each(|node| node.mark(marks));
            making.mark(marks);
        });
    }
}
