//! The replicas of a process that the API server calls: each crashes and restarts on its own, and answers on a clock of
//! its own while the API server waits.

use std::collections::BTreeMap;

use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::{CallId, Event, Machine};

use crate::component::{Component, Surroundings};
use crate::fault::{Crash, Faults, Hits};
use crate::slot::Slot;

/// A replica that is called.
pub(crate) trait Callee {
    /// Its answer to a call.
    type Reply;

    /// The next time at which it has something to do without an event.
    fn next_wake(&self) -> Option<Instant>;

    /// The API server has stopped waiting for the answer to a call.
    fn give_up(&mut self, now: Instant, id: CallId);

    /// The answers since the last call.
    fn take_replies(&mut self, now: Instant) -> Vec<(CallId, Box<Self::Reply>)>;

    /// The faults that hit it since the last call.
    fn take_hits(&mut self) -> Hits;
}

impl<M: Machine> Callee for Component<M> {
    type Reply = M::Reply;

    fn next_wake(&self) -> Option<Instant> {
        self.next_wake()
    }

    fn give_up(&mut self, now: Instant, id: CallId) {
        self.handle(now, Event::GaveUp(id));
    }

    fn take_replies(&mut self, _: Instant) -> Vec<(CallId, Box<M::Reply>)> {
        self.take_replies()
    }

    fn take_hits(&mut self) -> Hits {
        self.take_hits()
    }
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// None in time.
    TimedOut,
    /// The replica crashed during the call.
    Died,
}

/// All replicas.
pub(crate) struct Replicas<R: Callee> {
    pub(crate) slots: Vec<Slot<R>>,
    /// The active faults.
    pub(crate) faults: Faults,
    pub(crate) rng: Prng,
    /// Which request in transit comes first.
    pub(crate) order: Prng,
    n_calls: u64,
    /// Answers that have not reached the API server.
    pub(crate) replies: BTreeMap<CallId, R::Reply>,
    /// The faults that hit them.
    pub(crate) hits: Hits,
}

impl<R: Callee> Replicas<R> {
    /// None yet.
    pub(crate) fn new(rng: Prng, order: Prng) -> Self {
        Self {
            slots: Vec::new(),
            faults: Faults::default(),
            rng,
            order,
            n_calls: 0,
            replies: BTreeMap::new(),
            hits: Hits::default(),
        }
    }

    /// The live ones.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &R> {
        self.slots.iter().filter_map(|slot| slot.alive.as_ref())
    }

    /// The places of those whose restart is due.
    pub(crate) fn due(&self, now: Instant) -> Vec<usize> {
        let slots = self.slots.iter().enumerate();
        let due = slots.filter(|(_, slot)| slot.is_due(now));
        due.map(|(index, _)| index).collect()
    }

    /// Crashes all replicas, or one of them.
    pub(crate) fn crash(&mut self, now: Instant, crash: Crash, only_one: bool) {
        let alive = self.slots.iter_mut().filter(|slot| slot.alive.is_some());
        for slot in alive.take(if only_one { 1 } else { usize::MAX }) {
            slot.crash(now, crash.after_writes, crash.down);
        }
    }

    /// Ends all faults, and makes all restarts due.
    pub(crate) fn calm(&mut self, now: Instant) {
        self.faults = Faults::default();
        self.slots.iter_mut().for_each(|slot| slot.calm(now));
    }

    pub(crate) fn hit(&mut self, kind: &'static str) {
        *self.hits.entry(kind).or_default() += 1;
    }

    // === calls ===

    /// The id of a new call.
    pub(crate) fn new_call(&mut self) -> CallId {
        self.n_calls += 1;
        CallId(self.n_calls)
    }

    /// Draws the place of a live replica; `None` if there is none.
    pub(crate) fn draw(&mut self) -> Option<usize> {
        let places = 0..self.slots.len();
        let alive: Vec<usize> = places
            .filter(|&index| self.slots[index].alive.is_some())
            .collect();
        (!alive.is_empty()).then(|| *self.rng.pick(&alive))
    }

    /// Draws whether a call gets lost.
    pub(crate) fn draw_loss(&mut self) -> bool {
        let ppm = self.faults.webhook().map_or(0, |fault| fault.lost_ppm);
        ppm > 0 && self.rng.chance(u64::from(ppm), 1_000_000)
    }

    /// Lets one replica take a step at this time of its own `clock`. Returns false if it is down or had nothing to do.
    pub(crate) fn step(
        &mut self,
        index: usize,
        (now, clock): (Instant, Instant),
        server: &mut Server,
        step: impl FnOnce(&mut R, &mut Surroundings<'_>) -> bool,
    ) -> bool {
        let slot = &mut self.slots[index];
        if slot.alive.is_none() {
            return false;
        }
        let world = (server, &self.faults);
        let acted = slot.act(clock, world, [&mut self.rng, &mut self.order], step);
        if let Some(replica) = &mut slot.alive {
            for (id, reply) in replica.take_replies(clock) {
                self.replies.insert(id, *reply);
            }
            for (kind, n) in replica.take_hits() {
                *self.hits.entry(kind).or_default() += n;
            }
        }
        slot.meet_doom(now);
        if slot.alive.is_none() {
            self.hit("died over a request");
        }
        acted
    }

    /// Steps a replica on its own clock until it answers, or until the API server stops waiting.
    ///
    /// # Errors
    /// No answer came.
    pub(crate) fn wait(
        &mut self,
        index: usize,
        id: CallId,
        (now, timeout): (Instant, Span),
        server: &mut Server,
        mut step: impl FnMut(&mut R, &mut Surroundings<'_>) -> bool,
    ) -> Result<R::Reply, Unanswered> {
        let (mut clock, until) = (now, now + timeout);
        loop {
            let acted = self.step(index, (now, clock), server, &mut step);
            if let Some(reply) = self.replies.remove(&id) {
                return Ok(reply);
            }
            let replica = self.slots[index].alive.as_mut();
            let replica = replica.ok_or(Unanswered::Died)?;
            if acted {
                continue;
            }
            let wake = replica.next_wake();
            match wake.filter(|wake| *wake > clock && *wake <= until) {
                Some(wake) => clock = wake,
                None => {
                    replica.give_up(clock, id);
                    return Err(Unanswered::TimedOut);
                }
            }
        }
    }
}
