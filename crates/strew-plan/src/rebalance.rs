//! Evictions after which constraints are kept again, each simulated with those before it.
//!
//! Each step evicts one pod; the engine decides where the pod goes that its controller makes instead, and where those go
//! that wait. A step is taken only if it lowers the [`Measure`] of the constraints, and its pod has a
//! node again. The measure is never below zero, so the steps end; nothing preempts, so no pod is Pending that was not.
//! Candidates are tried without those that wait; the best is taken with them, or not at all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_cluster::{CensusId, ClassId, NodeIdx, OwnerRef, PodIdx};
use strew_model::Symbol;
use strew_scheduler::Unfit;
use strew_spread::DomainIdx;

use crate::apply::is_made_for;
use crate::deletions::SYSTEM_PRIORITY;
use crate::rule::{Measure, Rule};
use crate::transaction::{Refusal, Savepoint, Transaction};

/// How many pods are tried that differ in their node alone, if the first does not help.
const TRIES_OF_A_GROUP_MAX: usize = 3;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// True if soft constraints are to be kept, too, as far as no hard one is kept less.
    pub soft: bool,
    /// The most evictions.
    pub evictions_max: usize,
    /// The namespaces and controllers whose constraints are to be kept better; `None`: all.
    pub only: Option<HashSet<(Symbol, Option<OwnerRef>)>>,
}

/// Why a pod is not evicted, although its domain has too many.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stays {
    /// Pods of its workload are not to be evicted.
    LeftAlone,
    /// Its controller is about to make or delete pods, or would make none or another one in its place.
    Unsettled {
        /// A word for programs.
        reason: &'static str,
        /// Why, after "the pod".
        message: String,
    },
    /// No other pod is made in its place before the pod of this name, of a lower ordinal, is ready.
    MadeAfter(Arc<str>),
    /// The pod in its place would get a node only by preempting others.
    Preempts,
    /// No controller makes another one.
    NoController,
    /// It is made for its node, as those of DaemonSets are.
    OfNode,
    /// It runs to an end, and would begin anew.
    RunsOnce,
    /// It has data on its node that would be lost.
    LocalData,
    /// An annotation of this key asks for it.
    Annotated(Symbol),
    /// The cluster itself needs it: its priority is that of system-cluster-critical or higher.
    Critical,
    /// Another scheduler decides for it.
    OtherScheduler,
    /// The Eviction API refuses it.
    Refused(Refusal),
    /// The pod in its place would stay Pending, with the scheduler's message.
    Pending(String),
    /// The pod in its place would come to a node of this domain, which makes nothing better.
    ComesBackIn(Symbol),
    /// It would make other constraints worse by as much.
    HurtsOthers,
    /// It stands for a pod that the plan evicts already.
    IsNew,
    /// The plan has the most evictions that were asked for.
    EvictionsMax,
}

/// An eviction, and where the pod comes back that its controller makes instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The pod.
    pub pod: PodIdx,
    /// The node that it leaves.
    pub from: NodeIdx,
    /// The node that the pod in its place gets.
    pub to: NodeIdx,
    /// The constraints by whose key it changes its domain.
    pub effects: Vec<Effect>,
    /// The measure after it.
    pub after: Measure,
}

/// What a step does to a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The index of the constraint in [`Rebalanced::rules`].
    pub rule: usize,
    /// The domain that the pod leaves, with its count afterwards; `None` if its node does not count.
    pub from: Option<Count>,
    /// The domain that it comes to; `None` if its node does not count.
    pub to: Option<Count>,
    /// The largest skew before.
    pub skew_before: i64,
    /// The largest skew after.
    pub skew_after: i64,
}

/// A domain and its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The value of the topology key.
    pub domain: Symbol,
    /// The pods that count.
    pub pods: i32,
}

