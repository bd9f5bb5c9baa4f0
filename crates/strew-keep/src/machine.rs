//! When costs are decided and written.
//!
//! Each change that may concern a ReplicaSet which asks for costs makes it due, after a pause in which further changes
//! join. While its writes are on their way, it is not decided again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_cluster::scale_down::{Progress, Stage};
use strew_cluster::{ClassId, Cluster, NodeFact, NodeIdx, OwnerKind, OwnerRef, TallyId};
use strew_model::{Holds, Instant, Interner, Marks, Selector, Span, Symbol};
use strew_scheduler::Profile;
use strew_scheduler::plugins::pod_topology_spread::SpreadPlan;
use strew_spread::Limit;
use strew_spread::removal::Constraint;

use crate::costs::{Candidate, costs};
use crate::effect::{Effect, EffectId, Outcome, PodName};
use crate::facts::{Cost, CostsDecision, Input, Leaves, Limits, Pod, ReplicaSet, SetKey, Wish};

/// Counts since the machine was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Decisions about a ReplicaSet.
    pub decided: u64,
    /// Decisions that changed the order of its pods.
    pub reordered: u64,
    /// Costs written or removed.
    pub written: u64,
    /// Writes that failed.
    pub failed: u64,
}

/// What is known of a pod of a ReplicaSet.
#[derive(Debug, Clone)]
struct Known {
    set: SetKey,
    name: Arc<str>,
    stage: Stage,
    /// When it was first seen in this stage.
    stage_since: Instant,
    is_terminating: bool,
    is_of_spread: bool,
    cost: Cost,
    /// The resourceVersion that has this cost.
    version: u64,
}

/// The stage of pods that run and are ready.
const READY: Stage = Stage {
    is_assigned: true,
    progress: Progress::Running,
    is_ready: true,
};

impl Known {
    /// True if it is on a node and not ready, but not for long.
    fn starts(&self, now: Instant, patience: Span) -> bool {
        self.stage.is_assigned && self.stage < READY && now < self.stage_since + patience
    }
}

/// A constraint: what counts its pods, its numbers, and whether it is hard.
type Counted = (TallyId, Limit, bool);

/// When a ReplicaSet is decided next.
#[derive(Debug, Clone, Copy)]
struct Due {
    since: Instant,
    at: Instant,
}

/// What is known of a ReplicaSet.
#[derive(Debug, Clone, Default)]
struct Set {
    /// `None` while only pods of it are known.
    fact: Option<ReplicaSet>,
    pods: BTreeSet<Arc<str>>,
    /// The decision, if it asks for costs.
    standing: Option<CostsDecision>,
    n_failures: u32,
    n_in_flight: usize,
}

/// The machine that keeps ReplicaSets spread.
pub struct Keeper {
    cluster: Cluster,
    profiles: Vec<(Symbol, Profile)>,
    pods: FxHashMap<Arc<str>, Known>,
    sets: BTreeMap<SetKey, Set>,
    deployments: BTreeMap<(Symbol, Symbol), Wish>,
    namespaces: BTreeMap<Symbol, Wish>,
    /// The ReplicaSets that ask for costs, and those that still have costs of strew.
    followed: BTreeSet<SetKey>,
    due: BTreeMap<SetKey, Due>,
    /// When a pod counts as not ready, of the ReplicaSets with such pods.
    later: BTreeMap<SetKey, Instant>,
    effects: VecDeque<Effect>,
    pending: BTreeMap<EffectId, (SetKey, Arc<str>, Cost)>,
    next_effect: u64,
    counters: Counters,
    limits: Limits,
    now: Instant,
}

