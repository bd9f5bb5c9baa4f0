//! A driver of strew's in the simulated cluster: its watches are fed from the store, its requests go over the network.

use std::collections::BTreeMap;

use strew_api::facts::Named;
use strew_api::request::{Answer, Request};
use strew_apiserver::Tables;
use strew_apiserver::object::{Kind, Object};
use strew_apiserver::server::{Change, Server};
use strew_model::time::{Instant, Span};
use strew_runtime::watch::{self, Custom, Reading, WatchAction, WatchEvent, WatchId, Watches};
use strew_runtime::{Action, Driver, Event, Machine, Moment, Observer, Progress};

use crate::fault::Faults;
use crate::feed::{Brought, Feed};
use crate::network::{Draws, Network, Sender, Step, Weather};

/// No request is sent again after so long.
const PATIENCE: Span = Span::from_secs(60);

/// Who sees what a component decides, and stands before the server when its requests arrive.
pub(crate) trait Judge<M: Machine>: Observer<M> {
    /// Has the server carry out a request.
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
    /// What the watches have brought, for those who judge.
    seen: Tables,
    network: Network,
    /// By so much its clock is ahead of the others'.
    pub(crate) ahead: Span,
}

/// A watch of one kind.
struct Watched {
    id: WatchId,
    reading: Reading,
    /// The first write that its last list did not show.
    since: u64,
}

impl<M: Machine> Component<M> {
    /// A component that begins by listing what there is. It leads until it is told otherwise.
    pub(crate) fn new(
        machine: M,
        watches: Watches,
        sender: Sender,
        server: &Server,
        seed: u64,
    ) -> Self {
        let mut driver = Driver::new(machine, watches, PATIENCE, seed);
        let forever = Event::Lease(Instant(u64::MAX));
        driver.handle(moment(Instant::default()), forever, &mut ());
        Self {
            driver,
            sender,
            feed: Feed::from_now_on(server),
            watched: BTreeMap::new(),
            seen: Tables::default(),
            network: Network::default(),
            ahead: Span::default(),
        }
    }

    /// What its watches have brought.
    pub(crate) fn seen(&self) -> &Tables {
        &self.seen
    }

