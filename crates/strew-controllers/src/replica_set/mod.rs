//! ReplicaSets.

pub mod ranking;