impl Keeper {
    /// A machine without facts. `names` must be the interner of the profiles, of which pods of other schedulers get the
    /// first one; facts use symbols of [`names_mut`](Self::names_mut).
    pub fn new(names: Interner, profiles: Vec<Profile>, limits: Limits) -> Self {
        let mut cluster = Cluster::new();
        cluster.names = names;
        let named = |profile: Profile| (cluster.names.intern(&profile.scheduler_name), profile);
        let profiles = profiles.into_iter().map(named).collect();
        // Symbols of profiles are not marked in sweeps.
        cluster.names.pin();
        Self {
            cluster,
            profiles,
            pods: FxHashMap::default(),
            sets: BTreeMap::new(),
            deployments: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            followed: BTreeSet::new(),
            due: BTreeMap::new(),
            later: BTreeMap::new(),
            effects: VecDeque::new(),
            pending: BTreeMap::new(),
            next_effect: 0,
            counters: Counters::default(),
            limits,
            now: Instant(0),
        }
    }

    /// Takes an input, without deciding anything. A time before the last one counts as the last one.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        match input {
            Input::NodeSet(fact) => self.set_node(*fact),
            Input::NodeGone(name) => {
                self.cluster.remove_node(name);
                self.touch_all();
            }
            Input::PodSet(pod) => self.set_pod(*pod),
            Input::PodGone(uid) => self.pod_gone(&uid),
            Input::SetSet(fact) => self.set_set(*fact),
            Input::SetGone(key) => self.set_gone(key),
            Input::DeploymentSet(key, wish) => self.set_deployment(key, wish),
            Input::NamespaceSet(name, wish) => self.set_namespace(name, wish),
            Input::Outcome(id, outcome) => self.settle(id, outcome),
            Input::Tick => {}
        }
        self.sweep_if_due();
    }

    /// The next effect; decides what is due until there is one. `None`: nothing to do before the next input or
    /// [`next_wake`](Self::next_wake).
    pub fn poll_effect(&mut self) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            let key = self.wakes().find(|(_, at)| *at <= self.now);
            let (key, _) = key?;
            self.due.remove(&key);
            self.later.remove(&key);
            self.decide(key);
        }
    }

    /// The time at which to call [`handle`](Self::handle) with a tick, if no input comes before; `None`: never.
    pub fn next_wake(&self) -> Option<Instant> {
        self.wakes().map(|(_, at)| at).min()
    }

    /// The ReplicaSets that wait for their time alone, and until when.
    fn wakes(&self) -> impl Iterator<Item = (SetKey, Instant)> {
        let is_free = |key: &SetKey| self.sets.get(key).is_none_or(|set| set.n_in_flight == 0);
        let due = self.due.iter().map(|(key, due)| (*key, due.at));
        let later = self.later.iter().map(|(key, at)| (*key, *at));
        due.chain(later).filter(move |(key, _)| is_free(key))
    }
}

// === facts ===

impl Keeper {
    fn set_node(&mut self, fact: NodeFact) {
        let known = self.cluster.find_node(fact.name);
        let known = known.and_then(|node| self.cluster.node(node).fact());
        // Amounts and images decide nothing here.
        let is_same = known.is_some_and(|known| {
            known.labels == fact.labels
                && known.taints == fact.taints
                && known.unschedulable == fact.unschedulable
        });
        if !is_same {
            self.cluster.set_node(fact);
            self.touch_all();
        }
    }

    fn set_pod(&mut self, pod: Pod) {
        let Pod {
            fact,
            stage,
            cost,
            is_of_spread,
            version,
        } = pod;
        let (uid, namespace) = (Arc::clone(&fact.uid), fact.namespace);
        let of_set = fact.owner.filter(|o| o.kind == OwnerKind::ReplicaSet);
        let set = of_set.map(|owner| (namespace, owner.name));
        let known = Known {
            set: set.unwrap_or_default(),
            name: Arc::clone(&fact.name),
            stage,
            stage_since: self.now,
            is_terminating: fact.terminating,
            is_of_spread,
            cost,
            version,
        };
        let place = |cluster: &Cluster| {
            let row = cluster.pod(cluster.find_pod(&uid)?);
            Some((row.class, row.node))
        };
        let before = place(&self.cluster);
        self.cluster.set_pod(fact);
        if place(&self.cluster) != before {
            self.touch_namespace(namespace);
        }
        let before = self.pods.get(&uid).map(|known| known.set);
        if before != set {
            self.unlink(&uid);
        }
        if let Some(set) = set {
            self.note_pod(uid, set, known);
        }
    }

