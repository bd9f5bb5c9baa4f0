//! Scores of clusters: [`weights`] says what counts, [`prioritizer`] computes the scores.

pub mod prioritizer;
pub mod weights;
