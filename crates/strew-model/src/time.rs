//! Times and durations as plain values: nothing here reads a clock.

use std::fmt;
use std::ops::{Add, Sub};

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// A time: nanoseconds since 1970, or since another start. 64 bits cover 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A duration in nanoseconds. Arithmetic saturates: extreme settings give distant times, never a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Instant {
    /// This many seconds after the start.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS))
    }

    /// Whole seconds since the start, rounded down.
    pub const fn secs(self) -> u64 {
        self.0 / NANOS
    }

    /// The time since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A duration in seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS))
    }

    /// A duration in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS / 1000))
    }

    /// The duration doubled `times` times; `None` beyond 64 bits.
    pub const fn doubled(self, times: u32) -> Option<Self> {
        match 1u64.checked_shl(times) {
            Some(factor) => match self.0.checked_mul(factor) {
                Some(nanos) => Some(Self(nanos)),
                None => None,
            },
            None => None,
        }
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;

    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / NANOS, self.0 % NANOS / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let late = Instant(u64::MAX) + Span::from_secs(u64::MAX);
        assert_eq!(late, Instant(u64::MAX));
        assert_eq!(Instant(5) - Span(9), Instant(0));
        assert_eq!(Instant(5).since(Instant(9)), Span(0));
        assert_eq!((Instant::from_secs(3) + Span::from_millis(1999)).secs(), 4);
        assert_eq!(Span(3).doubled(2), Some(Span(12)));
        assert_eq!(Span(3).doubled(63), None);
        assert_eq!(Span(0).doubled(64), None);
        assert_eq!(Span::from_millis(1500).to_string(), "1.500s");
    }
}
