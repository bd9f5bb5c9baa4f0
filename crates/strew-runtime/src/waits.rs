//! Waits after failures, shared by watches, by tasks that are started again, and by writes.

use strew_model::time::{Instant, Span};

/// The first wait after a failure.
const FIRST_WAIT: Span = Span::from_millis(200);

/// The longest wait. A watch that is refused for ever then costs at most 20 requests in ten minutes.
const LONGEST_WAIT: Span = Span::from_secs(60);

/// The longest wait during the first [`SOON`] of failures: a returning API server must be noticed quickly. So must the
/// conversion webhook of WorkloadSpreads, whose list fails until it is ready.
const LONGEST_WAIT_AT_FIRST: Span = Span::from_secs(10);

/// A watch that fails for longer may fail for ever.
const SOON: Span = Span::from_secs(60);

/// After this long without a failure, waits start again at the shortest.
const CALM: Span = Span::from_secs(60);

/// Waits after failures, each twice as long as the previous one.
///
/// Only time without a failure makes the next wait short again, not a success: kube reports the beginning of a list as
/// a success, also if the list fails a moment later.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waits {
    /// The number of failures in a row.
    n: u32,
    /// When the first failure of the row was, and when the last wait ends.
    failing: Option<(Instant, Instant)>,
}

impl Waits {
    /// The wait after a failure now.
    pub fn next(&mut self, now: Instant, is_forbidden: bool) -> Span {
        self.next_asked(now, is_forbidden, Span::default(), false)
    }

    /// The wait after a failure now, if the API server asks for a pause (`Retry-After`).
    ///
    /// With `may_hurry`, the first wait is short in any case: an API server that rebuilds the storage of a changed
    /// CustomResourceDefinition ends its watches and asks for a second, but is done after some milliseconds. Objects of
    /// that second would be seen too late, and pods would be created without their WorkloadSpread. A refused list costs
    /// the API server more, so the requested pause is kept.
    pub fn next_asked(
        &mut self,
        now: Instant,
        is_forbidden: bool,
        asked: Span,
        may_hurry: bool,
    ) -> Span {
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
            true => Span::default(),
            false => asked,
        };
        let doubled = FIRST_WAIT.doubled(self.n.min(16));
        let wait = doubled.unwrap_or(longest).min(longest).max(asked);
        self.n = self.n.saturating_add(1);
        self.failing = Some((since, now + wait));
        wait
    }

    /// The number of failures in a row; 0 if the last one is long ago.
    pub fn n_failures(&self, now: Instant) -> u32 {
        match self.failing.is_some_and(|(_, until)| now <= until + CALM) {
            true => self.n,
            false => 0,
        }
    }

    /// When the last wait ends; `None` if it has ended.
    pub fn until(&self, now: Instant) -> Option<Instant> {
        let (_, until) = self.failing?;
        (now < until).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_begin_anew_after_a_minute_without_a_failure() {
        let mut waits = Waits::default();
        let start = Instant::from_secs(1_000);
        let mut next = |at: u64| {
            let now = start + Span::from_secs(at);
            waits.next(now, false).0 / 1_000_000
        };
        let first: Vec<u64> = (0..7).map(|_| next(0)).collect();
        assert_eq!(first, [200, 400, 800, 1600, 3200, 6400, 10_000]);
        assert_eq!(next(69), 25_600, "it has failed for more than a minute");
        assert_eq!(next(69 + 25 + 62), 200);
    }
}
