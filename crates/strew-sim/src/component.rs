//! Runs a driver in the simulated cluster: the store feeds its watches, and the simulated network carries its requests.

use std::collections::BTreeMap;

use strew_apiserver::Tables;
use strew_apiserver::object::{Kind, Meta, Object};
use strew_apiserver::server::{Change, Server};
use strew_model::time::{Instant, Span};
use strew_runtime::watch::{
    self, Custom, Reading, Scope, WatchAction, WatchEvent, WatchId, Watches,
};
use strew_runtime::{Action, Answered, CallId, Driver, Event, Machine, Moment, Observer, Progress};
use strew_runtime::{admission, zones};
use strew_wire::facts::Named;
use strew_wire::request::{Answer, Request};

use crate::fault::{Faults, Hits};
use crate::feed::{Brought, Feed};
use crate::network::{Delivery, Draws, Network, Sender, Weather};

/// A controller or scheduler does not retry a request after this long.
const PATIENCE: Span = Span::from_secs(60);

/// Observes what a component decides and sends, and executes requests when they arrive. `()` observes nothing.
pub(crate) trait Judge<M: Machine> {
    /// An effect was decided just now, on `seen`, which the watches have delivered; none of its requests is sent yet.
    fn decided(&mut self, machine: &mut M, seen: &Tables, effect: &M::Effect) {
        let _ = (machine, seen, effect);
    }

    /// A request is sent, at this time by the component's own clock.
    fn sent(&mut self, clock: Instant, request: &Request) {
        let _ = (clock, request);
    }

    /// A request has arrived: executes it on the server.
    fn execute(
        &mut self,
        machine: &M,
        server: &mut Server,
        now: Instant,
        request: &Request,
    ) -> Answer {
        let _ = machine;
        server.execute(now, request)
    }

    /// A request has its final answer.
    fn answered(&mut self, answered: &Answered) {
        let _ = answered;
    }
}

impl<M: Machine> Judge<M> for () {}

/// Gives a judge access to what the watches have delivered.
struct Seeing<'a, J> {
    judge: &'a mut J,
    seen: &'a Tables,
}

impl<M: Machine, J: Judge<M>> Observer<M> for Seeing<'_, J> {
    fn decided(&mut self, machine: &mut M, effect: &M::Effect) {
        self.judge.decided(machine, self.seen, effect);
    }

    fn answered(&mut self, _: &M, answered: &Answered) {
        self.judge.answered(answered);
    }
}

/// What a component may use in a step.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Instant,
    pub(crate) server: &'a mut Server,
    pub(crate) faults: &'a Faults,
    pub(crate) draws: Draws<'a>,
}

/// A driver, its watches and its network.
pub(crate) struct Component<M: Machine> {
    driver: Driver<M>,
    sender: Sender,
    feed: Feed,
    /// The watches, by kind.
    watched: BTreeMap<Kind, Watched>,
    /// Lists that a fault delays, and until when.
    late: Vec<(Instant, WatchAction)>,
    /// The objects that the watches have delivered, for the judge.
    seen: Tables,
    network: Network,
    /// How far its clock is ahead of the simulation's.
    ahead: Span,
    /// Answers to calls that were not taken yet.
    replies: Vec<(CallId, Box<M::Reply>)>,
}

/// A watch of one kind.
struct Watched {
    id: WatchId,
    reading: Reading,
    scope: Scope,
}

impl<M: Machine> Component<M> {
    /// A component whose watches have listed the store. It leads until [`Self::lease`] says otherwise.
    pub(crate) fn new(
        machine: M,
        watches: Watches,
        sender: Sender,
        server: &Server,
        now: Instant,
        seed: u64,
    ) -> Self {
        let patience = match sender {
            Sender::Webhook(_) => admission::PATIENCE,
            Sender::Zones => zones::PATIENCE,
            _ => PATIENCE,
        };
        let driver = Driver::new(machine, watches, patience, seed);
        let mut component = Self {
            driver,
            sender,
            feed: Feed::from_now_on(server),
            watched: BTreeMap::new(),
            late: Vec::new(),
            seen: Tables::default(),
            network: Network::default(),
            ahead: Span::default(),
            replies: Vec::new(),
        };
        component.list_all(now, server);
        component.lease(Instant(u64::MAX));
        component
    }

