//! The scheduler as a machine: facts and time in, effects out. No clock, no randomness, no I/O.
//!
//! [`Scheduler::handle`] takes an [`Input`]. [`Scheduler::poll_effect`] schedules pods one by one until there is an
//! [`Effect`] to return. [`Scheduler::next_wake`] is the time at which something changes without an input. The outcome of
//! an effect returns as an [`Input::Outcome`]. After a restart a new machine is made from the facts; no other state is
//! needed.
//!
//! Reading order: [`input`], [`effect`], [`scheduler`] (the three verbs), `facts` and `storage` (what each fact changes),
//! `attempt` (one pod from the queue to an effect), `preempting` (asking victims to terminate), `outcome` (results of
//! effects), [`aside`] (facts with invalid values), `measure` (metrics), and [`crate::profiles`] (the configuration's).
//!
//! Source: spec/scheduler §2.7, §2.8, §4.3, §4.5, §5.8, §5.9.

pub mod aside;
mod attempt;
pub mod effect;
mod facts;
pub mod input;
mod measure;
mod outcome;
mod preempting;
pub mod scheduler;
mod storage;
mod sweep;

pub use aside::InvalidFact;
pub use effect::{Condition, ConditionReason, Effect, EffectId, Event, EventKind, PodName};
pub use input::{Input, Outcome};
pub use preempting::Hold;
pub use scheduler::{Limits, Scheduler, TrackedAs};
