//! Cron expressions: five fields, or a descriptor such as `@daily`.
//!
//! Source: the dialect of robfig/cron v3 `ParseStandard`, which kube-controller-manager uses: minute, hour, day of the
//! month, month, day of the week; `*`, `?`, `a-b`, `/n`, lists, names of months and days; `@hourly` and similar
//! descriptors; `@every 1h30m`.

use jiff::civil::{DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

use crate::duration::GoDuration;

/// The number of years in which a match is searched.
const YEARS_MAX: i16 = 5;

/// A schedule of recurring times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Times);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Times {
    Fields(Fields),
    /// `@every`, in seconds.
    Every(i64),
}

/// The matching values of each field, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both fields of days restrict: then one match is enough.
    either_day: bool,
}

/// Why an expression is invalid, in the words of robfig/cron.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No character.
    #[error("empty spec string")]
    Empty,
    /// The time zone before the expression is unknown.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Zone(String),
    /// The expression does not have five fields.
    #[error("expected exactly 5 fields, found {found}: [{text}]")]
    FieldCount {
        /// The number of fields.
        found: usize,
        /// The fields.
        text: String,
    },
    /// `@` and an unknown word.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every` and no duration.
    #[error("failed to parse duration {0}: time: invalid duration {1:?}")]
    Duration(String, String),
    /// Neither a number nor a name.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {0:?}: invalid syntax")]
    Number(String),
    /// A number below zero.
    #[error("negative number ({0}) not allowed: {0}")]
    Negative(String),
    /// The first value is too small.
    #[error("beginning of range ({value}) below minimum ({min}): {text}")]
    BelowMinimum {
        /// The value.
        value: u32,
        /// The smallest value.
        min: u32,
        /// The part of the expression.
        text: String,
    },
    /// The last value is too large.
    #[error("end of range ({value}) above maximum ({max}): {text}")]
    AboveMaximum {
        /// The value.
        value: u32,
        /// The largest value.
        max: u32,
        /// The part of the expression.
        text: String,
    },
    /// The end of a range is before its beginning.
    #[error("beginning of range ({first}) beyond end of range ({last}): {text}")]
    Backwards {
        /// The beginning.
        first: u32,
        /// The end.
        last: u32,
        /// The part of the expression.
        text: String,
    },
    /// A step of 0.
    #[error("step of range should be a positive number: {0}")]
    NoStep(String),
    /// More than one hyphen.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// More than one stroke.
    #[error("too many slashes: {0}")]
    Slashes(String),
}

/// The time zone of this name; `None` if the database of IANA does not have it.
pub fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds {
    min: 0,
    max: 59,
    names: &[],
};
const HOURS: Bounds = Bounds {
    min: 0,
    max: 23,
    names: &[],
};
const DAYS: Bounds = Bounds {
    min: 1,
    max: 31,
    names: &[],
};
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAYS: Bounds = Bounds {
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Schedule {
    /// Reads an expression; a time zone before it (`TZ=UTC 0 * * * *`) is checked and left out.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        if text.is_empty() {
            return Err(ScheduleError::Empty);
        }
        let zoned = text.strip_prefix("CRON_TZ=").or(text.strip_prefix("TZ="));
        let text = match zoned.and_then(|zoned| zoned.split_once(' ')) {
            Some((name, _)) if zone(name).is_none() => {
                return Err(ScheduleError::Zone(name.to_owned()));
            }
            Some((_, text)) => text,
            None => text,
        };
        let text = text.trim();
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => match text.strip_prefix("@every ") {
                Some(span) => return every(span, text),
                None if text.starts_with('@') => {
                    return Err(ScheduleError::Descriptor(text.to_owned()));
                }
                None => text,
            },
        };
        let words: Vec<&str> = fields.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = words[..] else {
            return Err(ScheduleError::FieldCount {
                found: words.len(),
                text: words.join(" "),
            });
        };
        let restricts = |field: &str| !field.split(',').any(is_any);
        Ok(Self(Times::Fields(Fields {
            minutes: field(minutes, &MINUTES)?,
            hours: field(hours, &HOURS)?,
            days: field(days, &DAYS)?,
            months: field(months, &MONTHS)?,
            weekdays: field(weekdays, &WEEKDAYS)?,
            either_day: restricts(days) && restricts(weekdays),
        })))
    }

    /// The first time after this one; `None` if there is none within five years.
    ///
    /// A local time that a change of clocks skips is left out; one that occurs twice counts twice.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.0 {
            Times::Every(seconds) => {
                let next = after.as_second().checked_add(*seconds)?;
                Timestamp::from_second(next).ok()
            }
            Times::Fields(fields) => fields.next_after(after, zone),
        }
    }
}

