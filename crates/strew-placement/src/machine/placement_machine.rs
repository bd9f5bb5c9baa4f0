//! The state of the machine, and its three functions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use strew_model::{Instant, Interner, Span, Symbol, index_type};

use super::counters::{Counters, PlacementCounts};
use super::effect::{Effect, EffectId, Event};
use super::input::Input;
use super::running::Evaluated;
use super::turns::{DECISION, Turns};
use crate::decisions::writes::Write;
use crate::explain::{Explanation, explain};
use crate::facts::placement::{CelId, PlacementFact};
use crate::facts::status::ConditionType;
use crate::facts::status::PlacementStatus;
use crate::filter::predicate::{ClusterPredicate, Earlier};
use crate::hub::{ClusterIdx, Hub};
use crate::plan::{Plan, Problem};

index_type! {
    /// A placement's row.
    pub(super) struct PlacementIdx;
}

/// Settings of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The period after which every placement is run again; upstream's informers resync every 10 minutes.
    pub resync: Option<Span>,
    /// The first pause after a failure. Each further pause is twice as long.
    pub retry_first: Span,
    /// The longest pause after a failure.
    pub retry_max: Span,
    /// An effect without an outcome for this long counts as failed. It is much longer than any retry of a sender.
    pub lost_after: Span,
    /// The number of new strings after which unused objects are freed.
    pub sweep_min: usize,
}

impl Limits {
    /// The settings of `strew controller`, and of simulations: upstream's numbers (spec/placement §2.1).
    pub const fn production() -> Self {
        Self {
            resync: Some(Span::from_secs(10 * 60)),
            retry_first: Span::from_millis(5),
            retry_max: Span::from_secs(1_000),
            lost_after: Span::from_secs(5 * 60),
            sweep_min: 512,
        }
    }
}

/// The clusters of each list of sets, by name.
pub(super) type Members = BTreeMap<Vec<Symbol>, Arc<[ClusterIdx]>>;

/// The remaining work for a placement, in order.
#[derive(Debug, Clone)]
pub(super) enum Todo {
    Write(Write),
    Status(PlacementStatus),
    Event(Event),
}

/// A placement.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) fact: PlacementFact,
    pub(super) plan: Plan,
    /// True if any set is bound, and the sets that it can choose from.
    pub(super) sets: (bool, Vec<Symbol>),
    /// The candidates that pass its predicates, by name; `None` if they must be computed, as always with CEL.
    pub(super) passed: Option<Vec<ClusterIdx>>,
    /// The turns in which its expressions were evaluated for the next decision.
    pub(super) slices: u32,
    pub(super) queued: bool,
    /// True if an input changed since it was decided.
    pub(super) again: bool,
    /// The time since which a decision is due.
    pub(super) touched: Option<Instant>,
    /// The number of its last decision.
    pub(super) decision: u64,
    /// The time since which its decision is being written.
    pub(super) bound: Option<Instant>,
    pub(super) todo: VecDeque<Todo>,
    pub(super) waiting: Option<EffectId>,
    pub(super) wake: Option<Instant>,
    /// The time to decide it again, once the writes are done.
    pub(super) after: Option<Instant>,
    /// The number of failures in a row to decide or write it.
    pub(super) failures: u32,
    /// True if its last decision needs no retry: once that is written, failures are reset.
    pub(super) is_decided: bool,
    /// The warning of the decision that is being written.
    pub(super) warning: Option<Problem>,
    pub(super) score_text: Arc<str>,
}

