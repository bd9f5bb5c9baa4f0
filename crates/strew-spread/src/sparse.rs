//! Counts of a few replicas over many domains.

use rustc_hash::FxHashMap;

use crate::tally::{DomainIdx, Levels, Tally};

/// The replicas of one workload over the domains of a [`Tally`], which many workloads share: what it keeps grows with
/// the domains that have replicas, and not with all.
///
/// Where a domain begins or ceases to exist in that tally, it [leaves](Sparse::leave) before and
/// [enters](Sparse::enter) after.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sparse {
    /// Per domain, without those that have none.
    counts: FxHashMap<DomainIdx, i32>,
    /// Those of existing domains.
    levels: Levels,
}

impl Sparse {
    /// Adds `delta` replicas to `domain`.
    pub fn add(&mut self, places: &Tally, domain: DomainIdx, delta: i32) {
        if delta == 0 {
            return;
        }
        self.leave(places, domain);
        let count = self.counts.entry(domain).or_insert(0);
        *count += delta;
        if *count == 0 {
            self.counts.remove(&domain);
        }
        self.enter(places, domain);
    }

    /// The replicas in `domain`.
    pub fn count(&self, domain: DomainIdx) -> i32 {
        self.counts.get(&domain).copied().unwrap_or(0)
    }

    /// The largest minus the smallest count over the domains that exist; 0 without domains.
    pub fn skew(&self, places: &Tally) -> i32 {
        let occupied: u32 = self.levels.iter().map(|(_, n)| n).sum();
        let zero = (occupied < places.domains()).then_some(0);
        let lowest = self.levels.iter().next().map(|(count, _)| count);
        let highest = self.levels.iter().next_back().map(|(count, _)| count);
        let minimum = lowest.into_iter().chain(zero).min();
        let maximum = highest.into_iter().chain(zero).max();
        maximum.unwrap_or(0) - minimum.unwrap_or(0)
    }

    /// Leaves out a domain, if it exists, until it [enters](Sparse::enter) again.
    pub fn leave(&mut self, places: &Tally, domain: DomainIdx) {
        if let Some(count) = self.of_existing(places, domain) {
            self.levels.leave(count);
        }
    }

    /// Takes in a domain again, if it exists.
    pub fn enter(&mut self, places: &Tally, domain: DomainIdx) {
        if let Some(count) = self.of_existing(places, domain) {
            self.levels.enter(count);
        }
    }

    /// The count of an existing domain with replicas.
    fn of_existing(&self, places: &Tally, domain: DomainIdx) -> Option<i32> {
        let count = self.counts.get(&domain).copied();
        count.filter(|_| places.exists(domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence of six steps over three domains: as a tally that has replicas and places alike.
    #[test]
    fn the_skew_is_that_of_a_tally() {
        let steps = 12usize;
        for code in 0..steps.pow(6) {
            let (mut places, mut sparse, mut both) =
                (Tally::default(), Sparse::default(), Tally::default());
            let mut left = code;
            for _ in 0..6 {
                let (step, domain) = (left % 4, DomainIdx(((left / 4) % 3) as u32));
                left /= steps;
                let delta = if step == 2 { 1 } else { -1 };
                if step >= 2 {
                    sparse.add(&places, domain, delta);
                    both.add(domain, delta);
                    continue;
                }
                sparse.leave(&places, domain);
                if step == 0 {
                    places.add_place(domain);
                    both.add_place(domain);
                } else if places.exists(domain) {
                    places.remove_place(domain);
                    both.remove_place(domain);
                }
                sparse.enter(&places, domain);
                let counts = (0..3).map(|of| sparse.count(DomainIdx(of)));
                let expected = (0..3).map(|of| both.count(DomainIdx(of)));
                assert!(counts.eq(expected));
                assert_eq!(sparse.skew(&places), both.skew());
            }
            assert_eq!(sparse.skew(&places), both.skew());
        }
    }
}
