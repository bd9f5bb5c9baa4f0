//! A real Kubernetes API server as strew's world.
//!
//! [`serve`] is what the process tells over HTTPS, and to whom; [`metrics`] is what it counts.

pub mod metrics;
pub mod serve;
