//! A machine of Placements that makes mistakes on request, to test that the judge finds them.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use strew_model::Symbol;
use strew_model::time::Instant;
use strew_placement::machine::{Effect, EffectId, Input, Outcome, PlacementName};
use strew_runtime::placement::Placements;
use strew_runtime::watch::{Update, Watches};
use strew_runtime::{Answered, Begun, Machine, Moment, Next};
use strew_wire::placement::request::Carrying;

/// How the controller carries out the effects of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Diligence {
    /// One write after another, in the machine's order.
    #[default]
    AsDecided,
    /// Every second write of a placement overtakes the one before it: the judge must notice.
    Overtaking,
}

type Key = (Symbol, Symbol);

/// The machine.
pub(super) struct Careless {
    placements: Placements,
    diligence: Diligence,
    now: Instant,
    /// Effects that the machine believes done, and that are carried out after the next one; only with `Overtaking`.
    overtaken: BTreeMap<Key, Effect>,
    /// Delayed effects that are due.
    late: VecDeque<Effect>,
}

/// An effect in progress, and the placement whose decisions it writes.
type Chain = (Carrying, Option<Key>);

impl Careless {
    pub(super) fn new(placements: Placements, diligence: Diligence) -> Self {
        Self {
            placements,
            diligence,
            now: Instant::default(),
            overtaken: BTreeMap::new(),
            late: VecDeque::new(),
        }
    }

    pub(super) fn placements(&self) -> &Placements {
        &self.placements
    }

    /// Reports a write as done, and carries it out after the next one.
    fn overtakes(&mut self, effect: &Effect) -> bool {
        let Effect::WriteDecision {
            id,
            placement,
            revision,
            ..
        } = effect
        else {
            return false;
        };
        let key = key(placement);
        if self.diligence == Diligence::AsDecided || self.overtaken.contains_key(&key) {
            return false;
        }
        self.overtaken.insert(key, effect.clone());
        self.tell(*id, revision.unwrap_or(0));
        true
    }

    fn tell(&mut self, effect: EffectId, revision: u64) {
        let outcome = Outcome::Ok { revision };
        let input = Input::Outcome { effect, outcome };
        self.placements.machine_mut().handle(self.now, input);
    }
}

fn key(placement: &PlacementName) -> Key {
    (placement.namespace, placement.name)
}

impl Machine for Careless {
    type Effect = Effect;
    type Chain = Chain;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches) {
        self.placements.take_in(now, update, watches);
    }

    fn tick(&mut self, now: Instant) {
        self.now = now;
        self.placements.tick(now);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        if let Some(late) = self.late.pop_front() {
            return Some(late);
        }
        loop {
            let effect = self.placements.poll_effect()?;
            if !self.overtakes(&effect) {
                return Some(effect);
            }
        }
    }

    fn begin(&mut self, at: Moment, effect: Effect, leads: bool) -> Begun<Chain> {
        let of = match &effect {
            Effect::WriteDecision { placement, .. } => Some(key(placement)),
            _ => None,
        };
        match self.placements.begin(at, effect, leads) {
            Begun::Nothing => Begun::Nothing,
            Begun::Event(request) => Begun::Event(request),
            Begun::Chain {
                about,
                chain,
                request,
            } => Begun::Chain {
                about,
                chain: (chain, of),
                request,
            },
        }
    }

    fn answered(&mut self, at: Moment, (chain, of): Chain, answered: &Answered) -> Next<Chain> {
        match self.placements.answered(at, chain, answered) {
            Next::Send(chain, request) => Next::Send((chain, of), request),
            Next::Done => {
                let late = of.and_then(|key| self.overtaken.remove(&key));
                self.late.extend(late);
                Next::Done
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.placements.next_wake()
    }
}
