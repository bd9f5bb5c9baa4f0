//! strew's controller on a simulated hub: the very machine that places in a real one, and what carries its effects out.
//!
//! It runs from the first Placement on; a cluster without any pays nothing. Reading order: this file (its steps),
//! `sending` (requests on their way), [`fleet`] (what is stored, as a fresh controller sees it).

pub mod fleet;
mod sending;

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_api::placement::cel::CelSelectors;
use strew_api::placement::facts::{gone, inputs};
use strew_api::placement::request::{Carrying, Context};
use strew_api::read::KubeObject;
use strew_apiserver::Tables;
use strew_apiserver::object::{Kind, Object};
use strew_model::time::Instant;
use strew_model::{Interner, Prng, Symbol};
use strew_placement::machine::{Effect, Input, Limits, Outcome, Placer};
use strew_placement::schedule::schedule;

use crate::auditor::Witness;
use crate::client::WriteFault;
use crate::feed::{Feed, WatchFault};
pub use fleet::Fleet;
use sending::{Done, Outbox};
use strew_apiserver::server::{Change, Server};

/// Its hostname, part of the names that events give.
const HOSTNAME: &str = "controller-0";

/// The kinds that placement looks at.
const KINDS: [&str; 6] = [
    "ManagedCluster",
    "ManagedClusterSet",
    "ManagedClusterSetBinding",
    "AddOnPlacementScore",
    "Placement",
    "PlacementDecision",
];

/// Whether placement looks at objects of a kind.
fn concerns(kind: &Kind) -> bool {
    matches!(kind, Kind::Other(name) if KINDS.contains(&&**name))
}

/// An object of the store as the wire has it.
fn wire_of(object: &Object) -> Option<KubeObject> {
    concerns(&object.kind()).then(|| object.to_kube()).flatten()
}

/// How the controller carries out what the machine wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Diligence {
    /// One write after another, in the machine's order.
    #[default]
    AsDecided,
    /// Each second write of a placement overtakes the one before: the judge must notice.
    Overtaking,
}

/// The clusters that a placement's last decision wants, by namespace and name of the placement; for the witness.
type Desired = BTreeMap<(Symbol, Symbol), Arc<[Arc<str>]>>;

/// strew's controller.
pub struct PlacementController {
    machine: Placer,
    cel: CelSelectors,
    feed: Feed,
    seen: Tables,
    outbox: Outbox,
    diligence: Diligence,
    /// Writes that were told as done and are not yet: only where they overtake each other.
    overtaken: BTreeMap<(Symbol, Symbol), Effect>,
    desired: Desired,
}

/// What it may use in a step.
pub(crate) struct Around<'a> {
    pub(crate) now: Instant,
    pub(crate) server: &'a mut Server,
    pub(crate) watch_fault: Option<&'a WatchFault>,
    pub(crate) write_fault: Option<&'a WriteFault>,
    /// What faults hit.
    pub(crate) dice: &'a mut Prng,
    /// Which of several things is done first.
    pub(crate) order: &'a mut Prng,
    /// How many more requests it lives to send.
    pub(crate) writes_left: Option<&'a mut u32>,
    pub(crate) witness: Option<&'a mut Witness>,
}

impl PlacementController {
    /// A controller that begins by listing what there is.
    pub(crate) fn new(server: &Server, now: Instant, diligence: Diligence) -> Self {
        Self {
            machine: Placer::new(Interner::new(), Limits::default(), now),
            cel: CelSelectors::new(),
            feed: Feed::new(server),
            seen: Tables::default(),
            outbox: Outbox::default(),
            diligence,
            overtaken: BTreeMap::new(),
            desired: Desired::new(),
        }
    }

    /// What its watch has brought.
    pub fn seen(&self) -> &Tables {
        &self.seen
    }