    fn note_pod(&mut self, uid: Arc<str>, set: SetKey, mut known: Known) {
        let mut is_news = true;
        if let Some(old) = self.pods.get(&uid) {
            if old.stage == known.stage {
                known.stage_since = old.stage_since;
            }
            // An event may be older than the last write.
            if known.version < old.version {
                (known.cost, known.version) = (old.cost, old.version);
            }
            is_news = (old.stage, old.cost, old.is_of_spread)
                != (known.stage, known.cost, known.is_of_spread);
        }
        let is_own = known.cost.own().is_some();
        self.sets
            .entry(set)
            .or_default()
            .pods
            .insert(Arc::clone(&uid));
        self.pods.insert(uid, known);
        if is_own {
            self.followed.insert(set);
        }
        if is_news {
            self.touch(set);
        }
    }

    fn pod_gone(&mut self, uid: &Arc<str>) {
        if let Some(pod) = self.cluster.find_pod(uid) {
            let namespace = self.cluster.class_of(pod).key.namespace;
            self.cluster.remove_pod(uid);
            self.touch_namespace(namespace);
        }
        self.unlink(uid);
    }

    fn unlink(&mut self, uid: &Arc<str>) {
        let Some(known) = self.pods.remove(uid) else {
            return;
        };
        if let Some(set) = self.sets.get_mut(&known.set) {
            set.pods.remove(uid);
            self.forget_if_empty(known.set);
        }
    }

    fn forget_if_empty(&mut self, key: SetKey) {
        let is_empty = |set: &Set| set.fact.is_none() && set.pods.is_empty();
        if self.sets.get(&key).is_some_and(is_empty) {
            self.sets.remove(&key);
            self.followed.remove(&key);
            self.due.remove(&key);
            self.later.remove(&key);
        }
    }

    fn set_set(&mut self, fact: ReplicaSet) {
        let key = fact.key;
        self.select(key, fact.selector.clone());
        let set = self.sets.entry(key).or_default();
        if set.fact.as_ref() != Some(&fact) {
            set.fact = Some(fact);
            self.follow(key);
        }
    }

    fn set_gone(&mut self, key: SetKey) {
        self.select(key, None);
        if let Some(set) = self.sets.get_mut(&key) {
            set.fact = None;
            self.followed.remove(&key);
            self.due.remove(&key);
            self.later.remove(&key);
            self.forget_if_empty(key);
        }
    }

    /// Default constraints count what their pods' ReplicaSet selects.
    fn select(&mut self, (namespace, name): SetKey, selector: Option<Selector>) {
        let kind = OwnerKind::ReplicaSet;
        let owner = OwnerRef { kind, name };
        self.cluster.set_controller(namespace, owner, selector);
    }

    fn set_deployment(&mut self, key: (Symbol, Symbol), wish: Option<Wish>) {
        let before = match wish {
            Some(wish) => self.deployments.insert(key, wish),
            None => self.deployments.remove(&key),
        };
        if before != wish {
            let is_its = |set: &&ReplicaSet| set.key.0 == key.0 && set.deployment == Some(key.1);
            self.follow_all(|set| is_its(&set));
        }
    }

    fn set_namespace(&mut self, name: Symbol, wish: Option<Wish>) {
        let before = match wish {
            Some(wish) => self.namespaces.insert(name, wish),
            None => self.namespaces.remove(&name),
        };
        if before != wish {
            self.follow_all(|set| set.key.0 == name);
        }
    }

    fn follow_all(&mut self, is_meant: impl Fn(&ReplicaSet) -> bool) {
        let facts = self.sets.values().filter_map(|set| set.fact.as_ref());
        let keys: Vec<SetKey> = facts.filter(|fact| is_meant(fact)).map(|f| f.key).collect();
        keys.into_iter().for_each(|key| self.follow(key));
    }