    /// A component that has listed the store and decides nothing yet.
    pub(crate) fn fresh(
        machine: M,
        watches: Watches,
        sender: Sender,
        server: &Server,
        now: Instant,
    ) -> Self {
        let mut component = Self::new(machine, watches, sender, server, now, 0);
        component.lease(Instant::default());
        component
    }

    /// Lists the store. The machine must not have effects yet.
    pub(crate) fn list_all(&mut self, now: Instant, server: &Server) {
        let at = self.moment(now);
        while let Progress::Do(Action::Watch(action)) = self.driver.poll(at, &mut ()) {
            self.watch(now, action, server);
        }
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &M {
        self.driver.machine()
    }

    /// Changes the machine outside of its watches.
    pub(crate) fn tell<R>(&mut self, f: impl FnOnce(&mut M, &mut Watches) -> R) -> R {
        self.driver.tell(f)
    }

    /// Handles an event that comes from no watch and no request.
    pub(crate) fn handle(&mut self, now: Instant, event: Event<M::Call>) {
        let at = self.moment(now);
        self.driver.handle(at, event, &mut ());
    }

    /// The answers to calls since the last time.
    pub(crate) fn take_replies(&mut self) -> Vec<(CallId, Box<M::Reply>)> {
        std::mem::take(&mut self.replies)
    }

    /// The faults that hit it since the last time.
    pub(crate) fn take_hits(&mut self) -> Hits {
        std::mem::take(&mut self.network.hits)
    }

    /// It acts until this time of its own clock.
    pub(crate) fn lease(&mut self, until: Instant) {
        self.handle(Instant::default(), Event::Lease(until));
    }

    /// Moves its clock ahead.
    pub(crate) fn jump(&mut self, by: Span) {
        self.ahead = Span(self.ahead.0.saturating_add(by.0));
    }

    /// The time by its own clock.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.ahead
    }

    /// The time at which its own clock shows `own`.
    pub(crate) fn true_time(&self, own: Instant) -> Instant {
        Instant(own.0.saturating_sub(self.ahead.0))
    }

    /// The objects that its watches have delivered.
    pub(crate) fn seen(&self) -> &Tables {
        &self.seen
    }

    /// The stored objects that its watches would deliver.
    pub(crate) fn watched(&self, tables: &Tables) -> Tables {
        let mut watched = Tables::default();
        for (kind, watch) in &self.watched {
            for object in tables.all_of(kind) {
                if matches(&watch.scope, &object) {
                    watched.set(object);
                }
            }
        }
        watched
    }

