//! The judge of a run: rules that hold under every fault.
//!
//! During the run: every bind is checked before it is sent (`verdict`) and every preemption when it is decided
//! (`preemption`); every write is compared with all earlier ones ([`witness`]); after every write the clusters that a
//! placement keeps must still be named ([`kept`]); and everything maintained incrementally is recounted at sampled
//! instants (`structure`). At rest, after the faults: no Pending pod fits on a node (`rest`), and every workload
//! (`workloads`) and every WorkloadSpread (`spreads`) has what it asks for and reports it. The judge shares no code
//! with what it judges, except the types of facts and the naive implementation of the scheduler's rules.

pub(crate) mod autoscalers;
pub(crate) mod budgets;
pub(crate) mod cron_jobs;
pub(crate) mod groups;
pub mod kept;
pub(crate) mod preemption;
pub(crate) mod quotas;
pub(crate) mod rest;
pub(crate) mod spreads;
pub(crate) mod structure;
mod surplus;
pub(crate) mod verdict;
mod violation;
pub mod witness;
pub(crate) mod workloads;

pub use violation::{Rule, Violation};
pub use witness::{Sent, Witness};
