//! WorkloadSpread in the simulated cluster: the webhook and the controller, with the drivers and machines of a real
//! one.
//!
//! The webhook's replicas are called by the server when a pod is created or deleted, and each hears of the store
//! through watches of its own. Creations by controllers wait for their answer. Every other call is answered within the
//! instant: status writes, and pauses after conflicts, pass on the replica's own clock. What takes longer than the API
//! server waits is a call that has timed out, which it refuses (`failurePolicy: Fail`); the client asks again.
//!
//! Without a WorkloadSpread none of this exists.
//!
//! Reading order: `calling` (requests and answers), `replica` (one replica of the webhook), `webhook` (all replicas),
//! `hooks` (what the server calls), `judge` (invariants), `controller`.
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
