//! The machine's state and its three verbs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use strew_model::{Instant, Interner, Span};

use super::counters::Counters;
use super::effect::{Effect, EffectId, EventKind};
use super::input::{Input, Outcome};
use super::pause::Pause;
use super::plan::Facts;
use super::retries::Retries;
use super::sync::Running;
use crate::facts::kinds::Kinds;
use crate::facts::spec::WsKey;
use crate::facts::status::Webhook;
use crate::inject::PodPatcher;
use crate::spreads::Spreads;

/// Settings of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many WorkloadSpreads are synced at a time: `--workloadspread-workers`.
    pub workers: usize,
    /// The first pause after a sync failed, doubled each time.
    pub backoff: Span,
    /// The longest pause.
    pub backoff_max: Span,
    /// How many failed syncs are tried again in a second, all together; 0: any number.
    pub retries_qps: u32,
    /// How many of them at once.
    pub retries_burst: u32,
    /// The pause after a status write, in which its WorkloadSpread is not synced; also after a write that met a conflict.
    /// Zero: there are no pauses.
    pub pause: Span,
    /// Pauses are doubled up to this, while changes keep coming.
    pub pause_max: Span,
    /// An effect without an outcome for so long is taken as failed. Far beyond any retry of the world.
    pub lost_after: Span,
    /// How many strings must be new before those that nothing holds are freed.
    pub sweep_min: usize,
}

impl Limits {
    /// What `strew controller` runs with, and a simulation.
    ///
    /// A controller manager creates 20 pods a second by default: they come closer together than twice the first pause, so
    /// that pauses are doubled. 2,000 pods that come within twenty seconds make 25 writes of the controller's, and as many
    /// conflicts with admission at most.
    pub const fn production() -> Self {
        Self {
            workers: 3,
            backoff: Span::from_millis(5),
            backoff_max: Span::from_secs(1000),
            retries_qps: 10,
            retries_burst: 100,
            pause: Span::from_millis(40),
            pause_max: Span::from_secs(1),
            lost_after: Span::from_secs(5 * 60),
            sweep_min: 512,
        }
    }
}

/// The controller of WorkloadSpreads.
pub struct SpreadController {
    pub(super) names: Interner,
    pub(super) kinds: Kinds,
    pub(super) facts: Facts,
    pub(super) spreads: Spreads,
    pub(super) webhook: Webhook,
    /// What is to be synced, in order, and each once.
    pub(super) queue: VecDeque<WsKey>,
    pub(super) queued: BTreeSet<WsKey>,
    /// Syncs that are under way.
    pub(super) running: BTreeMap<WsKey, Running>,
    /// What is to be synced later.
    pub(super) later: BTreeSet<(Instant, WsKey)>,
    pub(super) later_of: BTreeMap<WsKey, Instant>,
    /// The pause after the last status write of each.
    pub(super) pauses: BTreeMap<WsKey, Pause>,
    /// WorkloadSpreads of which the last sync found more pods of a subset than its limit, or pods of a subset's minimum:
    /// which pods these are depends on readiness, phase and restarts.
    pub(super) by_value: BTreeSet<WsKey>,
    pub(super) failures: BTreeMap<WsKey, u32>,
    /// Failures of pods that an event has told of since the last sync that succeeded.
    pub(super) told: BTreeMap<WsKey, BTreeSet<(EventKind, Arc<str>)>>,
    pub(super) retries: Retries,
    pub(super) counters: Counters,
    pub(super) effects: VecDeque<Effect>,
    pub(super) next_effect: u64,
    pub(super) pending: BTreeMap<EffectId, (WsKey, Instant)>,
    pub(super) limits: Limits,
    pub(super) now: Instant,
}

impl SpreadController {
    /// A machine that knows nothing yet. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut).
    pub fn new(mut names: Interner, limits: Limits) -> Self {
        let kinds = Kinds::new(&mut names);
        // What kinds hold is not marked.
        names.pin();
        Self {
            names,
            kinds,
            facts: Facts::default(),
            spreads: Spreads::default(),
            webhook: Webhook::default(),
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            running: BTreeMap::new(),
            later: BTreeSet::new(),
            later_of: BTreeMap::new(),
            pauses: BTreeMap::new(),
            by_value: BTreeSet::new(),
            failures: BTreeMap::new(),
            told: BTreeMap::new(),
            retries: Retries::default(),
            counters: Counters::default(),
            effects: VecDeque::new(),
            next_effect: 1,
            pending: BTreeMap::new(),
            limits,
            now: Instant(0),
        }
    }

