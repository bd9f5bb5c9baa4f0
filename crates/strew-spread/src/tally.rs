//! Counts per domain.

/// A domain: the index of a value (or tuple of values) in the caller's table of domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainIdx(pub u32);

impl DomainIdx {
    /// The index in the table of domains.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of counted replicas per domain.
///
/// A domain exists while at least one *place* (a node, a cluster) belongs to it, even without replicas: an empty node
/// makes a domain (KEP-3022, spec/scheduler §1.6). Counts may become negative while preemption tries evictions
/// (spec/scheduler §1.7). Changing a count costs a binary search among the *distinct* counts; reading the minimum is
/// O(1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Per domain.
    counts: Vec<i32>,
    /// Per domain: the number of its places.
    places: Vec<u32>,
    /// Those of existing domains.
    levels: Levels,
    domains: u32,
}

/// Distinct counts, ascending, each with the number of domains that have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Levels(Vec<(i32, u32)>);

impl Levels {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (i32, u32)> + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn enter(&mut self, count: i32) {
        match self.0.binary_search_by_key(&count, |&(c, _)| c) {
            Ok(i) => self.0[i].1 += 1,
            Err(i) => self.0.insert(i, (count, 1)),
        }
    }

    pub(crate) fn leave(&mut self, count: i32) {
        let found = self.0.binary_search_by_key(&count, |&(c, _)| c);
        let i = found.expect("an existing domain stands at the level of its count");
        self.0[i].1 -= 1;
        if self.0[i].1 == 0 {
            self.0.remove(i);
        }
    }
}

impl Tally {
    /// A tally from counts and numbers of places per domain, equal to one that was built step by step.
    ///
    /// # Panics
    /// The lists have different lengths.
    pub fn of_counts(counts: Vec<i32>, places: Vec<u32>) -> Self {
        assert_eq!(
            counts.len(),
            places.len(),
            "a count and a number of places for each domain"
        );
        let existing = counts.iter().zip(&places).filter(|&(_, &n)| n > 0);
        let mut sorted: Vec<i32> = existing.map(|(&count, _)| count).collect();
        sorted.sort_unstable();
        let domains = sorted.len() as u32;
        let equal = sorted.chunk_by(|a, b| a == b);
        let levels = Levels(equal.map(|some| (some[0], some.len() as u32)).collect());
        Self {
            counts,
            places,
            levels,
            domains,
        }
    }

    /// Adds a place to `domain`.
    pub fn add_place(&mut self, domain: DomainIdx) {
        self.add_places(domain, 1);
    }

    /// Adds this many places to `domain`.
    pub fn add_places(&mut self, domain: DomainIdx, places: u32) {
        self.reserve(domain);
        let i = domain.index();
        let is_new = self.places[i] == 0 && places > 0;
        self.places[i] += places;
        if is_new {
            self.domains += 1;
            self.levels.enter(self.counts[i]);
        }
    }

    /// Removes a place from `domain`, whose replicas must have been removed before.
    ///
    /// # Panics
    /// The domain has no place.
    pub fn remove_place(&mut self, domain: DomainIdx) {
        self.remove_places(domain, 1);
    }

    /// `domain` loses this number of places; if none is left, its replicas must have been removed before.
    ///
    /// # Panics
    /// If there were fewer.
    pub fn remove_places(&mut self, domain: DomainIdx, places: u32) {
        let i = domain.index();
        assert!(self.places[i] >= places, "a place is removed once");
        self.places[i] -= places;
        if self.places[i] == 0 && places > 0 {
            self.domains -= 1;
            self.levels.leave(self.counts[i]);
        }
    }

    /// Adds `delta` replicas to `domain`.
    pub fn add(&mut self, domain: DomainIdx, delta: i32) {
        self.reserve(domain);
        let i = domain.index();
        let before = self.counts[i];
        self.counts[i] = before + delta;
        if self.places[i] > 0 && delta != 0 {
            self.levels.leave(before);
            self.levels.enter(before + delta);
        }
    }

    /// The replicas in `domain`; 0 for an unknown one.
    #[inline]
    pub fn count(&self, domain: DomainIdx) -> i32 {
        self.counts.get(domain.index()).copied().unwrap_or(0)
    }

    /// The counts by domain index. Unknown domains may be missing at the end: their count is 0.
    pub fn counts(&self) -> &[i32] {
        &self.counts
    }

