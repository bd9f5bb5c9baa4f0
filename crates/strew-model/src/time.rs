//! Moments and spans of time, as arguments: nothing here reads a clock.

use std::fmt;
use std::ops::{Add, Sub};

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// A moment: nanoseconds since 1970, or since whatever beginning the world chose. 64 bits reach 584 years far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A span of time in nanoseconds. Arithmetic saturates: absurd settings give far moments, never a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Instant {
    /// So many whole seconds after the beginning.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS))
    }

    /// The whole seconds since the beginning; what is left is cut off.
    pub const fn secs(self) -> u64 {
        self.0 / NANOS
    }

    /// The time since `earlier`; nothing if that is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// So many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS / 1000))
    }

    /// Twice as long, `times` times over; `None` past 64 bits.
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
