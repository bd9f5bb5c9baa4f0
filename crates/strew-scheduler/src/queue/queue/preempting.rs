//! Pods that are held back while their victims are asked to terminate. Source: spec/scheduler §2.8.

use strew_cluster::PodIdx;

use super::{Gate, Queue};
use crate::queue::incoming::Cause;
use crate::queue::{Context, PluginSet};

/// What a preemption came to, for the pod that others were asked to go for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preempted {
    /// All were asked: an event will tell when they are gone.
    Asked,
    /// One went before all were asked: the pod is worth another try at once.
    Room,
    /// One could not be asked: the pod is tried again after its backoff, never early.
    Failed,
}

impl Queue {
    /// Keeps a pod from being tried while its preemption is under way.
    pub fn hold(&mut self, pod: PodIdx) {
        self.held.insert(pod);
    }

    /// The pod's preemption is over.
    pub fn release(&mut self, cx: Context<'_>, pod: PodIdx, outcome: Preempted) {
        if !self.held.remove(&pod) || self.gate(pod) != Some(Gate::Preemption) {
            return;
        }
        self.cause = Cause::PREEMPTION_OVER;
        self.lift(pod);
        let entry = self.entry_mut(pod);
        match outcome {
            Preempted::Asked if !entry.rejected_by.is_empty() => return self.wait(cx, pod),
            // An error, for which no early try makes up: victims may be refused for ever.
            Preempted::Failed => entry.rejected_by = PluginSet::default(),
            Preempted::Asked | Preempted::Room => {}
        }
        self.make_ready(cx, pod);
    }
}
