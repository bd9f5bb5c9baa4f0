//! The queue: where each pod waits, and what moves it. Source: spec/scheduler §4.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_cluster::{ClassId, PodIdx};
use strew_model::{Instant, Span};

use super::active::{Active, Turn};
use super::backoff::{self, Backoff, BackoffLimits, Failures};
use super::event::{Event, PluginSet, PodView};
use super::hint::{Context, Hints};
use super::in_flight::InFlight;
use super::incoming::{Cause, Incoming, QueueName};
use super::waiting::Waiting;
pub use preempting::Preempted;

/// How often pods that have waited too long are looked for.
const FLUSH_EVERY: Span = Span::from_secs(30);

/// Settings of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// How long pods wait after failures.
    pub backoff: BackoffLimits,
    /// A pod is retried without an event after this long. `--pod-max-in-unschedulable-pods-duration`.
    pub unschedulable_max: Span,
    /// The least time between two pods that are tried before their backoff is over, because no other pod is ready.
    /// kube-scheduler's own speed limits this; where a decision takes no time, this setting does.
    pub early_every: Span,
}

impl QueueLimits {
    /// The settings of v1.36.3.
    pub const fn production() -> Self {
        Self {
            backoff: BackoffLimits::production(),
            unschedulable_max: Span::from_secs(5 * 60),
            early_every: Span(0),
        }
    }
}

/// What prevents attempts for a pod (PreEnqueue).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// `spec.schedulingGates`.
    SchedulingGates,
    /// Victims were asked to terminate for this pod, and the outcome is not known yet.
    Preemption,
}

impl Gate {
    /// kube-scheduler's message, if it has no argument.
    pub fn text(self) -> &'static str {
        match self {
            Self::SchedulingGates => "waiting for scheduling gates",
            Self::Preemption => "waiting for the preemption for this pod to be finished",
        }
    }
}

/// The state of a pod in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Active,
    /// Rejected by plugins: it may be tried early when no other pod is ready.
    Backoff {
        expiry_s: u64,
    },
    /// Failed with an error.
    ErrorBackoff {
        expiry_s: u64,
    },
    Waiting {
        slot: u32,
    },
    Gated(Gate),
    InFlight,
    /// Decided; kept in case the bind fails.
    Binding,
}

/// A pod of the queue. Small, since there may be a hundred thousand.
#[derive(Debug, Clone, Copy)]
struct Entry {
    queued_at: Instant,
    serial: u64,
    class: ClassId,
    priority: i32,
    attempts: u32,
    failures: Failures,
    rejected_by: PluginSet,
    place: Place,
    /// When it first became ready.
    ready_since: Option<Instant>,
    /// True if it is retried only for its age.
    flushed: bool,
}

impl Entry {
    fn turn(&self) -> Turn {
        Turn {
            priority: Reverse(self.priority),
            queued_at: self.queued_at,
            serial: self.serial,
        }
    }
}

/// The numbers of pods by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Ready.
    pub active: usize,
    /// In backoff, rejected by plugins.
    pub backoff: usize,
    /// In backoff after an error.
    pub error_backoff: usize,
    /// Waiting for an event.
    pub unschedulable: usize,
    /// Gated.
    pub gated: usize,
}

/// The scheduling queue.
#[derive(Debug)]
pub struct Queue {
    limits: QueueLimits,
    entries: FxHashMap<PodIdx, Entry>,
    active: Active,
    backoff: Backoff,
    /// When a pod of `backoff` may next be tried early.
    next_early: Instant,
    error_backoff: Backoff,
    waiting: Waiting,
    /// The waiting pods by age.
    by_age: BTreeSet<(Instant, PodIdx)>,
    gated: usize,
    /// Pods with a preemption in progress.
    held: FxHashSet<PodIdx>,
    in_flight: InFlight,
    hints: Hints,
    now: Instant,
    started: Instant,
    /// When waiting pods were last checked for their age.
    flushed: Instant,
    serial: u64,
    /// The cause of the present changes, for metrics.
    cause: Cause,
    incoming: Incoming,
}

// === what the machine does with it ===

impl Queue {
    /// An empty queue.
    pub fn new(limits: QueueLimits, now: Instant) -> Self {
        Self {
            limits,
            entries: FxHashMap::default(),
            active: Active::default(),
            backoff: Backoff::default(),
            next_early: Instant::default(),
            error_backoff: Backoff::default(),
            waiting: Waiting::default(),
            by_age: BTreeSet::new(),
            gated: 0,
            held: FxHashSet::default(),
            in_flight: InFlight::default(),
            hints: Hints::default(),
            now,
            started: now,
            flushed: now,
            serial: 0,
            cause: Cause::pod_added(),
            incoming: Incoming::default(),
        }
    }

