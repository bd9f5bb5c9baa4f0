//! WorkloadSpread in the simulated cluster: the webhook and the controller, the very machines that decide in a real one.
//!
//! The webhook's replicas are called by the server when a pod is created, deleted or evicted, and each hears of the store
//! through watches of its own. Creations by controllers wait for their answer. Every other call is answered within the
//! instant: status writes, and pauses after conflicts, pass on the replica's own clock. What takes longer than the API
//! server waits is a call that has timed out, which it refuses (`failurePolicy: Fail`); the client asks again.
//!
//! Without a WorkloadSpread none of this is there, and nothing is asked.
//!
//! Reading order: `calling` (what is sent and answered), `replica` (one replica of the webhook), `webhook` (all of them),
//! `hooks` (what the server calls), `judge` (invariants of each answer), `controller`.
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
