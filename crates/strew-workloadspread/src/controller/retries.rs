//! Limits the rate at which failed syncs are retried, over all WorkloadSpreads.
//!
//! Source: spec/workloadspread §5.1, §6.2; `BucketRateLimiter` of `k8s.io/client-go/util/workqueue`.

use strew_model::{Instant, Span};

/// A bucket of retries: a number at once, then one per interval.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retries {
    /// The time at which the bucket is full again.
    full_at: Instant,
}

impl Retries {
    /// Takes a retry. Returns how long it has to wait.
    pub(super) fn take(&mut self, now: Instant, qps: u32, burst: u32) -> Span {
        let Some(interval) = 1_000_000_000_u64.checked_div(u64::from(qps)) else {
            return Span(0);
        };
        let full_at = self.full_at.max(now);
        let free = u64::from(burst).saturating_sub(1).saturating_mul(interval);
        let wait = full_at.since(now).0.saturating_sub(free);
        self.full_at = full_at + Span(interval);
        Span(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_at_once_then_ten_a_second() {
        let mut retries = Retries::default();
        let now = Instant::from_secs(1_000);
        for i in 0..100 {
            assert_eq!(retries.take(now, 10, 100), Span(0), "{i}");
        }
        assert_eq!(retries.take(now, 10, 100), Span::from_millis(100));
        assert_eq!(retries.take(now, 10, 100), Span::from_millis(200));
        // The bucket fills with time.
        let later = now + Span::from_secs(1);
        for _ in 0..8 {
            assert_eq!(retries.take(later, 10, 100), Span(0));
        }
        assert_eq!(retries.take(later, 10, 100), Span::from_millis(100));
        let much_later = later + Span::from_secs(60);
        assert_eq!(retries.take(much_later, 10, 100), Span(0));
        assert_eq!(retries.take(now, 0, 0), Span(0), "no limit");
    }
}
