//! Waits after failures, shared by watches and by tasks that are started again.

use std::time::Duration;

use tokio::time::Instant;

/// The first wait after a failure.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The longest wait. A watch that is refused for ever then costs at most 20 requests in ten minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The longest wait during the first [`SOON`] of failures: a returning API server must be noticed quickly. So must the
/// conversion webhook of WorkloadSpreads, whose list fails until it is ready.
const LONGEST_WAIT_AT_FIRST: Duration = Duration::from_secs(10);

/// A watch that fails for longer may fail for ever.
const SOON: Duration = Duration::from_secs(60);

/// After this long without a failure, waits start again at the shortest.
const CALM: Duration = Duration::from_secs(60);

/// Waits after failures, each twice as long as the previous one.
///
/// Only time without a failure makes the next wait short again, not a success: kube reports the beginning of a list as
/// a success, also if the list fails a moment later.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// The number of failures in a row.
    n: u32,
    /// When the first failure of the row was, and when the last wait ends.
    failing: Option<(Instant, Instant)>,
}

impl Waits {
    /// The wait after a failure now.
    pub(crate) fn next(&mut self, is_forbidden: bool) -> Duration {
        self.next_asked(is_forbidden, Duration::ZERO, false)
    }

    /// The wait after a failure now, if the API server asks for a pause (`Retry-After`).
    ///
    /// With `may_hurry`, the first wait is short in any case: an API server that rebuilds the storage of a changed
    /// CustomResourceDefinition ends its watches and asks for a second, but is done after some milliseconds. Objects of
    /// that second would be seen too late, and pods would be created without their WorkloadSpread. A refused list costs
    /// the API server more, so the requested pause is kept.
    pub(crate) fn next_asked(
        &mut self,
        is_forbidden: bool,
        asked: Duration,
        may_hurry: bool,
    ) -> Duration {
        let now = Instant::now();
        let failing = self.failing.filter(|(_, until)| now <= *until + CALM);
        if failing.is_none() {
            self.n = 0;
        }
        let since = failing.map_or(now, |(since, _)| since);
        // Missing rights must be granted first.
        let longest = match is_forbidden || now >= since + SOON {
            true => LONGEST_WAIT,
            false => LONGEST_WAIT_AT_FIRST,
        };
        let asked = match may_hurry && self.n == 0 {
            true => Duration::ZERO,
            false => asked,
        };
        let doubled = FIRST_WAIT.checked_mul(1 << self.n.min(16));
        let wait = doubled.unwrap_or(longest).min(longest).max(asked);
        self.n = self.n.saturating_add(1);
        self.failing = Some((since, now + wait));
        wait
    }

    /// The number of failures in a row; 0 if the last one is long ago.
    pub(crate) fn n_failures(&self) -> u32 {
        let is_failing = |(_, until): (Instant, Instant)| Instant::now() <= until + CALM;
        match self.failing.is_some_and(is_failing) {
            true => self.n,
            false => 0,
        }
    }

    /// When the last wait ends; `None` if it has ended.
    pub(crate) fn until(&self) -> Option<Instant> {
        let (_, until) = self.failing?;
        (Instant::now() < until).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_begin_anew_after_a_minute_without_a_failure() {
        let mut waits = Waits::default();
        let mut next = || waits.next(false).as_millis();
        let first: Vec<_> = std::iter::repeat_with(&mut next).take(7).collect();
        assert_eq!(first, [200, 400, 800, 1600, 3200, 6400, 10_000]);
        tokio::time::advance(Duration::from_secs(69)).await;
        assert_eq!(next(), 25_600, "it has failed for more than a minute");
        tokio::time::advance(Duration::from_secs(25 + 62)).await;
        assert_eq!(next(), 200);
    }
}
