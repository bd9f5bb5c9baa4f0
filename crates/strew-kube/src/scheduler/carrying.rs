//! Effects of the scheduler's machine on their way.

use std::collections::VecDeque;

use strew_api::request::{Request, outcome_of};
use strew_scheduler::machine::{EffectId, Outcome};

use crate::send::{Answered, Errand, Next};

/// An effect on its way: its requests were all made at once, and each is sent when the one before has succeeded.
#[derive(Debug)]
pub struct Carrying {
    id: EffectId,
    left: VecDeque<Request>,
}

impl Carrying {
    /// An effect, and its first request; `None`: it asks for nothing.
    pub fn begin(id: EffectId, requests: Vec<Request>) -> Option<(Self, Request)> {
        let mut left = VecDeque::from(requests);
        let first = left.pop_front()?;
        Some((Self { id, left }, first))
    }
}

impl Errand for Carrying {
    type Context<'a> = ();
    type Outcome = (EffectId, Outcome);

    fn answered(&mut self, answered: &Answered, (): ()) -> Next<Self::Outcome> {
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        match self.left.pop_front() {
            Some(next) if outcome == Outcome::Ok => Next::Send(Box::new(next)),
            _ => Next::Done((self.id, outcome)),
        }
    }
}