    /// How many places make up `domain`.
    pub fn places(&self, domain: DomainIdx) -> u32 {
        self.places.get(domain.index()).copied().unwrap_or(0)
    }

    /// True if `domain` has a place.
    pub fn exists(&self, domain: DomainIdx) -> bool {
        self.places.get(domain.index()).is_some_and(|&n| n > 0)
    }

    /// The domains that exist, by index.
    pub fn existing(&self) -> impl Iterator<Item = DomainIdx> + '_ {
        let places = self.places.iter().enumerate();
        places
            .filter(|&(_, &n)| n > 0)
            .map(|(i, _)| DomainIdx(i as u32))
    }

    /// The number of existing domains.
    pub fn domains(&self) -> u32 {
        self.domains
    }

    /// The smallest count of an existing domain.
    #[inline]
    pub fn minimum(&self) -> Option<i32> {
        self.levels.iter().next().map(|(count, _)| count)
    }

    /// The largest count of an existing domain.
    pub fn maximum(&self) -> Option<i32> {
        self.levels.iter().next_back().map(|(count, _)| count)
    }

    /// The largest minus the smallest count; 0 without domains.
    pub fn skew(&self) -> i32 {
        self.maximum().unwrap_or(0) - self.minimum().unwrap_or(0)
    }

    /// The replicas that existing domains have above a count, all together.
    pub(crate) fn above(&self, count: i64) -> u64 {
        let above =
            |(of_level, n): (i32, u32)| (i64::from(of_level) - count).max(0) as u64 * u64::from(n);
        self.levels.iter().map(above).sum()
    }

    /// The replicas that existing domains lack to a count, all together.
    pub(crate) fn below(&self, count: i64) -> u64 {
        let below =
            |(of_level, n): (i32, u32)| (count - i64::from(of_level)).max(0) as u64 * u64::from(n);
        self.levels.iter().map(below).sum()
    }

    /// Bytes on the heap, for a budget over many tallies.
    pub fn bytes(&self) -> usize {
        4 * (self.counts.capacity() + self.places.capacity()) + 8 * self.levels.0.capacity()
    }

    fn reserve(&mut self, domain: DomainIdx) {
        if self.counts.len() <= domain.index() {
            self.counts.resize(domain.index() + 1, 0);
            self.places.resize(domain.index() + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DomainIdx = DomainIdx(0);
    const B: DomainIdx = DomainIdx(1);

    #[test]
    fn an_empty_place_makes_a_domain_and_pins_the_minimum() {
        let mut tally = Tally::default();
        assert_eq!((tally.domains(), tally.minimum()), (0, None));
        tally.add_place(A);
        tally.add(A, 3);
        assert_eq!(
            (tally.domains(), tally.minimum(), tally.skew()),
            (1, Some(3), 0)
        );
        tally.add_place(B);
        assert_eq!(
            (tally.domains(), tally.minimum(), tally.skew()),
            (2, Some(0), 3)
        );
        tally.remove_place(B);
        assert_eq!((tally.domains(), tally.minimum()), (1, Some(3)));
        assert!(!tally.exists(B));
    }

    #[test]
    fn counts_may_go_below_zero() {
        let mut tally = Tally::default();
        tally.add_place(A);
        tally.add(A, -1);
        assert_eq!(tally.minimum(), Some(-1));
    }

    /// Every sequence of five steps over three domains: the levels agree with a search.
    #[test]
    fn the_minimum_equals_a_search_after_every_short_sequence() {
        let steps = 12usize;
        for code in 0..steps.pow(5) {
            let mut tally = Tally::default();
            let mut left = code;
            for _ in 0..5 {
                let (step, domain) = (left % 4, DomainIdx(((left / 4) % 3) as u32));
                left /= steps;
                match step {
                    0 => tally.add_place(domain),
                    1 if tally.exists(domain) => tally.remove_place(domain),
                    2 => tally.add(domain, 1),
                    _ => tally.add(domain, -1),
                }
                let existing: Vec<i32> = tally.existing().map(|d| tally.count(d)).collect();
                assert_eq!(tally.minimum(), existing.iter().min().copied());
                assert_eq!(tally.maximum(), existing.iter().max().copied());
                assert_eq!(tally.domains() as usize, existing.len());
                let rebuilt = Tally::of_counts(tally.counts.clone(), tally.places.clone());
                assert_eq!(tally, rebuilt, "built step by step or at once");
            }
        }
    }
}
