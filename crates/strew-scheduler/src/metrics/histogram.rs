//! Histograms: counts per bucket.

/// The unit of a histogram's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, reported as seconds.
    Nanos,
    /// Things.
    Ones,
}

impl Unit {
    /// How many of the numbers make one reported unit.
    fn scale(self) -> f64 {
        match self {
            Self::Nanos => 1e9,
            Self::Ones => 1.0,
        }
    }
}

/// The upper bounds of a histogram's buckets, each `factor` times the one before. Source: Go's `ExponentialBuckets`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buckets {
    /// The first bound, in the reported unit.
    pub start: f64,
    /// The ratio of consecutive bounds.
    pub factor: f64,
    /// The number of bounds; larger numbers are counted too.
    pub len: usize,
    /// The unit of the counted numbers.
    pub unit: Unit,
}

impl Buckets {
    /// For durations; `start` in seconds.
    pub const fn seconds(start: f64, factor: f64, len: usize) -> Self {
        Self {
            start,
            factor,
            len,
            unit: Unit::Nanos,
        }
    }

    /// For numbers of things.
    pub const fn ones(start: f64, factor: f64, len: usize) -> Self {
        Self {
            start,
            factor,
            len,
            unit: Unit::Ones,
        }
    }

    /// The bounds in the reported unit, computed by repeated multiplication: equal to Go's to the last digit.
    pub fn bounds(self) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(self.start), move |bound| Some(bound * self.factor))
            .take(self.len)
    }
}

/// Numbers counted by bucket. Counting is a search among at most 20 bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    buckets: Buckets,
    /// The bounds in the counted unit.
    limits: Box<[u64]>,
    /// Per bound, and one more for larger numbers.
    counts: Box<[u64]>,
    sum: u64,
}

impl Histogram {
    /// An empty one.
    pub fn new(buckets: Buckets) -> Self {
        let scale = buckets.unit.scale();
        let limits: Box<[u64]> = buckets
            .bounds()
            .map(|b| (b * scale).round() as u64)
            .collect();
        let counts = vec![0; limits.len() + 1].into();
        Self {
            buckets,
            limits,
            counts,
            sum: 0,
        }
    }

    /// A histogram from existing counts: the cumulative number per bound, the total number, and the sum.
    pub fn of(buckets: Buckets, within: &[u64], count: u64, sum: u64) -> Self {
        let mut histogram = Self::new(buckets);
        debug_assert_eq!(within.len(), histogram.limits.len());
        let mut before = 0;
        let all = within.iter().copied().chain([count]);
        for (slot, within) in histogram.counts.iter_mut().zip(all) {
            *slot = within.saturating_sub(before);
            before = within;
        }
        histogram.sum = sum;
        histogram
    }

    /// Counts a number.
    #[inline]
    pub fn observe(&mut self, number: u64) {
        let place = self.limits.partition_point(|&limit| limit < number);
        self.counts[place] += 1;
        self.sum = self.sum.saturating_add(number);
    }

    /// Adds the counts of another histogram with the same buckets.
    pub fn add(&mut self, other: &Self) {
        debug_assert_eq!(self.limits, other.limits);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many numbers were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum, in the reported unit.
    pub fn sum(&self) -> f64 {
        self.sum as f64 / self.buckets.unit.scale()
    }

    /// Per bucket its upper bound in the reported unit, and the numbers in this bucket only; the last bound is
    /// infinite.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.buckets.bounds().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_the_first_bucket_that_holds_it() {
        let mut histogram = Histogram::new(Buckets::seconds(0.001, 2.0, 3));
        for nanos in [0, 1_000_000, 1_000_001, 2_000_000, 4_000_000, 4_000_001] {
            histogram.observe(nanos);
        }
        let counted: Vec<(f64, u64)> = histogram.buckets().collect();
        let expected = [(0.001, 2), (0.002, 2), (0.004, 1), (f64::INFINITY, 1)];
        assert_eq!(counted, expected);
        assert_eq!(histogram.count(), 6);
        assert!((histogram.sum() - 0.012_000_002).abs() < 1e-12);
    }

    #[test]
    fn sums_stop_at_their_end_and_histograms_add_up() {
        let mut histogram = Histogram::new(Buckets::ones(1.0, 2.0, 5));
        histogram.observe(u64::MAX);
        histogram.observe(3);
        let mut both = histogram.clone();
        both.add(&histogram);
        assert_eq!(both.count(), 4);
        let counted: Vec<u64> = both.buckets().map(|(_, n)| n).collect();
        assert_eq!(counted, [0, 0, 2, 0, 0, 2]);
        assert!(both.sum() > 1.8e19);
    }

    #[test]
    fn what_somebody_else_has_counted_is_told_alike() {
        let buckets = Buckets::ones(1.0, 2.0, 3);
        let mut own = Histogram::new(buckets);
        [1, 2, 2, 9].into_iter().for_each(|n| own.observe(n));
        assert_eq!(Histogram::of(buckets, &[1, 3, 3], 4, 14), own);
    }

    /// Go multiplies too, and prints these very digits.
    #[test]
    fn bounds_are_gos() {
        let bounds: Vec<f64> = Buckets::seconds(0.00001, 1.5, 3).bounds().collect();
        assert_eq!(bounds, [1e-5, 1.5000000000000002e-5, 2.2500000000000005e-5]);
    }
}