/// A constraint before and after.
#[derive(Debug, Clone)]
pub struct ConstraintChange {
    /// The constraint.
    pub rule: Rule,
    /// True if it was asked about; the others are only to get no worse.
    pub is_meant: bool,
    /// Now, without the pods that wait and fit.
    pub now: ConstraintState,
    /// Before the first step, with them.
    pub before: ConstraintState,
    /// After all steps.
    pub after: ConstraintState,
    /// Why it is not kept in the end: pods of domains with too many, by reason. Empty if it is kept.
    pub left: BTreeMap<Stays, usize>,
}

/// How a constraint stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintState {
    /// Each domain that exists.
    pub counts: Vec<Count>,
    /// The largest skew.
    pub skew: i64,
    /// The least number of pods that must change their domain until it is kept: 0 if it is.
    pub moves: u64,
}

/// A plan.
#[derive(Debug, Clone)]
pub struct Rebalanced {
    /// All constraints that have an effect.
    pub rules: Vec<ConstraintChange>,
    /// The evictions in their order.
    pub steps: Vec<Move>,
    /// The pods that waited, and got a node before the first step.
    pub placed: usize,
    /// Before the first step.
    pub before: Measure,
    /// After the last one.
    pub after: Measure,
}

/// Makes a plan, and leaves the transaction in the state after it. `kept` are pods that must stay for reasons that no
/// fact tells.
///
/// Cost: for each step a decision per pod that is tried: mostly one, at most a few per domain and class of pods.
pub fn rebalance(
    trial: &mut Transaction<'_>,
    wanted: Wanted,
    kept: &BTreeMap<PodIdx, Stays>,
) -> Rebalanced {
    let mut plan = Rebalancer::new(trial, &wanted, kept);
    let now = plan.standings();
    let placed = plan.place_waiting();
    let before = plan.measure;
    let standings = plan.standings();
    plan.take_steps();
    let after = plan.standings();
    let Rebalancer {
        rules,
        steps,
        measure,
        left,
        ..
    } = plan;
    let before_and_after = now.into_iter().zip(standings).zip(after);
    let each = rules.into_iter().zip(before_and_after).zip(left);
    type States = ((ConstraintState, ConstraintState), ConstraintState);
    let outcome = |((rule, ((now, before), after)), left): ((Rule, States), _)| ConstraintChange {
        is_meant: wanted.means(&rule),
        rule,
        now,
        before,
        left: if after.moves == 0 {
            BTreeMap::new()
        } else {
            left
        },
        after,
    };
    Rebalanced {
        rules: each.map(outcome).collect(),
        steps,
        placed,
        before,
        after: measure,
    }
}

impl Wanted {
    fn means(&self, rule: &Rule) -> bool {
        let is_in = |only: &HashSet<_>| rule.owners().any(|owner| only.contains(&owner));
        self.only.as_ref().is_none_or(is_in)
    }
}

struct Rebalancer<'t, 'a> {
    trial: &'t mut Transaction<'a>,
    wanted: &'t Wanted,
    kept: &'t BTreeMap<PodIdx, Stays>,
    rules: Vec<Rule>,
    /// The moves of each rule.
    moves: Vec<u64>,
    measure: Measure,
    /// Whether the pods of a class would preempt others where they get no node.
    preempting: FxHashMap<ClassId, bool>,
    /// The rules that count the pods of a class.
    rules_of: FxHashMap<ClassId, Vec<usize>>,
    /// The classes whose pods a rule counts.
    classes_of: Vec<Vec<ClassId>>,
    steps: Vec<Move>,
    evicted: BTreeSet<PodIdx>,
    /// Of each rule: why no pod was evicted at the last attempt.
    left: Vec<BTreeMap<Stays, usize>>,
}

/// A class of pods, and their domains by the rules that count them.
type Group = (ClassId, Vec<Option<DomainIdx>>);

/// A pod whose eviction may help.
struct Candidate {
    pod: PodIdx,
    node: NodeIdx,
    /// By how much hard and soft moves can fall at most.
    bound: [u64; 2],
    /// What decides where the pod in its place goes, apart from the room that it leaves.
    group: Group,
}

