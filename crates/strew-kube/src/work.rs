//! One machine at work: what its watches tell goes in, and what it wants goes out, while this replica acts.
//!
//! The same for every machine; what is different is a [`Machine`]: how it is told of objects, and which requests its
//! effects are. All state is in the API server, or derived from it: who ends at any moment loses nothing.

use std::time::Duration;

use strew_model::time::Instant;

use crate::clock::Clock;
use crate::leading::Leads;
use crate::send::{Arrived, Errand, Outbox};
use crate::watch::{Told, Watches};

/// So much is taken in before the machine decides again.
const TAKEN_MAX: usize = 512;

/// So many effects are carried out before the loop looks at what has arrived.
const EFFECTS_MAX: usize = 32;

/// Nothing is waited for longer.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A machine, what is known beside it, and its words on the wire.
pub(crate) trait Machine {
    /// Its effects on their way.
    type Errand: Errand;

    /// Takes in what a watch has told; more may be watched from then on.
    fn take_in(&mut self, now: Instant, told: Told, watches: &mut Watches);

    /// Whether all that decides has been told once.
    fn is_whole(&self, watches: &Watches) -> bool {
        watches.is_whole()
    }

    /// Takes in that a request was answered.
    fn settle(
        &mut self,
        now: Instant,
        arrived: Arrived<Self::Errand>,
        outbox: &mut Outbox<Self::Errand>,
    );

    /// Nothing but time has passed.
    fn tick(&mut self, now: Instant);

    /// Carries out its next effect; whether there was one.
    fn carry_out(&mut self, clock: &Clock, outbox: &mut Outbox<Self::Errand>) -> bool;

    /// When time alone gives it something to do.
    fn next_wake(&self) -> Option<Instant>;
}

/// A machine at work.
pub(crate) struct Worker<M: Machine> {
    pub(crate) machine: M,
    pub(crate) watches: Watches,
    pub(crate) outbox: Outbox<M::Errand>,
    clock: Clock,
    leads: Leads,
    /// Whether all that decides has been told once.
    is_ready: bool,
    /// Whether the machine has more to decide on at once.
    has_more: bool,
    /// Whether it might decide when it was last asked: what has come up since it might not, waits for no news.
    decides: bool,
}

impl<M: Machine> Worker<M> {
    /// A machine, and the watches that it begins with.
    pub(crate) fn new(
        machine: M,
        watches: Watches,
        outbox: Outbox<M::Errand>,
        clock: Clock,
        leads: Leads,
    ) -> Self {
        Self {
            machine,
            watches,
            outbox,
            clock,
            leads,
            is_ready: false,
            has_more: false,
            decides: false,
        }
    }

    /// Whether all that decides has been told once: decisions before would be made on half a cluster.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The moment by which it decides.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Waits until there is something to do, and does it. May be dropped while it waits, and called again.
    pub(crate) async fn work(&mut self) {
        let wake = self.next_wake();
        tokio::select! {
            biased;
            arrived = self.outbox.done() => self.settle(arrived),
            told = self.watches.next() => self.take_told(told),
            () = tokio::time::sleep(wake) => {}
        }
        self.take_in();
        self.has_more = self.decide();
        if self.has_more {
            // What carries requests and watches has its turn.
            tokio::task::yield_now().await;
        }
    }

    /// Has the machine decide at once: it was told something beside what the watches tell.
    pub(crate) fn decide_now(&mut self) {
        self.has_more = self.decide();
    }

    /// How long nothing needs to be done, if nothing arrives.
    fn next_wake(&self) -> Duration {
        if !self.may_decide() {
            return WAIT_MAX;
        }
        if self.has_more || !self.decides {
            return Duration::ZERO;
        }
        let first = self.machine.next_wake();
        first.map_or(WAIT_MAX, |at| self.clock.until(at).min(WAIT_MAX))
    }

    fn may_decide(&self) -> bool {
        self.is_ready && self.leads.now()
    }

    /// Takes in what has arrived, without waiting.
    fn take_in(&mut self) {
        for _ in 0..TAKEN_MAX {
            let arrived = self.outbox.try_done();
            let told = self.watches.try_next();
            if arrived.is_none() && told.is_none() {
                return;
            }
            if let Some(arrived) = arrived {
                self.settle(arrived);
            }
            if let Some(told) = told {
                self.take_told(told);
            }
        }
    }

    fn take_told(&mut self, told: Told) {
        let now = self.clock.now();
        self.machine.take_in(now, told, &mut self.watches);
        self.is_ready = self.is_ready || self.machine.is_whole(&self.watches);
    }

    fn settle(&mut self, arrived: Arrived<M::Errand>) {
        let now = self.clock.now();
        self.machine.settle(now, arrived, &mut self.outbox);
    }

    /// Lets the machine decide for a while. Whether there is more to do.
    fn decide(&mut self) -> bool {
        self.decides = self.may_decide();
        if !self.decides {
            return false;
        }
        self.machine.tick(self.clock.now());
        for _ in 0..EFFECTS_MAX {
            if self.outbox.is_full() || !self.machine.carry_out(&self.clock, &mut self.outbox) {
                return false;
            }
        }
        true
    }

    /// Sends nothing new, and waits until then for what is on its way.
    pub(crate) async fn end(&mut self, over: Instant) {
        while self.outbox.waiting() > 0 && self.clock.now() < over {
            let left = self.clock.until(over);
            if let Ok(arrived) = tokio::time::timeout(left, self.outbox.done()).await {
                self.settle(arrived);
            }
        }
        if self.outbox.dropped() > 0 {
            tracing::warn!(events = self.outbox.dropped(), "events were dropped");
        }
    }
}
