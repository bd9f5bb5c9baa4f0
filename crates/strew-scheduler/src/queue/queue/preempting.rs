//! Pods that are held back while their victims are asked to terminate. Source: spec/scheduler §2.8.

use strew_cluster::PodIdx;

use super::{Gate, Queue};
use crate::queue::incoming::Cause;
use crate::queue::{Context, PluginSet};

/// The result of a preemption for the preempting pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preempted {
    /// All victims were asked: an event will follow when they are gone.
    Asked,
    /// One was gone before all were asked: the pod is worth a retry at once.
    Room,
    /// One could not be asked: the pod is retried after its backoff, never early.
    Failed,
}

impl Queue {
    /// Prevents attempts for a pod while its preemption is in progress.
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
            // An error, which rules out an early retry: requests for victims may be refused for ever.
            Preempted::Failed => entry.rejected_by = PluginSet::default(),
            Preempted::Asked | Preempted::Room => {}
        }
        self.make_ready(cx, pod);
    }
}
