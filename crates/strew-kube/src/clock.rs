//! The current time: the only module of this crate that reads a clock, by its `platform`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use strew_model::time::{Instant, Span};

use crate::platform::{self, since_boot};

/// Two clocks: a monotonic one that continues while the machine is suspended, and the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The difference between [`Clock::now`] and its monotonic source, in nanoseconds.
    offset: u64,
    /// The start, by the clock of tokio's timers; `None`: the source is the time since boot.
    began: Option<tokio::time::Instant>,
}

impl Clock {
    /// A clock that starts at the wall clock's present time.
    pub fn new() -> Self {
        Self {
            offset: wall_nanos().saturating_sub(since_boot()),
            began: None,
        }
    }

    /// A clock that follows tokio's timers: a test that pauses them never waits. In a real process these timers stop
    /// while the machine is suspended.
    pub fn of_timers() -> Self {
        Self {
            offset: wall_nanos(),
            began: Some(tokio::time::Instant::now()),
        }
    }

    /// The time for decisions and waits. It only grows: corrections of the wall clock do not change it.
    pub fn now(&self) -> Instant {
        let since = match self.began {
            None => since_boot(),
            Some(began) => u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        Instant(since.saturating_add(self.offset))
    }

    /// The wall clock's time, for texts.
    pub fn wall(&self) -> Instant {
        Instant(wall_nanos())
    }

    /// How long until a moment; zero if it is past.
    pub fn until(&self, moment: Instant) -> Duration {
        duration(moment.since(self.now()))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Monotonic nanoseconds, for measuring.
pub fn stopwatch() -> u64 {
    platform::stopwatch()
}

/// The CPU time of this thread, in nanoseconds; on Windows the elapsed time.
pub fn thread_cpu() -> u64 {
    platform::thread_cpu()
}

/// The span as the standard library's type.
pub fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads it"
)]
fn wall_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_begins_with_the_wall_and_only_grows() {
        let clock = Clock::new();
        let (first, wall) = (clock.now(), clock.wall());
        assert!(wall.since(first) < Span::from_secs(5) && first.since(wall) < Span::from_secs(5));
        let second = clock.now();
        assert!(second >= first);
        assert_eq!(clock.until(first), Duration::ZERO);
        assert!(clock.until(second + Span::from_secs(60)) > Duration::from_secs(50));
    }
}
