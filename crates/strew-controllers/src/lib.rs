//! Kubernetes' controllers, as far as their behaviour shows: pure reconcilers for the simulation.
//!
//! A controller is told of changes ([`Controller::observe`]), and looks at one object at a time
//! ([`Controller::sync`]): it decides from what its watches have brought ([`Tables`]) and writes through [`Api`], with
//! no clock or dice but those that it is handed. A sync is one atomic step, and what a write is answered decides what
//! follows in it: so the verbs of these machines are observe and sync, where the scheduler's are handle and poll.
//!
//! Reading order: [`object`], [`tables`], [`api`], [`queue`], [`controller`], [`manager`] (all controllers together),
//! [`expectations`] (what was ordered and not yet seen),
//! [`pod_control`] (making and deleting pods); then a folder for each controller.
//!
//! Source: spec/controllers; Kubernetes v1.36.3.

pub mod api;
pub mod controller;
pub mod deployment;
pub mod expectations;
pub mod manager;
pub mod object;
pub mod pod_control;
pub mod queue;
pub mod replica_set;
pub mod rollout;
pub mod selection;
pub mod tables;
#[cfg(test)]
#[allow(dead_code, reason = "the tests of each controller use a part of it")]
mod testing;

pub use api::{Api, ApiError, DeleteOptions, Event, Propagation};
pub use controller::{Change, Context, Controller};
pub use deployment::DeploymentController;
pub use expectations::{Expectations, OwnWrites};
pub use manager::Manager;
pub use queue::Queue;
pub use replica_set::ReplicaSetController;
pub use selection::Selection;
pub use tables::{OwnedPods, Table, Tables};