    /// The numbers of pods by state.
    pub fn counts(&self) -> Counts {
        Counts {
            active: self.active.len(),
            backoff: self.backoff.len(),
            error_backoff: self.error_backoff.len(),
            unschedulable: self.waiting.len(),
            gated: self.gated,
        }
    }

    /// True if a pod waits in the queue; false if it is being bound.
    pub fn contains(&self, pod: PodIdx) -> bool {
        let entry = self.entries.get(&pod);
        entry.is_some_and(|e| e.place != Place::Binding)
    }

    /// What prevents attempts for a pod.
    pub fn gate(&self, pod: PodIdx) -> Option<Gate> {
        match self.entries.get(&pod)?.place {
            Place::Gated(gate) => Some(gate),
            _ => None,
        }
    }

    /// The plugins that rejected a pod in its last attempt.
    pub fn rejected_by(&self, pod: PodIdx) -> PluginSet {
        self.entries
            .get(&pod)
            .map(|e| e.rejected_by)
            .unwrap_or_default()
    }

    /// How often a pod was tried.
    pub fn attempts(&self, pod: PodIdx) -> u32 {
        self.entries.get(&pod).map_or(0, |e| e.attempts)
    }

    /// Adds a new pod.
    pub fn add(&mut self, cx: Context<'_>, pod: PodIdx) {
        self.remove(pod);
        let class = cx.cluster.pod(pod).class;
        self.serial += 1;
        let entry = Entry {
            queued_at: self.now,
            serial: self.serial,
            class,
            priority: cx.cluster.spec_of(pod).priority,
            attempts: 0,
            failures: Failures::default(),
            rejected_by: PluginSet::default(),
            place: Place::Binding,
            ready_since: None,
            flushed: false,
        };
        self.cause = Cause::pod_added();
        self.entries.insert(pod, entry);
        self.make_ready(cx, pod);
    }

    /// Removes a pod that is gone, or on a node.
    pub fn remove(&mut self, pod: PodIdx) {
        if self.entries.contains_key(&pod) {
            self.lift(pod);
            self.entries.remove(&pod);
        }
        self.held.remove(&pod);
    }

    /// The next pod to try; it is in flight until [`decided`](Self::decided) or a requeue.
    pub fn pop(&mut self) -> Option<PodIdx> {
        let pod = match self.active.pop() {
            Some(pod) => pod,
            None if self.now < self.next_early => return None,
            None => {
                let pod = self.backoff.pop()?;
                self.next_early = self.now + self.limits.early_every;
                self.incoming.count(QueueName::Active, Cause::POPPED_EARLY);
                pod
            }
        };
        let entry = self.entry_mut(pod);
        entry.place = Place::InFlight;
        entry.attempts = entry.attempts.saturating_add(1);
        self.in_flight.start(pod);
        Some(pod)
    }

    /// True if [`pop`](Self::pop) would return a pod.
    pub fn is_ready(&self) -> bool {
        !self.active.is_empty() || !self.backoff.is_empty() && self.now >= self.next_early
    }

    /// A node was found for a pod in flight. Its failures are kept in case the bind fails.
    pub fn decided(&mut self, pod: PodIdx) {
        self.lift(pod);
    }

    /// No node was found for a pod in flight; these plugins rejected it.
    ///
    /// If there are none (an error), it goes into backoff. Otherwise it waits for an event that makes a retry useful,
    /// which may have happened since it was popped. Source: spec/scheduler §4.2.
    pub fn requeue(&mut self, cx: Context<'_>, pod: PodIdx, rejected_by: PluginSet) {
        self.cause = Cause::ATTEMPT_FAILED;
        let meanwhile = self.in_flight.finish(pod);
        self.lift(pod);
        self.serial += 1;
        let (now, serial) = (self.now, self.serial);
        let class = cx.cluster.pod(pod).class;
        let entry = self.entry_mut(pod);
        entry.queued_at = now;
        entry.serial = serial;
        entry.class = class;
        entry.rejected_by = rejected_by;
        entry.flushed = false;
        if rejected_by.is_empty() {
            entry.failures.errors = entry.failures.errors.saturating_add(1);
            self.make_ready(cx, pod);
            return;
        }
        entry.failures.errors = 0;
        entry.failures.rejections = entry.failures.rejections.saturating_add(1);
        let hints = &mut self.hints;
        let should_retry = meanwhile.iter().any(|logged| {
            let own = logged.own == Some(pod);
            // Events about other waiting pods concern only those.
            (own || logged.own.is_none()) && {
                let asked = rejected_by.and(logged.event.listeners());
                hints.should_retry(cx, asked, class, &logged.event, own)
            }
        });
        match should_retry {
            true => self.make_ready(cx, pod),
            false => self.wait(cx, pod),
        }
    }

