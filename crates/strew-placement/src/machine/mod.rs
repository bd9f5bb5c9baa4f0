//! Placement as one machine: facts and time in, effects out. No clock, no dice, no I/O.
//!
//! [`Placer::handle`] takes an [`Input`]; [`Placer::poll_effect`] gives the next [`Effect`], deciding on placements one
//! by one until there is one; [`Placer::next_wake`] says when time alone will change something. What an effect came to
//! returns as an [`Input::Outcome`]. Restarting is making a new one from the facts: nothing else is kept.
//!
//! A fact re-decides only the placements that it can touch: a cluster's change is looked at through each placement's
//! own eyes, and where it sees nothing new, nothing is run. What `Balance` counts is read when a placement runs, as
//! upstream does: another placement's decision alone runs nobody again before the next resync.
//!
//! Reading order: [`input`], [`effect`], [`placer`] (the three verbs), `facts` (what each fact changes), `view` (what a
//! placement sees of a cluster), `running` (from the queue to writes), `outcome` (what a write came to), [`counters`] (for metrics).
//!
//! Source: spec/placement §2.1, §2.9, §2.10.

pub mod counters;
pub mod effect;
mod facts;
pub mod input;
mod outcome;
pub mod placer;
mod running;
mod sweep;
mod view;

pub use counters::{Counters, Durations, Standing};
pub use effect::{Effect, EffectId, Event, EventKind, PlacementName};
pub use input::{Input, Outcome};
pub use placer::{Limits, Placer};
