//! One driver for every machine, in a real cluster and in the simulated one.
//!
//! A [`Machine`] decides from facts and returns effects. A [`Driver`] does everything between an API server's bytes and
//! that machine: it knows which objects exist and which are missing from a new list, keeps requests about one object in
//! order, bounds the requests in flight, retries them, and checks the lease right before each request.
//!
//! Sans-IO: the caller passes in an [`Event`] with the time, takes [`Action`]s until there are none, and calls again at
//! [`Driver::next_wake`]. `strew-kube` carries out actions with sockets and a clock, `strew-sim` with a simulated
//! network in virtual time. Randomness comes from a seed.
//!
//! Reading order: [`machine`] (the trait), [`driver`], [`outbox`] (requests in flight), `refusals`, [`watch`] (known
//! objects), [`warning`], [`fair`] (shares and turns of peers); then the machines: [`scheduler`], [`placement`],
//! [`keep`], [`workloadspread`] (the controller) and [`admission`] (the webhook); the last two share [`target_kinds`];
//! [`zones`] (reviews of evictions), [`registration`] (when the webhook is registered), [`authority`] (its certificates).

pub mod admission;
pub mod authority;
pub mod causes;
pub mod driver;
pub mod fair;
pub mod keep;
pub mod machine;
pub mod outbox;
pub mod placement;
pub mod reads;
mod refusals;
pub mod registration;
pub mod scheduler;
pub mod target_kinds;
pub mod waits;
pub mod warning;
pub mod watch;
pub mod workloadspread;
pub mod zones;

pub use driver::{Action, Driver, Event, Moment, Observer, Progress};
pub use machine::{Begun, CallId, Machine, Next};
pub use outbox::{Answered, Ticket};
pub use warning::Warning;
