//! The interface of a machine to its driver.

use std::sync::Arc;

use strew_api::request::Request;
use strew_api::workloadspread::review::Decision;
use strew_model::time::Instant;

use crate::admission::Call;
use crate::driver::Moment;
use crate::outbox::Answered;
use crate::watch::{Update, Watches};

/// Names a call: a question of an API server that waits for its answer. The world chooses it, and none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A deciding machine with its words on the wire: objects in, requests out.
pub trait Machine {
    /// What it wants done.
    type Effect;
    /// What is remembered of an effect while its requests are on their way.
    type Chain;

    /// Whether what is refused again and again is asked for less and less: up to a minute passes between two tries. Not
    /// where an API server waits for what comes of each request, and so decides itself how often it is sent.
    fn remembers_refusals(&self) -> bool {
        true
    }

    /// Takes in a watch event. Afterwards more kinds may be watched.
    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches);

    /// Whether everything that decides has been listed once. Asked after each update until it is true.
    fn is_whole(&self, watches: &Watches) -> bool {
        watches.is_whole()
    }

    /// An API server asks. The answer comes by [`next_reply`](Self::next_reply), once. A machine that serves no webhook is
    /// never asked.
    fn asked(&mut self, now: Instant, id: CallId, call: Call) {
        let _ = (now, id, call);
    }

    /// The API server does not wait for the answer to a call any more; it may have been answered already.
    fn gave_up(&mut self, now: Instant, id: CallId) {
        let _ = (now, id);
    }

    /// The next answer to a call.
    fn next_reply(&mut self) -> Option<(CallId, Decision)> {
        None
    }

    /// Time has passed.
    fn tick(&mut self, now: Instant);

    /// The next effect, or `None` if there is nothing to do before something arrives or time passes.
    fn poll_effect(&mut self) -> Option<Self::Effect>;

    /// The first request of an effect. `leads`: whether this replica acts, so that the request goes out.
    fn begin(&mut self, at: Moment, effect: Self::Effect, leads: bool) -> Begun<Self::Chain>;

    /// Takes in the final answer to the last request of a chain, and returns what is sent next.
    fn answered(
        &mut self,
        at: Moment,
        chain: Self::Chain,
        answered: &Answered,
    ) -> Next<Self::Chain>;

    /// When time alone gives it something to do; `None` if only news does.
    fn next_wake(&self) -> Option<Instant>;
}

/// What an effect asks of the API server.
#[derive(Debug)]
pub enum Begun<C> {
    /// Nothing.
    Nothing,
    /// A Kubernetes event. Its outcome is not waited for; it is dropped if too many wait.
    Event(Request),
    /// One request, or the first of several. Chains with the same `about` are carried out one after another.
    Chain {
        /// The object that the requests are about: a uid, or a name.
        about: Arc<str>,
        /// What is remembered until the answer is there.
        chain: C,
        /// What is sent first.
        request: Request,
    },
}

/// What comes after the answer to a request of a chain.
#[derive(Debug)]
pub enum Next<C> {
    /// Another request.
    Send(C, Box<Request>),
    /// The chain has ended, and the machine knows its outcome.
    Done,
}
