//! The scheduler as one machine: facts and time in, effects out. No clock, no dice, no I/O.
//!
//! [`Scheduler::handle`] takes an [`Input`]; [`Scheduler::poll_effect`] gives the next [`Effect`], deciding on pods one
//! by one until there is one; [`Scheduler::next_wake`] says when time alone will change something. What an effect came
//! to returns as an [`Input::Outcome`]. Restarting is making a new one from the facts: nothing else is kept.
//!
//! Reading order: [`input`], [`effect`], [`scheduler`] (the three verbs), `facts` and `storage` (what each fact
//! changes), `attempt` (one pod from the queue to an effect), `preempting` (making room), `outcome` (what an effect came
//! to), [`aside`] (facts that cannot be), `measure` (what it tells of itself), [`profiles`].
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
pub mod profiles;
pub mod scheduler;
mod storage;
mod sweep;

pub use aside::Absurd;
pub use effect::{Condition, ConditionReason, Effect, EffectId, Event, EventKind, PodName};
pub use input::{Input, Outcome};
pub use preempting::Hold;
pub use profiles::Profiles;
pub use scheduler::{Limits, Scheduler, Standing};
