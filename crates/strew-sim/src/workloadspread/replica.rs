//! One replica of the webhook, with the driver and machine of a real one.

use strew_apiserver::Tables;
use strew_apiserver::server::Server;
use strew_model::time::{Instant, Span};
use strew_runtime::admission::{AdmissionMachine, Call, Crowded, Payer, Turns, watches};
use strew_runtime::{CallId, Event};
use strew_wire::workloadspread::review::Decision;
use strew_workloadspread::admission::Effect;

use super::controller::{NAMESPACE, served};
use super::judge::Judge;
use crate::component::{self, Component, Surroundings};
use crate::fault::Hits;
use crate::network::Sender;
use crate::registration::Registering;
use crate::replicas::Callee;
use crate::scheduler::Blueprint;
use crate::timing::Between;

pub(crate) struct Replica {
    /// Its number; numbers are never reused.
    pub(super) number: u64,
    component: Component<AdmissionMachine>,
    /// The reviews of the API server, which is the only peer.
    reviews: Turns<()>,
    /// What a review costs.
    cost: Span,
    /// Its part in the registration; `None` if replicas do not register themselves.
    pub(super) registering: Option<Registering>,
}

impl Replica {
    /// A replica that has listed the store: an API server does not call it earlier.
    pub(super) fn new(
        blueprint: &Blueprint,
        number: u64,
        seed: u64,
        status_write: Between,
        (now, server): (Instant, &Server),
    ) -> Self {
        let (names, profiles) = (blueprint.names.clone(), blueprint.profiles.clone());
        let machine = AdmissionMachine::new(names, profiles, blueprint.limits.admission, seed);
        let (watches, sender) = (watches(NAMESPACE), Sender::Webhook(status_write));
        let mut component = Component::new(machine, watches, sender, server, now, seed);
        component.tell(|machine, watches| machine.serve(served(), watches));
        component.list_all(now, server);
        let limits = blueprint.limits.reviews;
        Self {
            number,
            component,
            reviews: Turns::new(limits.turns),
            cost: limits.cost,
            registering: None,
        }
    }

    /// The number of its status writes.
    pub(super) fn n_written(&self) -> u64 {
        self.component.machine().machine().counters().written
    }

    /// The objects that its watches have delivered.
    pub(super) fn seen(&self) -> &Tables {
        self.component.seen()
    }

    /// The stored objects that its watches would deliver.
    pub(super) fn watched(&self, stored: &Tables) -> Tables {
        self.component.watched(stored)
    }

    /// Takes a review.
    ///
    /// # Errors
    /// Too many of its namespace wait.
    pub(super) fn ask(&mut self, now: Instant, id: CallId, call: Box<Call>) -> Result<(), Crowded> {
        self.reviews.put(now, (), id, call)
    }

    /// Takes one step: continues what was begun, or begins the next review. Returns false if there was nothing to do.
    pub(super) fn step(&mut self, around: &mut Surroundings<'_>, eyes: Eyes<'_>) -> bool {
        let Eyes { mut judge, effects } = eyes;
        if let Some(judge) = judge.as_deref_mut() {
            judge.note_stored(around.server.tables());
        }
        let mut seeing = Seeing {
            replica: self.number,
            judge,
            effects,
        };
        if self.component.step(around, &mut seeing) {
            return true;
        }
        let next = self.reviews.next(around.now);
        let begun =
            next.map(|(id, call)| self.component.handle(around.now, Event::Asked(id, call)));
        begun.is_some()
    }
}

impl Callee for Replica {
    type Reply = Decision;

    fn next_wake(&self) -> Option<Instant> {
        self.component.next_wake()
    }

    fn give_up(&mut self, now: Instant, id: CallId) {
        if self.reviews.give_up(id) {
            self.component.handle(now, Event::GaveUp(id));
        }
    }

    fn take_replies(&mut self, now: Instant) -> Vec<(CallId, Box<Decision>)> {
        let replies = self.component.take_replies();
        for (id, _) in &replies {
            self.reviews.charge(now, Payer::Call(*id), self.cost);
            self.reviews.answered(*id);
        }
        replies
    }

    fn take_hits(&mut self) -> Hits {
        self.component.take_hits()
    }
}

/// Observers.
#[derive(Default)]
pub(super) struct Eyes<'a> {
    pub(super) judge: Option<&'a mut Judge>,
    /// Receives all effects.
    pub(super) effects: Option<&'a mut Vec<Effect>>,
}

struct Seeing<'a> {
    replica: u64,
    judge: Option<&'a mut Judge>,
    effects: Option<&'a mut Vec<Effect>>,
}

impl component::Judge<AdmissionMachine> for Seeing<'_> {
    fn decided(&mut self, machine: &mut AdmissionMachine, _: &Tables, effect: &Effect) {
        if let (Some(judge), Effect::Answer(answer)) = (self.judge.as_deref_mut(), effect) {
            judge.answered(self.replica, answer, machine);
        }
        if let Some(effects) = &mut self.effects {
            effects.push(effect.clone());
        }
    }
}