    /// Takes in what happened. Nothing is decided here. Time that runs backwards is taken as standing still.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        self.pass_time();
        match input {
            Input::SpreadSet(ws) => self.set_spread(*ws),
            Input::SpreadGone(key) => {
                if let Some(ws) = self.spreads.remove(&key) {
                    self.kinds.follow(Some(&ws), None);
                    self.enqueue_relatives(&ws);
                }
                self.forget(&key);
            }
            Input::WorkloadSet(fact) => self.set_workload(*fact),
            Input::WorkloadGone(key) => self.workload_gone(key),
            Input::KindsListed(listed) => self.kinds.set_listed(listed),
            Input::PodSet(pod) => self.set_pod(*pod),
            Input::PodGone(uid) => self.pod_gone(&uid),
            Input::NodeSet(name, labels, taints) => {
                self.facts.nodes.insert(name, (labels, taints));
            }
            Input::NodeGone(name) => {
                self.facts.nodes.remove(&name);
            }
            Input::Webhook(webhook) => self.set_webhook(webhook),
            Input::Outcome(effect, outcome) => self.settle(effect, outcome),
            Input::Tick => {}
        }
        self.sweep_if_due();
    }

    /// The next effect; syncs are begun until there is one. `None`: nothing to do before the next input, or
    /// [`next_wake`](Self::next_wake).
    pub fn poll_effect(&mut self, patcher: &mut dyn PodPatcher) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            if self.running.len() >= self.limits.workers {
                return None;
            }
            let free = |key: &WsKey| !self.running.contains_key(key);
            let place = self.queue.iter().position(free)?;
            let key = self.queue.remove(place)?;
            self.queued.remove(&key);
            // It may have been queued during the write that the pause follows.
            match self.paused_until(&key) {
                Some(until) => self.sync_by(&key, Some(until)),
                None => self.begin(&key, patcher),
            }
        }
    }

    /// When to call [`handle`](Self::handle) with a tick, if nothing else happens before.
    pub fn next_wake(&self) -> Option<Instant> {
        let later = self.later.first().map(|(at, _)| *at);
        let lost = self.pending.first_key_value();
        let lost = lost.map(|(_, (_, since))| *since + self.limits.lost_after);
        later.into_iter().chain(lost).min()
    }

    fn pass_time(&mut self) {
        while let Some((&effect, &(_, since))) = self.pending.first_key_value() {
            if self.now < since + self.limits.lost_after {
                break;
            }
            self.settle(effect, Outcome::Failed);
        }
        while self.later.first().is_some_and(|(at, _)| *at <= self.now) {
            if let Some((_, key)) = self.later.pop_first() {
                self.later_of.remove(&key);
                self.enqueue(&key);
            }
        }
    }
}

// === what there is to see ===

impl SpreadController {
    /// The strings of all facts and effects.
    pub fn names_mut(&mut self) -> &mut Interner {
        &mut self.names
    }

    /// The strings of all facts and effects.
    pub fn names(&self) -> &Interner {
        &self.names
    }

    /// All facts.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// All WorkloadSpreads.
    pub fn spreads(&self) -> &Spreads {
        &self.spreads
    }

    /// The kinds.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// What was done.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether nothing is to be synced, now or later.
    pub fn is_at_rest(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty() && self.later.is_empty()
    }
}

// === the queue ===

impl SpreadController {
    fn paused_until(&self, key: &WsKey) -> Option<Instant> {
        self.pauses.get(key)?.ends(self.now)
    }

    pub(super) fn enqueue(&mut self, key: &WsKey) {
        if let Some(until) = self.paused_until(key) {
            return self.sync_by(key, Some(until));
        }
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key.clone());
        }
    }

    /// Replaces when a WorkloadSpread is synced without a trigger.
    pub(super) fn sync_at(&mut self, key: &WsKey, at: Option<Instant>) {
        if let Some(before) = self.later_of.remove(key) {
            self.later.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.later_of.insert(key.clone(), at);
            self.later.insert((at, key.clone()));
        }
    }

    /// The same, unless it is synced earlier anyway.
    pub(super) fn sync_by(&mut self, key: &WsKey, at: Option<Instant>) {
        let known = self.later_of.get(key).copied();
        self.sync_at(key, known.into_iter().chain(at).min());
    }

    pub(super) fn forget(&mut self, key: &WsKey) {
        self.sync_at(key, None);
        self.pauses.remove(key);
        self.by_value.remove(key);
        self.failures.remove(key);
        self.told.remove(key);
        if self.queued.remove(key) {
            self.queue.retain(|k| k != key);
        }
    }
}
