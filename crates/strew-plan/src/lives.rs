//! What decides which pods a scale-down takes, beside the facts of the cluster.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_cluster::scale_down::Life;
use strew_model::Instant;

/// The lives of pods at a moment.
#[derive(Debug, Clone, Default)]
pub struct Lives {
    /// The moment.
    pub now: Instant,
    /// By uid. Pods without one are alike but for their nodes.
    pub of: FxHashMap<Arc<str>, Lived>,
}

/// The life of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lived {
    /// Its life.
    pub life: Life,
    /// True if pods of its workload beside it on its node bring its turn forward.
    pub counts_beside: bool,
}

impl Default for Lived {
    fn default() -> Self {
        Self {
            life: Life::default(),
            counts_beside: true,
        }
    }
}
