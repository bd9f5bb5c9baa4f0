//! The placement machine: facts and time in, effects out. It has no clock, no random numbers and no I/O.
//!
//! [`PlacementMachine::handle`] takes an [`Input`]. [`PlacementMachine::poll_effect`] returns the next [`Effect`] and decides placements
//! one by one until there is one. [`PlacementMachine::next_wake`] returns the time at which the machine must be polled again
//! without an input. The outcome of an effect comes back as an [`Input::Outcome`]. A restart creates a new machine from
//! the facts; no other state is kept.
//!
//! A fact leads to new decisions only for the placements that it can change: a cluster's change is compared by the
//! fields that each placement reads, and a placement that reads no difference is not run. `Balance` reads its counts
//! when a placement runs, as upstream does: another placement's decision alone runs no placement before the next
//! resync.
//!
//! Reading order: [`input`], [`effect`], [`placement_machine`] (the three functions), `facts` (applies facts), `view` (the fields
//! of a cluster that a placement reads), `turns` (which placement is next), `running` (from the queue to writes), `outcome` (outcomes of writes),
//! [`counters`] (for metrics).
//!
//! Source: spec/placement §2.1, §2.9, §2.10.

pub mod counters;
pub mod effect;
mod facts;
pub mod input;
mod outcome;
pub mod placement_machine;
mod running;
mod sweep;
mod turns;
mod view;

pub use counters::{Counters, Durations, PlacementCounts};
pub use effect::{Effect, EffectId, Event, EventKind, PlacementName};
pub use input::{Input, Outcome};
pub use placement_machine::{Limits, PlacementMachine};
