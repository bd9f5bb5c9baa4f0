//! WorkloadSpread in the simulated cluster: the webhook and the controller, with the drivers and machines of real ones.
//!
//! The server calls a replica of the webhook when a pod is created or deleted; each replica sees the store through its
//! own watches. Creations by controllers wait for their answer. Every other call is answered within the instant: status
//! writes, and pauses after conflicts, pass on the replica's own clock. If that takes longer than the API server waits,
//! the call times out and the API server refuses the request (`failurePolicy: Fail`); the client tries again.
//!
//! Without a WorkloadSpread, neither webhook nor controller runs.
//!
//! Reading order: `calling` (requests and answers), `replica` (one replica of the webhook), `webhook` (all replicas),
//! `hooks` (the interface to the server), `judge` (invariants), `controller`.
//!
//! Source: spec/workloadspread.

mod calling;
mod controller;
mod hooks;
mod judge;
mod replica;
mod webhook;

pub(crate) use controller::SpreadKeeper;
pub(crate) use hooks::{Webhooks, webhook, webhook_mut, with_webhook};
pub(crate) use judge::Judge;
pub(crate) use webhook::Webhook;
pub use webhook::WebhookFault;
