//! Requests in flight: in order per object, bounded in number, repeated where that can help.
//!
//! An effect is a chain of requests, each made from the answer to the previous one. Chains about one object are carried
//! out one after another: the refusal of a pod must not overtake a bind that was decided before it. Events, whose
//! result is not awaited, have their own bound. A request that is refused again and again is sent less and less often
//! (module `refusals`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_api::request::{Answer, Request, outcome_of};
use strew_api::retry::{Retry, Retrying};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Outcome;

use crate::refusals::Refusals;
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
    /// Whether it was not sent: another replica may act by now, which is said once where the lease is lost; or it was
    /// refused too often, and the answer is the last one that came.
    pub is_held_back: bool,
}

/// A request that is to be sent now.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) ticket: Ticket,
    pub(crate) request: Arc<Request>,
    /// How it was answered before: it is too early to send it again.
    pub(crate) instead: Option<Answer>,
}

/// A chain whose request has its final answer.
#[derive(Debug)]
pub(crate) struct Arrived<C> {
    pub(crate) chain: C,
    pub(crate) of: OfChain,
    pub(crate) answered: Answered,
}

/// What a chain is known by.
#[derive(Debug, Clone)]
pub(crate) struct OfChain {
    pub(crate) about: Arc<str>,
    /// Its first request, by which it is remembered when it fails.
    first: Arc<Request>,
    /// Whether it failed the last time: then each of its requests is sent once.
    has_failed: bool,
}

/// A request that is to be sent, or was.
#[derive(Debug)]
struct Sending<C> {
    /// Its chain; `None`: it is an event.
    of: Option<(C, OfChain)>,
    request: Arc<Request>,
    retrying: Retrying,
    /// Whether it is sent once at most.
    is_last_try: bool,
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
    /// `None`: each request is sent, whatever came of it before.
    refusals: Option<Refusals>,
}

impl<C> Outbox<C> {
    /// `remembers`: what is refused again and again is sent less and less.
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

    /// Goes on with a chain.
    pub(crate) fn advance(&mut self, now: Instant, of: OfChain, chain: C, request: Request) {
        let is_last_try = of.has_failed;
        let sending = self.sending(now, Some((chain, of)), Arc::new(request), is_last_try);
        self.ready.push_back(sending);
    }

    /// A chain has ended with this answer: the next one about the same object begins.
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

    /// Sends an event when there is a place for it; it is dropped if too many wait.
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

    /// This replica acts again.
    pub(crate) fn forget_refusals(&mut self) {
        if let Some(refusals) = &mut self.refusals {
            refusals.forget();
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
        // Of a chain that has begun, the rest is sent.
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

    /// Takes in an answer; `is_sent`: it came from the API server, or on the way there. `None`: the request will be sent
    /// again, or its end is not waited for.
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

/// Why an effect was not carried out, in words.
pub fn failure(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Gone => Some("not found"),
        Outcome::Conflict(text) | Outcome::Failed(text) => Some(text),
    }
}
