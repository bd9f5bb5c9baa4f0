//! A real Kubernetes API server as strew's world: watches in, requests out.
//!
//! Nothing here decides, and nothing here is a second copy of the cluster. Reading order: [`connect`] (which API server,
//! as whom, and may we), `agent` (who says so), [`clock`], [`watch`] (what there is), [`send`] (what is asked for, again where that is worth
//! it), [`leading`] (which replica acts), `work` (a machine between the two), [`scheduler`] (the loop of the scheduler's
//! machine), [`discovery`] (which kinds there are), [`definitions`] (and whose), [`controller`] (of WorkloadSpreads and
//! Placements), [`webhook`] (admission, and what else the API server asks), [`serve`] (what the process tells over HTTPS,
//! and to whom), [`authority`] (certificates of its own), [`registration`] (when the webhook is asked), `signals` (health
//! and leadership as pages), [`metrics`] (what it counts), [`panics`] (tasks that end where they should not),
//! [`snapshot`] (all of a cluster at one time, for `strew snapshot` and `strew explain`).

mod agent;
pub mod authority;
pub mod clock;
pub mod connect;
pub mod controller;
pub mod definitions;
mod der;
pub mod discovery;
pub mod identity;
pub mod leading;
pub mod metrics;
pub mod panics;
pub mod permission;
pub mod registration;
pub mod scheduler;
pub mod send;
pub mod serve;
mod signals;
pub mod snapshot;
pub mod watch;
pub mod webhook;
pub mod work;

pub use kube::Client;
pub use strew_runtime::Warning;
