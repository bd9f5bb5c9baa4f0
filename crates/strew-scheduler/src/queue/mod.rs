//! Which pod is tried when: active, backoff, unschedulable and gated pods. Source: spec/scheduler §4.
//!
//! Reading order: [`queue`] (the places and the ways between them), [`active`], [`backoff`], [`event`] (what happens,
//! and who listens), [`hint`] (whether it helps), `waiting` (unschedulable pods by plugin and class), `in_flight`.

pub mod active;
pub mod backoff;
pub mod event;
pub mod hint;
pub(crate) mod in_flight;
pub(crate) mod incoming;
#[allow(
    clippy::module_inception,
    reason = "the queue is the concept of this folder, and of this file"
)]
pub mod queue;
pub mod waiting;

pub use backoff::BackoffLimits;
pub use event::{Actions, Event, PluginSet, PodView, Resource, Subject};
pub use hint::{Context, Hint};
pub use queue::{Counts, Gate, Queue, QueueLimits};
