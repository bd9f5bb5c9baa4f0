//! A cluster in virtual time: the embedded API server, kubelets, controllers, and the machines that decide in real
//! clusters, all run from one seed.
//!
//! Equal settings and seeds give equal runs, to the byte: there is one source of randomness, one loop steps every
//! component, and nothing reads a clock.
//!
//! Reading order: [`simulation`] (the loop), [`feed`] (watches), `client` (how controllers write), `requests` (the
//! order of writes), `component` (a driver and its watches), `replicas` (of a process that the API server calls), `network` (the transport of its requests), [`kubelet`],
//! [`kubectl`], [`scheduler`], [`placement`], [`mod@workloadspread`], [`registration`] (of its webhook), [`autoscaler`],
//! [`fault`], [`timing`]; [`auditor`] judges runs, and [`chaos`] generates worlds for it.
//!
//! Source: scenarios; spec/controllers §13.

pub mod auditor;
pub mod autoscaler;
pub mod chaos;
mod client;
mod component;
mod controllers;
pub mod fault;
pub mod feed;
pub mod kubectl;
pub mod kubelet;
mod limits;
mod network;
pub mod placement;
pub mod registration;
mod replicas;
mod requests;
pub mod scheduler;
pub mod simulation;
mod slot;
pub mod timing;
pub mod workloadspread;
mod zones;

pub use autoscaler::{Autoscaler, AutoscalerSettings, Expander, NodeGroup};
pub use client::WriteFault;
pub use controllers::controllers;
pub use fault::{Component, Crash, Fault, Hits, LeaseFault, Sabotage};
pub use feed::WatchFault;
pub use limits::MachineLimits;
pub use placement::{Diligence, Fleet, Hub, PlacementController};
pub use registration::{Edit, HookDeed, Lives, RegistrationPlan};
pub use scheduler::{BindFault, Blueprint, Replica};
pub use simulation::{ControllerMaker, N_PODS_MAX, Settings, Simulation, Size, Stuck};
pub use strew_keep::LABEL as KEEP_LABEL;
pub use timing::{Between, Timing};
pub use workloadspread::WebhookFault;
