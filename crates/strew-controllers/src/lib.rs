//! Kubernetes' controllers as pure reconcilers for the simulation.
//!
//! A controller observes changes ([`Controller::observe`]) and syncs one object at a time ([`Controller::sync`]). It
//! decides from what its watches have shown ([`Tables`](strew_apiserver::Tables)) and writes through [`Api`]; clock and
//! randomness are arguments. A sync is one atomic step, and the answer to a write can decide what follows in the same
//! sync. That is why the verbs are observe and sync, and not handle and poll as in the scheduler's machine.
//!
//! Reading order: [`api`], [`queue`], [`controller`], [`manager`] (all controllers together), [`workers`],
//! [`expectations`] (requested and not seen yet), [`pod_control`] (creating and deleting pods), [`write`](mod@write)
//! (writes without a version check); then a folder per controller, and [`drain`].
//!
//! OpenKruise's CloneSet is here too, because a WorkloadSpread can target it.
//!
//! Source: spec/controllers; Kubernetes v1.36.3.

pub mod api;
pub mod autoscaler;
pub mod claim_binder;
pub mod clone_set;
pub mod controller;
pub mod cron_job;
pub mod daemon_set;
pub mod deployment;
pub mod disruption;
pub mod drain;
pub mod ephemeral_volume;
pub mod expectations;
pub mod garbage_collector;
pub mod job;
pub mod manager;
pub mod node_lifecycle;
pub mod pod_control;
pub mod pod_gc;
pub mod queue;
pub mod quota;
pub mod replica_set;
pub mod rollout;
mod sets;
#[cfg(test)]
mod small_world;
pub mod stateful_set;
pub mod taint_eviction;
#[cfg(test)]
#[allow(dead_code, reason = "the tests of each controller use a part of it")]
mod testing;
pub mod workers;
pub mod write;

pub use api::{Api, Event};
pub use autoscaler::AutoscalerController;
pub use claim_binder::ClaimBinder;
pub use clone_set::CloneSetController;
pub use controller::{Change, Context, Controller};
pub use cron_job::CronJobController;
pub use deployment::DeploymentController;
pub use ephemeral_volume::EphemeralVolumes;
pub use expectations::{Expectations, OwnWrites};
pub use job::{JobController, TtlController};
pub use manager::Manager;
pub use queue::Queue;
pub use replica_set::ReplicaSetController;