/// Decides all placements of a hub.
#[derive(Debug)]
pub struct PlacementMachine {
    pub(super) hub: Hub,
    pub(super) limits: Limits,
    pub(super) now: Instant,
    /// The clusters of sets, for each list of sets that was needed since a set changed.
    pub(super) members: Members,
    pub(super) rows: Vec<Option<Row>>,
    pub(super) free: Vec<PlacementIdx>,
    pub(super) by_name: FxHashMap<(Symbol, Symbol), PlacementIdx>,
    /// Placements by namespace, in the order of their arrival.
    pub(super) by_namespace: IndexMap<Symbol, Vec<PlacementIdx>, FxBuildHasher>,
    pub(super) turns: Turns,
    /// True if the last poll ended after a slice of expressions, with placements left to decide.
    pub(super) is_sliced: bool,
    pub(super) wakes: BTreeSet<(Instant, PlacementIdx)>,
    pub(super) pending: BTreeMap<EffectId, PlacementIdx>,
    /// Decisions that this machine deleted: older facts about them are ignored.
    pub(super) deleted: FxHashMap<(Symbol, Symbol), u64>,
    /// Decisions whose last write failed or has an unknown result: their clusters are unknown until the next write or
    /// fact.
    pub(super) doubtful: BTreeSet<(Symbol, Symbol)>,
    pub(super) effects: VecDeque<Effect>,
    pub(super) next_effect: EffectId,
    pub(super) resync: Option<Instant>,
    pub(super) counters: Counters,
}

impl PlacementMachine {
    /// A machine without facts. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut).
    pub fn new(names: Interner, limits: Limits, now: Instant) -> Self {
        Self {
            hub: Hub::new(names),
            limits,
            now,
            members: BTreeMap::new(),
            rows: Vec::new(),
            free: Vec::new(),
            by_name: FxHashMap::default(),
            by_namespace: IndexMap::default(),
            turns: Turns::default(),
            is_sliced: false,
            wakes: BTreeSet::new(),
            pending: BTreeMap::new(),
            deleted: FxHashMap::default(),
            doubtful: BTreeSet::new(),
            effects: VecDeque::new(),
            next_effect: EffectId(1),
            resync: limits.resync.map(|span| now + span),
            counters: Counters::default(),
        }
    }

