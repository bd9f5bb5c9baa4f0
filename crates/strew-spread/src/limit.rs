//! Hard constraints, and verdicts with their numbers.

use std::fmt;

use crate::{DomainIdx, Tally};

/// The numbers of a hard constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// The largest skew allowed; positive.
    pub max_skew: i32,
    /// With fewer domains than this, the minimum counts as 0 (KEP-3022); positive, 1 by default.
    pub min_domains: i32,
}

/// The minimum that a domain is compared with, and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Minimum {
    /// The count of the emptiest domain.
    Emptiest(i32),
    /// 0, because there are fewer domains than `min_domains`.
    TooFewDomains {
        /// The number of domains.
        domains: u32,
        /// The required number.
        min_domains: i32,
    },
}

impl Minimum {
    /// The number.
    #[inline]
    pub fn value(self) -> i32 {
        match self {
            Self::Emptiest(count) => count,
            Self::TooFewDomains { .. } => 0,
        }
    }
}

impl Limit {
    /// The minimum that this limit compares with. Source: spec/scheduler §1.8.
    #[inline]
    pub fn minimum(self, tally: &Tally) -> Minimum {
        let domains = tally.domains();
        match tally.minimum() {
            Some(count) if i64::from(domains) >= i64::from(self.min_domains) => {
                Minimum::Emptiest(count)
            }
            _ => Minimum::TooFewDomains {
                domains,
                min_domains: self.min_domains,
            },
        }
    }

    /// The largest count at which a domain takes one more replica. Source: spec/scheduler §1.8, solved for the count.
    #[inline]
    pub fn highest_count(self, tally: &Tally, self_match: bool) -> i64 {
        i64::from(self.max_skew) + i64::from(self.minimum(tally).value()) - i64::from(self_match)
    }

    /// The largest skew of a domain: its count minus the [minimum](Self::minimum); 0 without domains.
    pub fn skew(self, tally: &Tally) -> i64 {
        let fullest = tally.maximum().map_or(0, i64::from);
        fullest - i64::from(self.minimum(tally).value()).min(fullest)
    }

    /// The least number of replicas that must change their domain until no skew is above `max_skew`: 0 exactly if none
    /// is. With too few domains for `min_domains`, the number of those above `max_skew`, whether or not the others have
    /// room for them.
    ///
    /// Cost: two passes over the distinct counts for each bit of the largest count.
    pub fn moves(self, tally: &Tally) -> u64 {
        let max_skew = i64::from(self.max_skew);
        let (least, most) = match self.minimum(tally) {
            Minimum::TooFewDomains { .. } => return tally.above(max_skew),
            Minimum::Emptiest(count) => (i64::from(count), tally.maximum().map_or(0, i64::from)),
        };
        // All counts end between a lowest one and `max_skew` more. The higher the lowest one, the fewer replicas must
        // leave and the more must come; the best lies where the two meet.
        let moves = |lowest: i64| (tally.above(lowest + max_skew), tally.below(lowest));
        let (mut low, mut high) = (least, most);
        while low < high {
            let middle = low + (high - low) / 2;
            let (leave, come) = moves(middle);
            match come >= leave {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let larger = |(leave, come): (u64, u64)| leave.max(come);
        larger(moves(low)).min(larger(moves(low - 1)))
    }

    /// The verdict on one more replica in `domain`; `self_match`: true if it would be counted itself.
    pub fn check(self, tally: &Tally, domain: DomainIdx, self_match: bool) -> SkewCheck {
        SkewCheck {
            there: tally.count(domain),
            self_match,
            minimum: self.minimum(tally),
            max_skew: self.max_skew,
        }
    }
}

/// A verdict of a hard constraint with its numbers. `Display` writes the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkewCheck {
    /// Counted replicas in the domain.
    pub there: i32,
    /// True if the new replica would be counted too.
    pub self_match: bool,
    /// The number that is subtracted.
    pub minimum: Minimum,
    /// The limit.
    pub max_skew: i32,
}

impl SkewCheck {
    /// The resulting skew.
    pub fn skew(self) -> i64 {
        i64::from(self.there) + i64::from(self.self_match) - i64::from(self.minimum.value())
    }

