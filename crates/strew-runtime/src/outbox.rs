//! Requests on their way: in order about one object, a bounded number at once, again where that is worth it.
//!
//! What a machine wants is a chain of requests, each made of the answer to the one before. Chains about one object are
//! carried out one after another: a refusal must not overtake the bind that was decided after it. Events, whose outcome
//! is not waited for, take none of the other requests' places.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_api::request::{Answer, Request, outcome_of};
use strew_api::retry::{Retry, Retrying};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Outcome;

use crate::warning::Warning;

/// How many requests are on their way at once: what one API server takes from one client without queueing.
const AT_ONCE: usize = 64;

/// How many events are on their way at once, beside the others: a thousand refusals must not keep a bind waiting.
const EVENTS_AT_ONCE: usize = 8;

/// How many chains may wait for their end before the machine is not asked for more effects.
const WAITING_MAX: usize = 256;

/// How many events may wait to be sent; those beyond are dropped.
const EVENTS_MAX: usize = 4096;

/// The answer to requests that are not sent because another replica may act by now.
pub(crate) const NOT_LEADING: &str = "this replica does not lead any more";

/// Names one attempt to send a request. None is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request, and its final answer.
#[derive(Debug)]
pub struct Answered {
    /// What was asked.
    pub request: Arc<Request>,
    /// What was answered.
    pub answer: Answer,
    /// Whether it was asked before, and may have been carried out then.
    pub repeated: bool,
}

impl Answered {
    /// Whether it was not sent because another replica may act by now: said once where the lease is lost.
    pub(crate) fn is_held_back(&self) -> bool {
        matches!(&self.answer, Answer::Refused(text) if **text == *NOT_LEADING)
    }
}

/// A request that is to be sent now.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) ticket: Ticket,
    pub(crate) request: Arc<Request>,
}

/// A chain whose request has its final answer.
#[derive(Debug)]
pub(crate) struct Arrived<C> {
    pub(crate) about: Arc<str>,
    pub(crate) chain: C,
    pub(crate) answered: Answered,
}

/// A request that is to be sent, or was.
#[derive(Debug)]
struct Sending<C> {
    /// What it is about, and its chain; `None`: it is an event.
    of: Option<(Arc<str>, C)>,
    request: Arc<Request>,
    retrying: Retrying,
}

/// Requests on their way.
#[derive(Debug)]
pub struct Outbox<C> {
    patience: Span,
    rng: Prng,
    n_tickets: u64,
    /// Ready to be sent, in this order.
    ready: VecDeque<Sending<C>>,
    /// On their way.
    sent: BTreeMap<Ticket, Sending<C>>,
    /// To be sent again: when, and which.
    resting: BTreeMap<(Instant, Ticket), Sending<C>>,
    /// How many of those that are sent are no events.
    n_sent: usize,
    /// Objects with a chain under way, and the chains that come after it.
    under_way: FxHashMap<Arc<str>, VecDeque<(C, Request)>>,
    /// How many chains have not ended.
    waiting: usize,
    /// Events that wait for one of their places.
    events: VecDeque<Request>,
    /// How many events have a place: they are ready, sent or resting.
    n_events: usize,
    ready_events: VecDeque<Sending<C>>,
    dropped: u64,
}

impl<C> Outbox<C> {
    pub(crate) fn new(patience: Span, seed: u64) -> Self {
        Self {
            patience,
            rng: Prng::new(seed),
            n_tickets: 0,
            ready: VecDeque::new(),
            sent: BTreeMap::new(),
            resting: BTreeMap::new(),
            n_sent: 0,
            under_way: FxHashMap::default(),
            waiting: 0,
            events: VecDeque::new(),
            n_events: 0,
            ready_events: VecDeque::new(),
            dropped: 0,
        }
    }

