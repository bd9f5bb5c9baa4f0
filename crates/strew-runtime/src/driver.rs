//! The driver: events in, actions out.

use std::sync::Arc;

use strew_model::time::{Instant, Span};
use strew_wire::request::{Answer, Request, Verb};

use crate::machine::{Begun, CallId, Machine, Next};
use crate::outbox::{Answered, Attempt, NOT_LEADING, Outbox, Ticket};
use crate::watch::{Update, WatchAction, WatchEvent, WatchId, Watches};

/// A time by two clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The monotonic clock for decisions and waits.
    pub now: Instant,
    /// The wall clock, for texts.
    pub wall: Instant,
}

/// An input of a driver; `C`: the calls of its machine.
#[derive(Debug)]
pub enum Event<C> {
    /// An event of a watch.
    Watch(WatchId, WatchEvent),
    /// The answer to a request, exactly one for each [`Action::Send`]. An unknown ticket is ignored.
    Answered(Ticket, Answer),
    /// An API server calls a webhook. [`Action::Reply`] follows, unless the API server gives up.
    Asked(CallId, Box<C>),
    /// The API server has stopped waiting for the answer to a call. An unknown call is ignored.
    GaveUp(CallId),
    /// This replica may act until this moment, while its lease holds. Without this input a driver does not act.
    Lease(Instant),
}

/// An action for the caller; `R`: the replies of the machine.
#[derive(Debug)]
pub enum Action<R> {
    /// Send a request once, and return the answer with [`Event::Answered`].
    Send(Ticket, Arc<Request>),
    /// Begins or ends a watch.
    Watch(WatchAction),
    /// Answer a call; no further event about it is expected.
    Reply(CallId, Box<R>),
}

/// The result of a poll.
#[derive(Debug)]
pub enum Progress<R> {
    /// Carry out this action; there may be more.
    Do(Action<R>),
    /// The machine has decided on an effect. The next poll carries it out, with the time of that call.
    Decided,
    /// Nothing to do before the next event or [`Driver::next_wake`].
    Idle,
}

/// Observes the decisions of a machine; `()` ignores them.
pub trait Observer<M: Machine> {
    /// A poll begins.
    fn polled(&mut self) {}

    /// An effect was decided just now; none of its requests is sent yet.
    fn decided(&mut self, machine: &mut M, effect: &M::Effect) {
        let _ = (machine, effect);
    }

    /// A request of an effect has its final answer; the machine has not handled it yet.
    fn answered(&mut self, machine: &M, answered: &Answered) {
        let _ = (machine, answered);
    }

    /// The machine has answered a call.
    fn replied(&mut self, call: CallId) {
        let _ = call;
    }
}

impl<M: Machine> Observer<M> for () {}

/// A machine with everything around it that needs no I/O.
pub struct Driver<M: Machine> {
    machine: M,
    watches: Watches,
    outbox: Outbox<M::Chain>,
    /// This replica may act until then.
    acts_until: Instant,
    /// True if everything that decisions read has been listed once.
    is_ready: bool,
    /// The decided effect whose requests have not begun.
    decided: Option<M::Effect>,
    /// True if the machine could decide at the last poll.
    may_decide: bool,
    /// True if nothing is decided any more.
    has_ended: bool,
    /// True if an event arrived since the last idle poll.
    is_pending: bool,
}