    /// A pod's own facts changed, as `events` say.
    pub fn update(&mut self, cx: Context<'_>, pod: PodIdx, events: &[Event]) {
        let class = cx.cluster.pod(pod).class;
        let priority = cx.cluster.spec_of(pod).priority;
        let Some(&entry) = self.entries.get(&pod) else {
            return self.add(cx, pod);
        };
        self.cause = events.first().map_or(Cause::pod_added(), Cause::event);
        match entry.place {
            Place::Gated(_) => {
                self.entry_mut(pod).class = class;
                self.reconsider_gate(cx, pod);
            }
            Place::Waiting { .. } => {
                let hints = &mut self.hints;
                let should_retry = events.iter().any(|event| {
                    let asked = entry.rejected_by.and(event.listeners());
                    hints.should_retry(cx, asked, class, event, true)
                });
                if should_retry {
                    self.lift(pod);
                    self.set_class(pod, class, priority);
                    self.make_ready(cx, pod);
                } else if (class, priority) != (entry.class, entry.priority) {
                    self.lift(pod);
                    self.set_class(pod, class, priority);
                    self.wait(cx, pod);
                }
            }
            Place::Active | Place::Backoff { .. } | Place::ErrorBackoff { .. } => {
                if priority != entry.priority {
                    self.lift(pod);
                    self.set_class(pod, class, priority);
                    self.make_ready(cx, pod);
                }
                self.set_class(pod, class, priority);
            }
            Place::InFlight => {
                for event in events {
                    self.in_flight.note(event, Some(pod));
                }
                self.set_class(pod, class, priority);
            }
            Place::Binding => self.set_class(pod, class, priority),
        }
    }

    /// Handles an event: retries the waiting pods that it may help.
    pub fn on_event(&mut self, cx: Context<'_>, event: &Event) {
        self.on_event_for(cx, event, i32::MAX);
    }

    /// As [`on_event`](Self::on_event), only for pods of at most this priority.
    pub fn on_event_for(&mut self, cx: Context<'_>, event: &Event, priority_max: i32) {
        self.in_flight.note(event, None);
        let listeners = event.listeners();
        if listeners.is_empty() || self.waiting.is_empty() {
            return;
        }
        self.cause = Cause::event(event);
        let (hints, tables) = (&mut self.hints, cx.cluster.tables());
        let moved = self.waiting.drain(listeners, |rejected_by, class| {
            tables.spec(tables.class(class).key.spec).priority <= priority_max
                && hints.should_retry(cx, rejected_by.and(listeners), class, event, false)
        });
        for pod in moved {
            let entry = self.entry_mut(pod);
            entry.place = Place::Binding;
            let queued_at = entry.queued_at;
            self.by_age.remove(&(queued_at, pod));
            self.make_ready(cx, pod);
        }
    }

    /// Advances the time: ends waits that are over, and retries pods that have waited too long.
    pub fn advance(&mut self, cx: Context<'_>, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        self.cause = Cause::BACKOFF_COMPLETE;
        while let Some(pod) = self
            .backoff
            .pop_due(now)
            .or_else(|| self.error_backoff.pop_due(now))
        {
            self.entry_mut(pod).place = Place::Binding;
            self.activate(cx, pod);
        }
        let tick = self.last_tick(now);
        if tick <= self.flushed {
            return;
        }
        self.flushed = tick;
        self.cause = Cause::TIMEOUT;
        while let Some(&(queued_at, pod)) = self.by_age.first() {
            if tick.since(queued_at) <= self.limits.unschedulable_max {
                break;
            }
            self.lift(pod);
            self.entry_mut(pod).flushed = true;
            self.make_ready(cx, pod);
        }
    }

    /// The next time at which a pod moves without an input.
    pub fn next_wake(&self) -> Option<Instant> {
        let flush = self.by_age.first().map(|&(queued_at, _)| {
            let due = queued_at + self.limits.unschedulable_max;
            let ticks = due.since(self.started).0 / FLUSH_EVERY.0 + 1;
            let tick = self.started + Span(ticks.saturating_mul(FLUSH_EVERY.0));
            // A pod that was held back may be older than the last check when it begins to wait.
            tick.max(self.flushed + FLUSH_EVERY)
        });
        let is_early_due = !self.backoff.is_empty() && self.now < self.next_early;
        let due = [
            is_early_due.then_some(self.next_early),
            self.backoff.next_due(),
            self.error_backoff.next_due(),
        ];
        due.into_iter().flatten().chain(flush).min()
    }
}

// === the ways between places ===

impl Queue {
    fn entry_mut(&mut self, pod: PodIdx) -> &mut Entry {
        self.entries
            .get_mut(&pod)
            .expect("a pod that is in a place has an entry")
    }

    fn set_class(&mut self, pod: PodIdx, class: ClassId, priority: i32) {
        let entry = self.entry_mut(pod);
        entry.class = class;
        entry.priority = priority;
    }

