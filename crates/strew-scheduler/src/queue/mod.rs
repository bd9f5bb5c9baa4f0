//! Decides when a pod is tried: active, backoff, unschedulable and gated pods. Source: spec/scheduler §4.
//!
//! Reading order: [`queue`] (the states of pods and their changes), [`active`], [`backoff`], [`event`] (changes, and
//! the plugins registered for them), [`hint`] (whether a change helps), `waiting` (unschedulable pods by plugin and
//! class), `in_flight`.

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
pub use event::{Actions, Event, Hint, PluginSet, PodView, Resource, Subject};
pub use hint::Context;
pub use queue::{Counts, Gate, Queue, QueueLimits};
