//! `strew webhook`: admission of pods into subsets, on a real API server.

pub mod permissions;
