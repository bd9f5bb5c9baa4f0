//! The interface of a machine to its driver.

use std::sync::Arc;

use strew_model::time::Instant;
use strew_wire::request::Request;

use crate::driver::Moment;
use crate::outbox::Answered;
use crate::watch::{Update, Watches};

/// The id of a call: a review for which an API server waits. The caller chooses it and never reuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A deciding machine with its translation to the wire: objects in, requests out.
pub trait Machine {
    /// A change that it wants made.
    type Effect;
    /// The state of an effect while its requests are in flight.
    type Chain;
    /// What an API server asks of its webhook; [`Infallible`](std::convert::Infallible) if it has none.
    type Call;
    /// The answer to a call.
    type Reply;

    /// True if requests that are refused repeatedly are spaced out, up to a minute apart. False if an API server waits
    /// for the result of each request, and so determines how often it is sent.
    fn remembers_refusals(&self) -> bool {
        true
    }

    /// Handles a watch event. It may start further watches.
    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches);

    /// True if everything that decisions read has been listed once. Called after each update until it is true.
    fn is_whole(&self, watches: &Watches) -> bool {
        watches.is_whole()
    }

    /// An API server calls the webhook. [`next_reply`](Self::next_reply) returns the answer, once. A machine without a
    /// webhook is never called.
    fn asked(&mut self, now: Instant, id: CallId, call: Self::Call) {
        let _ = (now, id, call);
    }

    /// The API server has stopped waiting for the answer to a call, which may have been answered already.
    fn gave_up(&mut self, now: Instant, id: CallId) {
        let _ = (now, id);
    }

    /// The next answer to a call.
    fn next_reply(&mut self) -> Option<(CallId, Self::Reply)> {
        None
    }

    /// Time has passed.
    fn tick(&mut self, now: Instant);

    /// The next effect; `None` if there is nothing to do before the next event or the next wake-up.
    fn poll_effect(&mut self) -> Option<Self::Effect>;

    /// The first request of an effect. `leads`: true if this replica may act, so that the request is sent.
    fn begin(&mut self, at: Moment, effect: Self::Effect, leads: bool) -> Begun<Self::Chain>;

    /// Handles the final answer to the last request of a chain, and returns the next request.
    fn answered(
        &mut self,
        at: Moment,
        chain: Self::Chain,
        answered: &Answered,
    ) -> Next<Self::Chain>;

    /// The next time at which it has something to do without an event; `None` if there is none.
    fn next_wake(&self) -> Option<Instant>;
}

/// The requests of an effect.
#[derive(Debug)]
pub enum Begun<C> {
    /// None.
    Nothing,
    /// A Kubernetes event. It has no outcome, and is dropped if too many wait.
    Event(Request),
    /// One request, or the first of several. Chains with equal `about` are carried out one after another.
    Chain {
        /// The object of the requests: a uid, or a name.
        about: Arc<str>,
        /// The state that is kept until the answer arrives.
        chain: C,
        /// The first request.
        request: Request,
    },
}

/// The step after the answer to a request of a chain.
#[derive(Debug)]
pub enum Next<C> {
    /// Another request.
    Send(C, Box<Request>),
    /// The chain has ended, and the machine knows its outcome.
    Done,
}