    /// Takes an input, without deciding anything. A time before the last one counts as the last one.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        self.pass_time();
        self.take_in(input);
        self.sweep_if_due();
    }

    /// The next effect; `None` if there is nothing to do, or after a slice of expressions: then
    /// [`next_wake`](Self::next_wake) is the present. `cel` must answer for the objects of the facts.
    pub fn poll_effect(&mut self, cel: &dyn ClusterPredicate) -> Option<Effect> {
        self.is_sliced = false;
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            let idx = self.turns.pop()?;
            let Some(row) = &mut self.rows[idx.index()] else {
                continue;
            };
            row.queued = false;
            if !row.again && !row.todo.is_empty() {
                self.advance(idx);
                continue;
            }
            let namespace = row.fact.namespace;
            let (evaluated, cost) = self.evaluate(idx, cel);
            self.turns.charge(namespace, cost + DECISION);
            match evaluated {
                Evaluated::Now => self.run(idx, cel),
                Evaluated::Earlier => {
                    self.run(idx, &Earlier(cel));
                    self.enqueue(idx);
                }
                Evaluated::InPart => {
                    self.enqueue(idx);
                    self.is_sliced = true;
                    return None;
                }
            }
        }
    }

    /// As [`poll_effect`](Self::poll_effect), over all slices, for callers that have nothing else to do.
    pub fn next_effect(&mut self, cel: &dyn ClusterPredicate) -> Option<Effect> {
        loop {
            let effect = self.poll_effect(cel);
            if effect.is_some() || !self.is_sliced {
                return effect;
            }
        }
    }

    /// The time at which the machine must be polled again without an input; `None`: never.
    pub fn next_wake(&self) -> Option<Instant> {
        let first = self.wakes.first().map(|&(at, _)| at);
        let sliced = self.is_sliced.then_some(self.now);
        first.into_iter().chain(self.resync).chain(sliced).min()
    }

    /// All facts.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The strings of all facts.
    pub fn names_mut(&mut self) -> &mut Interner {
        &mut self.hub.names
    }

    /// The CEL selectors that placements use.
    pub fn cel_selectors(&self) -> BTreeSet<CelId> {
        let facts = self.rows.iter().flatten().map(|row| &row.fact);
        let predicates = facts.flat_map(|fact| fact.spec.predicates.iter().flatten());
        let selectors = predicates.filter_map(|predicate| predicate.cel.as_ref());
        selectors.map(|selector| selector.id).collect()
    }

    /// A placement with the status that was written last.
    pub fn placement(&self, namespace: Symbol, name: Symbol) -> Option<&PlacementFact> {
        let idx = self.by_name.get(&(namespace, name))?;
        self.rows[idx.index()].as_ref().map(|row| &row.fact)
    }

    /// Explains the clusters of a placement; `None` if it does not exist.
    pub fn explain(
        &self,
        namespace: Symbol,
        name: Symbol,
        cel: &dyn ClusterPredicate,
    ) -> Option<Explanation> {
        let placement = self.placement(namespace, name)?;
        Some(explain(&self.hub, self.now, placement, cel))
    }

    /// The placements by state, from the conditions of their statuses.
    ///
    /// Cost: a walk over all placements.
    pub fn standing(&self) -> PlacementCounts {
        let mut standing = PlacementCounts::default();
        let facts = self.rows.iter().flatten().map(|row| &row.fact);
        for fact in facts.filter(|fact| !fact.ignored) {
            let is = |kind, status| {
                let condition = fact.status.condition(kind);
                condition.is_some_and(|condition| condition.status == status)
            };
            let wants_none = fact.spec.number_of_clusters == Some(0);
            if is(ConditionType::Misconfigured, true) {
                standing.misconfigured += 1;
            } else if !is(ConditionType::Satisfied, true) && !wants_none {
                standing.short += 1;
            } else if is(ConditionType::SpreadSatisfied, false) {
                standing.skewed += 1;
            } else {
                standing.satisfied += 1;
            }
        }
        standing
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Queues a placement for a new decision, which is made when no write of it is under way.
    pub(super) fn enqueue(&mut self, idx: PlacementIdx) {
        let Some(row) = &mut self.rows[idx.index()] else {
            return;
        };
        row.again = true;
        row.touched.get_or_insert(self.now);
        if row.waiting.is_none() && !row.queued {
            row.queued = true;
            self.turns.push(row.fact.namespace, idx);
        }
    }

    pub(super) fn set_wake(&mut self, idx: PlacementIdx, wake: Option<Instant>) {
        let Some(row) = &mut self.rows[idx.index()] else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut row.wake, wake) {
            self.wakes.remove(&(old, idx));
        }
        self.wakes.extend(wake.map(|at| (at, idx)));
    }

    /// Counts a failure. Returns the time of the next try.
    pub(super) fn retry_at(&mut self, idx: PlacementIdx) -> Instant {
        let failures = self.rows[idx.index()].as_mut().map_or(0, |row| {
            row.failures = row.failures.saturating_add(1);
            row.failures - 1
        });
        let wait = self.limits.retry_first.doubled(failures);
        self.now
            + wait
                .unwrap_or(self.limits.retry_max)
                .min(self.limits.retry_max)
    }

    fn pass_time(&mut self) {
        while let Some(&(at, idx)) = self.wakes.first() {
            if at > self.now {
                break;
            }
            self.set_wake(idx, None);
            let waiting = self.rows[idx.index()].as_ref().and_then(|row| row.waiting);
            match waiting {
                Some(effect) => self.lost(effect),
                None => self.enqueue(idx),
            }
        }
        if let (Some(at), Some(span)) = (self.resync, self.limits.resync)
            && at <= self.now
        {
            self.resync = Some(self.now + span);
            (0..self.rows.len()).for_each(|i| self.enqueue(PlacementIdx::from(i)));
        }
    }
}
