//! The embedded API server: it behaves as a real one, without its own clock, randomness or sockets.
//!
//! Time and randomness are arguments, so that equal calls give equal answers. Controllers, kubelets and machines send
//! requests; the user of the crate implements the trait for admission webhooks ([`server::AdmissionWebhooks`]).
//!
//! Reading order: [`object`] (objects as the store keeps them), [`tables`] (the store's tables and their indexes),
//! [`selection`], [`error`], [`server`], [`eviction`].
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

pub use error::{ApiError, DeleteOptions, FOREGROUND, ORPHAN, Propagation};
pub use selection::{Selection, Selections};
pub use tables::{OwnedPods, Table, Tables};
