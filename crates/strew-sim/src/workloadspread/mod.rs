//! WorkloadSpread in the simulated cluster: the webhook and the controller, with the drivers and machines of a real
//! one.
//!
//! The server calls a replica of the webhook when a pod is created, deleted or evicted. Each replica has its own
//! watches. Creations by controllers wait for their answer. Every other call is answered within the instant: status
//! writes and pauses after conflicts pass on the replica's own clock. A call that takes longer than the API server's
//! timeout is refused (`failurePolicy: Fail`), and its client retries.
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