    /// How many chains have not ended.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many events were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether the machine should not be asked for more before some chains have ended.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting >= WAITING_MAX
    }

    /// When a request is to be sent again.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.resting.first_key_value().map(|((at, _), _)| *at)
    }

    // === in ===

    /// Begins a chain when those before about the same object have ended.
    pub(crate) fn push(&mut self, now: Instant, about: Arc<str>, chain: C, request: Request) {
        self.waiting += 1;
        if let Some(after) = self.under_way.get_mut(&about) {
            return after.push_back((chain, request));
        }
        self.under_way.insert(Arc::clone(&about), VecDeque::new());
        self.go_on(now, about, chain, request);
    }

    /// Goes on with a chain.
    pub(crate) fn go_on(&mut self, now: Instant, about: Arc<str>, chain: C, request: Request) {
        let sending = self.sending(now, Some((about, chain)), request);
        self.ready.push_back(sending);
    }

    /// A chain about this object has ended: the next one begins.
    pub(crate) fn end(&mut self, now: Instant, about: &Arc<str>) {
        self.waiting = self.waiting.saturating_sub(1);
        let after = self.under_way.get_mut(about);
        match after.and_then(VecDeque::pop_front) {
            Some((chain, request)) => self.go_on(now, Arc::clone(about), chain, request),
            None => {
                self.under_way.remove(about);
            }
        }
    }

    /// Sends an event when there is a place for it; it is dropped if too many wait.
    pub(crate) fn record(&mut self, now: Instant, request: Request) {
        if self.n_events < EVENTS_AT_ONCE {
            self.n_events += 1;
            let sending = self.sending(now, None, request);
            self.ready_events.push_back(sending);
        } else if self.events.len() + EVENTS_AT_ONCE >= EVENTS_MAX {
            self.dropped += 1;
        } else {
            self.events.push_back(request);
        }
    }

    fn sending(&self, now: Instant, of: Option<(Arc<str>, C)>, request: Request) -> Sending<C> {
        Sending {
            of,
            request: Arc::new(request),
            retrying: Retrying::new(now + self.patience),
        }
    }

    // === out ===

    /// The next request that is to be sent, under a new ticket.
    pub(crate) fn next_attempt(&mut self, now: Instant) -> Option<Attempt> {
        while let Some(first) = self.resting.first_entry().filter(|e| e.key().0 <= now) {
            let sending = first.remove();
            match sending.of {
                Some(_) => self.ready.push_back(sending),
                None => self.ready_events.push_back(sending),
            }
        }
        let sending = match self.n_sent < AT_ONCE {
            true => self.ready.pop_front(),
            false => None,
        };
        let sending = sending.or_else(|| self.ready_events.pop_front())?;
        self.n_sent += usize::from(sending.of.is_some());
        let ticket = self.ticket();
        let request = Arc::clone(&sending.request);
        self.sent.insert(ticket, sending);
        Some(Attempt { ticket, request })
    }

    fn ticket(&mut self) -> Ticket {
        self.n_tickets += 1;
        Ticket(self.n_tickets)
    }

    /// Takes in an answer. `None`: the request will be sent again, or its end is not waited for.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        ticket: Ticket,
        answer: Answer,
    ) -> Option<Arrived<C>> {
        let mut sending = self.sent.remove(&ticket)?;
        self.n_sent -= usize::from(sending.of.is_some());
        let jitter = self.rng.next_u64();
        let retry = (sending.retrying).next(&sending.request, &answer, now, jitter);
        if let Retry::After(wait) = retry {
            self.resting.insert((now + wait, ticket), sending);
            return None;
        }
        let answered = Answered {
            repeated: sending.retrying.repeated(),
            request: sending.request,
            answer,
        };
        let Some((about, chain)) = sending.of else {
            self.event_ended(now, &answered);
            return None;
        };
        Some(Arrived {
            about,
            chain,
            answered,
        })
    }

    fn event_ended(&mut self, now: Instant, answered: &Answered) {
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        if let Some(text) = failure(&outcome)
            && !answered.is_held_back()
        {
            Warning::of(&answered.request, "record", &text, "none: it is dropped").log();
        }
        self.n_events -= 1;
        if let Some(request) = self.events.pop_front() {
            self.record(now, request);
        }
    }
}

/// Why an effect was not carried out, in words.
pub fn failure(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Gone => Some("not found"),
        Outcome::Conflict(text) | Outcome::Failed(text) => Some(text),
    }
}
