//! Random numbers that are the same in every release.

/// xoshiro256++ seeded by SplitMix64; integers only, ranges include both ends.
///
/// It is strew's own code, because a seed must give the same run in every release. Libraries promise that for their
/// generators, but not for their ranges and shuffles. Source: Blackman and Vigna, "Scrambled linear pseudorandom number
/// generators", 2021.
#[derive(Debug, Clone)]
pub struct Prng([u64; 4]);

impl Prng {
    /// A generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut split_mix = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self([split_mix(), split_mix(), split_mix(), split_mix()])
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from `low` to `high`, both included, without bias.
    ///
    /// # Panics
    /// `low > high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range has no numbers");
        let span = (high - low).wrapping_add(1);
        if span == 0 {
            return self.next_u64();
        }
        // Lemire's multiplication; the few products that would favour some numbers are rejected. The remainder costs more
        // than all else and is below the span.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(span);
            let fraction = product as u64;
            if fraction >= span || fraction >= span.wrapping_neg() % span {
                return low + (product >> 64) as u64;
            }
        }
    }

    /// An index below `len`.
    ///
    /// # Panics
    /// `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.between(0, len as u64 - 1) as usize
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.between(1, denominator) <= numerator
    }

    /// One of the items.
    ///
    /// # Panics
    /// There are no items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Puts the items into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change here changes what every recorded seed means.
    #[test]
    fn golden_values() {
        let mut dice = Prng::new(42);
        let drawn: Vec<u64> = (0..3).map(|_| dice.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                15_021_278_609_987_233_951,
                5_881_210_131_331_364_753,
                18_149_643_915_985_481_100
            ]
        );
        let small: Vec<u64> = (0..8).map(|_| dice.between(1, 6)).collect();
        assert!(small.iter().all(|n| (1..=6).contains(n)));
        let mut items = [1, 2, 3, 4, 5];
        dice.shuffle(&mut items);
        items.sort_unstable();
        assert_eq!(items, [1, 2, 3, 4, 5]);
        assert_eq!(dice.between(7, 7), 7);
        assert!(dice.chance(1, 1));
        assert!(!dice.chance(0, 1));
    }
}
