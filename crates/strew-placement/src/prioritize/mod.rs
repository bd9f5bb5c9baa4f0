//! What makes one cluster better than another: [`weights`] say what counts, [`prioritizer`] gives the scores.

pub mod prioritizer;
pub mod weights;
