//! The judge of a life: whatever befalls the cluster, these rules hold.
//!
//! While it lives: every bind is judged anew before it is sent (`verdict`), every preemption when it is decided
//! (`preemption`), every write is compared with all that were before ([`witness`]), a cluster that a placement keeps is
//! looked for after every write ([`kept`]), and what is kept incrementally is recounted at sampled instants
//! (`structure`). Once faults are over and everybody has come to rest: no pod waits that fits (`rest`), and every
//! workload has what it asks for and says so (`workloads`), and so does every WorkloadSpread (`spreads`). What is
//! judged shares no code with the judge but the types of facts and the naive reading of the scheduler's rules.

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
