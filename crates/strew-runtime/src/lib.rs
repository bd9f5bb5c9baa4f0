//! One driver around every machine, below a real cluster and below the simulated one.
//!
//! A [`Machine`] decides from facts and wants effects. A [`Driver`] owns everything between an API server's bytes and
//! that machine: which objects are known and which of them a new list does not name any more, the order of requests
//! about one object, how many requests are on their way at once, when a request is sent again, and whether this
//! replica still holds the lease when a request goes out.
//!
//! Sans-IO: the world hands in an [`Event`] with the time, asks for [`Action`]s until there is none, and comes back at
//! [`Driver::next_wake`]. `strew-kube` carries actions out with sockets and a clock, `strew-sim` with a simulated
//! network in virtual time. Randomness comes in as a seed.
//!
//! Reading order: [`machine`] (what a machine is to its driver), [`driver`], [`outbox`] (requests on their way), `refusals`,
//! [`watch`] (objects that are known), [`warning`]; then the machines: [`scheduler`],
//! [`placement`], [`workloadspread`] (its controller), [`admission`] (its webhook); both of these have [`target_kinds`].

pub mod admission;
pub mod driver;
pub mod machine;
pub mod outbox;
pub mod placement;
mod refusals;
pub mod scheduler;
pub mod target_kinds;
pub mod warning;
pub mod watch;
pub mod workloadspread;

pub use driver::{Action, Driver, Event, Moment, Observer, Progress};
pub use machine::{Begun, CallId, Machine, Next};
pub use outbox::{Answered, Ticket};
pub use warning::Warning;
