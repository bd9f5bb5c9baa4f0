//! The controller as a machine: facts in, patches, status writes and deletions out. It has no clock, no random numbers
//! and no I/O.
//!
//! [`SpreadController::handle`] takes an [`Input`]. [`SpreadController::poll_effect`] returns the next [`Effect`].
//! [`SpreadController::next_wake`] returns the time at which the machine must be polled again without an input. A sync
//! is planned completely from the facts of one moment ([`plan::Plan`]), then carried out step by step: pods are
//! patched, then the status is written, then pods that cannot be scheduled are deleted, so that their replacements find
//! the subset closed.
//!
//! Reading order: [`input`], [`effect`], [`pods`] (the pods of a target), [`assign`] (pods to subsets), [`cost`],
//! [`rows`] (the ledger against the pods), [`reschedule`], [`plan`], [`machine`] (the three functions), `sync`,
//! `removals`, `progress`, `pause`, `retries`, `triggers`, [`counters`].
//!
//! Source: spec/workloadspread §5.

pub mod assign;
pub mod cost;
pub mod counters;
pub mod effect;
pub mod input;
pub mod machine;
mod owners;
mod pause;
pub mod plan;
pub mod pods;
mod progress;
mod removals;
pub mod reschedule;
mod retries;
pub mod rows;
mod sweep;
mod sync;
mod triggers;

pub use counters::Counters;
pub use effect::{Effect, EffectId, Event, EventKind, PodName, Removal};
pub use input::{Input, Outcome};
pub use machine::{Limits, SpreadController};
pub use plan::Plan;
