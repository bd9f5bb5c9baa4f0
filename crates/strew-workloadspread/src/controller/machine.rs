//! The state of the machine, and its three functions.

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
    /// The number of WorkloadSpreads that are synced at a time: `--workloadspread-workers`.
    pub workers: usize,
    /// The first pause after a failed sync; each further one is twice as long.
    pub backoff: Span,
    /// The longest pause.
    pub backoff_max: Span,
    /// The number of retries of failed syncs per second in total; 0: no limit.
    pub retries_qps: u32,
    /// The number of retries at once.
    pub retries_burst: u32,
    /// The pause after a status write in which its WorkloadSpread is not synced; also after a conflict. Zero: no
    /// pauses.
    pub pause: Span,
    /// Pauses are doubled up to this while changes keep coming.
    pub pause_max: Span,
    /// An effect without an outcome for this long counts as failed. It is much longer than any retry of a sender.
    pub lost_after: Span,
    /// The number of new strings after which unused ones are freed.
    pub sweep_min: usize,
}

impl Limits {
    /// The settings of `strew controller`, and of simulations.
    ///
    /// A controller manager creates 20 pods per second by default, which is less than twice the first pause apart, so
    /// pauses are doubled. 2,000 pods that come within twenty seconds cause 25 writes of the controller, and at most as
    /// many conflicts with admission.
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

/// The WorkloadSpread controller.
pub struct SpreadController {
    pub(super) names: Interner,
    pub(super) kinds: Kinds,
    pub(super) facts: Facts,
    pub(super) spreads: Spreads,
    pub(super) webhook: Webhook,
    /// The queue of WorkloadSpreads to sync, each once.
    pub(super) queue: VecDeque<WsKey>,
    pub(super) queued: BTreeSet<WsKey>,
    /// The syncs under way.
    pub(super) running: BTreeMap<WsKey, Running>,
    /// Later syncs by time.
    pub(super) later: BTreeSet<(Instant, WsKey)>,
    pub(super) later_of: BTreeMap<WsKey, Instant>,
    /// The pause after the last status write of each.
    pub(super) pauses: BTreeMap<WsKey, Pause>,
    /// WorkloadSpreads whose last sync found more pods of a subset than its limit, or pods of a subset's minimum: which
    /// pods these are depends on readiness, phase and restarts.
    pub(super) by_value: BTreeSet<WsKey>,
    pub(super) failures: BTreeMap<WsKey, u32>,
    /// Failures of pods that an event has reported since the last successful sync.
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
    /// A machine without facts. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut).
    pub fn new(mut names: Interner, limits: Limits) -> Self {
        let kinds = Kinds::new(&mut names);
        // The symbols of kinds are not marked.
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

    /// Takes an input, without deciding anything. A time before the last one counts as the last one.
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

    /// The next effect; begins syncs until there is one. `None`: nothing to do before the next input or
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
            // It may have been queued during the write before the pause.
            match self.paused_until(&key) {
                Some(until) => self.sync_by(&key, Some(until)),
                None => self.begin(&key, patcher),
            }
        }
    }

    /// The time at which to call [`handle`](Self::handle) with a tick, if no input comes before; `None`: never.
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

// === state for metrics and pages ===

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

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// True if no sync is queued or scheduled.
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

    /// Replaces the time at which a WorkloadSpread is synced without a trigger.
    pub(super) fn sync_at(&mut self, key: &WsKey, at: Option<Instant>) {
        if let Some(before) = self.later_of.remove(key) {
            self.later.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.later_of.insert(key.clone(), at);
            self.later.insert((at, key.clone()));
        }
    }

    /// As above, unless it is synced earlier anyway.
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