impl Fields {
    fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(after);
        let last_year = local.year().checked_add(YEARS_MAX)?;
        let mut date = local.date();
        // The whole first day is tried: a local time may occur again after the clocks went back.
        while date.year() <= last_year {
            if !has(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                continue;
            }
            if self.has_day(date) {
                let times = self.times().map(|time| date.to_datetime(time));
                let found = times.flat_map(|local| moments(local, zone));
                if let Some(found) = found.filter(|&moment| moment > after).min() {
                    return Some(found);
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn has_day(&self, date: jiff::civil::Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        match self.either_day {
            true => day || weekday,
            false => day && weekday,
        }
    }

    fn times(&self) -> impl Iterator<Item = Time> + '_ {
        let hours = (0..24).filter(|&hour| has(self.hours, hour));
        let minutes = move || (0..60).filter(|&minute| has(self.minutes, minute));
        hours.flat_map(move |hour| {
            minutes().filter_map(move |minute| Time::new(hour, minute, 0, 0).ok())
        })
    }
}

/// The moments of a local time: none, one or two.
fn moments(local: DateTime, zone: &TimeZone) -> impl Iterator<Item = Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let offsets = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => [Some(offset), None],
        AmbiguousOffset::Gap { .. } => [None, None],
        AmbiguousOffset::Fold { before, after } => [Some(before), Some(after)],
    };
    let offsets = offsets.into_iter().flatten();
    offsets.filter_map(move |offset| offset.to_timestamp(local).ok())
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| bits >> value & 1 == 1)
}

/// A duration below a second is one second.
fn every(span: &str, text: &str) -> Result<Schedule, ScheduleError> {
    let Some(span) = GoDuration::parse(span) else {
        return Err(ScheduleError::Duration(text.to_owned(), span.to_owned()));
    };
    let seconds = i64::try_from(span.nanos() / 1_000_000_000).unwrap_or(i64::MAX);
    Ok(Schedule(Times::Every(seconds.max(1))))
}

fn is_any(part: &str) -> bool {
    matches!(part.split('/').next(), Some("*" | "?")) && !part.contains('/')
        || matches!(part, "*/1" | "?/1")
}

fn field(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts
        .map(|part| range(part, bounds))
        .try_fold(0, |bits, more| Ok(bits | more?))
}

/// `a`, `a-b`, `*`, each with `/step`; `a/step` continues to the end of the range.
fn range(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let mut halves = text.split('/');
    let (values, step) = (halves.next().unwrap_or_default(), halves.next());
    let ends: Vec<&str> = values.split('-').collect();
    let (first, last) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [first] if step.is_some() => (value(first, bounds)?, bounds.max),
        [only] => (value(only, bounds)?, value(only, bounds)?),
        [first, last] => (value(first, bounds)?, value(last, bounds)?),
        _ => return Err(ScheduleError::Hyphens(text.to_owned())),
    };
    if halves.next().is_some() {
        return Err(ScheduleError::Slashes(text.to_owned()));
    }
    let text_of = || text.to_owned();
    if first < bounds.min {
        return Err(ScheduleError::BelowMinimum {
            value: first,
            min: bounds.min,
            text: text_of(),
        });
    }
    if last > bounds.max {
        return Err(ScheduleError::AboveMaximum {
            value: last,
            max: bounds.max,
            text: text_of(),
        });
    }
    if first > last {
        return Err(ScheduleError::Backwards {
            first,
            last,
            text: text_of(),
        });
    }
    let step = step.map_or(Ok(1), number)?;
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    if step == 0 {
        return Err(ScheduleError::NoStep(text.to_owned()));
    }
    Ok((first..=last)
        .step_by(step)
        .fold(0, |bits, value| bits | 1 << value))
}

