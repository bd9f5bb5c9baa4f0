//! CEL selectors, and how long they take.

use std::cell::RefCell;

use strew_api::placement::cel::CelSelectors;
use strew_model::Symbol;
use strew_placement::ClusterPredicate;
use strew_placement::facts::placement::CelId;
use strew_scheduler::metrics::Histogram;

use super::metrics::BUCKETS;

/// Selectors that are measured. What they answer does not depend on it.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) selectors: CelSelectors,
    durations: RefCell<Histogram>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            selectors: CelSelectors::new(),
            durations: RefCell::new(Histogram::new(BUCKETS)),
        }
    }
}

impl Measured {
    /// How long each answer took, a cluster and a selector at a time.
    pub(super) fn durations(&self) -> Histogram {
        self.durations.borrow().clone()
    }
}

impl ClusterPredicate for Measured {
    fn holds(&self, selector: CelId, cluster: Symbol) -> bool {
        let begun = crate::clock::stopwatch();
        let holds = self.selectors.holds(selector, cluster);
        let took = crate::clock::stopwatch().saturating_sub(begun);
        self.durations.borrow_mut().observe(took);
        holds
    }
}
