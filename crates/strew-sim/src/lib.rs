//! A cluster in virtual time: the embedded API server, kubelets, controllers and the very scheduler that decides in a
//! real cluster, played from one seed.
//!
//! Equal settings and seeds give equal lives, to the byte: there is one source of dice, every component is stepped by
//! one loop, and nothing reads a clock.
//!
//! Reading order: [`simulation`] (the loop), [`feed`] (watches), `client` (how controllers write), `requests` (which
//! write comes first), `component` (a driver and its watches), `network` (how its requests travel), [`kubelet`],
//! [`kubectl`], [`scheduler`], [`placement`], [`mod@workloadspread`], [`autoscaler`], [`fault`], [`timing`]; and the judge:
//! [`auditor`], with the worlds that it is shown: [`chaos`].
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
mod requests;
pub mod scheduler;
pub mod simulation;
mod slot;
pub mod timing;
pub mod workloadspread;

pub use autoscaler::{Autoscaler, AutoscalerSettings, Expander, NodeGroup};
pub use client::WriteFault;
pub use controllers::controllers;
pub use fault::{Component, Crash, Fault, Hits, LeaseFault, Sabotage};
pub use feed::WatchFault;
pub use limits::MachineLimits;
pub use placement::{Diligence, Fleet, PlacementController};
pub use scheduler::{BindFault, Blueprint, Replica};
pub use simulation::{ControllerMaker, Settings, Simulation, Size, Stuck};
pub use timing::{Between, Timing};
pub use workloadspread::WebhookFault;