    /// The next time at which it has something to do without an event; `None` if there is none.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let wakes = [
            self.driver.next_wake().map(|own| self.true_time(own)),
            self.network.next_wake(),
            self.feed.next_wake(),
            self.late.iter().map(|(at, _)| *at).min(),
        ];
        wakes.into_iter().flatten().min()
    }

    fn moment(&self, now: Instant) -> Moment {
        moment(self.clock(now))
    }

    // === steps ===

    /// Takes one step: takes in watch events, decides, or lets one request or answer arrive. Returns false if there was
    /// nothing to do.
    pub(crate) fn step(
        &mut self,
        around: &mut Surroundings<'_>,
        judge: &mut impl Judge<M>,
    ) -> bool {
        let heard = self.listen(around);
        self.act(around, judge) || heard
    }

    /// Decides, or lets one request or answer arrive. Returns false if there was nothing to do.
    pub(crate) fn act(&mut self, around: &mut Surroundings<'_>, judge: &mut impl Judge<M>) -> bool {
        // The order is drawn: a component may or may not decide something else between two requests.
        let network_first = self.network.is_due(around.now) && around.draws.order.chance(1, 2);
        match network_first {
            true => self.exchange(around, judge) || self.decide(around, judge),
            false => self.decide(around, judge) || self.exchange(around, judge),
        }
    }

    /// Decides on one effect, and sends its first request. Returns false if there is none.
    fn decide(&mut self, around: &mut Surroundings<'_>, judge: &mut impl Judge<M>) -> bool {
        let at = self.moment(around.now);
        let mut acted = false;
        loop {
            let mut seeing = Seeing {
                judge: &mut *judge,
                seen: &self.seen,
            };
            match self.driver.poll(at, &mut seeing) {
                Progress::Idle => return acted,
                Progress::Decided if acted => return true,
                Progress::Decided => acted = true,
                Progress::Do(Action::Watch(action)) => {
                    self.ask(around, action);
                    return true;
                }
                Progress::Do(Action::Reply(id, decision)) => {
                    self.replies.push((id, decision));
                    return true;
                }
                Progress::Do(Action::Send(ticket, request)) => {
                    judge.sent(at.now, &request);
                    let weather = Weather::of(around.faults, self.sender, &request);
                    let rng = &mut *around.draws.faults;
                    self.network.send(around.now, ticket, request, weather, rng);
                    if around.faults.is_calm() {
                        // Without faults the network takes no time.
                        self.exchange(around, judge);
                    }
                    return true;
                }
            }
        }
    }

    /// Lets one request or answer arrive. Returns false if none is due.
    fn exchange(&mut self, around: &mut Surroundings<'_>, judge: &mut impl Judge<M>) -> bool {
        let (now, sender, faults) = (around.now, self.sender, around.faults);
        let (machine, server) = (self.driver.machine(), &mut *around.server);
        let mut execute = |request: &Request| judge.execute(machine, server, now, request);
        let step = self.network.step(
            now,
            |request| Weather::of(faults, sender, request),
            &mut execute,
            &mut around.draws,
        );
        match step {
            Delivery::Nothing => false,
            Delivery::Moved => true,
            Delivery::Arrived(ticket, answer) => {
                let at = self.moment(now);
                let mut seeing = Seeing {
                    judge,
                    seen: &self.seen,
                };
                let event = Event::Answered(ticket, answer);
                self.driver.handle(at, event, &mut seeing);
                true
            }
        }
    }

    // === watches ===

    /// Begins, ends or refreshes a watch. A fault delays lists, except those that a component starts with: it decides
    /// nothing before they are complete.
    fn ask(&mut self, around: &mut Surroundings<'_>, action: WatchAction) {
        let delay = around.faults.watch().map_or(0, |fault| fault.delay.0);
        match action {
            WatchAction::Begin { .. } | WatchAction::ReadAgain { .. }
                if delay > 0 && self.driver.is_ready() =>
            {
                let delay = Span(around.draws.faults.between(0, delay));
                self.late.push((around.now + delay, action));
            }
            action => self.watch(around.now, action, around.server),
        }
    }

    /// Runs the delayed lists that are due. Returns false if there are none.
    fn list_late(&mut self, around: &Surroundings<'_>) -> bool {
        let is_over = around.faults.watch().is_none();
        let due = |(at, _): &mut (Instant, WatchAction)| is_over || *at <= around.now;
        let due: Vec<_> = self.late.extract_if(.., due).collect();
        let is_any = !due.is_empty();
        for (_, action) in due {
            self.watch(around.now, action, around.server);
        }
        is_any
    }

    fn watch(&mut self, now: Instant, action: WatchAction, server: &Server) {
        match action {
            WatchAction::Begin {
                id,
                kind,
                reading,
                scope,
            } => {
                let kind = Kind::of_group(&kind.api_version(), &kind.kind);
                let watched = Watched { id, reading, scope };
                self.watched.insert(kind.clone(), watched);
                self.list(now, &kind, server);
            }
            WatchAction::End(ended) => {
                let watched = self
                    .watched
                    .extract_if(.., |_, watched| watched.id == ended);
                for (kind, _) in watched {
                    for object in self.seen.all_of(&kind) {
                        self.seen.remove(&object.key());
                    }
                }
                self.late.retain(
                    |(_, action)| !matches!(action, WatchAction::Begin { id, .. } if *id == ended),
                );
            }
            WatchAction::ReadAgain {
                id,
                kind,
                namespace,
            } => {
                let kind = Kind::of_group(&kind.api_version(), &kind.kind);
                let all = server.tables().all_of(&kind).into_iter();
                let here = all.filter(|object| *object.meta().name.namespace == *namespace);
                let objects =
                    here.map(|object| (named(object.meta()), read(&object, Reading::Known)));
                let objects = objects.collect();
                self.hear(now, id, WatchEvent::Again(namespace, objects));
            }
        }
    }

    /// Lists all objects of a kind, because its watch begins or was cut.
    fn list(&mut self, now: Instant, kind: &Kind, server: &Server) {
        let Some(Watched { id, reading, scope }) = self.watched.get(kind) else {
            return;
        };
        let (id, reading) = (*id, *reading);
        let all = server.tables().all_of(kind).into_iter();
        let all: Vec<Object> = all.filter(|object| matches(scope, object)).collect();
        self.feed.skip(now, server, kind);
        self.hear(now, id, WatchEvent::ListBegins);
        for object in self.seen.all_of(kind) {
            self.seen.remove(&object.key());
        }
        for object in all {
            self.seen.set(object.clone());
            self.hear(now, id, set(&object, reading));
        }
        self.hear(now, id, WatchEvent::ListEnds);
    }

    /// Takes in all that its watches deliver. Returns false if there is nothing.
    pub(crate) fn listen(&mut self, around: &mut Surroundings<'_>) -> bool {
        let mut heard = self.list_late(around);
        while let Some(brought) = self.feed.bring(
            around.now,
            around.server,
            around.faults.watch(),
            around.draws.faults,
        ) {
            match brought {
                Brought::Cut(kind) => {
                    heard = true;
                    *self.network.hits.entry("watch cut").or_default() += 1;
                    self.list(around.now, &kind, around.server);
                }
                Brought::Change(change) => heard |= self.take_in(around.now, change),
            }
        }
        heard
    }

    fn take_in(&mut self, now: Instant, change: Change) -> bool {
        let Some(Watched { id, reading, scope }) = self.watched.get(&change.key.kind) else {
            return false;
        };
        let (id, reading) = (*id, *reading);
        let event = match change.new.filter(|object| matches(scope, object)) {
            Some(object) => {
                let event = set(&object, reading);
                self.seen.set(object);
                Some(event)
            }
            // The object was deleted, or no longer matches this watch.
            None => {
                let old = self.seen.remove(&change.key);
                old.map(|old| WatchEvent::Gone(named(old.meta())))
            }
        };
        let heard = event.is_some();
        if let Some(event) = event {
            self.hear(now, id, event);
        }
        heard
    }

    fn hear(&mut self, now: Instant, id: WatchId, event: WatchEvent) {
        self.handle(now, Event::Watch(id, event));
    }
}

