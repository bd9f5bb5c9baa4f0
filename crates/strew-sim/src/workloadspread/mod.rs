//! WorkloadSpread in the simulated cluster: the webhook and the controller, the very machines that decide in a real one.
//!
//! The webhook's replicas are called by the server when a pod is created, deleted or evicted, and each hears of the store
//! through a watch of its own. A call is answered within the instant: the replica's writes are carried out at once, and
//! the short pauses after conflicts pass on the replica's own clock. What would take longer is a call that has timed
//! out, which the API server refuses (`failurePolicy: Fail`), and whoever asked asks again.
//!
//! Without a WorkloadSpread none of this is there, and nothing is asked.
//!
//! Reading order: `seen` (what a component was told), `replica` (one call of the webhook), `webhook` (its replicas), `hooks` (what the server calls),
//! `controller`, `sending` (requests through faults), `judge` (invariants of each answer).
//!
//! Source: spec/workloadspread.

mod controller;
mod hooks;
mod judge;
mod replica;
mod seen;
mod sending;
mod webhook;

pub(crate) use controller::SpreadKeeper;
pub(crate) use hooks::{Webhooks, webhook, webhook_mut, with_webhook};
pub(crate) use judge::Judge;
pub(crate) use sending::Weather;
pub use sending::WebhookFault;
pub(crate) use webhook::Webhook;