    /// True if the skew is at most `max_skew`.
    pub fn allowed(self) -> bool {
        self.skew() <= i64::from(self.max_skew)
    }
}

impl fmt::Display for SkewCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} there", self.there)?;
        match self.self_match {
            true => f.write_str(" + 1 this pod")?,
            false => f.write_str(" + 0 (the selector does not match this pod)")?,
        }
        match self.minimum {
            Minimum::Emptiest(count) => write!(f, " - {count} in the emptiest domain")?,
            Minimum::TooFewDomains {
                domains,
                min_domains,
            } => {
                write!(f, " - 0 ({domains} of minDomains {min_domains})")?;
            }
        }
        let sign = if self.allowed() { "<=" } else { ">" };
        write!(f, " = {} {sign} maxSkew {}", self.skew(), self.max_skew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts `a`, `b` in two domains.
    fn tally(a: i32, b: i32) -> Tally {
        let mut tally = Tally::default();
        for (domain, count) in [(0, a), (1, b)] {
            tally.add_place(DomainIdx(domain));
            tally.add(DomainIdx(domain), count);
        }
        tally
    }

    /// The filter cases of spec/scheduler §1.15 that are sums, with more around them.
    #[test]
    fn verdicts_with_their_sums() {
        let limit = |max_skew, min_domains| Limit {
            max_skew,
            min_domains,
        };
        for (limit, (a, b), self_match, text) in [
            (
                limit(1, 1),
                (2, 1),
                true,
                "2 there + 1 this pod - 1 in the emptiest domain = 2 > maxSkew 1",
            ),
            (
                limit(1, 1),
                (1, 1),
                true,
                "1 there + 1 this pod - 1 in the emptiest domain = 1 <= maxSkew 1",
            ),
            (
                limit(1, 1),
                (2, 1),
                false,
                "2 there + 0 (the selector does not match this pod) - 1 in the emptiest domain = 1 <= maxSkew 1",
            ),
            (
                limit(1, 3),
                (1, 1),
                true,
                "1 there + 1 this pod - 0 (2 of minDomains 3) = 2 > maxSkew 1",
            ),
            (
                limit(2, 2),
                (2, 1),
                true,
                "2 there + 1 this pod - 1 in the emptiest domain = 2 <= maxSkew 2",
            ),
        ] {
            let tally = tally(a, b);
            let check = limit.check(&tally, DomainIdx(0), self_match);
            assert_eq!(check.to_string(), text);
            let highest = limit.highest_count(&tally, self_match);
            assert_eq!(
                check.allowed(),
                i64::from(a) <= highest,
                "both forms of the rule agree: {text}"
            );
        }
    }

    /// All ways to put as many replicas into the domains, by hand.
    fn moves_by_hand(counts: &[i32], max_skew: i32) -> u64 {
        let total: i32 = counts.iter().sum();
        let mut best = u64::MAX;
        let mut target = vec![0; counts.len()];
        loop {
            let (least, most) = (target.iter().min().unwrap(), target.iter().max().unwrap());
            if target.iter().sum::<i32>() == total && most - least <= max_skew {
                let leave = counts
                    .iter()
                    .zip(&target)
                    .map(|(now, then)| (now - then).max(0));
                best = best.min(leave.sum::<i32>() as u64);
            }
            let Some(place) = target.iter().position(|&n| n < total) else {
                return best;
            };
            target[..place].fill(0);
            target[place] += 1;
        }
    }

    #[test]
    fn moves_are_those_of_the_nearest_even_counts() {
        let mut n_uneven = 0;
        for code in 0..6i32.pow(4) {
            let counts: Vec<i32> = (0..4).map(|place| code / 6i32.pow(place) % 6).collect();
            let total: i32 = counts.iter().sum();
            if total > 9 {
                continue;
            }
            let tally = Tally::of_counts(counts.clone(), vec![1; 4]);
            for max_skew in 1..4 {
                let limit = |min_domains| Limit {
                    max_skew,
                    min_domains,
                };
                let moves = limit(1).moves(&tally);
                assert_eq!(
                    moves,
                    moves_by_hand(&counts, max_skew),
                    "{counts:?}, {max_skew}"
                );
                let is_even = limit(1).skew(&tally) <= i64::from(max_skew);
                assert_eq!(moves == 0, is_even, "{counts:?}, {max_skew}");
                n_uneven += usize::from(moves > 0);
                let few = limit(5);
                let is_even = few.skew(&tally) <= i64::from(max_skew);
                assert_eq!(few.moves(&tally) == 0, is_even, "{counts:?}, {max_skew}");
            }
        }
        assert!(n_uneven > 500, "{n_uneven}");
    }

    #[test]
    fn without_a_domain_the_minimum_is_zero() {
        let limit = Limit {
            max_skew: 1,
            min_domains: 1,
        };
        let check = limit.check(&Tally::default(), DomainIdx(7), true);
        assert_eq!(check.skew(), 1);
        assert!(check.allowed());
    }
}
