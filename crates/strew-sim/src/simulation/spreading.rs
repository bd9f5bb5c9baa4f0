//! Webhook and controller of WorkloadSpreads among the components; they begin with the first WorkloadSpread.

use strew_controllers::object::WorkloadSpread;
use strew_model::Prng;
use strew_model::time::Instant;

use super::Simulation;
use crate::slot::Slot;
use crate::workloadspread::{Line, SpreadKeeper, Weather, Webhook};

/// Replicas of the webhook, unless somebody says otherwise.
pub(super) const REPLICAS: usize = 2;

/// The webhook, and the controller.
pub(super) const COMPONENTS: usize = 2;

impl Simulation {
    /// The webhook has so many replicas. To be said before there is a WorkloadSpread, or all begin anew.
    pub fn set_webhook_replicas(&mut self, n_replicas: usize) {
        self.n_webhooks = n_replicas.max(1);
        if self.spreads.take().is_some() {
            self.begin_spreading();
        }
    }

    /// Begins webhook and controller if there is a WorkloadSpread, and they have not begun.
    pub(crate) fn begin_spreading(&mut self) {
        let has_spreads = !self.server.tables().of::<WorkloadSpread>().is_empty();
        if self.spreads.is_some() || !has_spreads {
            return;
        }
        let dice = Prng::new(self.dice.spreads.next_u64());
        let webhook = Webhook::new(self.blueprint.clone(), self.n_webhooks, dice, &self.server);
        self.server.install(webhook);
        self.tell_weather();
        let keeper = SpreadKeeper::new(&self.blueprint, &self.server);
        self.spreads = Some(Slot::new(keeper));
        self.judge_webhook();
    }

    /// One of the two does one thing.
    pub(super) fn step_spreading(&mut self, component: usize) -> bool {
        let now = self.now;
        if component == 0 {
            let step = |webhook: &mut Webhook, server: &mut _| webhook.step(now, server);
            return self.server.with_webhook(step).unwrap_or(false);
        }
        let weather = self.weather();
        let Some(slot) = &mut self.spreads else {
            return false;
        };
        let Some(keeper) = &mut slot.alive else {
            return false;
        };
        let mut line = Line {
            now,
            server: &mut self.server,
            weather,
            dice: &mut self.dice.spreads,
            writes_left: slot.doomed.as_mut().map(|(left, _)| left),
            is_judged: false,
        };
        let acted = keeper.step(&mut line);
        slot.meet_doom(now);
        acted
    }

    fn weather(&self) -> Weather {
        Weather {
            watch: self.faults.watch().copied(),
            write: self.faults.write().copied(),
            call: self.faults.webhook().copied(),
        }
    }

    /// The webhook meets the faults of the moment.
    pub(super) fn tell_weather(&mut self) {
        let weather = self.weather();
        if let Some(webhook) = self.server.webhook_mut() {
            webhook.weather = weather;
        }
    }

    pub(super) fn restart_spreading(&mut self) {
        let now = self.now;
        self.server
            .with_webhook(|webhook, server| webhook.pass_time(now, server));
        if self.spreads.as_ref().is_some_and(|slot| slot.is_due(now)) {
            let keeper = SpreadKeeper::new(&self.blueprint, &self.server);
            self.spreads = Some(Slot::new(keeper));
        }
    }

    pub(super) fn calm_spreading(&mut self) {
        let now = self.now;
        if let Some(webhook) = self.server.webhook_mut() {
            webhook.calm(now);
        }
        if let Some(slot) = &mut self.spreads {
            slot.calm(now);
        }
    }

    /// The first writes that the two still need.
    pub(super) fn spreading_cursors(&self) -> impl Iterator<Item = u64> {
        let webhook = self.server.webhook().and_then(Webhook::cursor);
        let keeper = self.spreads.as_ref().and_then(|slot| slot.alive.as_ref());
        let keeper = keeper.map(|keeper| keeper.seen.cursor());
        webhook.into_iter().chain(keeper)
    }

    /// When time alone gives the two something to do.
    pub(super) fn spreading_wakes(&self) -> impl Iterator<Item = Option<Instant>> + use<> {
        let webhook = self.server.webhook().and_then(Webhook::next_wake);
        let slot = self.spreads.as_ref();
        let keeper = slot.and_then(|slot| slot.alive.as_ref()?.next_wake());
        let restart = slot.and_then(|slot| slot.restart);
        [webhook, keeper, restart].into_iter()
    }
}