impl<M: Machine> Driver<M> {
    /// A driver of a machine without watches. Requests are not retried after `patience`; `seed` determines the jitter
    /// of retries.
    pub fn new(machine: M, watches: Watches, patience: Span, seed: u64) -> Self {
        let outbox = Outbox::new(patience, seed, machine.remembers_refusals());
        Self {
            machine,
            watches,
            outbox,
            acts_until: Instant::default(),
            is_ready: false,
            decided: None,
            may_decide: false,
            has_ended: false,
            is_pending: true,
        }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine's watches.
    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    /// The requests in flight.
    pub fn outbox(&self) -> &Outbox<M::Chain> {
        &self.outbox
    }

    /// Passes an input to the machine that comes from no watch.
    pub fn tell<R>(&mut self, f: impl FnOnce(&mut M, &mut Watches) -> R) -> R {
        self.is_pending = true;
        let told = f(&mut self.machine, &mut self.watches);
        self.look_whether_ready();
        told
    }

    /// True if everything that decisions read has been listed once: earlier decisions would be based on half a cluster.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Stops deciding; requests in flight continue.
    pub fn end(&mut self) {
        self.has_ended = true;
        self.decided = None;
        self.is_pending = true;
    }

    /// Handles an event. Call [`poll`](Self::poll) afterwards, possibly after further events.
    pub fn handle(&mut self, at: Moment, event: Event<M::Call>, observer: &mut impl Observer<M>) {
        match event {
            Event::Watch(id, event) => {
                self.watches.take_in(id, event);
                self.tell_updates(at);
            }
            Event::Answered(ticket, answer) => self.settle(at, ticket, answer, true, observer),
            Event::Asked(id, call) => self.machine.asked(at.now, id, *call),
            Event::GaveUp(id) => self.machine.gave_up(at.now, id),
            Event::Lease(until) if until == self.acts_until => return,
            Event::Lease(until) => {
                if self.acts_until <= at.now {
                    self.outbox.forget_refusals();
                }
                self.acts_until = until;
            }
        }
        self.is_pending = true;
    }

    /// Takes one step. Call it until it is idle, each time with the present time.
    ///
    /// The lease is checked here, right before each request, so that no request is sent that another replica may send
    /// by now.
    pub fn poll(&mut self, at: Moment, observer: &mut impl Observer<M>) -> Progress<M::Reply> {
        self.tell_updates(at);
        observer.polled();
        if let Some(action) = self.watches.poll() {
            return Progress::Do(Action::Watch(action));
        }
        let leads = at.now < self.acts_until;
        if let Some(effect) = self.decided.take() {
            self.begin(at, effect, leads);
        }
        if let Some((id, decision)) = self.machine.next_reply() {
            observer.replied(id);
            return Progress::Do(Action::Reply(id, Box::new(decision)));
        }
        while let Some(attempt) = self.outbox.next_attempt(at.now) {
            let Attempt {
                ticket,
                request,
                instead,
            } = attempt;
            let instead = match instead {
                None if leads => return Progress::Do(Action::Send(ticket, request)),
                None => Answer::Refused(NOT_LEADING.into()),
                Some(answer) => answer,
            };
            self.settle(at, ticket, instead, false, observer);
        }
        self.may_decide = leads && self.is_ready && !self.has_ended;
        if self.may_decide {
            self.machine.tick(at.now);
            if !self.outbox.is_full() {
                self.decided = self.machine.poll_effect();
            }
            if let Some(effect) = &self.decided {
                observer.decided(&mut self.machine, effect);
            }
        }
        self.is_pending = self.decided.is_some();
        match self.is_pending {
            true => Progress::Decided,
            false => Progress::Idle,
        }
    }

    /// When to call [`poll`](Self::poll) next if no event arrives; a time in the past means at once.
    pub fn next_wake(&self) -> Option<Instant> {
        if self.is_pending {
            return Some(Instant::default());
        }
        // If too many requests wait, only an answer helps.
        let may_decide = self.may_decide && !self.outbox.is_full();
        let machine = self.machine.next_wake().filter(|_| may_decide);
        let wakes = [machine, self.outbox.next_wake()];
        wakes.into_iter().flatten().min()
    }

    fn begin(&mut self, at: Moment, effect: M::Effect, leads: bool) {
        match self.machine.begin(at, effect, leads) {
            Begun::Nothing => {}
            Begun::Event(request) => self.outbox.record(at.now, request),
            Begun::Chain {
                about,
                chain,
                request,
            } => self.outbox.push(at.now, about, chain, request),
        }
    }

    fn settle(
        &mut self,
        at: Moment,
        ticket: Ticket,
        answer: Answer,
        is_sent: bool,
        observer: &mut impl Observer<M>,
    ) {
        let Some(arrived) = self.outbox.settle(at.now, ticket, answer, is_sent) else {
            return;
        };
        let Answered {
            request, answer, ..
        } = &arrived.answered;
        if let (Verb::Create, "", Some(object)) =
            (request.verb, request.subresource, answer.object())
        {
            self.watches.made(&request.resource, object);
        }
        observer.answered(&self.machine, &arrived.answered);
        match (self.machine).answered(at, arrived.chain, &arrived.answered) {
            Next::Send(chain, request) => {
                self.outbox.advance(at.now, arrived.of, chain, *request);
            }
            Next::Done => self.outbox.end(at.now, &arrived.of, &arrived.answered),
        }
    }

    fn tell_updates(&mut self, at: Moment) {
        while let Some(update) = self.watches.next_update() {
            if let Update::Set(kind, named, _) | Update::Gone(kind, named) = &update {
                self.outbox
                    .heard_of(&kind.plural, &named.namespace, &named.name);
            }
            self.machine.take_in(at.now, update, &mut self.watches);
            self.look_whether_ready();
        }
    }

    fn look_whether_ready(&mut self) {
        self.is_ready = self.is_ready || self.machine.is_whole(&self.watches);
    }
}