    /// A ReplicaSet may ask for costs, or no longer.
    fn follow(&mut self, key: SetKey) {
        if self.asks(key) {
            self.followed.insert(key);
        }
        self.touch(key);
    }

    /// True if the nearest label asks for costs.
    fn asks(&self, key: SetKey) -> bool {
        let Some(fact) = self.sets.get(&key).and_then(|set| set.fact.as_ref()) else {
            return false;
        };
        let of_deployment = || self.deployments.get(&(key.0, fact.deployment?)).copied();
        let of_namespace = || self.namespaces.get(&key.0).copied();
        let wish = fact.wish.or_else(of_deployment).or_else(of_namespace);
        wish == Some(Wish::Keep)
    }

    // === what is due ===

    fn touch_all(&mut self) {
        for key in self.followed.clone() {
            self.touch(key);
        }
    }

    fn touch_namespace(&mut self, namespace: Symbol) {
        let here = self.followed.iter().filter(|key| key.0 == namespace);
        for key in here.copied().collect::<Vec<_>>() {
            self.touch(key);
        }
    }

    fn touch(&mut self, key: SetKey) {
        if !self.followed.contains(&key) {
            return;
        }
        let (now, limits) = (self.now, self.limits);
        let due = self.due.entry(key).or_insert(Due {
            since: now,
            at: now,
        });
        due.at = (now + limits.settle)
            .min(due.since + limits.settle_max)
            .max(due.at);
    }

    fn settle(&mut self, id: EffectId, outcome: Outcome) {
        let Some((key, uid, cost)) = self.pending.remove(&id) else {
            return;
        };
        if let (Outcome::Written(version), Some(known)) = (outcome, self.pods.get_mut(&uid))
            && known.version < version
        {
            (known.cost, known.version) = (cost, version);
        }
        let Some(set) = self.sets.get_mut(&key) else {
            return;
        };
        set.n_in_flight = set.n_in_flight.saturating_sub(1);
        match outcome {
            Outcome::Written(_) => {
                set.n_failures = 0;
                self.counters.written += 1;
            }
            Outcome::Gone => {}
            Outcome::Conflict | Outcome::Failed => {
                self.counters.failed += u64::from(outcome == Outcome::Failed);
                let wait = self.limits.backoff.0 << set.n_failures.min(20);
                set.n_failures += 1;
                let wait = Span(wait.min(self.limits.backoff_max.0));
                let (since, at) = (self.now, self.now + wait);
                self.due.insert(key, Due { since, at });
            }
        }
    }
}

// === decisions ===

impl Keeper {
    fn decide(&mut self, key: SetKey) {
        self.counters.decided += 1;
        let (pods, nodes) = self.active(key);
        let standing = self.asks(key).then(|| self.constraints_to_keep(&pods));
        let (standing, constraints) = match standing {
            Some(Ok(constraints)) => (Some(CostsDecision::Kept), constraints),
            Some(Err(why)) => (Some(CostsDecision::Left(why)), Vec::new()),
            None => (None, Vec::new()),
        };
        let Some(set) = self.sets.get_mut(&key) else {
            return;
        };
        let before = std::mem::replace(&mut set.standing, standing);
        if let Some(CostsDecision::Left(why)) = standing
            && before != standing
        {
            self.effects.push_back(Effect::Leave(key, why));
        }
        if standing.is_none() {
            self.followed.remove(&key);
        }
        match standing {
            Some(CostsDecision::Kept) => self.keep(key, &pods, &nodes, &constraints),
            Some(CostsDecision::Left(_)) | None => self.withdraw(key, &pods),
        }
    }

    /// Decides a ReplicaSet again at this time, if nothing makes it due before.
    fn look_again(&mut self, key: SetKey, at: Instant) {
        let later = self.later.entry(key).or_insert(at);
        *later = at.min(*later);
    }