    /// When time alone gives it something to do.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let own = |at: Instant| Instant(at.0.saturating_sub(self.ahead.0));
        let wakes = [
            self.driver.next_wake().map(own),
            self.network.next_wake(),
            self.feed.next_wake(),
        ];
        wakes.into_iter().flatten().min()
    }

    /// Does one thing: takes in what its watches bring, decides, or has one request or answer arrive. Whether there was
    /// anything.
    pub(crate) fn step(
        &mut self,
        around: &mut Surroundings<'_>,
        judge: &mut impl Judge<M>,
    ) -> bool {
        let heard = self.listen(around, judge);
        // Either first: something else may be decided between two requests, or not.
        let network_first = self.network.is_due(around.now) && around.draws.order.chance(1, 2);
        let acted = match network_first {
            true => self.exchange(around, judge) || self.decide(around, judge),
            false => self.decide(around, judge) || self.exchange(around, judge),
        };
        acted || heard
    }

    fn moment(&self, now: Instant) -> Moment {
        moment(now + self.ahead)
    }

    /// Decides on one effect, and puts its first request on its way.
    fn decide(&mut self, around: &mut Surroundings<'_>, judge: &mut impl Judge<M>) -> bool {
        let at = self.moment(around.now);
        let mut acted = false;
        loop {
            match self.driver.poll(at, judge) {
                Progress::Idle => return acted,
                Progress::Decided if acted => return true,
                Progress::Decided => acted = true,
                Progress::Do(Action::Watch(action)) => {
                    self.watch(around.now, action, around.server, judge);
                    return true;
                }
                Progress::Do(Action::Send(ticket, request)) => {
                    let weather = Weather::of(around.faults, self.sender, &request);
                    let rng = &mut *around.draws.faults;
                    (self.network).send(around.now, ticket, request, weather, rng);
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
                self.driver
                    .handle(at, Event::Answered(ticket, answer), judge);
                true
            }
        }
    }

    // === watches ===

    fn watch(
        &mut self,
        now: Instant,
        action: WatchAction,
        server: &Server,
        judge: &mut impl Judge<M>,
    ) {
        match action {
            WatchAction::Begin {
                id, kind, reading, ..
            } => {
                let kind = Kind::of_group(&kind.api_version(), &kind.kind);
                let watched = Watched {
                    id,
                    reading,
                    since: 0,
                };
                self.watched.insert(kind.clone(), watched);
                self.list(now, &kind, server, judge);
            }
            WatchAction::End(id) => self.watched.retain(|_, watched| watched.id != id),
            WatchAction::ReadAgain { .. } => {}
        }
    }

    /// Lists all objects of a kind: its watch begins, or was cut.
    fn list(&mut self, now: Instant, kind: &Kind, server: &Server, judge: &mut impl Judge<M>) {
        let Some(watched) = self.watched.get_mut(kind) else {
            return;
        };
        watched.since = server.log_end();
        let (id, reading) = (watched.id, watched.reading);
        self.feed.forget(kind);
        self.tell(now, id, WatchEvent::ListBegins, judge);
        for object in self.seen.all_of(kind) {
            self.seen.remove(&object.key());
        }
        for object in server.tables().all_of(kind) {
            self.seen.set(object.clone());
            if let Some(event) = set(&object, reading) {
                self.tell(now, id, event, judge);
            }
        }
        self.tell(now, id, WatchEvent::ListEnds, judge);
    }

    /// Takes in all that its watches bring; whether there was anything.
    fn listen(&mut self, around: &mut Surroundings<'_>, judge: &mut impl Judge<M>) -> bool {
        let mut heard = false;
        while let Some(brought) = self.feed.bring(
            around.now,
            around.server,
            around.faults.watch(),
            around.draws.faults,
        ) {
            match brought {
                Brought::Cut(kind) => {
                    heard = true;
                    self.list(around.now, &kind, around.server, judge);
                }
                Brought::Change(number, change) => {
                    heard |= self.take_in(around.now, number, change, judge)
                }
            }
        }
        heard
    }

    fn take_in(
        &mut self,
        now: Instant,
        number: u64,
        change: Change,
        judge: &mut impl Judge<M>,
    ) -> bool {
        let Some(watched) = self.watched.get(&change.key.kind) else {
            return false;
        };
        let (id, reading) = (watched.id, watched.reading);
        if number < watched.since {
            return false;
        }
        let event = match &change.new {
            Some(object) => {
                self.seen.set(object.clone());
                set(object, reading)
            }
            None => self.seen.remove(&change.key).map(|old| {
                let name = change.key.name;
                WatchEvent::Gone(Named {
                    namespace: (&*name.namespace).into(),
                    name: (&*name.name).into(),
                    uid: (&*old.meta().uid).into(),
                })
            }),
        };
        let heard = event.is_some();
        if let Some(event) = event {
            self.tell(now, id, event, judge);
        }
        heard
    }

    fn tell(&mut self, now: Instant, id: WatchId, event: WatchEvent, judge: &mut impl Judge<M>) {
        let at = self.moment(now);
        self.driver.handle(at, Event::Watch(id, event), judge);
    }
}

fn moment(now: Instant) -> Moment {
    Moment { now, wall: now }
}

/// An object of the store as a watch brings it; `None` where the wire has no form of it.
fn set(object: &Object, reading: Reading) -> Option<WatchEvent> {
    let meta = object.meta();
    let named = Named {
        namespace: (&*meta.name.namespace).into(),
        name: (&*meta.name.name).into(),
        uid: (&*meta.uid).into(),
    };
    let object = match reading {
        Reading::Known => watch::Object::Known(object.to_kube()?),
        Reading::Custom { .. } => watch::Object::Custom(Custom {
            object: object.to_json(),
            scale: None,
        }),
    };
    Some(WatchEvent::Set(named, Box::new(object)))
}
