//! Requests in flight for effects of the scheduler.

use std::collections::VecDeque;

use strew_scheduler::machine::{Effect, EffectId};
use strew_wire::request::Request;

/// An effect in progress: its requests were all made at once, and each is sent after the previous one has succeeded.
#[derive(Debug)]
pub struct Chain {
    pub(super) id: EffectId,
    pub(super) left: VecDeque<Request>,
    /// Its action, in words.
    pub(super) action: &'static str,
    /// When it is retried after a failure, in words.
    pub(super) next: &'static str,
}

impl Chain {
    /// An effect and its first request; `None` if it needs no request.
    pub(super) fn begin(
        effect: &Effect,
        id: EffectId,
        requests: Vec<Request>,
    ) -> Option<(Self, Request)> {
        let (action, next) = match effect {
            Effect::Bind { .. } => ("bind", "after the pod's backoff"),
            Effect::PodCondition { .. } => (
                "write condition PodScheduled",
                "with the pod's next attempt",
            ),
            Effect::Nominate { .. } => ("nominate", "with the pod's next attempt"),
            Effect::DeleteVictim { .. } => (
                "evict",
                "with the next attempt of the pod it makes room for",
            ),
            Effect::Event(_) => ("record", "none: it is dropped"),
        };
        let mut left = VecDeque::from(requests);
        let first = left.pop_front()?;
        let chain = Self {
            id,
            left,
            action,
            next,
        };
        Some((chain, first))
    }
}
