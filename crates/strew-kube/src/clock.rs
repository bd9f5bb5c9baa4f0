//! The current time: the only module of this crate that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use strew_model::time::{Instant, Span};

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
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The CPU time of this thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// The span as the standard library's type.
pub fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

fn since_boot() -> u64 {
    nanos(clock_gettime(ClockId::Boottime))
}

fn nanos(time: Timespec) -> u64 {
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    let secs = part(time.tv_sec).saturating_mul(1_000_000_000);
    secs.saturating_add(part(time.tv_nsec))
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
