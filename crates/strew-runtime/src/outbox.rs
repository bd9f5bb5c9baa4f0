//! Requests in flight: in order per object, bounded in number, retried if that can help.
//!
//! An effect is a chain of requests, each made from the answer to the previous one. Chains about one object are carried
//! out one after another: a pod's status patch must not overtake a bind that was decided earlier. Events, which have no
//! outcome, have their own bound. A request that is refused repeatedly is sent less and less often (module `refusals`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Outcome;
use strew_wire::request::{Answer, Request, outcome_of};
use strew_wire::retry::{Retry, Retrying};

use crate::refusals::Refusals;
use crate::warning::Warning;

/// The most concurrent requests: as many as an API server takes from one client without queueing.
const AT_ONCE: usize = 64;

/// The most concurrent events, beside the other requests: a thousand FailedScheduling events must not delay a bind.
const EVENTS_AT_ONCE: usize = 8;

/// The number of unfinished chains at which the machine is not asked for further effects.
const WAITING_MAX: usize = 256;

/// The most events that wait to be sent; further ones are dropped.
const EVENTS_MAX: usize = 4096;

/// The answer to requests that are not sent because another replica may act by now.
pub(crate) const NOT_LEADING: &str = "this replica does not lead any more";

/// The id of one attempt to send a request. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request with its final answer.
#[derive(Debug)]
pub struct Answered {
    /// The request.
    pub request: Arc<Request>,
    /// The answer.
    pub answer: Answer,
    /// True if an earlier attempt was sent, and may have been carried out.
    pub repeated: bool,
    /// True if it was not sent: another replica may act by now, which is logged once when the lease is lost; or it was
    /// refused too often, and the answer is the last one received.
    pub is_held_back: bool,
}

/// A request to send now.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) ticket: Ticket,
    pub(crate) request: Arc<Request>,
    /// The answer to give without sending, because it is too early to send the request again.
    pub(crate) instead: Option<Answer>,
}

/// A chain whose request has its final answer.
#[derive(Debug)]
pub(crate) struct Arrived<C> {
    pub(crate) chain: C,
    pub(crate) of: OfChain,
    pub(crate) answered: Answered,
}

/// The identity of a chain.
#[derive(Debug, Clone)]
pub(crate) struct OfChain {
    pub(crate) about: Arc<str>,
    /// Its first request, by which refusals are remembered.
    first: Arc<Request>,
    /// True if it failed the last time: then each of its requests is sent only once.
    has_failed: bool,
}

/// A request that is to be sent, or in flight.
#[derive(Debug)]
struct Sending<C> {
    /// Its chain; `None` for an event.
    of: Option<(C, OfChain)>,
    request: Arc<Request>,
    retrying: Retrying,
    /// True if it must not be retried.
    is_last_try: bool,
}

/// Requests in flight.
#[derive(Debug)]
pub struct Outbox<C> {
    patience: Span,
    rng: Prng,
    n_tickets: u64,
    /// Ready to be sent, in this order.
    ready: VecDeque<Sending<C>>,
    /// Sent, without an answer.
    sent: BTreeMap<Ticket, Sending<C>>,
    /// To be retried, by time.
    resting: BTreeMap<(Instant, Ticket), Sending<C>>,
    /// The number of sent requests without events.
    n_sent: usize,
    /// Objects with a chain in progress, and the chains that wait for it.
    under_way: FxHashMap<Arc<str>, VecDeque<(C, Request)>>,
    /// The number of unfinished chains.
    waiting: usize,
    /// Events that wait for a free place.
    events: VecDeque<Request>,
    /// The number of events that are ready, sent or to be retried.
    n_events: usize,
    ready_events: VecDeque<Sending<C>>,
    dropped: u64,
    /// `None`: each request is sent, whatever its earlier answers were.
    refusals: Option<Refusals>,
}

