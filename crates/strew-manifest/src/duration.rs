//! Durations as Go writes them: `15s`, `1h30m`, `1.5s`.
//!
//! Source: Go's `time.ParseDuration` and `Duration.String`.

use std::fmt;

/// A duration in nanoseconds; it may be negative until it is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(i64);

const SECOND: i64 = 1_000_000_000;
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("h", 3600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
];

impl GoDuration {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A duration in seconds, saturated at 64 bits.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(SECOND))
    }

    /// Parses Go's format; `None` if Go would refuse the text.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Self::ZERO);
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, after) = rest.split_at(number_end);
            let (_, unit) = UNITS.iter().find(|(name, _)| after.starts_with(name))?;
            let name = UNITS
                .iter()
                .find(|(name, _)| after.starts_with(name))
                .map(|(name, _)| name.len())?;
            total = total.checked_add(amount(number, *unit)?)?;
            rest = &after[name..];
        }
        i64::try_from(sign * total).ok().map(Self)
    }

    /// A duration in nanoseconds, saturated at 64 bits.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// The nanoseconds; 0 if the duration is negative.
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// As the standard library's type; zero if the duration is negative.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.nanos())
    }
}

/// `number` times `unit`, without fractions of a nanosecond.
fn amount(number: &str, unit: i64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<i128>().ok(),
    };
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10i128.pow(u32::try_from(fraction.len()).ok()?);
    let unit = i128::from(unit);
    let whole = digits(whole)?.checked_mul(unit)?;
    whole.checked_add(digits(fraction)? * unit / scale)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        let second = SECOND.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", decimal(nanos, 1_000_000)),
            _ => {
                let (hours, minutes) = (nanos / second / 3600, nanos / second / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", decimal(nanos % (60 * second), second))
            }
        }
    }
}

fn decimal(amount: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", amount / unit, amount % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_as_go_does() {
        let cases = [
            ("0", Some("0s")),
            ("15s", Some("15s")),
            ("1.5s", Some("1.5s")),
            ("90m", Some("1h30m0s")),
            ("1h0.25s", Some("1h0m0.25s")),
            ("-2s", Some("-2s")),
            ("300ms", Some("300ms")),
            ("1500us", Some("1.5ms")),
            ("7ns", Some("7ns")),
            ("15", None),
            ("", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("99999999999999999h", None),
        ];
        for (text, shown) in cases {
            let parsed = GoDuration::parse(text).map(|duration| duration.to_string());
            assert_eq!(parsed.as_deref(), shown, "{text}");
        }
    }
}
