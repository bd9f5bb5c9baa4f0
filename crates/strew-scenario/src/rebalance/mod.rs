//! Evictions after which topology spread constraints are kept again.
//!
//! [`plan`](mod@plan) makes a plan for a cluster, each eviction simulated with those before it; [`values`] is how a plan
//! is written; [`carry`] carries it out, one step at a time.

pub mod carry;
pub mod plan;
pub mod values;
