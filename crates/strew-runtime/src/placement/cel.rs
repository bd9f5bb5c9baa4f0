//! Evaluates CEL selectors and measures the time that they take.

use std::cell::RefCell;
use std::fmt;

use strew_model::Symbol;
use strew_placement::facts::placement::CelId;
use strew_placement::{Answer, ClusterPredicate};
use strew_scheduler::metrics::{Buckets, Histogram};
use strew_wire::placement::cel::CelSelectors;

/// OCM's buckets: from a microsecond to a thousand seconds, each ten times the previous one.
pub const BUCKETS: Buckets = Buckets::seconds(1e-6, 10.0, 10);

/// Reads monotonic nanoseconds.
pub type Stopwatch = fn() -> u64;

/// Selectors whose evaluation is measured if there is a stopwatch. Their answers do not depend on it.
pub(super) struct Measured {
    pub(super) selectors: CelSelectors,
    stopwatch: Option<Stopwatch>,
    durations: RefCell<Histogram>,
}

impl Measured {
    pub(super) fn new(stopwatch: Option<Stopwatch>) -> Self {
        Self {
            selectors: CelSelectors::new(),
            stopwatch,
            durations: RefCell::new(Histogram::new(BUCKETS)),
        }
    }

    fn measured(&self, answer: impl FnOnce() -> Answer) -> Answer {
        let Some(stopwatch) = self.stopwatch else {
            return answer();
        };
        let begun = stopwatch();
        let answer = answer();
        let took = stopwatch().saturating_sub(begun);
        if answer.is_new {
            self.durations.borrow_mut().observe(took);
        }
        answer
    }

    /// The durations of evaluations, each for one cluster and one selector.
    pub(super) fn durations(&self) -> Histogram {
        self.durations.borrow().clone()
    }
}

impl fmt::Debug for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measured").finish_non_exhaustive()
    }
}

impl ClusterPredicate for Measured {
    fn answer(&self, selector: CelId, cluster: Symbol) -> Answer {
        let answer = || self.selectors.answer(selector, cluster);
        self.measured(answer)
    }

    fn earlier(&self, selector: CelId, cluster: Symbol) -> Answer {
        let earlier = || self.selectors.earlier(selector, cluster);
        self.measured(earlier)
    }
}