fn moment(now: Instant) -> Moment {
    Moment { now, wall: now }
}

fn named(meta: &Meta) -> Named {
    Named {
        namespace: (&*meta.name.namespace).into(),
        name: (&*meta.name.name).into(),
        uid: (&*meta.uid).into(),
    }
}

/// The watch event for a stored object.
fn set(object: &Object, reading: Reading) -> WatchEvent {
    let read = read(object, reading);
    WatchEvent::Set(named(object.meta()), Box::new(read))
}

fn read(object: &Object, reading: Reading) -> watch::Object {
    match (object, reading) {
        (Object::Pod(pod), Reading::Known) => watch::Object::Pod(pod.clone()),
        (object, Reading::Known) => watch::Object::Known(object.to_kube()),
        (object, Reading::Custom { .. }) => watch::Object::Custom(Custom {
            object: object.to_json(),
            scale: None,
        }),
    }
}

/// True if a watch of this scope delivers the object.
fn matches(scope: &Scope, object: &Object) -> bool {
    let name = &object.meta().name;
    let field = |key: &str| match (key, object) {
        ("metadata.name", _) => &*name.name,
        ("status.phase", Object::Pod(pod)) => pod.status.phase.name(),
        _ => "",
    };
    let is_here = scope
        .namespace
        .as_deref()
        .is_none_or(|here| *name.namespace == *here);
    let mut terms = scope.fields.iter().flat_map(|fields| fields.split(','));
    is_here
        && terms.all(|term| match term.split_once("!=") {
            Some((key, value)) => field(key) != value,
            None => term
                .split_once('=')
                .is_none_or(|(key, value)| field(key) == value),
        })
}
