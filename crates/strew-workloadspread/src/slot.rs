//! Names of slots that a replica of admission takes ahead, and the keys under which a status holds them.
//!
//! A name is `<replica>:<number>`, twelve hexadecimal digits and ten decimal ones; no pod can have such a name. Hundreds are
//! taken at once, and the API server's work with a status grows with its keys: so slots of one replica and one second
//! whose numbers follow one another stand under one key, `<replica>:<first>-<last>`.
//!
//! Source: spec/workloadspread §2.3 (an entry of `creatingPods` is a key and a time).

use std::sync::Arc;

use strew_model::Instant;

use crate::facts::status::Entries;

/// So many slots stand under one key at most: nobody has millions in memory for a key that was written by hand.
const RANGE_MAX: u32 = 64;

const REPLICA_DIGITS: usize = 12;

const NUMBER_DIGITS: usize = 10;

/// One slot, or several that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range<'a> {
    replica: &'a str,
    first: u32,
    last: u32,
}

impl<'a> Range<'a> {
    fn parse(key: &'a str) -> Option<Self> {
        let (replica, numbers) = key.split_once(':')?;
        let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let is_replica = replica.len() == REPLICA_DIGITS && replica.bytes().all(is_hex);
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let (first, last) = (number(first)?, number(last)?);
        let is_range = first <= last && last - first < RANGE_MAX;
        (is_replica && is_range).then_some(Self {
            replica,
            first,
            last,
        })
    }

    fn key(self) -> String {
        let Self {
            replica,
            first,
            last,
        } = self;
        match first == last {
            true => format!("{replica}:{first:0NUMBER_DIGITS$}"),
            false => format!("{replica}:{first:0NUMBER_DIGITS$}-{last:0NUMBER_DIGITS$}"),
        }
    }

    /// Whether a slot is the next one.
    fn goes_on_with(self, next: Self) -> bool {
        self.replica == next.replica
            && self.last.checked_add(1) == Some(next.first)
            && next.last - self.first < RANGE_MAX
    }
}

fn number(digits: &str) -> Option<u32> {
    let is_number = digits.len() == NUMBER_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// What tells a replica in the names of its slots.
pub fn replica(random: u64) -> String {
    format!("{:0REPLICA_DIGITS$x}", random >> (64 - 4 * REPLICA_DIGITS))
}

/// The name of a replica's slot.
pub fn name(replica: &str, number: u32) -> Arc<str> {
    let slot = Range {
        replica,
        first: number,
        last: number,
    };
    slot.key().into()
}

/// The replica that took a slot ahead; a pod may have claimed it since. `None`: it was not taken ahead.
pub fn taken_by(id: &str) -> Option<&str> {
    Range::parse(id).map(|slot| slot.replica)
}

/// The keys under which a status holds entries, and their times.
pub fn keys(entries: &Entries) -> Vec<(String, Instant)> {
    let (mut keys, mut open) = (Vec::new(), None::<(Range<'_>, Instant)>);
    let closed = |(range, since): (Range<'_>, Instant)| (range.key(), since);
    // In the order of their names, and so of their numbers.
    for (id, since) in entries {
        let Some(slot) = Range::parse(id) else {
            keys.push((id.to_string(), *since));
            continue;
        };
        match &mut open {
            Some((range, of)) if of == since && range.goes_on_with(slot) => range.last = slot.last,
            _ => keys.extend(open.replace((slot, *since)).map(closed)),
        }
    }
    keys.extend(open.map(closed));
    keys
}

/// The entries that stand under a key: slots that follow one another, or what its text says.
pub fn ids(key: &str) -> impl Iterator<Item = Arc<str>> + '_ {
    let range = Range::parse(key).filter(|range| range.first < range.last);
    let slots = range.map(|range| (range.first..=range.last).map(|n| name(range.replica, n)));
    let one = range.is_none().then(|| Arc::from(key));
    slots.into_iter().flatten().chain(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "00000000000a";
    const B: &str = "00000000000b";

    fn entries(all: &[(&str, u64)]) -> Entries {
        let each = all.iter().flat_map(|(key, secs)| {
            let since = Instant::from_secs(*secs);
            ids(key).map(move |id| (id, since))
        });
        each.collect()
    }

    fn written(entries: &Entries) -> Vec<(String, u64)> {
        let keys = keys(entries).into_iter();
        keys.map(|(key, since)| (key, since.secs())).collect()
    }

    #[test]
    fn a_name_tells_its_replica() {
        let slot = name(A, 42);
        assert_eq!(&*slot, "00000000000a:0000000042");
        assert_eq!(taken_by(&slot), Some(A));
        for other in [
            "web-1",
            "",
            ":",
            "0-1",
            "00000000000a:42",
            "00000000000A:0000000042",
            "00000000000:0000000042",
            "00000000000a:0000000042-",
            "00000000000a:+000000042",
            "00000000000a:9999999999",
            "00000000-0000-4000-8000-000000000000",
        ] {
            assert_eq!(taken_by(other), None, "{other}");
        }
        assert_eq!(replica(u64::MAX), "ffffffffffff");
        assert_eq!(replica(0xabc), "000000000000");
    }

    #[test]
    fn slots_that_follow_one_another_stand_under_one_key() {
        let all = entries(&[
            ("web-1", 7),
            ("00000000000a:0000000001-0000000003", 7),
            ("00000000000a:0000000004", 8),
            ("00000000000a:0000000006-0000000007", 8),
            ("00000000000b:0000000008", 8),
        ]);
        assert_eq!(all.len(), 8);
        assert_eq!(all[&name(A, 2)].secs(), 7);
        assert_eq!(all[&name(B, 8)].secs(), 8);
        let keys = [
            ("00000000000a:0000000001-0000000003", 7),
            ("00000000000a:0000000004", 8),
            ("00000000000a:0000000006-0000000007", 8),
            ("web-1", 7),
            ("00000000000b:0000000008", 8),
        ];
        assert_eq!(
            written(&all),
            keys.map(|(key, secs)| (key.to_owned(), secs))
        );
    }

    #[test]
    fn a_key_holds_so_many_and_no_more() {
        let all: Entries = (0..150)
            .map(|n| (name(A, n), Instant::from_secs(1)))
            .collect();
        let keys = written(&all);
        let firsts: Vec<&str> = keys.iter().map(|(key, _)| &key[13..]).collect();
        assert_eq!(
            firsts,
            [
                "0000000000-0000000063",
                "0000000064-0000000127",
                "0000000128-0000000149"
            ]
        );
        // Edited by hand: it is one entry, which expires as all do.
        for odd in [
            "00000000000a:0000000000-0000000064",
            "00000000000a:0000000000-4294967295",
            "00000000000a:0000000005-0000000004",
        ] {
            assert_eq!(ids(odd).collect::<Vec<_>>(), [Arc::from(odd)]);
        }
        let last = name(A, u32::MAX);
        let before = name(A, u32::MAX - 1);
        let all: Entries = [before, last].map(|id| (id, Instant::from_secs(1))).into();
        assert_eq!(written(&all)[0].0, "00000000000a:4294967294-4294967295");
        assert_eq!(entries(&[(&written(&all)[0].0, 1)]), all);
    }
}
