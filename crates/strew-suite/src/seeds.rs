//! Seeds: all of a sweep, and the part of a shard.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strew_scenario::format::SEEDS_MAX;

/// The largest number of shards: an Indexed Job has no more completions.
pub const SHARDS_MAX: u32 = 100_000;

/// Consecutive seeds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// Their number.
    pub count: u64,
}

impl Seeds {
    /// Up to `count` seeds from `first` on.
    pub fn new(first: u64, count: u64) -> Self {
        let after_first = u64::MAX - first;
        Self {
            first,
            count: count.min(after_first.saturating_add(1)),
        }
    }

    /// The number after the last seed.
    pub fn end(self) -> u128 {
        u128::from(self.first) + u128::from(self.count)
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = u64> + Clone {
        (0..self.count).map(move |i| self.first.saturating_add(i))
    }

    /// The part of a shard: the sizes of shards differ by at most one.
    pub fn of_shard(self, shard: Shard) -> Self {
        let at = |index: u32| {
            let share = u128::from(self.count) * u128::from(index) / u128::from(shard.of.get());
            u64::try_from(share).unwrap_or(self.count)
        };
        let (from, to) = (at(shard.index), at(shard.index + 1));
        Self::new(self.first.saturating_add(from), to.saturating_sub(from))
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{}", self.first),
            _ => write!(f, "{}..{}", self.first, self.end()),
        }
    }
}

/// The value of `--seeds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedsArg {
    /// This number of seeds, from the scenario's first seed on.
    Count(NonZeroU32),
    /// These seeds.
    Range(Seeds),
}

impl FromStr for SeedsArg {
    type Err = String;

    /// `N`, or `A..B` without B.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not in 1..={SEEDS_MAX}, and no range such as 0..1000");
        let count = |n: u64| {
            let n = u32::try_from(n).ok().and_then(NonZeroU32::new);
            n.filter(|n| n.get() <= SEEDS_MAX).ok_or_else(wrong)
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let Some((from, to)) = text.split_once("..") else {
            return number(text).and_then(count).map(Self::Count);
        };
        let (from, to) = (number(from)?, number(to)?);
        let n = to.checked_sub(from).ok_or_else(wrong)?;
        if n > u64::from(SEEDS_MAX) {
            return Err(format!("{text} has {n} seeds, more than {SEEDS_MAX}"));
        }
        let n = count(n)?;
        Ok(Self::Range(Seeds::new(from, u64::from(n.get()))))
    }
}

impl fmt::Display for SeedsArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n}"),
            Self::Range(seeds) => write!(f, "{}..{}", seeds.first, seeds.end()),
        }
    }
}

/// One of several equal parts of a sweep, counted from 0 like the completions of an Indexed Job.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Less than `of`.
    pub index: u32,
    /// At most [`SHARDS_MAX`].
    pub of: NonZeroU32,
}

impl FromStr for Shard {
    type Err = String;

    /// `I/N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            let of = of.parse::<u32>().ok().and_then(NonZeroU32::new)?;
            Some((index.parse::<u32>().ok()?, of))
        });
        let Some((index, of)) = numbers.filter(|(_, of)| of.get() <= SHARDS_MAX) else {
            return Err(format!(
                "{text} is no shard such as 0/7, with at most {SHARDS_MAX} of them"
            ));
        };
        match index < of.get() {
            true => Ok(Self { index, of }),
            false => Err(format!("{of} shards are 0/{of} to {}/{of}", of.get() - 1)),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_disjoint_and_all() {
        for count in [0, 1, 6, 7, 8, 100] {
            let all = Seeds::new(3, count);
            let shards = (0..7).map(|i| all.of_shard(format!("{i}/7").parse().unwrap()));
            let shards: Vec<Seeds> = shards.collect();
            let played: Vec<u64> = shards.iter().flat_map(|part| part.iter()).collect();
            assert_eq!(played, all.iter().collect::<Vec<_>>());
            let sizes = shards.iter().map(|part| part.count);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for text in ["1", "20", "0..1000000", "7..8"] {
            assert_eq!(text.parse::<SeedsArg>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "0",
            "1000001",
            "5..5",
            "6..5",
            "0..1000001",
            "-1..3",
            "1..=2",
        ] {
            assert!(text.parse::<SeedsArg>().is_err(), "{text}");
        }
        for text in ["0/1", "6/7"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["7/7", "0/0", "1", "1/100001", "-1/2", "0/"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_seed_is_one() {
        let last = Seeds::new(u64::MAX - 1, 5);
        assert_eq!(last.iter().collect::<Vec<_>>(), [u64::MAX - 1, u64::MAX]);
        assert_eq!(Seeds::new(0, u64::MAX).count, u64::MAX);
    }
}
