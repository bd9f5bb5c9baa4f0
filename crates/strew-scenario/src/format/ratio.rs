//! A share of something, exact.

/// From 0 to 1, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(u32);

/// All of it.
const WHOLE: u32 = 1_000_000;
const DIGITS_MAX: usize = 6;

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Reads `0.25`; `None` outside 0 to 1, or with more than six decimals.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > DIGITS_MAX || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let whole: u32 = whole.parse().ok().filter(|whole| *whole <= 1)?;
        let fraction: u32 = format!("{fraction:0<DIGITS_MAX$}").parse().ok()?;
        let millionths = whole * WHOLE + fraction;
        (millionths <= WHOLE).then_some(Self(millionths))
    }

    /// How many of a million.
    pub fn millionths(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_shares_exactly() {
        let cases = [
            ("0", Some(0)),
            ("0.1", Some(100_000)),
            ("1", Some(WHOLE)),
            ("1.0", Some(WHOLE)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("1.1", None),
            ("2", None),
            ("-0.1", None),
            ("1e-3", None),
            ("", None),
        ];
        for (text, millionths) in cases {
            assert_eq!(
                Ratio::parse(text).map(Ratio::millionths),
                millionths,
                "{text}"
            );
        }
    }
}
