//! Bounds the work of simulated scheduling.
//!
//! Work is counted, not timed, so that a decision is a function of the facts. A step is a term or constraint of a pod,
//! compared with a node or a class of pods: the most that placing it can examine. Without a bound, a pod just below the
//! limits of [`Request`](crate::admission::Request) costs a decision per subset of its WorkloadSpread, and one per
//! waiting pod: seconds, in which no other pod is admitted.

use strew_cluster::{Cluster, PodSpec};

/// The steps for one request, and the steps after which the requests of a WorkloadSpread share no further status write.
///
/// The work of 512 waiting pods with four terms each in a cluster of 5,000 nodes and 2,000 classes of pods.
pub const WORK_MAX: u64 = 16_000_000;

/// A counter of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    done: u64,
    until: u64,
}

impl Default for Work {
    /// Without steps so far, and without a bound.
    fn default() -> Self {
        Self {
            done: 0,
            until: u64::MAX,
        }
    }
}

impl Work {
    /// Allows [`WORK_MAX`] further steps.
    pub(crate) fn begin(&mut self) {
        self.until = self.done + WORK_MAX;
    }

    /// Counts a placing. Returns false if the bound is reached.
    pub(crate) fn allows(&mut self, cluster: &Cluster, spec: &PodSpec) -> bool {
        let is_allowed = self.done < self.until;
        if is_allowed {
            self.done += steps(cluster, spec);
        }
        is_allowed
    }

    /// All steps so far.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }
}

/// The largest number of steps for placing a pod.
fn steps(cluster: &Cluster, spec: &PodSpec) -> u64 {
    let affinity = &spec.affinity;
    let n_terms = affinity.required.len()
        + affinity.required_anti.len()
        + affinity.preferred.len()
        + spec.node_affinity.terms.as_deref().map_or(0, <[_]>::len)
        + spec.preferred_nodes.len()
        + spec.spread.len();
    let n_beside = cluster.nodes_present() + cluster.tables().len();
    (1 + n_terms as u64) * (1 + n_beside as u64)
}
