//! The machine's state and its three verbs.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Instant, Interner, Span, Symbol};

use super::aside::InvalidFact;
use super::effect::{Condition, Effect, EffectId, Event, EventKind, PodName, cut_note};
use super::input::{Input, Outcome};
use super::preempting::PreemptionState;
use crate::metrics::counters::Counters;
use crate::profile::{PluginId, Profile};
use crate::profiles::Profiles;
use crate::queue::{Context, Counts, Gate, PluginSet, Queue, QueueLimits};

/// Settings of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Settings of the queue.
    pub queue: QueueLimits,
    /// An effect without an outcome for this long counts as failed. Far longer than any retry.
    pub lost_after: Span,
    /// The least number of new pod classes and terms before unused ones are freed; for strings, 8 times as many.
    pub sweep_min: usize,
}

impl Limits {
    /// The settings of `strew scheduler`, except those in its configuration, and of a simulation.
    pub const fn production() -> Self {
        Self {
            queue: QueueLimits::production(),
            lost_after: Span::from_secs(5 * 60),
            sweep_min: 512,
        }
    }
}

/// An effect without an outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) kind: PendingKind,
    pub(super) since: Instant,
}

/// The kind of the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingKind {
    Bind(PodIdx),
    Condition(PodIdx),
    Nominate(PodIdx),
    Victim { victim: PodIdx, preemptor: PodIdx },
}

/// A pod that is counted on a node before a fact shows it there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assumed {
    pub(super) node: NodeIdx,
    /// The bind, until its outcome is known.
    pub(super) bind: Option<EffectId>,
    /// When the attempt began, if that is measured.
    pub(super) begun: Option<u64>,
}

/// The last known `PodScheduled` condition of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// A hash of its reason and message, because a hundred thousand pods have long messages.
    pub(super) hash: u64,
    /// The patch, until its outcome is known: facts may be older.
    pub(super) patch: Option<EffectId>,
}

/// The state of a pod in this scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackedAs {
    /// On a node, as a fact shows.
    Bound,
    /// On a node, as decided here.
    Assumed,
    /// In the queue.
    Queued,
    /// Another scheduler is responsible, or it is being deleted.
    Ignored,
}

/// The scheduler.
pub struct Scheduler {
    pub(super) cluster: Cluster,
    pub(super) profiles: Profiles,
    pub(super) queue: Queue,
    pub(super) limits: Limits,
    pub(super) now: Instant,
    pub(super) effects: VecDeque<Effect>,
    pub(super) next_effect: EffectId,
    pub(super) pending: BTreeMap<EffectId, Pending>,
    pub(super) assumed: FxHashMap<PodIdx, Assumed>,
    pub(super) told: FxHashMap<PodIdx, Told>,
    pub(super) nodes_aside: IndexMap<Symbol, InvalidFact, FxBuildHasher>,
    pub(super) pods_aside: IndexMap<Arc<str>, InvalidFact, FxBuildHasher>,
    pub(super) making: PreemptionState,
    pub(super) counters: Counters,
}

impl Scheduler {
    /// A scheduler without facts. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut).
    pub fn new(names: Interner, profiles: Vec<Profile>, limits: Limits, now: Instant) -> Self {
        let mut cluster = Cluster::new();
        cluster.names = names;
        let profiles = Profiles::new(&mut cluster.names, profiles);
        // Symbols of profiles are not marked in sweeps.
        cluster.names.pin();
        Self {
            cluster,
            profiles,
            queue: Queue::new(limits.queue, now),
            limits,
            now,
            effects: VecDeque::new(),
            next_effect: EffectId(1),
            pending: BTreeMap::new(),
            assumed: FxHashMap::default(),
            told: FxHashMap::default(),
            nodes_aside: IndexMap::default(),
            pods_aside: IndexMap::default(),
            making: PreemptionState::default(),
            counters: Counters::default(),
        }
    }

    /// Handles an input. It makes no decision. Time that runs backwards counts as standing still.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        self.pass_time();
        let begun = self.counters.read();
        let event = begun.and_then(|_| self.event_of(&input));
        match input {
            Input::NodeSet(fact) => self.set_node(fact),
            Input::NodeGone(name) => self.node_gone(name),
            Input::PodSet { fact, condition } => self.set_pod(*fact, condition, None),
            Input::PodUnreadable {
                fact,
                condition,
                why,
            } => self.set_pod(*fact, condition, Some(why)),
            Input::PodGone(uid) => self.pod_gone(&uid),
            Input::ServiceSet {
                namespace,
                name,
                selector,
            } => self.cluster.set_service(namespace, name, selector),
            Input::ControllerSet {
                namespace,
                owner,
                selector,
            } => self.cluster.set_controller(namespace, owner, selector),
            Input::NamespaceSet { name, labels } => self.cluster.set_namespace(name, labels),
            Input::BudgetSet {
                namespace,
                name,
                budget,
            } => self.making.budgets.set(namespace, name, budget),
            Input::ClaimSet {
                namespace,
                name,
                claim,
            } => self.set_claim(namespace, name, claim),
            Input::VolumeSet { name, volume } => self.set_volume(name, volume),
            Input::StorageClassSet { name, class } => self.set_storage_class(name, class),
            Input::AttachLimitsSet { node, limits } => self.set_attach_limits(node, limits),
            Input::Outcome { effect, outcome } => self.outcome(effect, &outcome),
            Input::Tick => {}
        }
        self.sweep_if_due();
        if let Some(event) = event {
            self.counters.handled(event, begun);
        }
    }

    /// The next effect; tries pods one by one until there is one. `None`: nothing to do before the next input, or
    /// [`next_wake`](Self::next_wake).
    pub fn poll_effect(&mut self) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            self.attempt()?;
        }
    }

    /// When to call [`handle`](Self::handle) with a tick, if no input arrives earlier.
    pub fn next_wake(&self) -> Option<Instant> {
        let lost = self.pending.first_key_value();
        let lost = lost.map(|(_, pending)| pending.since + self.limits.lost_after);
        self.queue.next_wake().into_iter().chain(lost).min()
    }

    fn pass_time(&mut self) {
        while let Some((&effect, pending)) = self.pending.first_key_value() {
            if self.now < pending.since + self.limits.lost_after {
                break;
            }
            let text = format!("no outcome within {}", self.limits.lost_after);
            self.outcome(effect, &Outcome::Failed(text.into()));
        }
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        self.queue.advance(cx, self.now);
    }
}

