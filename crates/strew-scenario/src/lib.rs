//! Scenarios: what happens to a cluster in virtual time, and what must be true of it.
//!
//! [`format`] reads the files that people write.

pub mod format;
