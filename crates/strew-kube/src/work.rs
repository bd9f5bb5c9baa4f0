//! The loop around one machine in a real cluster: its driver, its watches, its requests and the clock.
//!
//! All machines use it. All state is in the API server or derived from it, so a process can end at any moment.

use std::time::Duration;

use kube::Client;
use strew_model::time::{Instant, Span};
use strew_runtime::watch::Watches;
use strew_runtime::{Action, CallId, Driver, Event, Machine, Moment, Observer, Progress, Warning};

use crate::clock::Clock;
use crate::leading::Leads;
use crate::send::{Exchanges, Patience};
use crate::watch::Streams;

/// The most events handled before the machine decides again.
const TAKEN_MAX: usize = 512;

/// The most effects carried out before the loop handles what has arrived.
const EFFECTS_MAX: usize = 32;

/// The longest time for either, but for its last event or effect: some pods cost a thousand times what others cost.
const SLICE: Span = Span::from_millis(500);

/// The longest wait of the loop.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The parts of the process that a worker shares.
#[derive(Clone)]
pub struct Links {
    /// The client of the API server, for watches.
    pub client: Client,
    /// The client for the machine's requests.
    pub writes: Client,
    /// What time it is.
    pub clock: Clock,
    /// Whether this replica may act.
    pub leads: Leads,
    /// The time limits of its requests.
    pub patience: Patience,
}

/// A running machine.
pub struct Worker<M: Machine, O: Observer<M> = ()> {
    driver: Driver<M>,
    observer: O,
    streams: Streams,
    exchanges: Exchanges,
    clock: Clock,
    leads: Leads,
    /// Answers to calls that were not taken yet.
    replies: Vec<(CallId, Box<M::Reply>)>,
}

impl<M: Machine> Worker<M> {
    /// A machine with its first watches.
    pub fn new(machine: M, watches: Watches, links: Links) -> Self {
        Self::observed(machine, watches, links, ())
    }
}

impl<M: Machine, O: Observer<M>> Worker<M, O> {
    /// As [`new`](Self::new), with an observer of its decisions.
    pub fn observed(machine: M, watches: Watches, links: Links, observer: O) -> Self {
        let Links {
            client,
            writes,
            clock,
            leads,
            patience,
        } = links;
        // Any number will do: it only keeps replicas from retrying in step.
        let seed = clock.now().0;
        let mut worker = Self {
            driver: Driver::new(machine, watches, patience.in_all, seed),
            observer,
            streams: Streams::new(client),
            exchanges: Exchanges::new(writes, patience.answer),
            clock,
            leads,
            replies: Vec::new(),
        };
        // Begins its watches.
        worker.act();
        worker
    }

    /// The driver.
    pub fn driver(&self) -> &Driver<M> {
        &self.driver
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Passes an input to the machine that comes from no watch.
    pub fn tell<R>(&mut self, f: impl FnOnce(&mut M, &mut Watches) -> R) -> R {
        self.driver.tell(f)
    }

    /// The time for its decisions.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Waits until there is something to do, and does it. Cancel-safe.
    pub async fn work(&mut self) {
        self.tell_lease();
        let wake = self.next_wake();
        tokio::select! {
            biased;
            (ticket, answer) = self.exchanges.next() => self.handle(Event::Answered(ticket, answer)),
            (id, event) = self.streams.next() => self.handle(Event::Watch(id, event)),
            () = tokio::time::sleep(wake) => {}
        }
        self.take_in();
        if self.act() {
            // Lets the tasks of requests and watches run.
            tokio::task::yield_now().await;
        }
    }

    /// How long nothing is due, if nothing arrives.
    fn next_wake(&self) -> Duration {
        let first = self.driver.next_wake();
        first.map_or(WAIT_MAX, |at| self.clock.until(at).min(WAIT_MAX))
    }

    /// Handles what has arrived, without waiting. Call [`act`](Self::act) or [`work`](Self::work) afterwards.
    pub fn take_in(&mut self) {
        let over = self.clock.now() + SLICE;
        for _ in 0..TAKEN_MAX {
            if self.clock.now() > over {
                return;
            }
            let answer = self.exchanges.try_next();
            let event = self.streams.try_next();
            if answer.is_none() && event.is_none() {
                return;
            }
            if let Some((ticket, answer)) = answer {
                self.handle(Event::Answered(ticket, answer));
            }
            if let Some((id, event)) = event {
                self.handle(Event::Watch(id, event));
            }
        }
    }

    /// Handles an event. Call [`act`](Self::act) or [`work`](Self::work) afterwards.
    pub fn handle(&mut self, event: Event<M::Call>) {
        self.driver
            .handle(moment(self.clock), event, &mut self.observer);
    }

    fn tell_lease(&mut self) {
        let until = self.leads.until();
        self.handle(Event::Lease(until));
    }

    /// Carries out the driver's effects, up to a limit. Returns true if there may be more.
    pub fn act(&mut self) -> bool {
        let over = self.clock.now() + SLICE;
        let mut n_effects = 0;
        while n_effects < EFFECTS_MAX && self.clock.now() <= over {
            self.tell_lease();
            match self.driver.poll(moment(self.clock), &mut self.observer) {
                Progress::Do(Action::Send(ticket, request)) => self.exchanges.send(ticket, request),
                Progress::Do(Action::Watch(action)) => self.streams.carry_out(action),
                Progress::Do(Action::Reply(id, decision)) => self.replies.push((id, decision)),
                Progress::Decided => n_effects += 1,
                Progress::Idle => return false,
            }
        }
        true
    }

    /// The answers to calls since the last call.
    pub fn take_replies(&mut self) -> Vec<(CallId, Box<M::Reply>)> {
        std::mem::take(&mut self.replies)
    }

    /// Stops deciding, and waits until `over` for requests in transit.
    pub async fn end(&mut self, over: Instant) {
        self.driver.end();
        while self.driver.outbox().waiting() > 0 && self.clock.now() < over {
            let left = self.clock.until(over).min(self.next_wake());
            tokio::select! {
                (ticket, answer) = self.exchanges.next() => {
                    self.handle(Event::Answered(ticket, answer));
                }
                () = tokio::time::sleep(left) => {}
            }
            self.act();
        }
        let dropped = self.driver.outbox().dropped();
        if dropped > 0 {
            let record = Warning {
                kind: "Event",
                namespace: "",
                name: "",
                node: None,
                action: "record",
                error: &format!("{dropped} events were dropped: too many waited"),
                next: "none: the process ends",
            };
            record.log();
        }
    }
}

fn moment(clock: Clock) -> Moment {
    Moment {
        now: clock.now(),
        wall: clock.wall(),
    }
}