impl<'t, 'a> Rebalancer<'t, 'a> {
    fn new(
        trial: &'t mut Transaction<'a>,
        wanted: &'t Wanted,
        kept: &'t BTreeMap<PodIdx, Stays>,
    ) -> Self {
        let mut rules = trial.rules();
        // Of several workloads' constraints that count the same, that of one which was asked about stays.
        rules.sort_by_key(|rule| !wanted.means(rule));
        let cluster = trial.cluster();
        let mut rules = Rule::distinct(rules, cluster);
        rules.retain(|rule| rule.constraint.hard || wanted.soft);
        let moves: Vec<u64> = rules.iter().map(|rule| rule.moves(cluster)).collect();
        let mut measure = Measure {
            pending: trial.n_waiting(),
            ..Measure::default()
        };
        for (rule, moves) in rules.iter().zip(&moves) {
            *measure.of(rule) += moves;
        }
        let mut of_census: FxHashMap<CensusId, Vec<usize>> = FxHashMap::default();
        for (index, rule) in rules.iter().enumerate() {
            of_census.entry(rule.tally.census).or_default().push(index);
        }
        let mut rules_of: FxHashMap<ClassId, Vec<usize>> = FxHashMap::default();
        let mut classes_of = vec![Vec::new(); rules.len()];
        let classes: BTreeMap<ClassId, _> = cluster.tables().populated().collect();
        for (id, class) in classes {
            let counted = class
                .counted_in
                .iter()
                .filter_map(|(c, _)| of_census.get(c));
            let mut counted: Vec<usize> = counted.flatten().copied().collect();
            counted.sort_unstable();
            for &rule in &counted {
                classes_of[rule].push(id);
            }
            rules_of.insert(id, counted);
        }
        Self {
            left: vec![BTreeMap::new(); rules.len()],
            trial,
            wanted,
            kept,
            rules,
            moves,
            measure,
            preempting: FxHashMap::default(),
            rules_of,
            classes_of,
            steps: Vec::new(),
            evicted: BTreeSet::new(),
        }
    }

    /// Places the pods that wait and fit, as the scheduler does; returns how many.
    fn place_waiting(&mut self) -> usize {
        let start = self.trial.savepoint();
        let n_waited = self.trial.n_waiting();
        self.trial.place_waiting();
        self.recount(start);
        n_waited - self.measure.pending
    }

    /// Brings moves and measure up to date with what has changed since a savepoint.
    fn recount(&mut self, start: Savepoint) {
        for (rule, now) in self.changed(start) {
            let sum = self.measure.of(&self.rules[rule]);
            *sum = *sum + now - self.moves[rule];
            self.moves[rule] = now;
        }
        self.measure.pending = self.trial.n_waiting();
    }

    fn standings(&self) -> Vec<ConstraintState> {
        let cluster = self.trial.cluster();
        let standing = |(rule, &moves): (&Rule, &u64)| {
            let (tally, column) = (cluster.tally(rule.tally), cluster.column(rule.key));
            let count = |domain| Count {
                domain: column.value(domain),
                pods: tally.count(domain),
            };
            ConstraintState {
                counts: tally.existing().map(count).collect(),
                skew: rule.limit().skew(tally),
                moves,
            }
        };
        self.rules.iter().zip(&self.moves).map(standing).collect()
    }

    /// Takes steps for each rule until none helps any more.
    fn take_steps(&mut self) {
        // The number of steps when a rule was last tried in vain: without further ones nothing has changed for it.
        let mut in_vain = vec![usize::MAX; self.rules.len()];
        loop {
            let n_steps = self.steps.len();
            for (rule, in_vain) in in_vain.iter_mut().enumerate() {
                if !self.wanted.means(&self.rules[rule]) {
                    continue;
                }
                while self.moves[rule] > 0 && *in_vain != self.steps.len() {
                    if !self.take_step(rule) {
                        *in_vain = self.steps.len();
                    }
                }
            }
            if self.steps.len() == n_steps {
                return;
            }
        }
    }

