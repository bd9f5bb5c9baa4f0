//! How a scheduler is told to decide: its configuration file and its feature gates.

pub mod gates;

pub use gates::{FeatureGates, GateError};
