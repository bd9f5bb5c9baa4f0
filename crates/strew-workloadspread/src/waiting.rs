//! Pods that wait for a node, in the order in which they came.

use std::collections::VecDeque;

use strew_cluster::{Cluster, PodIdx};

/// The shortest queue that is tidied.
const TIDY_MIN: usize = 64;

/// A queue of waiting pods. A pod that is deleted or bound stays in the queue until [`push`](Self::push) tidies it.
///
/// Only simulated scheduling takes pods from the queue, and under Fixed WorkloadSpreads it never runs. So `push` removes
/// these pods when the queue is twice as long as after the last removal.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pods: VecDeque<PodIdx>,
    tidy_at: usize,
}

impl Waiting {
    /// Adds a pod.
    pub(crate) fn push(&mut self, pod: PodIdx, cluster: &Cluster) {
        if self.pods.len() >= self.tidy_at.max(TIDY_MIN) {
            self.pods.retain(|&pod| waits(cluster, pod));
            self.tidy_at = 2 * self.pods.len();
            self.pods.shrink_to(self.tidy_at);
        }
        self.pods.push_back(pod);
    }

    /// Takes the next pod that waits.
    pub(crate) fn next(&mut self, cluster: &Cluster) -> Option<PodIdx> {
        std::iter::from_fn(|| self.pods.pop_front()).find(|&pod| waits(cluster, pod))
    }

    /// Gives back the pod that was taken last.
    pub(crate) fn put_back(&mut self, pod: PodIdx) {
        self.pods.push_front(pod);
    }

    /// Adds the pods of another queue, which is empty then.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.pods.append(&mut other.pods);
    }

    /// The length of the queue.
    pub(crate) fn len(&self) -> usize {
        self.pods.len()
    }
}

/// True if the pod is there and on no node.
fn waits(cluster: &Cluster, pod: PodIdx) -> bool {
    cluster.try_pod(pod).is_some_and(|row| row.node.is_none())
}
