//! How much simulated scheduling is done at a time.
//!
//! Work is counted, not timed, so that a decision is a function of what is known. A step is a term or constraint of a pod
//! beside a node or a class of pods: the most that placing it looks at. Without a bound, a pod just below those of
//! [`Request`](crate::admission::Request) costs a decision for each subset of its WorkloadSpread, and one for each pod that
//! waits: seconds, in which no other pod is admitted.

use strew_cluster::{Cluster, PodSpec};

/// Steps for one request, and beyond which the requests of a WorkloadSpread share no further status write.
///
/// As many as 512 waiting pods of four terms each have in a cluster of 5,000 nodes and 2,000 classes of pods.
pub const WORK_MAX: u64 = 16_000_000;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    done: u64,
    until: u64,
}

impl Default for Work {
    /// Nothing is done, and nothing is bounded.
    fn default() -> Self {
        Self {
            done: 0,
            until: u64::MAX,
        }
    }
}

impl Work {
    /// From here on [`WORK_MAX`] steps are allowed.
    pub(crate) fn begin(&mut self) {
        self.until = self.done + WORK_MAX;
    }

    /// Counts a placing, unless too much is done already. Returns whether it may be done.
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

/// The most that placing a pod looks at.
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
