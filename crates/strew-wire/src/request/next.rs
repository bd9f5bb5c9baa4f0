//! A plan of evictions, one request at a time.

use strew_model::time::Span;

use super::Request;

/// What is to be done next of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Send this eviction, and report the answer.
    Evict(Box<Request>),
    /// List the pods of the namespace again, after a while.
    Look(Span),
    /// The plan has ended well.
    Done,
    /// The plan ends here, and why.
    Stop(String),
}
