//! Waits after failures, by the clock of tokio's timers: [`strew_runtime::waits`].

use std::time::Duration;

use strew_model::time::{Instant as Moment, Span};
use tokio::time::Instant;

use crate::clock::duration;

/// Waits after failures, each twice as long as the previous one.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// The first failure, from which time is counted.
    began: Option<Instant>,
    waits: strew_runtime::waits::Waits,
}

impl Waits {
    /// The wait after a failure now.
    pub(crate) fn next(&mut self, is_forbidden: bool) -> Duration {
        self.next_asked(is_forbidden, Duration::ZERO, false)
    }

    /// The wait after a failure now, if the API server asks for a pause (`Retry-After`). With `may_hurry`, the first wait
    /// is short in any case.
    pub(crate) fn next_asked(
        &mut self,
        is_forbidden: bool,
        asked: Duration,
        may_hurry: bool,
    ) -> Duration {
        let began = *self.began.get_or_insert_with(Instant::now);
        let now = Moment(nanos(began.elapsed()));
        let asked = Span(nanos(asked));
        let wait = self.waits.next_asked(now, is_forbidden, asked, may_hurry);
        duration(wait)
    }

    /// The number of failures in a row; 0 if the last one is long ago.
    pub(crate) fn n_failures(&self) -> u32 {
        self.began.map_or(0, |began| {
            self.waits.n_failures(Moment(nanos(began.elapsed())))
        })
    }

    /// When the last wait ends; `None` if it has ended.
    pub(crate) fn until(&self) -> Option<Instant> {
        let began = self.began?;
        let until = self.waits.until(Moment(nanos(began.elapsed())))?;
        began.checked_add(Duration::from_nanos(until.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