    /// When time alone gives it something to do.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let wakes = [
            self.machine.next_wake(),
            self.outbox.next_wake(),
            self.feed.next_wake(),
        ];
        wakes.into_iter().flatten().min()
    }

    /// Does one thing: takes in what its watch tells, decides, or sends one request. Whether there was anything.
    pub(crate) fn step(&mut self, around: &mut Around<'_>) -> bool {
        let told = self.listen(around);
        self.machine.handle(around.now, Input::Tick);
        // Either first: another placement is decided between two writes of one, or not.
        let sends_first = self.outbox.is_due(around.now) && around.order.chance(1, 2);
        let acted = match sends_first {
            true => self.send(around) || self.decide(around),
            false => self.decide(around) || self.send(around),
        };
        acted || told
    }

    fn listen(&mut self, around: &mut Around<'_>) -> bool {
        let mut told = false;
        while let Some(change) = self.feed.next(
            around.now,
            around.server,
            &self.seen,
            around.watch_fault,
            around.dice,
        ) {
            told = true;
            self.take_in(around.now, change);
        }
        told
    }

    fn take_in(&mut self, now: Instant, change: Change) {
        let old = match &change.new {
            Some(object) => self.seen.set(object.clone()),
            None => self.seen.remove(&change.key),
        };
        if !concerns(&change.key.kind) {
            return;
        }
        let names = self.machine.names_mut();
        let input = match (change.new, old) {
            (Some(object), _) => {
                wire_of(&object).and_then(|wire| inputs(&wire, names, &mut self.cel))
            }
            (None, Some(old)) => wire_of(&old).and_then(|wire| gone(&wire, names, &mut self.cel)),
            (None, None) => None,
        };
        if let Some(input) = input {
            self.machine.handle(now, input);
        }
    }

    /// Lets the machine decide, until it wants something.
    fn decide(&mut self, around: &mut Around<'_>) -> bool {
        let runs = self.machine.counters().decided;
        let Some(effect) = self.machine.poll_effect(&self.cel) else {
            return false;
        };
        if around.witness.is_some() && self.machine.counters().decided > runs {
            self.note_desired(&effect, around);
        }
        if self.overtakes(&effect, around.now) {
            return true;
        }
        let cx = context(&self.machine, around.now);
        let (carrying, request) = Carrying::begin(effect, &cx);
        self.outbox.add(carrying, request, around.now);
        true
    }

    /// What a decision wants, computed once more from what it was made of: its own result is not asked.
    fn note_desired(&mut self, effect: &Effect, around: &mut Around<'_>) {
        let Effect::WriteDecision { placement, .. } = effect else {
            return;
        };
        let key = (placement.namespace, placement.name);
        let Some(fact) = self.machine.placement(key.0, key.1) else {
            return;
        };
        let hub = self.machine.hub();
        let wanted = schedule(hub, around.now, fact, &self.cel);
        let clusters = wanted.picks.iter().map(|pick| hub.names.text(pick.cluster));
        self.desired.insert(key, clusters.map(Into::into).collect());
        if let Some(witness) = around.witness.as_deref_mut() {
            witness.n_placed += 1;
        }
    }

    /// The careless way: a write is told as done, and done after the next one.
    fn overtakes(&mut self, effect: &Effect, now: Instant) -> bool {
        let Effect::WriteDecision {
            id,
            placement,
            revision,
            ..
        } = effect
        else {
            return false;
        };
        let key = (placement.namespace, placement.name);
        if self.diligence == Diligence::AsDecided || self.overtaken.contains_key(&key) {
            return false;
        }
        self.overtaken.insert(key, effect.clone());
        let outcome = Outcome::Ok {
            revision: revision.unwrap_or(0),
        };
        let input = Input::Outcome {
            effect: *id,
            outcome,
        };
        self.machine.handle(now, input);
        true
    }

    /// Sends one request, and tells the machine what became of its effect if that is over.
    fn send(&mut self, around: &mut Around<'_>) -> bool {
        let cx = context(&self.machine, around.now);
        let Some(sent) = self.outbox.send(&cx, &self.desired, around) else {
            return false;
        };
        let Some(Done { of, outcome }) = sent else {
            return true;
        };
        if let Some((effect, outcome)) = outcome {
            self.machine
                .handle(around.now, Input::Outcome { effect, outcome });
        }
        if let Some(late) = of.and_then(|key| self.overtaken.remove(&key)) {
            let cx = context(&self.machine, around.now);
            let (carrying, request) = Carrying::begin(late, &cx);
            self.outbox.add(carrying, request, around.now);
        }
        true
    }
}

fn context(machine: &Placer, now: Instant) -> Context<'_> {
    Context {
        names: &machine.hub().names,
        now,
        hostname: HOSTNAME,
    }
}
