//! A machine that wants what a test says, and a world that writes down what its driver does.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;

use serde_json::{Value, json};
use strew_model::time::{Instant, Span};
use strew_runtime::watch::{Update, WatchAction, Watches, full_name};
use strew_runtime::{
    Action, Answered, Begun, Driver, Event, Machine, Moment, Next, Progress, Ticket,
};
use strew_wire::facts::Named;
use strew_wire::request::{Answer, Precondition, Request, Resource, Verb, outcome_of};

pub(crate) const START: Instant = Instant::from_secs(1_000);

/// What the machine is asked to want: `about`, and the names of the requests of its chain.
pub(crate) type Wanted = (&'static str, Vec<String>);

/// The machine.
#[derive(Default)]
pub(crate) struct Toy {
    pub(crate) wanted: VecDeque<Wanted>,
    pub(crate) events: VecDeque<String>,
    /// What it has heard since it was asked for last.
    pub(crate) heard: Vec<String>,
    pub(crate) wake: Option<Instant>,
    /// Whether its requests create objects; else they patch a status.
    pub(crate) creates: bool,
}

/// An effect of the machine.
pub(crate) enum Effect {
    Chain(Wanted),
    Event(String),
}

impl Machine for Toy {
    type Effect = Effect;
    type Chain = VecDeque<String>;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, _: Instant, update: Update, _: &mut Watches) {
        self.heard.push(match update {
            Update::Set(_, named, _) => format!("set {} {}", full_name(&named), named.uid),
            Update::Gone(_, named) => format!("gone {} {}", full_name(&named), named.uid),
            Update::Listed(kind) => format!("listed {kind}"),
            Update::Again(_, namespace, objects) => format!("{} in {namespace}", objects.len()),
        });
    }

    fn tick(&mut self, _: Instant) {}

    fn poll_effect(&mut self) -> Option<Effect> {
        let event = self.events.pop_front().map(Effect::Event);
        event.or_else(|| self.wanted.pop_front().map(Effect::Chain))
    }

    fn begin(&mut self, _: Moment, effect: Effect, leads: bool) -> Begun<VecDeque<String>> {
        if !leads {
            self.heard.push("begins without the lease".to_owned());
        }
        match effect {
            Effect::Event(name) => Begun::Event(self.request(&name)),
            Effect::Chain((about, names)) => {
                let mut chain = VecDeque::from(names);
                match chain.pop_front() {
                    None => Begun::Nothing,
                    Some(first) => Begun::Chain {
                        about: about.into(),
                        chain,
                        request: self.request(&first),
                    },
                }
            }
        }
    }

    fn answered(
        &mut self,
        _: Moment,
        mut chain: VecDeque<String>,
        answered: &Answered,
    ) -> Next<VecDeque<String>> {
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        let name = &answered.request.name;
        self.heard.push(format!("{name}: {outcome:?}"));
        match chain
            .pop_front()
            .filter(|_| answered.answer.code() == Some(200))
        {
            Some(next) => Next::Send(chain, Box::new(self.request(&next))),
            None => Next::Done,
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.wake
    }
}

impl Toy {
    /// A patch of a pod's status: sent again after a conflict, and if its answer was lost.
    fn request(&self, name: &str) -> Request {
        let (verb, subresource) = match self.creates {
            true => (Verb::Create, ""),
            false => (Verb::Patch, "status"),
        };
        Request {
            verb,
            resource: Resource::PODS,
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            subresource,
            body: json!({}),
            precondition: Precondition::default(),
        }
    }
}

/// A driver of the machine, and the time.
pub(crate) struct ToyDriver {
    pub(crate) driver: Driver<Toy>,
    pub(crate) now: Instant,
    /// Requests without an answer, oldest first.
    pub(crate) open: VecDeque<(String, Ticket)>,
    /// What was asked about watches.
    pub(crate) asked: Vec<WatchAction>,
}

impl ToyDriver {
    /// A replica that leads for ever.
    pub(crate) fn new(watches: Watches) -> Self {
        let mut world = Self {
            driver: Driver::new(Toy::default(), watches, Span::from_secs(60), 1),
            now: START,
            open: VecDeque::new(),
            asked: Vec::new(),
        };
        world.driver.tell(|_, _| {});
        world.handle(Event::Lease(Instant(u64::MAX)));
        world
    }

    pub(crate) fn at(&self) -> Moment {
        Moment {
            now: self.now,
            wall: self.now,
        }
    }

    pub(crate) fn handle(&mut self, event: Event<Infallible>) {
        self.driver.handle(self.at(), event, &mut ());
    }

    /// The machine wants a chain of requests about an object.
    pub(crate) fn want(&mut self, about: &'static str, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.driver
            .tell(|toy, _| toy.wanted.push_back((about, names)));
    }

    /// Polls until the driver is idle; the names of what was sent.
    pub(crate) fn poll(&mut self) -> String {
        let mut sent = String::new();
        loop {
            match self.driver.poll(self.at(), &mut ()) {
                Progress::Do(Action::Send(ticket, request)) => {
                    let _ = write!(sent, "{} ", request.name);
                    self.open.push_back((request.name.clone(), ticket));
                }
                Progress::Do(Action::Watch(action)) => self.asked.push(action),
                Progress::Do(Action::Reply(_, never)) => match *never {},
                Progress::Decided => {}
                Progress::Idle => return sent.trim_end().to_owned(),
            }
        }
    }

    /// Answers the oldest open request of this name.
    #[track_caller]
    pub(crate) fn answer(&mut self, name: &str, answer: Answer) {
        let mut open = self.open.iter();
        let index = open.position(|(open, _)| open == name);
        let (_, ticket) = self.open.remove(index.expect("it is open")).expect("found");
        self.handle(Event::Answered(ticket, answer));
    }

    /// What the machine has heard since the last call.
    pub(crate) fn heard(&mut self) -> Vec<String> {
        self.driver.tell(|toy, _| std::mem::take(&mut toy.heard))
    }

    /// How long nothing needs to be done; `None`: until something happens.
    pub(crate) fn idle_for(&self) -> Option<Span> {
        self.driver.next_wake().map(|wake| wake.since(self.now))
    }
}

pub(crate) fn code(code: u16) -> Answer {
    Answer::of(code, None, b"{}")
}

pub(crate) fn named(name: &str, uid: &str) -> Named {
    Named {
        namespace: "shop".into(),
        name: name.into(),
        uid: uid.into(),
    }
}

/// An object of this name.
pub(crate) fn object(name: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name}})
}
