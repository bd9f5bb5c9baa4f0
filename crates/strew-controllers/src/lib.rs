//! Kubernetes' controllers, as far as their behaviour shows: pure reconcilers for the simulation.
//!
//! A controller is told of changes ([`Controller::observe`]), and looks at one object at a time
//! ([`Controller::sync`]): it decides from what its watches have brought ([`Tables`](strew_apiserver::Tables)) and writes through [`Api`], with
//! no clock or dice but those that it is handed. A sync is one atomic step, and what a write is answered decides what
//! follows in it: so the verbs of these machines are observe and sync, where the scheduler's are handle and poll.
//!
//! Reading order: [`api`], [`queue`], [`controller`], [`manager`] (all controllers together),
//! [`workers`] (how many objects each looks at at once), [`expectations`] (what was ordered and not yet seen),
//! [`pod_control`] (making and deleting pods), [`write`](mod@write) (changes that do not insist on a version); then a folder for each controller, and [`drain`].
//!
//! Beside them OpenKruise's CloneSet, whose pods a WorkloadSpread may spread.
//!
//! Source: spec/controllers; Kubernetes v1.36.3.

pub mod api;
pub mod autoscaler;
pub mod clone_set;
pub mod controller;
pub mod cron_job;
pub mod daemon_set;
pub mod deployment;
pub mod disruption;
pub mod drain;
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
pub use clone_set::CloneSetController;
pub use controller::{Change, Context, Controller};
pub use cron_job::CronJobController;
pub use deployment::DeploymentController;
pub use expectations::{Expectations, OwnWrites};
pub use job::{JobController, TtlController};
pub use manager::Manager;
pub use queue::Queue;
pub use replica_set::ReplicaSetController;
