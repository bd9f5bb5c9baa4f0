//! The arithmetic of skew: tallies per domain, constraints, verdicts with their numbers