    /// The pods of a ReplicaSet that it may delete, by uid, with their nodes.
    fn active(&self, key: SetKey) -> (Vec<Arc<str>>, Vec<Option<NodeIdx>>) {
        let pods = self.sets.get(&key).into_iter().flat_map(|set| &set.pods);
        let active = pods.filter(|uid| self.pods.get(*uid).is_some_and(|pod| !pod.is_terminating));
        let with_node = active.filter_map(|uid| {
            let pod = self.cluster.find_pod(uid)?;
            Some((Arc::clone(uid), self.cluster.pod(pod).node))
        });
        with_node.unzip()
    }

    /// The constraints to keep, or why nothing is kept.
    fn constraints_to_keep(&mut self, pods: &[Arc<str>]) -> Result<Vec<Counted>, Leaves> {
        let known = || pods.iter().filter_map(|uid| self.pods.get(uid));
        if known().any(|pod| pod.is_of_spread) {
            return Err(Leaves::WorkloadSpread);
        }
        if known().any(|pod| pod.cost == Cost::Foreign) {
            return Err(Leaves::CostsOfOthers);
        }
        let constraints = self.constraints(pods);
        match constraints.is_empty() && !pods.is_empty() {
            true => Err(Leaves::NoConstraint),
            false => Ok(constraints),
        }
    }

    /// The constraints of pods, each with its numbers and whether it is hard. Those that count the same with the same
    /// limit are one.
    fn constraints(&mut self, pods: &[Arc<str>]) -> Vec<Counted> {
        // What is counted from here on stays until the decision is made.
        self.cluster.pin_censuses();
        let pods = pods.iter().filter_map(|uid| self.cluster.find_pod(uid));
        let classes: BTreeSet<ClassId> = pods.map(|pod| self.cluster.pod(pod).class).collect();
        let mut all: Vec<Counted> = Vec::new();
        for class in classes {
            let tables = self.cluster.tables();
            let scheduler = tables.spec(tables.class(class).key.spec).scheduler_name;
            let of_name = self.profiles.iter().find(|(name, _)| *name == scheduler);
            let Some((_, profile)) = of_name.or(self.profiles.first()) else {
                continue;
            };
            let plan = SpreadPlan::make(&mut self.cluster, profile, class);
            for (index, constraint) in plan.effective.constraints.iter().enumerate() {
                if plan.is_off(index) {
                    continue;
                }
                let (_, tally) = plan.counted(&mut self.cluster, class, index);
                let limit = Limit {
                    max_skew: constraint.max_skew,
                    min_domains: constraint.min_domains.unwrap_or(1),
                };
                let constraint = (tally, limit, constraint.hard);
                if !all.contains(&constraint) {
                    all.push(constraint);
                }
            }
        }
        all
    }

    fn keep(
        &mut self,
        key: SetKey,
        pods: &[Arc<str>],
        nodes: &[Option<NodeIdx>],
        constraints: &[Counted],
    ) {
        let patience = self.limits.unready_after;
        let starts = pods.iter().filter_map(|uid| self.pods.get(uid));
        let starts = starts.filter(|pod| pod.starts(self.now, patience));
        if let Some(since) = starts.map(|pod| pod.stage_since).min() {
            self.look_again(key, since + patience);
        }
        let cluster = &self.cluster;
        let candidate = |(uid, node): (&Arc<str>, &Option<NodeIdx>)| {
            let known = self.pods.get(uid)?;
            let pod = cluster.find_pod(uid)?;
            let domain = |(tally, ..): &Counted| {
                let mut counts = cluster.class_of(pod).counted_in.iter();
                let is_counted = counts.any(|(census, _)| *census == tally.census);
                cluster.domain_in(*tally, (*node).filter(|_| is_counted)?)
            };
            Some(Candidate {
                domains: constraints.iter().map(domain).collect(),
                stage: match known.starts(self.now, patience) {
                    true => READY.place(),
                    false => known.stage.place(),
                },
                is_assigned: node.is_some(),
                cost: known.cost.own(),
            })
        };
        let candidates: Vec<Candidate> = pods.iter().zip(nodes).filter_map(candidate).collect();
        if candidates.len() != pods.len() {
            return;
        }
        let counted = |&(tally, limit, is_hard): &Counted| Constraint {
            limit,
            tally: cluster.tally(tally).clone(),
            is_hard,
        };
        let constraints: Vec<Constraint> = constraints.iter().map(counted).collect();
        let wanted = costs(&constraints, &candidates);
        self.counters.reordered += u64::from(!wanted.is_empty());
        for (index, cost) in wanted {
            self.write(key, &pods[index], Some(cost));
        }
    }

