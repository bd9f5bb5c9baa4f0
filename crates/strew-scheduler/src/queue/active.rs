//! The active queue. Source: spec/scheduler §3.2 (PrioritySort).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use strew_cluster::PodIdx;
use strew_model::Instant;

/// The order in which pods are tried: higher priority first; among equals the one queued earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Higher first.
    pub priority: Reverse<i32>,
    /// When it was last put into the queue.
    pub queued_at: Instant,
    /// Orders pods that were queued at the same moment: first come, first served.
    pub serial: u64,
}

/// The active queue.
#[derive(Debug, Clone, Default)]
pub struct Active {
    // An ordered set rather than a heap: a pod that goes is taken out at once, not skipped later.
    pods: BTreeSet<(Turn, PodIdx)>,
}

impl Active {
    /// Puts a pod in.
    pub fn push(&mut self, turn: Turn, pod: PodIdx) {
        self.pods.insert((turn, pod));
    }

    /// Takes a pod out.
    pub fn remove(&mut self, turn: Turn, pod: PodIdx) {
        self.pods.remove(&(turn, pod));
    }

    /// Takes the next pod out.
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
