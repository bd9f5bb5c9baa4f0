//! The active queue. Source: spec/scheduler §3.2 (PrioritySort).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use strew_cluster::PodIdx;
use strew_model::Instant;

/// The order of attempts: higher priority first; of equal priorities, the one queued earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Higher first.
    pub priority: Reverse<i32>,
    /// When it was last queued.
    pub queued_at: Instant,
    /// The order of pods queued at the same time.
    pub serial: u64,
}

/// The active queue.
#[derive(Debug, Clone, Default)]
pub struct Active {
    // An ordered set, not a heap: a pod that is gone is removed at once, not skipped later.
    pods: BTreeSet<(Turn, PodIdx)>,
}

impl Active {
    /// Adds a pod.
    pub fn push(&mut self, turn: Turn, pod: PodIdx) {
        self.pods.insert((turn, pod));
    }

    /// Removes a pod.
    pub fn remove(&mut self, turn: Turn, pod: PodIdx) {
        self.pods.remove(&(turn, pod));
    }

    /// Takes the next pod.
    pub fn pop(&mut self) -> Option<PodIdx> {
        self.pods.pop_first().map(|(_, pod)| pod)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}
