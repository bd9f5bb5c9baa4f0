//! The order in which a workload that grows pod by pod fills its subsets, if limits are shares of the total. If pods go
//! in the opposite order, every subset keeps its share at any number.
//!
//! The next pod goes to the first subset that is below its limit at the new total. Limits never fall when the total
//! grows, so there is one order for all totals: a subset's nth pod always has the same turn.

use rustc_hash::FxHashMap;

use crate::facts::spec::{MaxReplicas, Spec};
use crate::facts::status::UNLIMITED;
use crate::quota;

/// The turns at which each subset gets its pods.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    limits: Box<[Option<MaxReplicas>]>,
    /// By subset: the turns of its pods, from 1.
    of: Vec<Vec<u32>>,
    /// The number of turns so far.
    taken: u32,
    /// The number of limits computed so far.
    looks: u32,
}

impl Turns {
    /// The turns of a spec; `None` unless several subsets have limits that are shares: otherwise the order of subsets
    /// is sufficient.
    pub(crate) fn of(spec: &Spec) -> Option<Self> {
        shares(spec).then(|| Self::new(limits(spec)))
    }

    fn new(limits: Box<[Option<MaxReplicas>]>) -> Self {
        let of = vec![Vec::new(); limits.len()];
        Self {
            limits,
            of,
            taken: 0,
            looks: 0,
        }
    }

    /// The turn at which a subset gets its nth pod (from 1). `None` if other subsets take the turns of its pods for
    /// good, or its limit is below that.
    ///
    /// Cost: at most about 100 turns per pod, each cached, and [`LOOKS_MAX`] limits in total.
    pub(crate) fn turn(&mut self, place: usize, nth: usize) -> Option<u32> {
        // One percent of the total is reached after 100 turns, and one percent of the turns gives as many pods.
        let pods = nth.saturating_add(self.limits.len()).saturating_mul(100);
        let end = u32::try_from(pods).unwrap_or(u32::MAX).min(TURNS_MAX);
        while self.taken < end && self.looks < LOOKS_MAX && self.of.get(place)?.len() < nth {
            self.taken += 1;
            let total = i64::from(self.taken);
            let looks = &mut self.looks;
            let has_room = |(limit, pods): &(&Option<MaxReplicas>, &mut Vec<u32>)| {
                *looks += 1;
                let max = quota::scaled_or_zero(**limit, total);
                max == UNLIMITED || pods.len() < usize::try_from(max).unwrap_or(0)
            };
            let mut subsets = self.limits.iter().zip(&mut self.of);
            if let Some((_, pods)) = subsets.find(has_room) {
                pods.push(self.taken);
            }
        }
        self.of.get(place)?.get(nth.checked_sub(1)?).copied()
    }
}

/// The largest turn: pods beyond it are equal.
const TURNS_MAX: u32 = 900_000;

/// The largest number of limits that are computed: some ten milliseconds. Thousands of subsets, most of them closed,
/// must not cost more; pods whose turns are not found are equal.
const LOOKS_MAX: u32 = 4_000_000;

/// True if several subsets share the total by percentages.
pub(crate) fn shares(spec: &Spec) -> bool {
    spec.subsets.len() > 1 && spec.has_percentages()
}

fn limits(spec: &Spec) -> Box<[Option<MaxReplicas>]> {
    spec.subsets.iter().map(|s| s.max_replicas).collect()
}

/// The cached turns, by the limits.
#[derive(Debug, Default)]
pub(crate) struct KnownTurns {
    by_limits: FxHashMap<Box<[Option<MaxReplicas>]>, Turns>,
}

impl KnownTurns {
    /// As [`Turns::turn`] for the spec.
    pub(crate) fn turn(&mut self, spec: &Spec, place: usize, nth: usize) -> Option<u32> {
        let limits = limits(spec);
        if self.by_limits.len() >= KNOWN_MAX && !self.by_limits.contains_key(&limits) {
            self.by_limits.clear();
        }
        let known = self.by_limits.entry(limits);
        let limits = known.key().clone();
        known.or_insert_with(|| Turns::new(limits)).turn(place, nth)
    }
}

/// The size of the cache; beyond it, everything is computed again.
const KNOWN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::scaled_or_zero;

    fn percent(share: u32) -> Option<MaxReplicas> {
        Some(MaxReplicas::Percent(share))
    }

    /// The number of pods of each subset after a number of turns.
    fn after(limits: &[Option<MaxReplicas>], turns: u32) -> Vec<usize> {
        let mut all = Turns::new(limits.into());
        let kept = |place: usize| {
            let mut pods = 0;
            while all.turn(place, pods + 1).is_some_and(|turn| turn <= turns) {
                pods += 1;
            }
            pods
        };
        (0..limits.len()).map(kept).collect()
    }

    #[test]
    fn one_to_one_to_three_holds_at_every_total() {
        let limits = [percent(20), percent(20), percent(60)];
        let cases = [
            (1, [1, 0, 0]),
            (2, [1, 1, 0]),
            (5, [1, 1, 3]),
            (6, [2, 1, 3]),
            (7, [2, 2, 3]),
            (10, [2, 2, 6]),
            (15, [3, 3, 9]),
            (20, [4, 4, 12]),
            (25, [5, 5, 15]),
        ];
        for (total, expected) in cases {
            assert_eq!(after(&limits, total), expected, "{total}");
        }
    }

    #[test]
    fn no_subset_is_ever_beyond_its_limit_and_nobody_is_left_out() {
        let mixed = [
            vec![percent(34), percent(33), percent(33)],
            vec![percent(10), None],
            vec![Some(MaxReplicas::Count(3)), percent(50), None],
            vec![percent(1), percent(99)],
            vec![percent(50), Some(MaxReplicas::Count(2)), percent(100)],
        ];
        for limits in &mixed {
            for total in 0..200 {
                let pods = after(limits, total);
                for (limit, pods) in limits.iter().zip(&pods) {
                    let max = scaled_or_zero(*limit, i64::from(total));
                    assert!(
                        max == UNLIMITED || *pods <= max as usize,
                        "{limits:?} {total}"
                    );
                }
                assert_eq!(
                    pods.iter().sum::<usize>(),
                    total as usize,
                    "{limits:?} {total}"
                );
            }
        }
    }

    /// The author of a WorkloadSpread decides the number of subsets.
    #[test]
    fn thousands_of_closed_subsets_have_a_bound_of_work() {
        let mut limits = vec![percent(0); 4_000];
        limits.extend([percent(100), percent(50)]);
        let mut turns = Turns::new(limits.into());
        assert_eq!(turns.turn(4_001, 1), None);
        assert!(turns.looks <= LOOKS_MAX + 4_002, "{}", turns.looks);
        assert_eq!(turns.turn(4_000, 1), Some(1), "what was found stays");
    }

    #[test]
    fn a_subset_that_never_has_a_turn_ends_the_search() {
        let mut turns = Turns::new([percent(100), percent(50)].into());
        assert_eq!(turns.turn(1, 1), None);
        assert_eq!(turns.turn(0, 7), Some(7));
        let mut closed = Turns::new([Some(MaxReplicas::Count(0)), percent(50)].into());
        assert_eq!(closed.turn(0, 1), None);
        assert_eq!(closed.turn(2, 1), None, "no such subset");
        assert_eq!(closed.turn(1, 0), None, "pods are counted from 1");
    }
}
