//! Scores of domains in a hierarchy: regions first, then the zones of a region, and so on.
//!
//! A domain is compared with its siblings only. Each level has six bits of the combined score, so a level's preference
//! outweighs all levels below it. Source: spec/placement §3.4, §3.8; the OCM spread proposal, "Implementation Example".

use std::cmp::Ordering;

/// The score of the emptiest of unequal siblings.
pub const HIGHEST: i64 = 63;

/// The bits of a level's score.
const BITS: u32 = 6;

/// The most levels that a combined score can hold.
pub const LEVELS_MAX: usize = 8;

/// The score of a domain with `count`, given the smallest and the largest count of its siblings: 63 to 0, rounded down;
/// 0 if all are equal.
#[inline]
pub fn score(count: i32, min: i32, max: i32) -> i64 {
    // Most domains are at one of the ends, which need no division.
    if max <= min || count == max {
        return 0;
    }
    if count == min {
        return HIGHEST;
    }
    HIGHEST * (i64::from(max) - i64::from(count)) / (i64::from(max) - i64::from(min))
}

/// The share of a score at `level` of `levels` (the first is 0) in the combined score.
#[inline]
pub fn placed(score: i64, level: usize, levels: usize) -> i64 {
    score << (BITS * (levels - 1 - level) as u32)
}

/// The smallest and largest of the compared combined scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combined {
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
}

impl Combined {
    /// Without any score.
    pub const NONE: Self = Self {
        min: i64::MAX,
        max: i64::MIN,
    };

    /// Adds a score.
    #[inline]
    pub fn include(&mut self, raw: i64) {
        self.min = self.min.min(raw);
        self.max = self.max.max(raw);
    }

    /// A combined score on the scale of -100 to 100, rounded down; 0 if all are equal.
    #[inline]
    pub fn normalize(self, raw: i64) -> i64 {
        if self.max <= self.min {
            return 0;
        }
        200 * (raw - self.min) / (self.max - self.min) - 100
    }
}

/// A weighted domain: its count, and its positive weight among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its count.
    pub count: i32,
    /// Its weight.
    pub weight: u32,
}

impl Share {
    /// Compares `count / weight` of two domains, exactly.
    pub fn cmp_fill(self, other: Self) -> Ordering {
        let left = i128::from(self.count) * i128::from(other.weight);
        left.cmp(&(i128::from(other.count) * i128::from(self.weight)))
    }

    /// The count at which this domain would be as full as `least`, rounded up. With weights, a count is compared with
    /// this number instead of the minimum; with equal weights it is the minimum.
    pub fn fair(self, least: Self) -> i32 {
        let product = i128::from(self.weight) * i128::from(least.count);
        let weight = i128::from(least.weight.max(1));
        let rounded_up = (product + weight - 1).div_euclid(weight);
        i32::try_from(rounded_up).unwrap_or(i32::MAX)
    }

    /// Twice the count plus one: the numerator of the load in Webster's method.
    fn load(self) -> i128 {
        2 * i128::from(self.count) + 1
    }

    fn cmp_load(self, other: Self) -> Ordering {
        let left = self.load() * i128::from(other.weight);
        left.cmp(&(other.load() * i128::from(self.weight)))
    }
}

/// The least and the most loaded of weighted siblings, by `(2 count + 1) / weight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loads {
    min: Share,
    max: Share,
}

impl Loads {
    /// From siblings; `None` if there are none.
    pub fn of(siblings: impl IntoIterator<Item = Share>) -> Option<Self> {
        let mut siblings = siblings.into_iter();
        let first = siblings.next()?;
        let mut loads = Self {
            min: first,
            max: first,
        };
        for share in siblings {
            if share.cmp_load(loads.min).is_lt() {
                loads.min = share;
            }
            if share.cmp_load(loads.max).is_gt() {
                loads.max = share;
            }
        }
        Some(loads)
    }

    /// The score of a domain: 63 to 0, rounded down; 0 if all are equal. With equal weights it equals [`score`].
    pub fn score(self, share: Share) -> i64 {
        let range = self.max.load() * i128::from(self.min.weight)
            - self.min.load() * i128::from(self.max.weight);
        if range <= 0 || share.weight == 0 {
            return 0;
        }
        let above =
            self.max.load() * i128::from(share.weight) - share.load() * i128::from(self.max.weight);
        let scaled = i128::from(HIGHEST) * above * i128::from(self.min.weight)
            / (i128::from(share.weight) * range);
        scaled.clamp(0, i128::from(HIGHEST)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emptiest_sibling_scores_highest_and_equal_ones_nothing() {
        for ((count, min, max), expected) in [
            ((0, 0, 0), 0),
            ((5, 5, 5), 0),
            ((0, 0, 1), 63),
            ((1, 0, 1), 0),
            ((1, 0, 2), 31),
            ((3, 1, 4), 21),
            ((2, 1, 64), 62),
        ] {
            assert_eq!(score(count, min, max), expected, "{count} in {min}..{max}");
        }
    }

    #[test]
    fn an_upper_level_outweighs_all_below() {
        assert_eq!(placed(63, 0, 2) + placed(0, 1, 2), 4032);
        assert_eq!(placed(0, 0, 2) + placed(63, 1, 2), 63);
        let lower: i64 = (1..LEVELS_MAX)
            .map(|i| placed(HIGHEST, i, LEVELS_MAX))
            .sum();
        assert!(placed(1, 0, LEVELS_MAX) > lower);
    }

    #[test]
    fn combined_scores_are_put_on_the_scale_of_prioritizers() {
        let range = Combined { min: 63, max: 4032 };
        assert_eq!([63, 4032].map(|raw| range.normalize(raw)), [-100, 100]);
        assert_eq!(range.normalize(2047), -1, "rounded down: -100 + 99");
        assert_eq!(Combined { min: 7, max: 7 }.normalize(7), 0);
    }

    /// With equal weights, both rules are the unweighted ones.
    #[test]
    fn equal_weights_change_nothing() {
        for weight in [1, 3, 1000] {
            let share = |count| Share { count, weight };
            for (min, max) in [(0, 0), (0, 1), (1, 4), (0, 13)] {
                let loads = Loads::of([share(max), share(min)]).unwrap();
                for count in min..=max {
                    assert_eq!(loads.score(share(count)), score(count, min, max));
                    assert_eq!(share(count).fair(share(min)), min);
                }
            }
        }
    }

    #[test]
    fn a_heavier_domain_is_fuller_later() {
        let (east, west) = (
            |count| Share { count, weight: 2 },
            |count| Share { count, weight: 1 },
        );
        assert!(east(3).cmp_fill(west(1)).is_gt());
        assert!(east(2).cmp_fill(west(1)).is_eq());
        assert_eq!(east(0).fair(west(2)), 4);
        assert_eq!(west(0).fair(east(3)), 2, "1.5 rounded up");
        let loads = Loads::of([east(1), west(0)]).unwrap();
        assert_eq!((loads.score(east(1)), loads.score(west(0))), (0, 63));
        assert_eq!(Loads::of([]), None);
    }
}
