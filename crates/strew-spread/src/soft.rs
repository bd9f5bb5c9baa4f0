//! Scores of soft constraints.
//!
//! Source: spec/scheduler §1.9 to §1.11. Numbers are binary64, summed in the order of the constraints, without fused
//! multiply-add: Go on amd64 does the same.

/// The weight of a constraint's count, by the number of domains among the candidates: `ln(size + 2)`.
pub fn weight(size: usize) -> f64 {
    // Exact, since sizes are far below 2^53.
    (size as f64 + 2.0).ln()
}

/// The summand of one constraint in a candidate's raw score.
#[inline]
pub fn term(count: i32, weight: f64, max_skew: i32) -> f64 {
    f64::from(count) * weight + f64::from(max_skew - 1)
}

/// The raw score of a candidate: the sum of its terms, rounded half away from zero. Lower is better.
#[inline]
pub fn round(sum: f64) -> i64 {
    // `f64::round` is a library call on baseline x86-64; this is exact for |sum| < 2^51.
    let whole = sum as i64;
    let rest = sum - whole as f64;
    whole + i64::from(rest >= 0.5) - i64::from(rest <= -0.5)
}

/// The extremes over the scored candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    /// The smallest raw score.
    pub min: i64,
    /// The largest raw score, at least 0.
    pub max: i64,
}

impl Extremes {
    /// Without any candidate.
    pub const NONE: Self = Self {
        min: i64::MAX,
        max: 0,
    };

    /// Adds a candidate.
    #[inline]
    pub fn include(&mut self, raw: i64) {
        self.min = self.min.min(raw);
        self.max = self.max.max(raw);
    }

    /// The raw score on the scale of 0 to 100; the best candidate always gets 100.
    #[inline]
    pub fn normalize(self, raw: i64) -> i64 {
        if self.max == 0 {
            return 100;
        }
        100 * (self.max + self.min - raw) / self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec/scheduler §1.15: raw scores and what becomes of them.
    #[test]
    fn the_worked_vectors_of_the_specification() {
        for (raw, normalized) in [
            (vec![8, 6, 4, 10], vec![60, 80, 100, 40]),
            (vec![14, 12, 10, 16], vec![75, 87, 100, 62]),
            (vec![14, 13, 9, 4], vec![28, 35, 64, 100]),
            (vec![6, 3], vec![50, 100]),
            (vec![0, 0, 0, 0], vec![100, 100, 100, 100]),
        ] {
            let mut extremes = Extremes::NONE;
            raw.iter().for_each(|&r| extremes.include(r));
            let got: Vec<i64> = raw.iter().map(|&r| extremes.normalize(r)).collect();
            assert_eq!(got, normalized);
        }
    }

    #[test]
    fn raw_scores_of_the_first_worked_vector() {
        // Zone skew 1 and hostname skew 1 over 2 zones and 4 nodes; a=2 b=1 in z1, x=0 y=3 in z2.
        let (zone, host) = (weight(2), weight(4));
        let raw = |in_zone, on_node| round(term(in_zone, zone, 1) + term(on_node, host, 1));
        assert_eq!([raw(3, 2), raw(3, 1), raw(3, 0), raw(3, 3)], [8, 6, 4, 10]);
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        for sum in [
            0.0,
            0.49999999999999994,
            0.5,
            1.5,
            2.4999,
            2.5,
            -0.5,
            -1.49,
            -2.5,
            1e6 + 0.5,
        ] {
            assert_eq!(round(sum), sum.round() as i64, "{sum}");
        }
    }
}
