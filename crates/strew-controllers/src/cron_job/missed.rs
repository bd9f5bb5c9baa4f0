//! Computes which scheduled time is due, and which is next.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use strew_manifest::schedule::Schedule;

/// More missed times than this cause a warning.
const N_MISSED_MAX: i64 = 100;

/// A schedule in its time zone.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) schedule: Schedule,
    pub(super) zone: TimeZone,
}

/// The scheduled times up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// The most recent scheduled time that has passed.
    pub(super) time: Option<Timestamp>,
    /// True if too many times were missed.
    pub(super) too_many: bool,
    /// True if more than one time has passed.
    is_any_missed: bool,
}

impl Plan {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next_after(after, &self.zone)
    }

    /// The most recent scheduled time after `earliest`. `None` if the schedule has no time, or too few to tell.
    pub(super) fn due(&self, earliest: Timestamp, now: Timestamp) -> Option<Due> {
        let mut due = Due {
            time: None,
            too_many: false,
            is_any_missed: false,
        };
        let first = self.next(earliest)?;
        let second = self.next(first)?;
        if now < first {
            return Some(due);
        }
        if now < second {
            due.time = Some(first);
            return Some(due);
        }
        let interval = second.duration_since(first).as_secs();
        if interval < 1 {
            return None;
        }
        // An estimate, as upstream: assumes the interval of the first two times for all.
        let n_missed = now.duration_since(first).as_secs() / interval + 1;
        let ahead = SignedDuration::from_secs((n_missed - 2) * interval);
        let mut time = first.checked_add(ahead).ok()?;
        while let Some(next) = self.next(time).filter(|&next| next <= now) {
            due.time = Some(next);
            time = next;
        }
        due.is_any_missed = true;
        due.too_many = n_missed > N_MISSED_MAX;
        Some(due)
    }

    /// The next scheduled time.
    pub(super) fn next_look(&self, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let from = match self.due(earliest, now) {
            None => now,
            Some(due) if due.is_any_missed => due.time.unwrap_or(now),
            Some(due) => due.time.unwrap_or(earliest),
        };
        self.next(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-{text}Z").parse().unwrap()
    }

    #[test]
    fn only_the_most_recent_missed_time_is_due() {
        for (schedule, earliest, now, expected, too_many, next) in [
            (
                "0 * * * *",
                "20T10:10:00",
                "20T10:50:00",
                None,
                false,
                "20T11:00:00",
            ),
            (
                "0 * * * *",
                "20T10:10:00",
                "20T11:00:00",
                Some("20T11:00:00"),
                false,
                "20T12:00:00",
            ),
            (
                "0 * * * *",
                "20T10:10:00",
                "20T11:59:59",
                Some("20T11:00:00"),
                false,
                "20T12:00:00",
            ),
            (
                "0 * * * *",
                "20T10:10:00",
                "20T15:20:00",
                Some("20T15:00:00"),
                false,
                "20T16:00:00",
            ),
            (
                "0 * * * *",
                "10T10:10:00",
                "20T15:20:00",
                Some("20T15:00:00"),
                true,
                "20T16:00:00",
            ),
            (
                "* * * * *",
                "20T10:00:00",
                "20T11:40:30",
                Some("20T11:40:00"),
                false,
                "20T11:41:00",
            ),
            (
                "* * * * *",
                "20T10:00:00",
                "20T11:41:30",
                Some("20T11:41:00"),
                true,
                "20T11:42:00",
            ),
            // With intervals that differ, the estimate starts early enough.
            (
                "30 6-16/4 * * 1-5",
                "19T15:00:00",
                "20T11:00:00",
                Some("20T10:30:00"),
                false,
                "20T14:30:00",
            ),
        ] {
            let plan = Plan {
                schedule: Schedule::parse(schedule).unwrap(),
                zone: TimeZone::UTC,
            };
            let due = plan.due(at(earliest), at(now)).unwrap();
            assert_eq!(due.time, expected.map(at), "{schedule} {earliest} {now}");
            assert_eq!(due.too_many, too_many, "{schedule} {earliest} {now}");
            assert_eq!(
                plan.next_look(at(earliest), at(now)),
                Some(at(next)),
                "{schedule} {now}"
            );
        }
    }
}
