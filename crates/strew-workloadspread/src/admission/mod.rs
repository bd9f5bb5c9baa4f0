//! The admission machine: requests and facts in, answers and status writes out. It has no clock, no random numbers and
//! no I/O.
//!
//! [`Admission::handle`] takes an [`Input`]. [`Admission::poll_effect`] returns the next [`Effect`] and decides waiting
//! requests. [`Admission::next_wake`] returns the time at which the machine must be polled again without an input.
//! Requests that wait for the same WorkloadSpread share its next status write (group commit), and each is answered only
//! after the write that holds its slot. A restart creates a new machine from the facts: clients without an answer
//! retry.
//!
//! Reading order: [`request`], [`input`], [`effect`], [`machine`] (the three functions), `spread_queue` (the requests
//! and writes of one WorkloadSpread), `decide` (one request against the ledger), `news` (outdated facts), [`counters`].
//!
//! Source: spec/workloadspread §4.

pub mod counters;
mod decide;
pub mod effect;
pub mod input;
pub mod machine;
mod news;
pub mod request;
mod spread_queue;
mod sweep;

pub use counters::Counters;
pub use effect::{Answer, Basis, Denial, Effect, EffectId, Injection, Untouched, Verdict};
pub use input::{Input, Outcome};
pub use machine::{Admission, Limits};
pub use request::{Operation, PodAsked, Request, RequestId};