    /// Removes the costs that strew wrote.
    fn withdraw(&mut self, key: SetKey, pods: &[Arc<str>]) {
        let is_own = |uid: &&Arc<str>| self.pods.get(*uid).is_some_and(|p| p.cost.own().is_some());
        for uid in pods.iter().filter(is_own).collect::<Vec<_>>() {
            self.write(key, uid, None);
        }
    }

    fn write(&mut self, key: SetKey, uid: &Arc<str>, cost: Option<i32>) {
        let (Some(known), Some(set)) = (self.pods.get(uid), self.sets.get_mut(&key)) else {
            return;
        };
        set.n_in_flight += 1;
        self.next_effect += 1;
        let id = EffectId(self.next_effect);
        let after = cost.map_or(Cost::Absent, Cost::Own);
        self.pending.insert(id, (key, Arc::clone(uid), after));
        let pod = PodName {
            uid: Arc::clone(uid),
            namespace: key.0,
            name: Arc::clone(&known.name),
        };
        let version = known.version;
        self.effects.push_back(Effect::SetCost {
            id,
            pod,
            version,
            cost,
        });
    }
}

// === state for metrics and pages ===

impl Keeper {
    /// The strings of all facts and effects.
    pub fn names(&self) -> &Interner {
        &self.cluster.names
    }

    /// The strings of all facts and effects.
    pub fn names_mut(&mut self) -> &mut Interner {
        &mut self.cluster.names
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The last decision for each ReplicaSet that asks for costs.
    pub fn standings(&self) -> impl Iterator<Item = (SetKey, CostsDecision)> {
        let all = self.sets.iter();
        all.filter_map(|(key, set)| Some((*key, set.standing?)))
    }
}

// === the symbols in it ===

impl Keeper {
    fn sweep_if_due(&mut self) {
        if !self.cluster.is_sweep_due(self.limits.sweep_min) {
            return;
        }
        let sweep = self.cluster.begin_sweep(&FxHashSet::default());
        let Self {
            cluster,
            profiles: _,
            pods,
            sets,
            deployments,
            namespaces,
            followed,
            due,
            later,
            effects,
            pending,
            next_effect: _,
            counters: _,
            limits: _,
            now: _,
        } = self;
        let both = |(namespace, name): &SetKey, marks: &mut Marks| {
            namespace.mark(marks);
            name.mark(marks);
        };
        #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
        cluster.end_sweep(sweep, |marks: &mut Marks| {
            for known in pods.values() {
                both(&known.set, marks);
            }
            for (key, set) in sets.iter() {
                both(key, marks);
                if let Some(fact) = &set.fact {
                    fact.deployment.mark(marks);
                    fact.selector.mark(marks);
                }
            }
            deployments.keys().for_each(|key| both(key, marks));
            namespaces.keys().for_each(|name| name.mark(marks));
            followed.iter().for_each(|key| both(key, marks));
            due.keys().for_each(|key| both(key, marks));
            later.keys().for_each(|key| both(key, marks));
            effects.iter().for_each(|effect| effect.mark(marks));
            pending.values().for_each(|(key, ..)| both(key, marks));
        });
    }
}

#[cfg(test)]
mod tests;
