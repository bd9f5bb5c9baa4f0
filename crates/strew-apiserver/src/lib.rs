//! The embedded API server: what a real one does with objects and requests, without clock, dice or sockets of its own.
//!
//! Time and dice are arguments, so that equal calls give equal answers. Controllers, kubelets and machines stand above
//! it and reach it by requests; admission webhooks are a trait ([`server::AdmissionWebhooks`]) that the world above
//! implements.
//!
//! Reading order: [`object`] (objects as the store keeps them), [`tables`] (the store's tables and their indexes),
//! [`selection`], [`error`] (what is refused), [`server`], [`eviction`].
//!
//! Source: spec/controllers; Kubernetes v1.36.3.

pub mod admission;
pub mod error;
pub mod eviction;
pub mod object;
mod placement;
pub mod selection;
pub mod server;
pub mod tables;
pub mod validation;
pub mod workloads;

pub use error::{ApiError, DeleteOptions, Propagation};
pub use selection::Selection;
pub use tables::{OwnedPods, Table, Tables};
