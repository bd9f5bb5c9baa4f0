//! A driver in the simulated cluster: the store feeds its watches, and its requests go over the simulated network.

use std::collections::BTreeMap;

use strew_api::facts::Named;
use strew_api::request::{Answer, Request};
use strew_api::workloadspread::review::Decision;
use strew_apiserver::Tables;
use strew_apiserver::object::{Kind, Meta, Object};
use strew_apiserver::server::{Change, Server};
use strew_model::time::{Instant, Span};
use strew_runtime::admission;
use strew_runtime::watch::{
    self, Custom, Reading, Scope, WatchAction, WatchEvent, WatchId, Watches,
};
use strew_runtime::{Action, Answered, CallId, Driver, Event, Machine, Moment, Observer, Progress};

use crate::fault::{Faults, Hits};
use crate::feed::{Brought, Feed};
use crate::network::{Draws, Network, Sender, Step, Weather};

/// No request of a controller or scheduler is sent again after so long.
const PATIENCE: Span = Span::from_secs(60);

/// Who sees what a component decides and sends, and stands before the server when its requests arrive; `()` does
/// nothing of it.
pub(crate) trait Judge<M: Machine> {
    /// An effect was decided just now, on what the watches have brought; nothing of it has begun.
    fn decided(&mut self, machine: &mut M, seen: &Tables, effect: &M::Effect) {
        let _ = (machine, seen, effect);
    }

    /// A request is put on its way, at this moment of the component's own clock.
    fn sent(&mut self, clock: Instant, request: &Request) {
        let _ = (clock, request);
    }

    /// A request has arrived: the server carries it out.
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

/// A judge that reads what the watches have delivered.
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
    /// The watches by kind.
    watched: BTreeMap<Kind, Watched>,
    /// Lists that a fault holds back, and until when.
    late: Vec<(Instant, WatchAction)>,
    /// What the watches have delivered, for the judge.
    seen: Tables,
    network: Network,
    /// By so much its clock is ahead of the others'.
    ahead: Span,
    /// Answers to calls that were not taken yet.
    replies: Vec<(CallId, Box<Decision>)>,
}

/// A watch of one kind.
struct Watched {
    id: WatchId,
    reading: Reading,
    scope: Scope,
}

impl<M: Machine> Component<M> {
    /// A component whose watches have listed the store. It leads until it is told otherwise.
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

    /// One that has listed what is stored, and decides nothing.
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

    /// Lists what is stored. The machine must want nothing yet.
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

    /// Tells the machine something that no watch tells.
    pub(crate) fn tell<R>(&mut self, f: impl FnOnce(&mut M, &mut Watches) -> R) -> R {
        self.driver.tell(f)
    }

    /// Takes in what no watch and no request brings.
    pub(crate) fn handle(&mut self, now: Instant, event: Event) {
        let at = self.moment(now);
        self.driver.handle(at, event, &mut ());
    }

    /// The answers to calls since the last call.
    pub(crate) fn take_replies(&mut self) -> Vec<(CallId, Box<Decision>)> {
        std::mem::take(&mut self.replies)
    }

    /// What has hit it since the last call.
    pub(crate) fn take_hits(&mut self) -> Hits {
        std::mem::take(&mut self.network.hits)
    }

    /// It acts until this moment of its own clock.
    pub(crate) fn lease(&mut self, until: Instant) {
        self.handle(Instant::default(), Event::Lease(until));
    }

    /// Its clock jumps ahead.
    pub(crate) fn jump(&mut self, by: Span) {
        self.ahead = Span(self.ahead.0.saturating_add(by.0));
    }

    /// A moment by its own clock.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.ahead
    }

    /// The moment at which its own clock shows `own`.
    pub(crate) fn true_time(&self, own: Instant) -> Instant {
        Instant(own.0.saturating_sub(self.ahead.0))
    }

    /// What its watches have brought.
    pub(crate) fn seen(&self) -> &Tables {
        &self.seen
    }

    /// What its watches would bring of what is stored.
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

    /// When time alone gives it something to do.
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

    /// Does one thing: takes in what its watches bring, decides, or has one request or answer arrive. Whether there was
    /// anything.
    pub(crate) fn step(
        &mut self,
        around: &mut Surroundings<'_>,
        judge: &mut impl Judge<M>,
    ) -> bool {
        let heard = self.listen(around);
        self.act(around, judge) || heard
    }

    /// Decides, or has one request or answer arrive. Whether there was anything.
    pub(crate) fn act(&mut self, around: &mut Surroundings<'_>, judge: &mut impl Judge<M>) -> bool {
        // Either first: something else may be decided between two requests, or not.
        let network_first = self.network.is_due(around.now) && around.draws.order.chance(1, 2);
        match network_first {
            true => self.exchange(around, judge) || self.decide(around, judge),
            false => self.decide(around, judge) || self.exchange(around, judge),
        }
    }

    /// Decides on one effect, and puts its first request on its way.
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

    /// Has one request or answer arrive.
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
            Step::Nothing => false,
            Step::Moved => true,
            Step::Arrived(ticket, answer) => {
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

    /// Lists as late as a fault makes what a watch tells; what a component begins with is listed at once, since it decides
    /// nothing before.
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

    /// Lists what a fault held back until now; whether there was anything.
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
                let objects = here.filter_map(|object| {
                    let read = read(&object, Reading::Known)?;
                    Some((named(object.meta()), read))
                });
                let objects = objects.collect();
                self.hear(now, id, WatchEvent::Again(namespace, objects));
            }
        }
    }

    /// Lists all objects of a kind: its watch begins, or was cut.
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
            if let Some(event) = set(&object, reading) {
                self.hear(now, id, event);
            }
        }
        self.hear(now, id, WatchEvent::ListEnds);
    }

    /// Takes in all that its watches bring; whether there was anything.
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
                event
            }
            // Gone, or no object of this watch any more.
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

/// That an object of the store is there, as a watch brings it; `None` where the wire has no form of it.
fn set(object: &Object, reading: Reading) -> Option<WatchEvent> {
    let read = read(object, reading)?;
    Some(WatchEvent::Set(named(object.meta()), Box::new(read)))
}

fn read(object: &Object, reading: Reading) -> Option<watch::Object> {
    Some(match (object, reading) {
        (Object::Pod(pod), Reading::Known) => watch::Object::Pod(pod.clone()),
        (object, Reading::Known) => watch::Object::Known(object.to_kube()?),
        (object, Reading::Custom { .. }) => watch::Object::Custom(Custom {
            object: object.to_json(),
            scale: None,
        }),
    })
}

/// Whether an object is one of those that a watch brings.
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
