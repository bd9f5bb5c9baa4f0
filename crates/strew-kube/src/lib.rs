//! A real Kubernetes API server as strew's world.
//!
//! [`serve`] is what the process tells over HTTPS, and to whom.

pub mod serve;
