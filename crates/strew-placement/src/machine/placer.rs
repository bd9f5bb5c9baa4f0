//! The machine's state and its three verbs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use strew_model::{Instant, Interner, Span, Symbol, index_type};

use super::counters::{Counters, Standing};
use super::effect::{Effect, EffectId, Event};
use super::input::Input;
use crate::decisions::writes::Write;
use crate::explain::{Explanation, explain};
use crate::facts::placement::{CelId, PlacementFact};
use crate::facts::status::ConditionType;
use crate::facts::status::PlacementStatus;
use crate::filter::predicate::ClusterPredicate;
use crate::hub::{ClusterIdx, Hub};
use crate::plan::{Plan, Problem};

index_type! {
    /// A placement's row.
    pub(super) struct PlacementIdx;
}

/// Settings of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Every placement is run again so often; upstream's informers do so each 10 minutes.
    pub resync: Option<Span>,
    /// The first wait after a failure; each further one is twice as long.
    pub retry_first: Span,
    /// The longest wait after a failure.
    pub retry_max: Span,
    /// An effect without an outcome for so long is taken as failed. Far beyond any retry of the world.
    pub lost_after: Span,
    /// How many strings must be new before what is gone is freed.
    pub sweep_min: usize,
}

impl Limits {
    /// What `strew controller` runs with, and a simulation: upstream's numbers (spec/placement §2.1).
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

/// The clusters of lists of sets, by name.
pub(super) type Members = BTreeMap<Vec<Symbol>, Arc<[ClusterIdx]>>;

/// What is still to be done for a placement, in this order.
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
    /// Whether any set is bound, and the sets that it may choose from.
    pub(super) sets: (bool, Vec<Symbol>),
    /// The candidates that pass its predicates, by name, while that is known; with CEL it never is.
    pub(super) passed: Option<Vec<ClusterIdx>>,
    pub(super) queued: bool,
    /// Something changed since it was decided.
    pub(super) again: bool,
    /// Since when a decision is due.
    pub(super) touched: Option<Instant>,
    /// The number of its last decision.
    pub(super) decision: u64,
    /// Since when it is being written.
    pub(super) bound: Option<Instant>,
    pub(super) todo: VecDeque<Todo>,
    pub(super) waiting: Option<EffectId>,
    pub(super) wake: Option<Instant>,
    /// When to look again, once the writes are done.
    pub(super) after: Option<Instant>,
    /// How often it could not be decided, or written, in a row.
    pub(super) failures: u32,
    /// Whether its last decision leaves nothing to be tried again: once it is written, no failure counts any more.
    pub(super) is_decided: bool,
    /// Of the run whose writes are under way.
    pub(super) warning: Option<Problem>,
    pub(super) score_text: Arc<str>,
}

/// Decides all placements of a hub.
#[derive(Debug)]
pub struct Placer {
    pub(super) hub: Hub,
    pub(super) limits: Limits,
    pub(super) now: Instant,
    /// The clusters of sets, for each list of sets that was asked about since a set changed.
    pub(super) members: Members,
    pub(super) rows: Vec<Option<Row>>,
    pub(super) free: Vec<PlacementIdx>,
    pub(super) by_name: FxHashMap<(Symbol, Symbol), PlacementIdx>,
    /// Placements by namespace, in the order in which they came.
    pub(super) by_namespace: IndexMap<Symbol, Vec<PlacementIdx>, FxBuildHasher>,
    pub(super) queue: VecDeque<PlacementIdx>,
    pub(super) wakes: BTreeSet<(Instant, PlacementIdx)>,
    pub(super) pending: BTreeMap<EffectId, PlacementIdx>,
    /// Decisions that were deleted here: older facts of them are late.
    pub(super) deleted: FxHashMap<(Symbol, Symbol), u64>,
    /// Decisions of which a write failed, or nobody knows: until they are written or told of, what they hold is not known.
    pub(super) doubtful: BTreeSet<(Symbol, Symbol)>,
    pub(super) effects: VecDeque<Effect>,
    pub(super) next_effect: EffectId,
    pub(super) resync: Option<Instant>,
    pub(super) counters: Counters,
}

impl Placer {
    /// A machine that knows nothing yet. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut).
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
            queue: VecDeque::new(),
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

    /// Takes in what happened. No decision is made here. Time that runs backwards is taken as standing still.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        self.pass_time();
        self.take_in(input);
        self.sweep_if_due();
    }

    /// The next thing to do. `cel` answers for the objects as they are in the facts.
    pub fn poll_effect(&mut self, cel: &dyn ClusterPredicate) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            let idx = self.queue.pop_front()?;
            let Some(row) = &mut self.rows[idx.index()] else {
                continue;
            };
            row.queued = false;
            if row.again || row.todo.is_empty() {
                self.run(idx, cel);
            } else {
                self.go_on(idx);
            }
        }
    }

    /// When time alone will change something.
    pub fn next_wake(&self) -> Option<Instant> {
        let first = self.wakes.first().map(|&(at, _)| at);
        first.into_iter().chain(self.resync).min()
    }

    /// What there is.
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

    /// A placement, its status as it was written last.
    pub fn placement(&self, namespace: Symbol, name: Symbol) -> Option<&PlacementFact> {
        let idx = self.by_name.get(&(namespace, name))?;
        self.rows[idx.index()].as_ref().map(|row| &row.fact)
    }

    /// Why a placement holds what it holds.
    pub fn explain(
        &self,
        namespace: Symbol,
        name: Symbol,
        cel: &dyn ClusterPredicate,
    ) -> Option<Explanation> {
        let placement = self.placement(namespace, name)?;
        Some(explain(&self.hub, self.now, placement, cel))
    }

    /// How its placements stand, by the conditions of their statuses.
    ///
    /// Cost: a walk over all placements.
    pub fn standing(&self) -> Standing {
        let mut standing = Standing::default();
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

    /// What was done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A placement must be decided anew: as soon as no write of it is under way.
    pub(super) fn enqueue(&mut self, idx: PlacementIdx) {
        let Some(row) = &mut self.rows[idx.index()] else {
            return;
        };
        row.again = true;
        row.touched.get_or_insert(self.now);
        if row.waiting.is_none() && !row.queued {
            row.queued = true;
            self.queue.push_back(idx);
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

    /// After a failure: the moment of the next try.
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