    /// Takes a pod out of its state. It is then in state `Binding`, which has no set of its own.
    fn lift(&mut self, pod: PodIdx) {
        let entry = *self.entry_mut(pod);
        match entry.place {
            Place::Active => self.active.remove(entry.turn(), pod),
            Place::Backoff { expiry_s } => self.backoff.remove(expiry_s, entry.turn(), pod),
            Place::ErrorBackoff { expiry_s } => {
                self.error_backoff.remove(expiry_s, entry.turn(), pod);
            }
            Place::Waiting { slot } => {
                self.by_age.remove(&(entry.queued_at, pod));
                let moved = self.waiting.remove(entry.rejected_by, entry.class, slot);
                if let Some(moved) = moved {
                    self.entry_mut(moved).place = Place::Waiting { slot };
                }
            }
            Place::Gated(_) => self.gated -= 1,
            Place::InFlight => {
                self.in_flight.finish(pod);
            }
            Place::Binding => {}
        }
        self.entry_mut(pod).place = Place::Binding;
    }

    /// PreEnqueue: what prevents attempts for the pod.
    fn pre_enqueue(&self, cx: Context<'_>, pod: PodIdx) -> Option<Gate> {
        if self.held.contains(&pod) {
            return Some(Gate::Preemption);
        }
        let gates = &cx.cluster.spec_of(pod).gates;
        (!gates.is_empty()).then_some(Gate::SchedulingGates)
    }

    fn gate_off(&mut self, pod: PodIdx, gate: Gate) {
        self.entry_mut(pod).place = Place::Gated(gate);
        self.gated += 1;
    }

    /// Moves it to the active queue.
    fn activate(&mut self, cx: Context<'_>, pod: PodIdx) {
        if let Some(gate) = self.pre_enqueue(cx, pod) {
            return self.gate_off(pod, gate);
        }
        let now = self.now;
        let entry = self.entry_mut(pod);
        entry.place = Place::Active;
        entry.ready_since.get_or_insert(now);
        let turn = entry.turn();
        self.active.push(turn, pod);
        self.incoming.count(QueueName::Active, self.cause);
    }

    /// Moves it to backoff if its wait is not over, otherwise to the active queue.
    fn make_ready(&mut self, cx: Context<'_>, pod: PodIdx) {
        let now = self.now;
        let limits = self.limits.backoff;
        let entry = self.entry_mut(pod);
        let expiry_s = limits.expiry_s(entry.failures, entry.queued_at);
        if !backoff::is_on(expiry_s, now) {
            return self.activate(cx, pod);
        }
        if let Some(gate) = self.pre_enqueue(cx, pod) {
            return self.gate_off(pod, gate);
        }
        self.incoming.count(QueueName::Backoff, self.cause);
        let entry = self.entry_mut(pod);
        let turn = entry.turn();
        if entry.rejected_by.is_empty() {
            entry.place = Place::ErrorBackoff { expiry_s };
            self.error_backoff.push(expiry_s, turn, pod);
        } else {
            entry.place = Place::Backoff { expiry_s };
            self.backoff.push(expiry_s, turn, pod);
        }
    }

    /// Moves it to the unschedulable pods, or to the gated ones.
    fn wait(&mut self, cx: Context<'_>, pod: PodIdx) {
        if let Some(gate) = self.pre_enqueue(cx, pod) {
            return self.gate_off(pod, gate);
        }
        self.incoming.count(QueueName::Unschedulable, self.cause);
        let entry = *self.entry_mut(pod);
        let slot = self.waiting.push(entry.rejected_by, entry.class, pod);
        self.by_age.insert((entry.queued_at, pod));
        self.entry_mut(pod).place = Place::Waiting { slot };
    }

    /// A gated pod's gate may be open now.
    fn reconsider_gate(&mut self, cx: Context<'_>, pod: PodIdx) {
        let gate = self.pre_enqueue(cx, pod);
        if gate == self.gate(pod) {
            return;
        }
        self.lift(pod);
        self.make_ready(cx, pod);
    }

    /// The last time up to `now` at which waiting pods are checked for their age.
    fn last_tick(&self, now: Instant) -> Instant {
        let ticks = now.since(self.started).0 / FLUSH_EVERY.0;
        self.started + Span(ticks * FLUSH_EVERY.0)
    }
}

/// A pod of the cluster as events show it.
pub fn view(cluster: &strew_cluster::Cluster, pod: PodIdx) -> PodView {
    let row = cluster.pod(pod);
    PodView {
        class: row.class,
        bound: row.node.is_some(),
        nominated: row.history.nominated.is_some(),
    }
}

mod audit;
mod counted;
mod preempting;
mod sweep;
pub(crate) use counted::Progress;
#[cfg(test)]
mod tests;
