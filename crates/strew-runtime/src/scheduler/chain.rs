//! Effects of the scheduler's machine on their way.

use std::collections::VecDeque;

use strew_api::request::Request;
use strew_scheduler::machine::EffectId;

/// An effect on its way: its requests were all made at once, and each is sent when the one before has succeeded.
#[derive(Debug)]
pub struct Chain {
    pub(super) id: EffectId,
    pub(super) left: VecDeque<Request>,
}

impl Chain {
    /// An effect, and its first request; `None`: it asks for nothing.
    pub(super) fn begin(id: EffectId, requests: Vec<Request>) -> Option<(Self, Request)> {
        let mut left = VecDeque::from(requests);
        let first = left.pop_front()?;
        Some((Self { id, left }, first))
    }
}
