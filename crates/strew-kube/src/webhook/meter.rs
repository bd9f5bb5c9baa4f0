//! Counters of the webhook beside those of the machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strew_scheduler::metrics::{Family, Histogram, Value};
use strew_wire::workloadspread::review::Operation;

use super::metrics;
use crate::clock::stopwatch;

/// The result of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReviewResult {
    /// The pod got a subset.
    Injected,
    /// The pod passed unchanged, or a deletion was counted.
    Passed,
    /// It was refused.
    Denied,
    /// The caches were not filled yet, or the process was ending.
    NotReady,
    /// Too many reviews of its namespace wait.
    Crowded,
    /// The user's right could not be checked.
    RightUnknown,
    /// No answer came in time.
    TimedOut,
    /// The client closed the connection.
    GivenUp,
    /// The request could not be read.
    Bad,
}

impl ReviewResult {
    fn name(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Passed => "passed",
            Self::Denied => "denied",
            Self::NotReady => "not_ready",
            Self::Crowded => "crowded",
            Self::RightUnknown => "right_unknown",
            Self::TimedOut => "timed_out",
            Self::GivenUp => "given_up",
            Self::Bad => "bad",
        }
    }
}

fn name(operation: Option<Operation>) -> &'static str {
    match operation {
        None => "unknown",
        Some(Operation::Create) => "create",
        Some(Operation::Delete) => "delete",
    }
}

/// Counts since the start of the process.
#[derive(Default)]
pub(super) struct Meter(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    reviews: BTreeMap<(&'static str, &'static str), u64>,
    latencies: BTreeMap<&'static str, Histogram>,
    validations: BTreeMap<&'static str, u64>,
    conversions: BTreeMap<&'static str, u64>,
    evictions: BTreeMap<&'static str, u64>,
}

/// A review in progress. If it is dropped early, the client has closed the connection.
pub(super) struct Watched {
    meter: Arc<Meter>,
    began: u64,
    operation: Option<Operation>,
    is_over: bool,
}

impl Watched {
    pub(super) fn about(&mut self, operation: Operation) {
        self.operation = Some(operation);
    }

    pub(super) fn end(&mut self, result: ReviewResult) {
        self.is_over = true;
        let took = stopwatch().saturating_sub(self.began);
        self.meter.reviewed(self.operation, result, took);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(ReviewResult::GivenUp);
        }
    }
}

impl Meter {
    pub(super) fn begin(self: &Arc<Self>) -> Watched {
        Watched {
            meter: Arc::clone(self),
            began: stopwatch(),
            operation: None,
            is_over: false,
        }
    }

    fn reviewed(&self, operation: Option<Operation>, result: ReviewResult, took: u64) {
        let mut counts = self.counts();
        let operation = name(operation);
        *counts
            .reviews
            .entry((operation, result.name()))
            .or_default() += 1;
        let latency = counts.latencies.entry(operation);
        latency
            .or_insert_with(|| Histogram::new(metrics::LATENCY_BUCKETS))
            .observe(took);
    }

    pub(super) fn validated(&self, is_allowed: bool) {
        let result = if is_allowed { "allowed" } else { "denied" };
        *self.counts().validations.entry(result).or_default() += 1;
    }

    /// Counts a review of an eviction.
    pub(super) fn evicted(&self, result: &'static str) {
        *self.counts().evictions.entry(result).or_default() += 1;
    }

    pub(super) fn converted(&self, is_done: bool) {
        let result = if is_done { "converted" } else { "failed" };
        *self.counts().conversions.entry(result).or_default() += 1;
    }

    pub(super) fn families(&self) -> Vec<Family> {
        let counts = self.counts();
        let mut reviews = Family::new(&metrics::ADMISSIONS);
        for ((operation, result), count) in &counts.reviews {
            reviews.push(
                [(*operation).into(), (*result).into()],
                Value::Count(*count),
            );
        }
        let mut latencies = Family::new(&metrics::LATENCY);
        for (operation, latency) in &counts.latencies {
            latencies.push([(*operation).into()], Value::histogram(latency));
        }
        let by_result = |info, counts: &BTreeMap<&'static str, u64>| {
            let mut family = Family::new(info);
            for (result, count) in counts {
                family.push([(*result).into()], Value::Count(*count));
            }
            family
        };
        vec![
            reviews,
            latencies,
            by_result(&metrics::VALIDATIONS, &counts.validations),
            by_result(&metrics::CONVERSIONS, &counts.conversions),
            by_result(&metrics::EVICTIONS, &counts.evictions),
        ]
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