fn value(text: &str, bounds: &Bounds) -> Result<u32, ScheduleError> {
    let name = text.to_ascii_lowercase();
    let mut names = (bounds.min..).zip(bounds.names);
    match names.find(|(_, known)| **known == name) {
        Some((value, _)) => Ok(value),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, ScheduleError> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(ScheduleError::Negative(text.to_owned())),
        // No field has so large a value.
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(ScheduleError::Number(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_zone(name: &str) -> TimeZone {
        zone(name).unwrap()
    }

    #[track_caller]
    fn check(text: &str, zone_name: &str, after: &str, expected: &[&str]) {
        let schedule = Schedule::parse(text).unwrap();
        let zone = known_zone(zone_name);
        let mut at: Timestamp = after.parse().unwrap();
        for expected in expected {
            at = schedule.next_after(at, &zone).unwrap();
            assert_eq!(at.to_string(), *expected, "{text}");
        }
    }

    #[test]
    fn five_fields() {
        let start = "2026-11-21T20:30:30Z";
        for (text, expected) in [
            (
                "* * * * *",
                ["2026-11-21T20:31:00Z", "2026-11-21T20:32:00Z"],
            ),
            (
                "*/15 * * * *",
                ["2026-11-21T20:45:00Z", "2026-11-21T21:00:00Z"],
            ),
            (
                "5/25 * * * *",
                ["2026-11-21T20:55:00Z", "2026-11-21T21:05:00Z"],
            ),
            (
                "10-50/20 * * * ?",
                ["2026-11-21T20:50:00Z", "2026-11-21T21:10:00Z"],
            ),
            (
                "0 3,9-11/2 * * *",
                ["2026-11-22T03:00:00Z", "2026-11-22T09:00:00Z"],
            ),
            (
                "30 20 * * *",
                ["2026-11-22T20:30:00Z", "2026-11-23T20:30:00Z"],
            ),
            (
                "0 0 31 * *",
                ["2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z"],
            ),
            (
                "0 0 29 Feb *",
                ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
            ),
            (
                "0 0 1 jan-MAR *",
                ["2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"],
            ),
            (
                "0 0 * * mon,Wed",
                ["2026-11-23T00:00:00Z", "2026-11-25T00:00:00Z"],
            ),
            ("@hourly", ["2026-11-21T21:00:00Z", "2026-11-21T22:00:00Z"]),
            ("@daily", ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"]),
            (
                "@midnight",
                ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"],
            ),
            ("@weekly", ["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"]),
            ("@monthly", ["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
            ("@yearly", ["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
            (
                "@every 1h30m",
                ["2026-11-21T22:00:30Z", "2026-11-21T23:30:30Z"],
            ),
        ] {
            check(text, "UTC", start, &expected);
        }
    }

    #[test]
    fn of_two_restricted_days_either_will_do() {
        let start = "2026-11-21T00:00:00Z";
        for (text, expected) in [
            // The 1st of December is a Tuesday.
            (
                "0 0 1 * fri",
                ["2026-11-27T00:00:00Z", "2026-12-01T00:00:00Z"],
            ),
            (
                "0 0 1 * *",
                ["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
            ),
            (
                "0 0 * * fri",
                ["2026-11-27T00:00:00Z", "2026-12-04T00:00:00Z"],
            ),
            (
                "0 0 */1 * fri",
                ["2026-11-27T00:00:00Z", "2026-12-04T00:00:00Z"],
            ),
            (
                "0 0 */30 * fri",
                ["2026-11-27T00:00:00Z", "2026-12-01T00:00:00Z"],
            ),
        ] {
            check(text, "UTC", start, &expected);
        }
    }

    #[test]
    fn a_time_zone_moves_the_hours() {
        // 2026: New York's clocks go forward on 8 March at 2:00, back on 1 November at 2:00.
        check(
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T00:00:00Z",
            &["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z"],
        );
        check(
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            &[
                "2026-11-01T05:30:00Z",
                "2026-11-01T06:30:00Z",
                "2026-11-02T06:30:00Z",
            ],
        );
        check(
            "0 9 * * *",
            "Asia/Kolkata",
            "2026-06-01T00:00:00Z",
            &["2026-06-01T03:30:00Z"],
        );
    }

    #[test]
    fn what_is_no_expression_says_why() {
        for (text, expected) in [
            ("", "empty spec string"),
            (" ", "expected exactly 5 fields, found 0: []"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            (
                "9-5 * * * *",
                "beginning of range (9) beyond end of range (5): 9-5",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("*/-3 * * * *", "negative number (-3) not allowed: -3"),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every hour",
                "failed to parse duration @every hour: time: invalid duration \"hour\"",
            ),
            (
                "TZ=Mars/Olympus * * * * *",
                "provided bad location Mars/Olympus: unknown time zone Mars/Olympus",
            ),
        ] {
            assert_eq!(Schedule::parse(text).unwrap_err().to_string(), expected);
        }
        for text in [
            "CRON_TZ=UTC 5 * * * *",
            "*/61 * * * *",
            "*-5 * * * *",
            "@every -1h",
        ] {
            assert!(Schedule::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_day_that_never_comes_is_not_waited_for() {
        let schedule = Schedule::parse("0 0 30 feb *").unwrap();
        assert_eq!(
            schedule.next_after(Timestamp::UNIX_EPOCH, &TimeZone::UTC),
            None
        );
    }
}
