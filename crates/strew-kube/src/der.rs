//! Reads subject and validity from a certificate in DER. It checks no signature; TLS does.
//!
//! Source: X.690; RFC 5280 §4.1.

use strew_model::time::Instant;

pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
pub(crate) const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The unread rest of some DER.
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

impl<'a> Der<'a> {
    /// The tag of the next element.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The content of the next element, which must have this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.any()?;
        (found == tag).then_some(content)
    }

    /// Tag and content of the next element. Lengths are written in up to four bytes.
    pub(crate) fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes.iter().fold(0, |sum, b| sum << 8 | usize::from(*b));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }
}

/// The fields of a certificate that strew reads.
pub(crate) struct Fields<'a> {
    /// The validity: two times.
    pub(crate) validity: &'a [u8],
    /// The subject: sets of names.
    pub(crate) subject: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a certificate in DER; `None` if it is invalid.
    pub(crate) fn of(certificate: &'a [u8]) -> Option<Self> {
        let mut certificate = Der(Der(certificate).take(SEQUENCE)?);
        let mut body = Der(certificate.take(SEQUENCE)?);
        if body.peek() == Some(VERSION) {
            body.any()?;
        }
        // Serial number, algorithm, issuer.
        for _ in 0..3 {
            body.any()?;
        }
        Some(Self {
            validity: body.take(SEQUENCE)?,
            subject: body.take(SEQUENCE)?,
        })
    }

    /// The validity; times before 1970 count as 1970.
    pub(crate) fn dates(&self) -> Option<[Instant; 2]> {
        let mut both = Der(self.validity);
        let (from, until) = (both.any()?, both.any()?);
        Some([time(from)?, time(until)?])
    }
}

/// A time with its tag. Years of two digits mean 1950 to 2049; both forms end in `Z` and have whole seconds.
fn time((tag, text): (u8, &[u8])) -> Option<Instant> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (tag, text.len()) {
        (UTC_TIME, 12) => {
            let year: i64 = text[..2].parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, &text[2..])
        }
        (GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
        _ => return None,
    };
    let part = |at: usize| rest[at..at + 2].parse::<i64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    // Times beyond the range of nanoseconds since 1970 become the latest time.
    let seconds = u64::try_from(seconds.max(0)).unwrap_or(0);
    Some(Instant(seconds.saturating_mul(1_000_000_000)))
}

/// Days of the Gregorian calendar; years begin in March, so that the leap day is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn times_are_read_as_the_two_kinds_write_them() {
        let cases: [(u8, &str, Option<u64>); 12] = [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "691231235959Z", Some(0)),
            (UTC_TIME, "261122061500Z", Some(1_795_328_100)),
            (UTC_TIME, "240229120000Z", Some(1_709_208_000)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "21000301000000Z", Some(4_107_542_400)),
            (UTC_TIME, "20500101000000Z", None),
            (UTC_TIME, "261322061500Z", None),
            (UTC_TIME, "2611220615Z", None),
            (UTC_TIME, "26112206150\u{e9}Z", None),
            (OBJECT_ID, "261122061500Z", None),
        ];
        for (tag, text, expected) in cases {
            let found = time((tag, text.as_bytes()));
            assert_eq!(found, expected.map(Instant::from_secs), "{text}");
        }
        // Past the end of strew's own times.
        let for_ever = time((GENERALIZED_TIME, b"99991231235959Z"));
        assert_eq!(for_ever, Some(Instant(u64::MAX)));
    }

    #[test]
    fn a_certificate_is_good_when_its_maker_says_so() {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        let start = rcgen::date_time_ymd(1970, 1, 1);
        // A day in each year, before and after 2050.
        for year in 0..100 {
            let [from, until] = [year * 31_556_952, (year + 1) * 31_556_952];
            params.not_before = start + Duration::from_secs(from);
            params.not_after = start + Duration::from_secs(until);
            let key = KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            let dates = Fields::of(certificate.der()).unwrap().dates();
            assert_eq!(dates, Some([from, until].map(Instant::from_secs)));
        }
    }
}
