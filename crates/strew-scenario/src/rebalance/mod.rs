//! Evictions after which topology spread constraints are kept again.
//!
//! [`plan`](mod@plan) makes a plan for a cluster, each eviction simulated with those before it; [`settled`] says which pods
//! have a controller that makes the same pod again, and nothing else; [`values`] is how a plan is written; [`carry`] carries it out, one step at a time; [`rounds`] does both again and again, for the workloads that ask
//! for it; [`chaos`] does so in seeded lives under faults, and judges.

pub mod carry;
pub mod chaos;
pub mod plan;
pub mod rounds;
pub mod settled;
pub mod values;
