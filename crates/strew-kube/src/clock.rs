//! The current time: the only module of this crate that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use strew_model::time::{Instant, Span};

/// Two clocks: a monotonic one that continues while the machine is suspended, and the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// What the growing one is ahead of the time since boot, or of its own beginning.
    offset: u64,
    /// When it began, by the clock of tokio's timers; `None`: it reads the time since boot.
    began: Option<tokio::time::Instant>,
}

impl Clock {
    /// A clock whose moments begin with the wall's time of now.
    pub fn new() -> Self {
        Self {
            offset: wall_nanos().saturating_sub(since_boot()),
            began: None,
        }
    }

    /// A clock that keeps step with tokio's timers, so that a test in which those are paused waits for nothing. In a
    /// process they stand still while the machine is suspended.
    pub fn of_timers() -> Self {
        Self {
            offset: wall_nanos(),
            began: Some(tokio::time::Instant::now()),
        }
    }

    /// The moment by which everything is decided and waited for. It only grows: corrections of the wall's clock do not
    /// move it.
    pub fn now(&self) -> Instant {
        let since = match self.began {
            None => since_boot(),
            Some(began) => u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        Instant(since.saturating_add(self.offset))
    }

    /// The wall's time, for what people read.
    pub fn wall(&self) -> Instant {
        Instant(wall_nanos())
    }

    /// How long it is until a moment; nothing if it is past.
    pub fn until(&self, moment: Instant) -> Duration {
        duration(moment.since(self.now()))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Nanoseconds that only grow, for measuring.
pub fn stopwatch() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of CPU time that this thread has had.
pub fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// A span as the standard library has it.
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
