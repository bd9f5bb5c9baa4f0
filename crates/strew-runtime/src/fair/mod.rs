//! Fairness between the peers of a process: what is counted is shared, and the fullest peer gives up first.
//!
//! [`Shares`] divides what is held for a while (connections, requests, memory). [`FairQueue`] gives turns
//! for what is used up (CPU time). [`Strangers`] makes refusing a peer cheap. The rule of the first two: the peer that has the least is served
//! first. So a peer whose demand is below its share is never refused, and waits for one turn of each other peer at most,
//! whatever the others do.
//!
//! Sans-IO: time and costs are arguments.

mod debt;
mod queue;
mod shares;
mod strangers;

pub use queue::{FairQueue, Limits, Turn};
pub use shares::{HoldingId, NoShare, Shares, Taken, Yields};
pub use strangers::Strangers;
