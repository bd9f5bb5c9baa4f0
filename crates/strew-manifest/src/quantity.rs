//! Kubernetes quantities (`500m`, `1.5Gi`, `2e3`), exact.
//!
//! Source: `k8s.io/apimachinery/pkg/api/resource`, v1.36: the same strings are accepted with the
//! same meaning and refused with the same sentences.
//!
//! A deliberate difference: upstream caps a binary quantity over `2^63-1`, and a larger decimal one wraps when it is
//! read. Here both are [errors](QuantityError::Overflow).
//! [errors](QuantityError::Overflow).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An exact amount, a whole number of nano units, with the family of suffixes it was written in.
///
/// Two quantities are equal when their amounts are: `1` = `1000m`.
///
/// ```
/// use strew_manifest::quantity::Quantity;
/// let half: Quantity = "0.5".parse().unwrap();
/// assert_eq!(half, "500m".parse().unwrap());
/// assert_eq!(half.to_string(), "500m");
/// assert_eq!(half.value(), 1); // rounded up
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

/// The family of suffixes a quantity is printed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `n u m k M G T P E`, powers of 1000.
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`, powers of 1024.
    BinarySi,
    /// `e3`, powers of 10.
    DecimalExponent,
}

/// Why a text is no usable quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Characters that do not occur in a quantity, or in the wrong order.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number before the suffix is invalid.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The amount is too large to calculate with.
    #[error("quantity is larger than 9223372036854775807 (2^63-1)")]
    Overflow,
    /// The amount in thousandths, as cpu is counted, is too large to calculate with.
    #[error(
        "quantity is larger than 9223372036854775.807 ((2^63-1)/1000), the most that is counted in thousandths"
    )]
    MilliOverflow,
}

const NANO_DIGITS: i64 = 9;
const NANO: i128 = 1_000_000_000;
const MICRO: i128 = 1_000_000;

/// Suffix, base, exponent. Source: `resource/suffix.go`.
const SUFFIXES: [(&str, Base, i64); 16] = [
    ("n", Base::Ten, -9),
    ("u", Base::Ten, -6),
    ("m", Base::Ten, -3),
    ("", Base::Ten, 0),
    ("k", Base::Ten, 3),
    ("M", Base::Ten, 6),
    ("G", Base::Ten, 9),
    ("T", Base::Ten, 12),
    ("P", Base::Ten, 15),
    ("E", Base::Ten, 18),
    ("Ki", Base::Two, 10),
    ("Mi", Base::Two, 20),
    ("Gi", Base::Two, 30),
    ("Ti", Base::Two, 40),
    ("Pi", Base::Two, 50),
    ("Ei", Base::Two, 60),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Two,
    Ten,
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self {
        nano: 0,
        format: Format::DecimalSi,
    };

    /// Parses a quantity; fractions of a nano unit are rounded away from zero.
    ///
    /// Like upstream, `.5` and `1.` are numbers, and so are a lone sign and a lone point (zero).
    ///
    /// # Errors
    /// The three messages of upstream, or [`QuantityError::Overflow`] if the amount is beyond `2^63-1` units.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let (base, exponent, format) = parts.suffix()?;
        let mut digits = parts.digits();
        let mut power_of_ten = NANO_DIGITS - parts.fraction.len() as i64;
        match base {
            Base::Ten => power_of_ten = power_of_ten.saturating_add(exponent),
            // All binary suffixes are powers of 2^10.
            Base::Two => (0..exponent / 10).for_each(|_| multiply_by_1024(&mut digits)),
        }
        let amount = shift_rounding_up(&digits, power_of_ten)?;
        if amount > i128::from(i64::MAX) * NANO {
            return Err(QuantityError::Overflow);
        }
        let nano = if parts.negative { -amount } else { amount };
        Ok(Self { nano, format })
    }

    /// A whole number of units.
    pub fn from_units(units: i64) -> Self {
        Self {
            nano: i128::from(units) * NANO,
            format: Format::DecimalSi,
        }
    }

    /// A whole number of thousandths.
    pub fn from_milli(milli: i64) -> Self {
        Self {
            nano: i128::from(milli) * MICRO,
            format: Format::DecimalSi,
        }
    }

    /// Units, rounded away from zero: upstream's `Value()`.
    pub fn value(self) -> i64 {
        // A quantity is parsed only up to 2^63-1 units, and sums saturate: this always fits.
        saturate(divide_away_from_zero(self.nano, NANO))
    }

    /// Thousandths of a unit, rounded away from zero, at most `i64::MAX` and at least `i64::MIN`:
    /// upstream's `MilliValue()` where that fits. Use [`Self::checked_milli_value`] for input.
    pub fn milli_value(self) -> i64 {
        saturate(divide_away_from_zero(self.nano, MICRO))
    }

    /// Units, rounded away from zero.
    ///
    /// # Errors
    /// [`QuantityError::Overflow`] if the number does not fit in 64 bits.
    pub fn checked_value(self) -> Result<i64, QuantityError> {
        checked(divide_away_from_zero(self.nano, NANO))
    }

    /// Thousandths of a unit, rounded away from zero.
    ///
    /// # Errors
    /// [`QuantityError::MilliOverflow`] if the number does not fit in 64 bits, from some 9.2e15 units.
    pub fn checked_milli_value(self) -> Result<i64, QuantityError> {
        let milli = checked(divide_away_from_zero(self.nano, MICRO));
        milli.map_err(|_| QuantityError::MilliOverflow)
    }

    /// The sum, in the format of `self`.
    ///
    /// # Errors
    /// [`QuantityError::Overflow`] beyond `2^63-1` units.
    pub fn checked_add(self, other: Self) -> Result<Self, QuantityError> {
        // Both are below 2^63 * 10^9 < 2^93: the sum cannot overflow 128 bits.
        let nano = self.nano + other.nano;
        if nano.abs() > i128::from(i64::MAX) * NANO {
            return Err(QuantityError::Overflow);
        }
        Ok(Self { nano, ..self })
    }

    /// The same amount rounded up to thousandths, as the API server stores resource lists
    /// (`SetDefaults_ResourceList`).
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        Self {
            nano: divide_away_from_zero(self.nano, MICRO) * MICRO,
            ..self
        }
    }

    /// True if the amount is a whole number of units.
    pub fn is_whole(self) -> bool {
        self.nano % NANO == 0
    }

    /// True if the amount is a whole number of thousandths.
    pub fn is_whole_milli(self) -> bool {
        self.nano % MICRO == 0
    }

    /// -1, 0 or 1.
    pub fn signum(self) -> i32 {
        self.nano.signum() as i32
    }

    /// The family of suffixes it is printed with.
    pub fn format(self) -> Format {
        self.format
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl TryFrom<&k8s_openapi::apimachinery::pkg::api::resource::Quantity> for Quantity {
    type Error = QuantityError;

    fn try_from(
        wire: &k8s_openapi::apimachinery::pkg::api::resource::Quantity,
    ) -> Result<Self, QuantityError> {
        Self::parse(&wire.0)
    }
}

impl From<Quantity> for k8s_openapi::apimachinery::pkg::api::resource::Quantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.to_string())
    }
}

/// The canonical form: no fraction, the largest suffix that allows that.
/// Source: `Quantity.CanonicalizeBytes`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Below 1024, or with a fraction, binary suffixes would have to round.
        let binary = self.format == Format::BinarySi
            && self.nano.abs() >= 1024 * NANO
            && self.nano % NANO == 0;
        if binary {
            let (number, thousands) = remove_factors(self.nano / NANO, 1024);
            return write!(f, "{number}{}", suffix_of(Base::Two, thousands * 10));
        }
        let (number, thousands) = remove_factors(self.nano, 1000);
        let exponent = thousands * 3 - NANO_DIGITS;
        if self.nano == 0 {
            return f.write_str("0");
        }
        match self.format {
            Format::DecimalExponent if exponent == 0 => write!(f, "{number}"),
            Format::DecimalExponent => write!(f, "{number}e{exponent}"),
            _ => write!(f, "{number}{}", suffix_of(Base::Ten, exponent)),
        }
    }
}

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    /// Source: `parseQuantityString`. The order of its checks determines the error.
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_while(unsigned, |c| c.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_while(rest, |c| c.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, exponent) = split_while(suffix, |c| "eEinumkKMGTP".contains(c));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.contains(|c: char| !c.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        Ok(Self {
            negative: text.starts_with('-'),
            whole,
            fraction,
            suffix,
        })
    }

    fn suffix(&self) -> Result<(Base, i64, Format), QuantityError> {
        if let Some(&(_, base, exponent)) = SUFFIXES.iter().find(|s| s.0 == self.suffix) {
            let format = match base {
                Base::Two => Format::BinarySi,
                Base::Ten => Format::DecimalSi,
            };
            return Ok((base, exponent, format));
        }
        let exponent = self
            .suffix
            .strip_prefix(['e', 'E'])
            .ok_or(QuantityError::Suffix)?;
        let exponent: i64 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
        Ok((Base::Ten, exponent, Format::DecimalExponent))
    }

    /// The digits of the number without its point, most significant first.
    fn digits(&self) -> Vec<u8> {
        let digits = self.whole.bytes().chain(self.fraction.bytes());
        digits
            .skip_while(|&b| b == b'0')
            .map(|b| b - b'0')
            .collect()
    }
}

fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

/// Works on decimal digits, so that fractions of any length stay exact.
fn multiply_by_1024(digits: &mut Vec<u8>) {
    let mut carry = 0u32;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * 1024 + carry;
        *digit = (product % 10) as u8;
        carry = product / 10;
    }
    let mut head = Vec::new();
    while carry > 0 {
        head.push((carry % 10) as u8);
        carry /= 10;
    }
    digits.splice(0..0, head.into_iter().rev());
}

/// `digits * 10^power`, rounded up.
fn shift_rounding_up(digits: &[u8], power: i64) -> Result<i128, QuantityError> {
    let dropped = usize::try_from(power.saturating_neg()).unwrap_or(0);
    let kept = digits.len().saturating_sub(dropped);
    let mut amount: i128 = 0;
    for &digit in &digits[..kept] {
        amount = append_digit(amount, digit)?;
    }
    if amount > 0 {
        // Ends with an overflow after at most 39 steps, however large the power is.
        for _ in 0..power.max(0) {
            amount = append_digit(amount, 0)?;
        }
    }
    let rest = digits[kept..].iter().any(|&digit| digit != 0);
    Ok(amount + i128::from(rest))
}

fn append_digit(amount: i128, digit: u8) -> Result<i128, QuantityError> {
    amount
        .checked_mul(10)
        .and_then(|amount| amount.checked_add(i128::from(digit)))
        .ok_or(QuantityError::Overflow)
}

fn divide_away_from_zero(nano: i128, unit: i128) -> i128 {
    let quotient = nano / unit;
    if nano % unit == 0 {
        quotient
    } else {
        quotient + nano.signum()
    }
}

fn saturate(number: i128) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn checked(number: i128) -> Result<i64, QuantityError> {
    i64::try_from(number).map_err(|_| QuantityError::Overflow)
}

fn remove_factors(mut number: i128, factor: i128) -> (i128, i64) {
    let mut n_factors = 0;
    while number != 0 && number % factor == 0 {
        number /= factor;
        n_factors += 1;
    }
    (number, n_factors)
}

fn suffix_of(base: Base, exponent: i64) -> &'static str {
    // Amounts are bounded by 2^63-1 units, so every exponent has a suffix.
    SUFFIXES
        .iter()
        .find(|s| s.1 == base && s.2 == exponent || exponent == 0 && s.0.is_empty())
        .map_or("", |s| s.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(i64, i64, &str), &str>) {
        let actual = match Quantity::parse(text) {
            Ok(q) => Ok((q.value(), q.milli_value(), q.to_string())),
            Err(e) => Err(e.to_string()),
        };
        let expected = match expected {
            Ok((value, milli, text)) => Ok((value, milli, text.to_string())),
            Err(text) => Err(text.to_string()),
        };
        assert_eq!(actual, expected, "{text:?}");
    }

    #[test]
    fn reads_what_upstream_reads() {
        let cases = [
            ("0", 0, 0, "0"),
            ("-0", 0, 0, "0"),
            ("0Gi", 0, 0, "0"),
            ("1", 1, 1000, "1"),
            ("+1", 1, 1000, "1"),
            ("-1", -1, -1000, "-1"),
            ("100m", 1, 100, "100m"),
            ("1000m", 1, 1000, "1"),
            ("1500m", 2, 1500, "1500m"),
            ("-1500m", -2, -1500, "-1500m"),
            ("0.5", 1, 500, "500m"),
            (".5", 1, 500, "500m"),
            ("1.", 1, 1000, "1"),
            ("1.G", 1_000_000_000, 1_000_000_000_000, "1G"),
            ("1n", 1, 1, "1n"),
            ("1u", 1, 1, "1u"),
            ("1000n", 1, 1, "1u"),
            ("0.1n", 1, 1, "1n"),
            ("1e-30", 1, 1, "1e-9"),
            ("1k", 1000, 1_000_000, "1k"),
            ("1000k", 1_000_000, 1_000_000_000, "1M"),
            ("12e3", 12_000, 12_000_000, "12e3"),
            ("12E3", 12_000, 12_000_000, "12e3"),
            ("1e2", 100, 100_000, "100"),
            ("1.5e+3", 1500, 1_500_000, "1500"),
            ("1E", 1_000_000_000_000_000_000, i64::MAX, "1E"),
            ("1Ki", 1024, 1_024_000, "1Ki"),
            ("1.5Ki", 1536, 1_536_000, "1536"),
            ("0.5Ki", 512, 512_000, "512"),
            ("1.5Gi", 1_610_612_736, 1_610_612_736_000, "1536Mi"),
            ("1024Mi", 1_073_741_824, 1_073_741_824_000, "1Gi"),
            ("1.1Ki", 1127, 1_126_400, "1126400m"),
            ("7Ei", 8_070_450_532_247_928_832, i64::MAX, "7Ei"),
            (
                "9223372036854775807",
                i64::MAX,
                i64::MAX,
                "9223372036854775807",
            ),
            ("000000000000000000000000000000000000000001", 1, 1000, "1"),
            ("0e999999999999", 0, 0, "0"),
            ("-", 0, 0, "0"),
            (".", 0, 0, "0"),
        ];
        for (text, value, milli, canonical) in cases {
            check(text, Ok((value, milli, canonical)));
        }
    }

    #[test]
    fn refuses_what_upstream_refuses() {
        let format = QuantityError::Format.to_string();
        let suffix = QuantityError::Suffix.to_string();
        for text in [
            "", "1.1.M", "1+1.0M", "0.1am", "aoeu", " 1", "1 ", "1,5", "1\u{664}", "1e3x",
        ] {
            check(text, Err(&format));
        }
        for text in [
            ".5i",
            "1i",
            "-3.01i",
            "-3.01e-",
            "0.1mi",
            "1K",
            "1MM",
            "1m3",
            "1e",
            "1e99999999999999999999",
        ] {
            check(text, Err(&suffix));
        }
    }

    #[test]
    fn amounts_beyond_64_bits_are_errors() {
        let overflow = QuantityError::Overflow.to_string();
        let long = "9".repeat(100_000);
        for text in [
            "9223372036854775808",
            "8Ei",
            "-8Ei",
            "10E",
            "1e19",
            "1e2147483648",
            &long,
        ] {
            check(text, Err(&overflow));
        }
        let large = Quantity::parse("9223372036854775807").unwrap();
        assert_eq!(large.checked_value(), Ok(i64::MAX));
        assert_eq!(
            large.checked_milli_value(),
            Err(QuantityError::MilliOverflow)
        );
        assert_eq!(
            large.checked_add(Quantity::from_units(1)),
            Err(QuantityError::Overflow)
        );
    }

    #[test]
    fn the_canonical_text_says_the_same_amount() {
        proptest!(|(number in -10_000_000i64..10_000_000, fraction in "[0-9]{0,12}", suffix in 0..SUFFIXES.len())| {
            let text = format!("{number}.{fraction}{}", SUFFIXES[suffix].0);
            if let Ok(quantity) = Quantity::parse(&text) {
                let canonical = quantity.to_string();
                prop_assert_eq!(Quantity::parse(&canonical), Ok(quantity));
                prop_assert!(!canonical.contains('.'));
            }
        });
    }

    #[test]
    fn order_is_that_of_the_numbers() {
        proptest!(|(a in any::<i32>(), b in any::<i32>())| {
            let milli = |n: i32| Quantity::parse(&format!("{n}m")).unwrap();
            prop_assert_eq!(milli(a).cmp(&milli(b)), a.cmp(&b));
            prop_assert_eq!(milli(a).milli_value(), i64::from(a));
            prop_assert_eq!(milli(a).checked_add(milli(b)).unwrap().milli_value(), i64::from(a) + i64::from(b));
        });
    }

    #[test]
    fn no_text_panics() {
        proptest!(|(text in "[-+.0-9eEinumkKMGTP ]{0,40}")| { let _ = Quantity::parse(&text); });
        proptest!(|(text in any::<String>())| { let _ = Quantity::parse(&text); });
    }
}
