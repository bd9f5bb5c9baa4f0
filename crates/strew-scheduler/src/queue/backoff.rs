//! Pods in backoff. Source: spec/scheduler §4.1.

use std::collections::BTreeSet;

use strew_cluster::PodIdx;
use strew_model::{Instant, Span};

use super::active::Turn;

/// How long pods wait after failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffLimits {
    /// The wait after the first failure. `podInitialBackoffSeconds`.
    pub initial: Span,
    /// The longest wait. `podMaxBackoffSeconds`.
    pub max: Span,
}

impl BackoffLimits {
    /// 1 s and 10 s, as v1.36.3.
    pub const fn production() -> Self {
        Self {
            initial: Span::from_secs(1),
            max: Span::from_secs(10),
        }
    }
}

/// The numbers of a pod's failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    /// How often plugins rejected it.
    pub rejections: u32,
    /// How often an attempt failed with an error since the last rejection.
    pub errors: u32,
}

impl BackoffLimits {
    /// The wait of a pod: doubled with each failure.
    pub fn duration(&self, failures: Failures) -> Span {
        let count = match failures.errors {
            0 => failures.rejections,
            errors => errors,
        };
        match count.checked_sub(1) {
            None => Span(0),
            Some(doublings) => match self.initial.doubled(doublings) {
                Some(span) if span <= self.max => span,
                _ => self.max,
            },
        }
    }

    /// The whole second at which the wait of a pod ends that was last queued at `queued_at`.
    pub fn expiry_s(&self, failures: Failures, queued_at: Instant) -> u64 {
        match self.duration(failures) {
            Span(0) => 0,
            span => (queued_at + span).secs(),
        }
    }
}

/// True if a wait that ends in this second is not over. In the same second it is not, as upstream.
pub fn is_on(expiry_s: u64, now: Instant) -> bool {
    expiry_s != 0 && expiry_s >= now.secs()
}

/// Waiting pods by the second in which their wait ends; in the same second in the order of the active queue.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    pods: BTreeSet<(u64, Turn, PodIdx)>,
}

impl Backoff {
    /// Adds a pod.
    pub fn push(&mut self, expiry_s: u64, turn: Turn, pod: PodIdx) {
        self.pods.insert((expiry_s, turn, pod));
    }

    /// Removes a pod.
    pub fn remove(&mut self, expiry_s: u64, turn: Turn, pod: PodIdx) {
        self.pods.remove(&(expiry_s, turn, pod));
    }

    /// Takes the next pod, whether its wait is over or not.
    pub fn pop(&mut self) -> Option<PodIdx> {
        self.pods.pop_first().map(|(_, _, pod)| pod)
    }

    /// Takes a pod whose wait is over.
    pub fn pop_due(&mut self, now: Instant) -> Option<PodIdx> {
        let &(expiry_s, _, _) = self.pods.first()?;
        (!is_on(expiry_s, now)).then(|| self.pop()).flatten()
    }

    /// When the next wait is over.
    pub fn next_due(&self) -> Option<Instant> {
        let &(expiry_s, _, _) = self.pods.first()?;
        Some(Instant::from_secs(expiry_s.saturating_add(1)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(rejections: u32, errors: u32) -> Failures {
        Failures { rejections, errors }
    }

    #[test]
    fn waits_double_up_to_the_limit() {
        let limits = BackoffLimits::production();
        for (rejections, errors, secs) in [
            (0, 0, 0),
            (1, 0, 1),
            (2, 0, 2),
            (3, 0, 4),
            (4, 0, 8),
            (5, 0, 10),
            (6, 0, 10),
            (u32::MAX, 0, 10),
            // Errors count alone, where there are some.
            (5, 1, 1),
            (0, 3, 4),
            (9, 64, 10),
        ] {
            let duration = limits.duration(failed(rejections, errors));
            assert_eq!(duration, Span::from_secs(secs), "{rejections} {errors}");
        }
        let odd = BackoffLimits {
            initial: Span::from_secs(20),
            max: Span::from_secs(10),
        };
        assert_eq!(odd.duration(failed(1, 0)), Span::from_secs(10));
    }

    /// Queued at 3.7 s, a wait of 1 s ends in second 4: over from 5.0 s on.
    #[test]
    fn waits_end_with_whole_seconds() {
        let limits = BackoffLimits::production();
        let at = |millis| Instant(0) + Span::from_millis(millis);
        for (queued_ms, rejections, expiry_s, last_on_ms, over_ms) in [
            (3_700, 1, 4, 4_999, 5_000),
            (3_000, 1, 4, 4_999, 5_000),
            (3_999, 1, 4, 4_999, 5_000),
            (3_999, 2, 5, 5_999, 6_000),
            (1_500, 5, 11, 11_999, 12_000),
        ] {
            let expiry = limits.expiry_s(failed(rejections, 0), at(queued_ms));
            assert_eq!(expiry, expiry_s, "{queued_ms}");
            assert!(is_on(expiry, at(last_on_ms)), "{queued_ms}");
            assert!(!is_on(expiry, at(over_ms)), "{queued_ms}");
        }
        assert!(!is_on(limits.expiry_s(failed(0, 0), at(9)), at(9)));
    }
}