    /// Takes the step that helps most among those that evict a pod which a rule counts; returns whether there is one.
    fn take_step(&mut self, rule: usize) -> bool {
        let mut left = BTreeMap::new();
        let candidates = self.candidates(rule, &mut left);
        if self.steps.len() >= self.wanted.evictions_max {
            let n_left = candidates.len();
            left.extend((n_left > 0).then_some((Stays::EvictionsMax, n_left)));
            self.left[rule] = left;
            return false;
        }
        let mut in_vain = BTreeSet::new();
        let taken = loop {
            let mut left_now = left.clone();
            let Some(best) = self.best_of(&candidates, &in_vain, &mut left_now) else {
                left = left_now;
                break false;
            };
            match self.carry_out(&candidates[best]) {
                Ok(()) => break true,
                Err(why) => {
                    in_vain.insert(best);
                    *left.entry(why).or_default() += 1;
                }
            }
        };
        self.left[rule] = left;
        taken
    }

    /// The index of the candidate that helps most by itself, without those that are in vain; `None` if none does, and
    /// `left` gets the reasons.
    fn best_of(
        &mut self,
        candidates: &[Candidate],
        in_vain: &BTreeSet<usize>,
        left: &mut BTreeMap<Stays, usize>,
    ) -> Option<usize> {
        let mut best: Option<([i64; 2], usize)> = None;
        let mut tried: BTreeMap<&Group, (usize, Stays)> = BTreeMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let bound = candidate.bound.map(|most| most as i64);
            if best.is_some_and(|(gain, _)| gain >= bound) {
                break;
            }
            if in_vain.contains(&index) {
                continue;
            }
            let of_group = tried.get_mut(&candidate.group);
            if let Some((TRIES_OF_A_GROUP_MAX, why)) = of_group {
                *left.entry(why.clone()).or_default() += 1;
                continue;
            }
            match self.try_step(candidate) {
                Ok(gain) => {
                    if best.is_none_or(|(most, _)| gain > most) {
                        best = Some((gain, index));
                    }
                }
                Err(why) => {
                    *left.entry(why.clone()).or_default() += 1;
                    tried.entry(&candidate.group).or_insert((0, why)).0 += 1;
                }
            }
        }
        best.map(|(_, index)| index)
    }

    /// The pods of domains that have too many for a rule, those first that can help most; `left` gets those that must
    /// stay.
    fn candidates(&self, rule: usize, left: &mut BTreeMap<Stays, usize>) -> Vec<Candidate> {
        let cluster = self.trial.cluster();
        let mut found = Vec::new();
        for &class in &self.classes_of[rule] {
            let class = cluster.tables().class(class);
            for &(pod, node) in &class.members {
                if self.is_too_full(rule, node) {
                    found.push((pod, node));
                }
            }
        }
        let mut candidates = Vec::new();
        for (pod, node) in found {
            if let Some(why) = self.must_stay(pod, node) {
                *left.entry(why).or_default() += 1;
                continue;
            }
            let class = self.trial.cluster().pod(pod).class;
            let rules = &self.rules_of[&class];
            let mut bound = [0, 0];
            for &counting in rules.iter().filter(|&&rule| self.is_too_full(rule, node)) {
                bound[usize::from(!self.rules[counting].constraint.hard)] += 1;
            }
            let domains = rules.iter().map(|&rule| self.domain(rule, node));
            candidates.push(Candidate {
                pod,
                node,
                bound,
                group: (class, domains.collect()),
            });
        }
        let cluster = self.trial.cluster();
        let tally = cluster.tally(self.rules[rule].tally);
        candidates.sort_by_cached_key(|candidate| {
            let domain = self.domain(rule, candidate.node);
            let pods = domain.map_or(0, |domain| tally.count(domain));
            let name = Arc::clone(&cluster.pod(candidate.pod).name);
            // The eviction of a pod that is not ready takes nothing away, and what waits for that pod waits no more.
            let is_ready = self.trial.away(candidate.pod).is_none();
            let pods = Reverse(pods);
            (
                Reverse(candidate.bound),
                is_ready,
                pods,
                name,
                candidate.pod,
            )
        });
        candidates
    }

    /// The domain of a node in which a rule counts its pods; `None` if they do not count.
    fn domain(&self, rule: usize, node: NodeIdx) -> Option<DomainIdx> {
        self.trial.cluster().domain_in(self.rules[rule].tally, node)
    }

    /// True if a node's domain has more pods than a rule allows.
    fn is_too_full(&self, rule: usize, node: NodeIdx) -> bool {
        let tally = self.trial.cluster().tally(self.rules[rule].tally);
        let limit = self.rules[rule].limit();
        let domain = self.domain(rule, node);
        domain.is_some_and(|domain| !limit.check(tally, domain, false).allowed())
    }

    fn must_stay(&self, pod: PodIdx, node: NodeIdx) -> Option<Stays> {
        if let Some(why) = self.kept.get(&pod) {
            return Some(why.clone());
        }
        if self.evicted.contains(&pod) {
            return Some(Stays::IsNew);
        }
        if !self.trial.is_decided(pod) {
            return Some(Stays::OtherScheduler);
        }
        let cluster = self.trial.cluster();
        if cluster.class_of(pod).key.owner.is_none() {
            return Some(Stays::NoController);
        }
        if is_made_for(cluster, pod, cluster.node(node).name()) {
            return Some(Stays::OfNode);
        }
        if cluster.spec_of(pod).priority >= SYSTEM_PRIORITY {
            return Some(Stays::Critical);
        }
        if let Some(lower) = self.trial.made_after(pod) {
            return Some(Stays::MadeAfter(Arc::clone(&cluster.pod(lower).name)));
        }
        self.trial.eviction_refused(pod).map(Stays::Refused)
    }

    /// Tries an eviction by itself and takes it back. Returns by how much it lowers hard and soft moves.
    fn try_step(&mut self, candidate: &Candidate) -> Result<[i64; 2], Stays> {
        let start = self.trial.savepoint();
        // Decisions of all trials are those of new engines.
        self.trial.undo_to(start);
        let relocated = self.trial.relocate_alone(candidate.pod);
        let result = self.judged(candidate, start, relocated);
        self.trial.undo_to(start);
        result.map(|(_, gain)| gain)
    }

    /// The node, and by how much an eviction lowered hard and soft moves, if it did.
    fn judged(
        &mut self,
        candidate: &Candidate,
        start: Savepoint,
        relocated: Result<NodeIdx, Option<Rc<Unfit>>>,
    ) -> Result<(NodeIdx, [i64; 2]), Stays> {
        match relocated {
            Ok(to) => {
                let gain = self.gain(self.changed(start));
                match gain > [0, 0] {
                    true => Ok((to, gain)),
                    false => Err(self.in_vain(candidate, to)),
                }
            }
            Err(_) if self.preempts(candidate) => Err(Stays::Preempts),
            Err(unfit) => {
                let cluster = self.trial.cluster();
                let message = unfit.map(|u| u.message(cluster.nodes_present(), &cluster.names));
                Err(Stays::Pending(message.unwrap_or_default()))
            }
        }
    }

    /// Whether a pod that gets no node would preempt others: of each class the first one is asked. What that changes is
    /// to be taken back with the eviction.
    fn preempts(&mut self, candidate: &Candidate) -> bool {
        let class = candidate.group.0;
        if let Some(&known) = self.preempting.get(&class) {
            return known;
        }
        let cluster = self.trial.cluster();
        let is_lowest = cluster.lowest_priority() >= Some(cluster.spec_of(candidate.pod).priority);
        let preempts = !is_lowest && self.trial.preempts(candidate.pod);
        self.preempting.insert(class, preempts);
        preempts
    }

    /// Why an eviction does not help whose pod comes back on this node.
    fn in_vain(&self, candidate: &Candidate, to: NodeIdx) -> Stays {
        let cluster = self.trial.cluster();
        let rules = &self.rules_of[&candidate.group.0];
        let falls = |&rule: &usize| self.rules[rule].moves(cluster) < self.moves[rule];
        if rules.iter().any(falls) {
            return Stays::HurtsOthers;
        }
        let uneven = rules.iter().find(|&&rule| self.moves[rule] > 0);
        let came = uneven.and_then(|&rule| Some((rule, self.domain(rule, to)?)));
        match came {
            Some((rule, domain)) => {
                Stays::ComesBackIn(cluster.column(self.rules[rule].key).value(domain))
            }
            None => Stays::ComesBackIn(cluster.node(to).name()),
        }
    }

    /// The rules that count pods which changed since a savepoint, with their moves now.
    fn changed(&self, start: Savepoint) -> BTreeMap<usize, u64> {
        let cluster = self.trial.cluster();
        let pods: BTreeSet<PodIdx> = self.trial.pods_since(start).collect();
        let rules = pods
            .iter()
            .filter_map(|&pod| self.rules_of.get(&cluster.pod(pod).class));
        let rules = rules.flatten();
        rules
            .map(|&rule| (rule, self.rules[rule].moves(cluster)))
            .collect()
    }

    /// By how much hard and soft moves are lower than before.
    fn gain(&self, changed: BTreeMap<usize, u64>) -> [i64; 2] {
        let mut gain = [0, 0];
        for (rule, now) in changed {
            let kind = usize::from(!self.rules[rule].constraint.hard);
            gain[kind] += self.moves[rule] as i64 - now as i64;
        }
        gain
    }

    /// Takes a step, together with those that wait.
    ///
    /// # Errors
    /// With them it does not help; then nothing is changed.
    fn carry_out(&mut self, candidate: &Candidate) -> Result<(), Stays> {
        let rules = self.rules_of[&candidate.group.0].clone();
        let skews_before = self.skews(&rules);
        let start = self.trial.savepoint();
        let relocated = self.trial.relocate(candidate.pod);
        let to = match self.judged(candidate, start, relocated) {
            Ok((to, _)) => to,
            Err(why) => {
                self.trial.undo_to(start);
                return Err(why);
            }
        };
        self.recount(start);
        self.evicted.insert(candidate.pod);
        let skews = skews_before.into_iter().zip(self.skews(&rules));
        let domains = candidate.group.1.iter();
        let each = rules.iter().zip(domains).zip(skews);
        type Change<'c> = ((&'c usize, &'c Option<DomainIdx>), (i64, i64));
        let effect = |((&rule, &from), (skew_before, skew_after)): Change<'_>| {
            let to = self.domain(rule, to);
            (from != to).then(|| Effect {
                rule,
                from: self.count(rule, from),
                to: self.count(rule, to),
                skew_before,
                skew_after,
            })
        };
        let step = Move {
            pod: candidate.pod,
            from: candidate.node,
            to,
            effects: each.filter_map(effect).collect(),
            after: self.measure,
        };
        self.steps.push(step);
        Ok(())
    }

    /// The largest skews of rules.
    fn skews(&self, rules: &[usize]) -> Vec<i64> {
        let skew = |&rule: &usize| {
            let rule = &self.rules[rule];
            rule.limit().skew(self.trial.cluster().tally(rule.tally))
        };
        rules.iter().map(skew).collect()
    }

    fn count(&self, rule: usize, domain: Option<DomainIdx>) -> Option<Count> {
        let cluster = self.trial.cluster();
        let rule = &self.rules[rule];
        domain.map(|domain| Count {
            domain: cluster.column(rule.key).value(domain),
            pods: cluster.tally(rule.tally).count(domain),
        })
    }
}
