//! Kubernetes' controllers, as far as their behaviour shows: pure reconcilers for the simulation.
//!
//! A controller is told of changes ([`Controller::observe`]), and looks at one object at a time
//! ([`Controller::sync`]): it decides from what its watches have brought ([`Tables`]) and writes through [`Api`], with
//! no clock or dice but those that it is handed. A sync is one atomic step, and what a write is answered decides what
//! follows in it: so the verbs of these machines are observe and sync, where the scheduler's are handle and poll.
//!
//! Reading order: [`object`], [`tables`], [`api`], [`queue`], [`controller`], [`manager`] (all controllers together).
//!
//! Source: spec/controllers; Kubernetes v1.36.3.

pub mod api;
pub mod autoscaler;
pub mod controller;
pub mod cron_job;
pub mod job;
pub mod manager;
pub mod object;
pub mod queue;
pub mod selection;
pub mod tables;

pub use api::{Api, ApiError, DeleteOptions, Event, Propagation};
pub use autoscaler::AutoscalerController;
pub use controller::{Change, Context, Controller};
pub use cron_job::CronJobController;
pub use job::{JobController, TtlController};
pub use manager::Manager;
pub use queue::Queue;
pub use selection::Selection;
pub use tables::{OwnedPods, Table, Tables};