impl<C> Outbox<C> {
    /// `remembers`: true if requests that are refused repeatedly are spaced out.
    pub(crate) fn new(patience: Span, seed: u64, remembers: bool) -> Self {
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
            refusals: remembers.then(Refusals::default),
        }
    }

    /// The number of unfinished chains.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The number of dropped events.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// True if the machine must not be asked for effects before some chains have ended.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting >= WAITING_MAX
    }

    /// When the next request is to be retried.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.resting.first_key_value().map(|((at, _), _)| *at)
    }

    // === in ===

    /// Begins a chain when earlier ones about the same object have ended.
    pub(crate) fn push(&mut self, now: Instant, about: Arc<str>, chain: C, request: Request) {
        self.waiting += 1;
        if let Some(after) = self.under_way.get_mut(&about) {
            return after.push_back((chain, request));
        }
        self.under_way.insert(Arc::clone(&about), VecDeque::new());
        self.begin(now, about, chain, request);
    }

    fn begin(&mut self, now: Instant, about: Arc<str>, chain: C, request: Request) {
        let has_failed = self.has_failed(now, &request);
        let first = Arc::new(request);
        let of = OfChain {
            about,
            first: Arc::clone(&first),
            has_failed,
        };
        let sending = self.sending(now, Some((chain, of)), first, has_failed);
        self.ready.push_back(sending);
    }

    /// Continues a chain with its next request.
    pub(crate) fn advance(&mut self, now: Instant, of: OfChain, chain: C, request: Request) {
        let is_last_try = of.has_failed;
        let sending = self.sending(now, Some((chain, of)), Arc::new(request), is_last_try);
        self.ready.push_back(sending);
    }

    /// Ends a chain with this answer: the next one about the same object begins.
    pub(crate) fn end(&mut self, now: Instant, of: &OfChain, last: &Answered) {
        self.note(now, &of.first, last);
        self.waiting = self.waiting.saturating_sub(1);
        let after = self.under_way.get_mut(&of.about);
        match after.and_then(VecDeque::pop_front) {
            Some((chain, request)) => self.begin(now, Arc::clone(&of.about), chain, request),
            None => {
                self.under_way.remove(&of.about);
            }
        }
    }

    /// Sends an event when there is a free place; drops it if too many wait.
    pub(crate) fn record(&mut self, now: Instant, request: Request) {
        if self.n_events < EVENTS_AT_ONCE {
            self.n_events += 1;
            let is_last_try = self.has_failed(now, &request);
            let sending = self.sending(now, None, Arc::new(request), is_last_try);
            self.ready_events.push_back(sending);
        } else if self.events.len() + EVENTS_AT_ONCE >= EVENTS_MAX {
            self.dropped += 1;
        } else {
            self.events.push_back(request);
        }
    }

    fn sending(
        &self,
        now: Instant,
        of: Option<(C, OfChain)>,
        request: Arc<Request>,
        is_last_try: bool,
    ) -> Sending<C> {
        Sending {
            of,
            request,
            retrying: Retrying::new(now + self.patience),
            is_last_try,
        }
    }

    // === refusals ===

    fn has_failed(&self, now: Instant, request: &Request) -> bool {
        let refusals = self.refusals.as_ref();
        refusals.is_some_and(|refusals| refusals.has_failed(now, request))
    }

    fn note(&mut self, now: Instant, first: &Arc<Request>, last: &Answered) {
        if let Some(refusals) = self.refusals.as_mut().filter(|_| !last.is_held_back) {
            refusals.note(now, first, &last.answer);
        }
    }

    /// A watch has reported an object.
    pub(crate) fn heard_of(&mut self, plural: &str, namespace: &str, name: &str) {
        if let Some(refusals) = &mut self.refusals {
            refusals.heard_of(plural, namespace, name);
        }
    }

    /// This replica leads again.
    pub(crate) fn forget_refusals(&mut self) {
        if let Some(refusals) = &mut self.refusals {
            refusals.forget();
        }
    }

    // === out ===

    /// The next request to send, with a new ticket.
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
        // Further requests of a chain that has begun are always sent.
        let first = match &sending.of {
            Some((_, of)) => &of.first,
            None => &request,
        };
        let refusals = self
            .refusals
            .as_ref()
            .filter(|_| Arc::ptr_eq(first, &request));
        let instead = refusals.and_then(|refusals| refusals.too_early(now, &request).cloned());
        self.sent.insert(ticket, sending);
        Some(Attempt {
            ticket,
            request,
            instead,
        })
    }

    fn ticket(&mut self) -> Ticket {
        self.n_tickets += 1;
        Ticket(self.n_tickets)
    }

    /// Handles an answer. `is_sent`: the request was sent, or lost on the way. Returns `None` if the request will be
    /// retried, or has no outcome.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        ticket: Ticket,
        answer: Answer,
        is_sent: bool,
    ) -> Option<Arrived<C>> {
        let mut sending = self.sent.remove(&ticket)?;
        self.n_sent -= usize::from(sending.of.is_some());
        let is_not_leading = matches!(&answer, Answer::Refused(text) if **text == *NOT_LEADING);
        if is_not_leading || (is_sent && !sending.is_last_try) {
            let jitter = self.rng.next_u64();
            let retry = (sending.retrying).next(&sending.request, &answer, now, jitter);
            if let Retry::After(wait) = retry {
                self.resting.insert((now + wait, ticket), sending);
                return None;
            }
        }
        let answered = Answered {
            repeated: sending.retrying.repeated(),
            request: sending.request,
            answer,
            is_held_back: !is_sent,
        };
        let Some((chain, of)) = sending.of else {
            self.event_ended(now, &answered);
            return None;
        };
        Some(Arrived {
            chain,
            of,
            answered,
        })
    }

    fn event_ended(&mut self, now: Instant, answered: &Answered) {
        self.note(now, &answered.request, answered);
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        if let Some(text) = failure(&outcome)
            && !answered.is_held_back
        {
            Warning::of(&answered.request, "record", &text, "none: it is dropped").log();
        }
        self.n_events -= 1;
        if let Some(request) = self.events.pop_front() {
            self.record(now, request);
        }
    }
}

/// Why an effect was not carried out, in words; `None` if it was.
pub fn failure(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Gone => Some("not found"),
        Outcome::Conflict(text) | Outcome::Failed(text) => Some(text),
    }
}