// === state for metrics and pages ===

impl Scheduler {
    /// The facts.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The interner of all facts and effects.
    pub fn names_mut(&mut self) -> &mut Interner {
        &mut self.cluster.names
    }

    /// The numbers of pods in the parts of the queue.
    pub fn queue_counts(&self) -> Counts {
        self.queue.counts()
    }

    /// The number of effects without an outcome.
    pub fn effects_pending(&self) -> usize {
        self.pending.len()
    }

    /// The state of a pod; `None` if it is not known.
    pub fn standing(&self, uid: &str) -> Option<TrackedAs> {
        let pod = self.cluster.find_pod(uid)?;
        Some(match self.cluster.pod(pod).node {
            Some(_) if self.assumed.contains_key(&pod) => TrackedAs::Assumed,
            Some(_) => TrackedAs::Bound,
            None if self.queue.contains(pod) => TrackedAs::Queued,
            None => TrackedAs::Ignored,
        })
    }

    /// What prevents attempts for a pod.
    pub fn gate(&self, uid: &str) -> Option<Gate> {
        self.queue.gate(self.cluster.find_pod(uid)?)
    }

    /// The plugins that keep a pod in the queue: those that rejected it in its last attempt, or hold it back.
    pub fn rejected_by(&self, uid: &str) -> PluginSet {
        let Some(pod) = self.cluster.find_pod(uid) else {
            return PluginSet::default();
        };
        let mut plugins = self.queue.rejected_by(pod);
        if self.queue.gate(pod) == Some(Gate::SchedulingGates) {
            plugins.insert(PluginId::SchedulingGates);
        }
        plugins
    }

    /// The nodes that are ignored because their facts are invalid, with the reasons.
    pub fn nodes_aside(&self) -> impl Iterator<Item = (Symbol, &InvalidFact)> {
        self.nodes_aside.iter().map(|(&name, why)| (name, why))
    }

    /// The pods of which something is ignored because their facts are invalid, with the reasons.
    pub fn pods_aside(&self) -> impl Iterator<Item = (&str, &InvalidFact)> {
        self.pods_aside.iter().map(|(uid, why)| (&**uid, why))
    }

    /// Recounts what is maintained incrementally.
    ///
    /// # Errors
    /// The first difference from a recount, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.cluster.audit()?;
        self.queue.audit()?;
        for (pod, row) in self.cluster.pods() {
            let assumed = self.assumed.get(&pod);
            if assumed.is_some_and(|a| row.node != Some(a.node)) {
                return Err(format!("pod {} is not where it is assumed", row.name));
            }
            if row.node.is_some() && self.queue.contains(pod) {
                return Err(format!("pod {} is on a node and in the queue", row.name));
            }
        }
        Ok(())
    }
}

// === helpers of all parts ===

impl Scheduler {
    pub(super) fn pod_name(&self, pod: PodIdx) -> PodName {
        let row = self.cluster.pod(pod);
        PodName {
            uid: Arc::clone(&row.uid),
            namespace: self.cluster.class_of(pod).key.namespace,
            name: Arc::clone(&row.name),
        }
    }

    /// Records that an effect has no outcome yet.
    pub(super) fn expect(&mut self, kind: PendingKind) -> EffectId {
        let id = self.next_effect;
        self.next_effect = EffectId(id.0 + 1);
        let since = self.now;
        self.pending.insert(id, Pending { kind, since });
        id
    }

    /// The name of the profile for a pod.
    pub(super) fn scheduler_of(&self, pod: PodIdx) -> Symbol {
        let class = self.cluster.pod(pod).class;
        let place = self.profiles.place(&self.cluster, class);
        place.map_or(Symbol::default(), |place| self.profiles.name(place))
    }

    pub(super) fn record(&mut self, kind: EventKind, pod: PodIdx, note: &Arc<str>) {
        let scheduler = self.scheduler_of(pod);
        self.effects.push_back(Effect::Event(Box::new(Event {
            kind,
            scheduler,
            regarding: self.pod_name(pod),
            related: None,
            note: cut_note(note),
        })));
    }

    /// Patches the condition, unless it is the same already. Source: spec/scheduler §5.8.
    pub(super) fn tell(&mut self, pod: PodIdx, condition: Condition) {
        let hash = hash_of(&condition);
        if self.told.get(&pod).is_some_and(|told| told.hash == hash) {
            return;
        }
        let id = self.expect(PendingKind::Condition(pod));
        let patch = Some(id);
        self.told.insert(pod, Told { hash, patch });
        let pod = self.pod_name(pod);
        self.effects
            .push_back(Effect::PodCondition { id, pod, condition });
    }
}

pub(super) fn hash_of(condition: &Condition) -> u64 {
    let mut hasher = FxHasher::default();
    condition.hash(&mut hasher);
    hasher.finish()
}
