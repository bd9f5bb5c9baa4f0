//! Admission as one machine: requests and facts in, answers and status writes out. No clock, no dice, no I/O.
//!
//! [`Admission::handle`] takes an [`Input`]; [`Admission::poll_effect`] gives the next [`Effect`], deciding on what waits;
//! [`Admission::next_wake`] says when time alone will change something. Requests that wait for the same WorkloadSpread
//! share its next status write (group commit), and each is answered only after the write that holds its slot.
//! Restarting is making a new machine from the facts: whoever asked was not answered, and asks again.
//!
//! Reading order: [`request`], [`input`], [`effect`], [`machine`] (the three verbs), `spread_queue` (one WorkloadSpread's
//! requests and writes), `decide` (one request against the ledger), `news` (what is known is old), [`counters`].
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
