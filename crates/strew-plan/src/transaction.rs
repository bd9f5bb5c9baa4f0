//! Changes of a cluster that are tried: carried out, decided, compared, and taken back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::FxHashSet;
use strew_cluster::{
    ClassId, Cluster, Draft, NodeIdx, OwnerRef, PodClaim, PodIdx, PodSpec, Policy,
    SpreadConstraint, TallyId,
};
use strew_model::{Labels, Selector, Symbol};
use strew_scheduler::plugins::pod_topology_spread::Origin;
use strew_scheduler::preemption::{Budget, Budgets, NOT_STARTED_S, Nominations, Outcome, preempt};
use strew_scheduler::profiles::Profiles;
use strew_scheduler::{Decision, Profile, Unfit};
use strew_zones::rule::Situation;
use strew_zones::{Away, Place, PodState, Verdict, decide};

use crate::apply::{Subject, is_made_for};
use crate::change::Change;
use crate::health::{Health, renewed};
use crate::lives::Lives;
use crate::rule::{Measure, Rule};
use crate::suggest::own_constraints;

/// A cluster in which changes are carried out and pods are decided again. What is not [kept](Self::keep) is taken back,
/// at the latest on drop.
///
/// A pod that a change takes off its node stands for the pod that its controller makes instead, with the same row. A pod
/// without a controller, and one made for a node that is gone or evicts it, has no such pod: it is [gone](Fate::Gone).
/// A drain asks the PodDisruptionBudgets before each eviction: a pod that has a node again counts as healthy again. A
/// pod that fits nowhere preempts others as the scheduler has it.
///
/// Cost: one visit of every pod at the beginning; then of each change what it touches.
pub struct Transaction<'a> {
    draft: Draft<'a>,
    profiles: Profiles,
    budgets: Budgets,
    lives: Lives,
    health: Health,
    nominations: Nominations,
    /// The pods that were on no node at the beginning.
    waited: Vec<PodIdx>,
    /// The pods that a change or a decision was about.
    pods: BTreeMap<PodIdx, PodFate>,
    /// Those of them that are on no node.
    unplaced: BTreeSet<PodIdx>,
    /// Those of them that a drain wants to leave their nodes.
    asked: BTreeSet<PodIdx>,
    /// The nodes whose pods get no requests.
    shifted: BTreeSet<Symbol>,
    log: Vec<Note>,
}

/// What became of a pod so far.
#[derive(Debug, Clone, Default)]
struct PodFate {
    /// Its node at the beginning.
    from: Option<Symbol>,
    is_gone: bool,
    /// It was made since.
    is_new: bool,
    /// A drain wants it to leave its node.
    is_asked_to_leave: bool,
    /// A pod without a controller on its node, for which a drain refuses the node.
    beside: Option<PodIdx>,
    refused: Option<Rc<Unfit>>,
}

/// By budget, how many disruptions are used up.
type Charges = BTreeMap<(Symbol, Symbol), i32>;

/// The state before a change, beside that of the cluster.
enum Note {
    Pod(PodIdx, Option<PodFate>),
    Budget((Symbol, Symbol), i32),
    Shifted(Symbol),
}

/// Why the Eviction API refuses to evict a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The budget of this name allows no disruption.
    Budget(Symbol),
    /// The budget of this name has no status: how many disruptions it allows was not counted yet.
    NotCounted(Symbol),
    /// The budget of this name was not counted since its spec changed.
    Stale(Symbol),
    /// The budget of this name is one by zone, and pods of another zone are away.
    OtherZone(Symbol),
    /// Several budgets select it.
    SeveralBudgets,
}

impl Refusal {
    /// The budget that refuses; `None` if it is not a single one.
    pub fn budget(self) -> Option<Symbol> {
        match self {
            Self::Budget(name)
            | Self::NotCounted(name)
            | Self::Stale(name)
            | Self::OtherZone(name) => Some(name),
            Self::SeveralBudgets => None,
        }
    }
}

/// A state of a transaction to which it can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint {
    n_changes: usize,
    n_notes: usize,
}

/// What a change touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// The nodes that it was about, by name.
    pub nodes: BTreeSet<Symbol>,
    /// The pods that left their nodes, moved, or ask for something else.
    pub pods: BTreeSet<PodIdx>,
}

/// A pod for which changes made a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// The pod.
    pub pod: PodIdx,
    /// The name of its node before. `None`: it was Pending.
    pub from: Option<Symbol>,
    /// What became of it.
    pub to: Fate,
}

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is on the node of this name.
    On(Symbol),
    /// It is Pending; why, if one of the profiles decides for it.
    Pending(Option<Rc<Unfit>>),
    /// No controller makes another one.
    Gone,
    /// It stays on its node, which a drain wanted to empty.
    Kept(Keeping),
}

/// What keeps a pod on a node that is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeping {
    /// The Eviction API refuses.
    Refused(Refusal),
    /// `kubectl drain` refuses its node as a whole without `--force`, since this pod there has no controller.
    Bare(PodIdx),
}

/// How a constraint of a workload is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skew {
    /// The namespace of its pods.
    pub namespace: Symbol,
    /// The controller of its pods.
    pub owner: Option<OwnerRef>,
    /// The constraint.
    pub constraint: SpreadConstraint,
    /// Its index in the spec, or in the defaults.
    pub index: usize,
    /// Whether it is a default of the profile.
    pub is_default: bool,
    /// The largest domain minus the minimum; `None` if no node counts.
    pub skew: Option<i32>,
}

impl<'a> Transaction<'a> {
    /// A transaction without changes.
    pub fn new(cluster: &'a mut Cluster, profiles: &[Profile], budgets: Budgets) -> Self {
        let waited = cluster.pods().filter(|(_, row)| row.node.is_none());
        Self {
            waited: waited.map(|(pod, _)| pod).collect(),
            profiles: Profiles::new(&mut cluster.names, profiles.to_vec()),
            budgets,
            lives: Lives::default(),
            health: Health::default(),
            nominations: Nominations::of(cluster),
            draft: Draft::new(cluster),
            pods: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            asked: BTreeSet::new(),
            shifted: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    /// Sets what decides which pods a scale-down takes. Without it, pods are ready, and alike but for their nodes.
    pub fn set_lives(&mut self, lives: Lives) {
        self.lives = lives;
    }

    /// Sets which pods are not available, and what the Eviction API knows beside the numbers of budgets. Without it, pods
    /// are available.
    pub fn set_health(&mut self, health: Health) {
        self.health = health;
    }

    /// Why a pod is not available now; `None` if it is. One that has moved since the beginning is.
    pub(crate) fn away(&self, pod: PodIdx) -> Option<Away> {
        let has_moved = || {
            let standing = self.pods.get(&pod);
            standing.is_some_and(|standing| !standing.is_asked_to_leave)
                && self.draft.pod(pod).node.is_some()
        };
        let why = self.health.away.get(&pod).copied();
        why.filter(|_| !has_moved())
    }

    /// The first pod of a lower ordinal that is not available, without which no other pod is made in place of this one;
    /// `None` if there is none.
    pub fn made_after(&self, pod: PodIdx) -> Option<PodIdx> {
        let lower = self.health.after.get(&pod)?;
        lower
            .iter()
            .copied()
            .find(|&lower| self.away(lower).is_some())
    }

    /// The cluster as it is now.
    pub fn cluster(&self) -> &Cluster {
        &self.draft
    }

    /// The state as it is now.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            n_changes: self.draft.n_changes(),
            n_notes: self.log.len(),
        }
    }

    /// The number of steps that were made since the beginning and not taken back, which is what taking all back costs.
    pub fn n_steps(&self) -> usize {
        self.draft.n_changes() + self.log.len()
    }

    /// Takes all back since a savepoint: changes and decisions. Later decisions are those of new engines.
    pub fn undo_to(&mut self, savepoint: Savepoint) {
        self.draft.undo_to(savepoint.n_changes);
        while self.log.len() > savepoint.n_notes
            && let Some(note) = self.log.pop()
        {
            match note {
                Note::Pod(pod, before) => {
                    match before {
                        Some(before) => drop(self.pods.insert(pod, before)),
                        None => drop(self.pods.remove(&pod)),
                    }
                    self.index(pod);
                }
                Note::Budget((namespace, name), allowed) => {
                    self.budgets.allow(namespace, name, allowed);
                }
                Note::Shifted(node) => drop(self.shifted.remove(&node)),
            }
        }
        self.profiles.rewind();
    }

    /// Ends the transaction with its changes; a pod that is gone has a row there still, on no node.
    pub fn keep(self) {
        self.draft.keep();
    }

    /// Carries a change out, and returns what it touched; changes of "the pod" are made to these pods, which are alike:
    /// those of a workload. What leaves its node waits for [`decide`](Self::decide), and so do pods that ask for
    /// something else now: others are made in their place, all at once.
    pub fn apply(&mut self, change: &Change, pods: &[PodIdx]) -> Touched {
        let constraints = pods.first().map(|&pod| self.constraints(pod));
        let subject = Subject {
            pods,
            constraints: constraints.as_deref().unwrap_or_default(),
            lives: &self.lives,
        };
        let start = self.draft.n_changes();
        let applied = change.apply(&mut self.draft, subject);
        match *change {
            Change::AllowDisruptions {
                namespace,
                name,
                allowed,
            } => self.allow(namespace, name, allowed),
            Change::Shift { node } => {
                let name = self.draft.node(node).name();
                if self.shifted.insert(name) {
                    self.log.push(Note::Shifted(name));
                }
            }
            _ => {}
        }
        for &pod in &applied.added {
            self.note(pod, |standing| standing.is_new = true);
        }
        for &(pod, node) in &applied.left {
            self.note(pod, |standing| standing.from = Some(node));
        }
        for &pod in &applied.edited {
            self.unbind(pod);
        }
        for (pod, node) in applied.left {
            // A DaemonSet makes another pod for the same node, unless the node is gone or keeps it off.
            let is_asked = matches!(change, Change::DeletePod { .. });
            self.left(pod, node, !is_asked);
        }
        for pod in applied.scaled_away {
            self.note(pod, |standing| standing.is_gone = true);
        }
        let is_bare = |pod: &&PodIdx| !self.has_controller(**pod);
        let bare = applied.asked_to_leave.iter().find(is_bare).copied();
        for pod in applied.asked_to_leave {
            self.note(pod, |standing| {
                standing.is_asked_to_leave = true;
                standing.beside = bare;
            });
        }
        self.evict();
        Touched {
            nodes: self.draft.nodes_since(start).collect(),
            pods: self.draft.pods_since(start).collect(),
        }
    }

    fn allow(&mut self, namespace: Symbol, name: Symbol, allowed: i32) {
        if let Some(before) = self.budgets.allow(namespace, name, allowed) {
            self.log.push(Note::Budget((namespace, name), before));
        }
    }

    /// The symbol of a text.
    pub fn intern(&mut self, text: &str) -> Symbol {
        self.draft.intern(text)
    }

    /// Whether there is a budget of this name.
    pub fn has_budget(&self, namespace: Symbol, name: Symbol) -> bool {
        self.budgets.has(namespace, name)
    }

    /// Whether no controller makes a pod instead of this one.
    pub fn is_gone(&self, pod: PodIdx) -> bool {
        self.pods.get(&pod).is_some_and(|standing| standing.is_gone)
    }

    /// The hard constraint with which a pod's workload spreads over the domains of a key. It counts what the workload's
    /// other constraints count, or what its controller and its Services select.
    pub fn constraint_over(&mut self, pod: PodIdx, key: Symbol, max_skew: i32) -> SpreadConstraint {
        let known = self.constraints(pod).into_iter().next();
        let class = &self.draft.class_of(pod).key;
        let labels = self.draft.labels_of(pod);
        let deduce = || match self
            .draft
            .owners()
            .deduce(class.namespace, labels, class.owner)
        {
            Selector::AllOf(requirements) if requirements.is_empty() => {
                Selector::of_labels(labels.iter())
            }
            selector => selector,
        };
        SpreadConstraint {
            max_skew,
            key,
            hard: true,
            selector: known.map_or_else(deduce, |known| known.selector),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        }
    }

    /// Changes what is noted about a pod; its node so far is that of the beginning, unless it is noted already.
    fn note(&mut self, pod: PodIdx, change: impl FnOnce(&mut PodFate)) {
        let before = self.pods.get(&pod).cloned();
        let mut standing = before.clone().unwrap_or_else(|| {
            let node = self.draft.pod(pod).node;
            PodFate {
                from: node.map(|node| self.draft.node(node).name()),
                ..PodFate::default()
            }
        });
        let from = standing.from;
        change(&mut standing);
        if before.is_some() {
            standing.from = from;
        }
        self.log.push(Note::Pod(pod, before));
        self.pods.insert(pod, standing);
        self.index(pod);
    }

    /// Brings the lists of those that wait and leave up to date for a pod that was noted, bound or unbound.
    fn index(&mut self, pod: PodIdx) {
        let standing = self.pods.get(&pod);
        let row = self.draft.try_pod(pod);
        let waits = standing.is_some() && row.is_some_and(|row| row.node.is_none());
        let is_asked = standing.is_some_and(|standing| standing.is_asked_to_leave);
        for (list, is_in) in [(&mut self.unplaced, waits), (&mut self.asked, is_asked)] {
            match is_in {
                true => drop(list.insert(pod)),
                false => drop(list.remove(&pod)),
            }
        }
    }

    /// Takes a pod off its node.
    fn unbind(&mut self, pod: PodIdx) {
        self.note(pod, |_| {});
        self.draft.unbind(pod);
        self.index(pod);
    }

    /// True if a controller makes another pod in place of this one.
    fn has_controller(&self, pod: PodIdx) -> bool {
        let is_owned = self.draft.class_of(pod).key.owner.is_some();
        is_owned || self.health.owned.contains(&pod)
    }

    /// A pod has left a node: it is gone if no controller makes another one.
    fn left(&mut self, pod: PodIdx, node: Symbol, goes_with_node: bool) {
        let is_off = self.draft.pod(pod).node.is_none();
        let is_alone = !self.has_controller(pod);
        let is_orphan = is_alone || (goes_with_node && is_made_for(&self.draft, pod, node));
        if is_off && is_orphan {
            self.note(pod, |standing| standing.is_gone = true);
        }
    }

    /// Evicts the pods that are to leave, as far as their budgets allow it. Returns whether any was.
    fn evict(&mut self) -> bool {
        let asked: Vec<PodIdx> = self.asked.iter().copied().collect();
        let mut charges = match asked.is_empty() {
            true => return false,
            false => self.charges(),
        };
        let mut is_any = false;
        for pod in asked {
            let Some(node) = self.draft.pod(pod).node else {
                continue;
            };
            if self.keeping(pod, &charges).is_some() {
                continue;
            }
            // Only the eviction of a pod that counts as healthy uses up a budget.
            if !self.is_free(pod) {
                let budgets = self.budgets.of(&self.draft, pod);
                budgets.for_each(|(budget, _)| *charges.entry(*budget).or_default() += 1);
            }
            let node = self.draft.node(node).name();
            self.note(pod, |standing| standing.is_asked_to_leave = false);
            self.draft.unbind(pod);
            self.index(pod);
            self.left(pod, node, true);
            is_any = true;
        }
        is_any
    }

    /// How many pods of each budget have lost their nodes since the beginning.
    fn charges(&self) -> Charges {
        let mut charges = Charges::new();
        for &pod in &self.unplaced {
            if self.pods[&pod].from.is_some() && !self.is_free(pod) {
                let budgets = self.budgets.of(&self.draft, pod);
                budgets.for_each(|(budget, _)| *charges.entry(*budget).or_default() += 1);
            }
        }
        charges
    }

    /// What keeps a pod that is asked to leave on its node.
    fn keeping(&self, pod: PodIdx, charges: &Charges) -> Option<Keeping> {
        let beside = self.pods.get(&pod).and_then(|standing| standing.beside);
        let refusal = || self.refused_with(pod, charges).map(Keeping::Refused);
        beside.map(Keeping::Bare).or_else(refusal)
    }

    /// Why the first of a pod's budgets that does so refuses its eviction. A pod that is not ready may go whatever its
    /// budget allows, if that says so; and it takes nothing from its zone.
    fn refusing(&self, pod: PodIdx, charges: &Charges) -> Option<Refusal> {
        let is_away = self.away(pod).is_some();
        if self.is_free(pod) {
            return None;
        }
        let refuses = |(id, budget): (&(Symbol, Symbol), &Budget)| {
            let name = id.1;
            let used = charges.get(id).copied().unwrap_or(0);
            if self.health.stale.contains(id) {
                return Some(Refusal::Stale(name));
            }
            if used >= budget.disruptions_allowed
                && used >= budget.disruptions_allowed + self.healed(*id, budget)
            {
                return Some(Refusal::Budget(name));
            }
            let waits = !is_away && self.waits_for_another_zone(pod, budget);
            waits.then_some(Refusal::OtherZone(name))
        };
        self.budgets.of(&self.draft, pod).find_map(refuses)
    }

    /// Whether the Eviction API evicts a pod whatever its budget allows.
    fn is_free(&self, pod: PodIdx) -> bool {
        self.health.free.contains(&pod) && self.away(pod).is_some()
    }

    /// How many disruptions more a budget allows than its status says, since pods that were not ready have moved.
    fn healed(&self, id: (Symbol, Symbol), budget: &Budget) -> i32 {
        let away = &self.health.away;
        let is_healed = |pod: &&PodIdx| {
            away.get(*pod) == Some(&Away::NotReady)
                && self.away(**pod).is_none()
                && self.is_selected(**pod, id.0, budget)
        };
        let n_healed = match away.len() < self.pods.len() {
            true => away.keys().filter(is_healed).count(),
            false => self.pods.keys().filter(is_healed).count(),
        };
        let n_healed = i32::try_from(n_healed).unwrap_or(i32::MAX);
        let lacking = self.health.lacking.get(&id).copied().unwrap_or(0);
        n_healed.saturating_sub(lacking).max(0)
    }

    fn is_selected(&self, pod: PodIdx, namespace: Symbol, budget: &Budget) -> bool {
        self.draft.class_of(pod).key.namespace == namespace
            && budget.selector.matches(self.draft.labels_of(pod))
    }

    /// Whether a budget by zone keeps a pod where it is, since pods of another zone that it selects are not available or
    /// have lost their nodes.
    fn waits_for_another_zone(&self, pod: PodIdx, budget: &Budget) -> bool {
        let Some(key) = budget.zone else { return false };
        let name = |node: NodeIdx| self.draft.node(node).name();
        let state = |pod: PodIdx, node: Symbol, away: Option<Away>| {
            let row = self.draft.pod(pod);
            PodState {
                name: &row.name,
                uid: &row.uid,
                place: Place::In(self.label_of(node, key)),
                away,
            }
        };
        let Some(node) = self.draft.pod(pod).node else {
            return false;
        };
        let namespace = self.draft.class_of(pod).key.namespace;
        let asked = state(pod, name(node), None);
        let is_selected = |other: &PodIdx| self.is_selected(*other, namespace, budget);
        let selected = self.unplaced.iter().filter(|other| is_selected(other));
        let lost = selected.filter_map(|&other| {
            let from = self.pods.get(&other)?.from?;
            Some(state(other, from, Some(Away::Pending)))
        });
        let were_away = self.health.away.keys().filter(|other| is_selected(other));
        let away = were_away.filter_map(|&other| {
            let node = self.draft.node(self.draft.pod(other).node?);
            let is_there = other != pod && node.fact().is_some();
            let why = self.away(other).filter(|_| is_there)?;
            Some(state(other, node.name(), Some(why)))
        });
        let pods: Vec<PodState<'_>> = lost.chain(away).chain([asked]).collect();
        let situation = Situation {
            pods: &pods,
            missing: 0,
            claim: None,
            is_held: false,
        };
        matches!(decide(&situation, &asked), Verdict::Refuse(_))
    }

    /// A label of the node of this name; `None` if the node is gone.
    fn label_of(&self, node: Symbol, key: Symbol) -> Option<&str> {
        let node = self.draft.find_node(node)?;
        let value = self.draft.node(node).fact()?.labels.get(key)?;
        Some(self.draft.names.text(value))
    }

    /// The constraints as a pod could have them itself.
    pub fn constraints(&mut self, pod: PodIdx) -> Vec<SpreadConstraint> {
        let cluster = self.draft.deciding();
        let class = cluster.pod(pod).class;
        let Some(engine) = self.profiles.engine_of(cluster, class) else {
            return cluster.spec_of(pod).spread.to_vec();
        };
        let plan = engine.plan(cluster, class).spread.clone();
        own_constraints(&plan, cluster.spec_of(pod))
    }

    /// Decides for all pods that wait, those of higher priority first, then those that waited before the changes; then
    /// evicts what budgets allow now, until they allow no more.
    pub fn decide(&mut self) {
        loop {
            self.decide_waiting();
            if !self.evict() {
                return;
            }
        }
    }

    /// The pods that wait for the scheduler, in their turn.
    fn waiting(&self) -> BTreeSet<(Reverse<i32>, bool, PodIdx)> {
        let pods = self.waited.iter().chain(&self.unplaced);
        pods.filter_map(|&pod| self.turn_of(pod)).collect()
    }

    fn decide_waiting(&mut self) {
        let mut queue = self.waiting();
        while let Some((.., pod)) = queue.pop_first() {
            if self.place(pod) {
                continue;
            }
            for victim in self.preempt(pod) {
                queue.extend(self.turn_of(victim));
            }
        }
    }

    /// A pod's turn among those that wait; `None` if it does not wait for the scheduler.
    fn turn_of(&self, pod: PodIdx) -> Option<(Reverse<i32>, bool, PodIdx)> {
        let standing = self.pods.get(&pod);
        let spec = self.draft.spec_of(pod);
        let waits = self.draft.pod(pod).node.is_none()
            && standing.is_none_or(|standing| !standing.is_gone)
            && !self.draft.class_of(pod).key.terminating
            && spec.gates.is_empty();
        let was_placed = standing.is_some_and(|standing| standing.from.is_some());
        waits.then_some((Reverse(spec.priority), was_placed, pod))
    }

    /// Binds a pod to the node that it gets; returns whether it has one, or no profile decides for it. Why it has none is
    /// noted of pods that are noted already, since a refusal is large.
    fn place_quietly(&mut self, pod: PodIdx) -> bool {
        match self.pods.contains_key(&pod) {
            true => self.place(pod),
            false => {
                let cluster = self.draft.deciding();
                let class = cluster.pod(pod).class;
                let Some(engine) = self.profiles.engine_of(cluster, class) else {
                    return true;
                };
                let decision = engine.decide_with(cluster, pod, &self.nominations);
                let Decision::Place { node, .. } = decision else {
                    return false;
                };
                self.note(pod, |_| {});
                self.draft.bind(pod, node);
                self.index(pod);
                true
            }
        }
    }

    /// Binds a pod to the node that it gets; returns whether it has one, or no profile decides for it.
    fn place(&mut self, pod: PodIdx) -> bool {
        let cluster = self.draft.deciding();
        let Some(engine) = self.profiles.engine_of(cluster, cluster.pod(pod).class) else {
            return true;
        };
        match engine.decide_with(cluster, pod, &self.nominations) {
            Decision::Place { node, .. } => {
                self.note(pod, |standing| standing.refused = None);
                self.draft.bind(pod, node);
                self.index(pod);
                true
            }
            Decision::Unfit(unfit) => {
                self.note(pod, |standing| standing.refused = Some(unfit));
                false
            }
        }
    }

    /// Makes room for a pod that was refused, and binds it there. Returns the pods that left for it.
    fn preempt(&mut self, pod: PodIdx) -> Vec<PodIdx> {
        let unfit = self.pods.get(&pod).and_then(|s| s.refused.clone());
        let cluster = self.draft.deciding();
        let engine = self.profiles.engine_of(cluster, cluster.pod(pod).class);
        let (Some(engine), Some(unfit)) = (engine, unfit) else {
            return Vec::new();
        };
        let (budgets, nominations) = (&self.budgets, &self.nominations);
        let found = preempt(
            engine,
            cluster,
            pod,
            &unfit,
            budgets,
            nominations,
            NOT_STARTED_S,
        );
        let Outcome::Preempt(eviction) = found.outcome else {
            return Vec::new();
        };
        let node = self.draft.node(eviction.node).name();
        for &victim in &eviction.victims {
            self.unbind(victim);
            self.left(victim, node, false);
        }
        self.place(pod);
        eviction.victims
    }

    /// The pods that are not where they were, and those that budgets keep from leaving, by row.
    pub fn turned(&self) -> Vec<Turned> {
        let charges = self.charges();
        let turned = |(&pod, standing): (&PodIdx, &PodFate)| {
            let from = standing.from;
            let node = self.draft.pod(pod).node;
            let to = match node.map(|node| self.draft.node(node).name()) {
                _ if standing.is_gone => Fate::Gone,
                Some(_) if standing.is_asked_to_leave => Fate::Kept(self.keeping(pod, &charges)?),
                Some(node) if from == Some(node) => return None,
                Some(node) => Fate::On(node),
                None if from.is_none() && !standing.is_new => return None,
                None => Fate::Pending(standing.refused.clone()),
            };
            Some(Turned { pod, from, to })
        };
        self.pods.iter().filter_map(turned).collect()
    }

    /// The number of pods that each Service leads to, by namespace and name: of those on nodes that it selects, those that
    /// get requests.
    pub fn endpoints(&self) -> BTreeMap<(Symbol, Symbol), usize> {
        let cluster = self.cluster();
        let serves = |(_, node): &&(PodIdx, NodeIdx)| {
            let row = cluster.node(*node);
            row.fact().is_some() && !self.shifted.contains(&row.name())
        };
        let service = |(key, selector): ((Symbol, Symbol), &Labels)| {
            let classes = cluster.tables().populated().filter(|(_, class)| {
                let labels = cluster.tables().labels(class.key.labels);
                let is_in = class.key.namespace == key.0 && !class.key.terminating;
                is_in && labels.contains_all(selector)
            });
            let endpoints = classes.map(|(_, class)| class.members.iter().filter(serves).count());
            (key, endpoints.sum())
        };
        cluster.owners().services().map(service).collect()
    }

    /// How far the cluster is from what is asked for, counted anew.
    pub fn measure(&mut self) -> Measure {
        let mut measure = Measure {
            pending: self.waiting().len(),
            ..Measure::default()
        };
        let rules = Rule::distinct(self.rules(), &self.draft);
        for rule in rules {
            *measure.of(&rule) += rule.moves(&self.draft);
        }
        measure
    }

    /// Binds the pods that wait to the nodes that they get; none makes room for itself.
    pub fn place_waiting(&mut self) {
        // Later pods of a class that was refused are refused, too.
        let mut refused: FxHashSet<ClassId> = FxHashSet::default();
        for (.., pod) in self.waiting() {
            let class = self.draft.pod(pod).class;
            if !refused.contains(&class) && !self.place_quietly(pod) {
                refused.insert(class);
            }
        }
    }

    /// Evicts a pod, whose controller makes another one, and decides for that one and for those that wait; none makes
    /// room for itself. Those that wait must have been [asked](Self::place_waiting) before. Returns its node; `Err`: it stays Pending, and why, if one of the profiles decides for it.
    ///
    /// # Errors
    /// It stays Pending; then the state is between, and is to be taken back.
    pub fn relocate(&mut self, pod: PodIdx) -> Result<NodeIdx, Option<Rc<Unfit>>> {
        let left = self.draft.pod(pod).node;
        self.replace(pod);
        let mut refused: FxHashSet<ClassId> = FxHashSet::default();
        for (.., waiting) in self.waiting() {
            let class = self.draft.pod(waiting).class;
            let may_fit = waiting == pod
                || !refused.contains(&class)
                    && left.is_none_or(|left| self.may_fit_now(waiting, pod, left));
            if may_fit && self.place_quietly(waiting) {
                continue;
            }
            refused.insert(class);
        }
        self.node_or_refusal(pod)
    }

    /// Whether a pod that no node took may fit now that another one has left a node: there, or anywhere if one of the two
    /// has needs that are counted beyond a node.
    fn may_fit_now(&mut self, waiting: PodIdx, gone: PodIdx, left: NodeIdx) -> bool {
        let is_counted = |spec: &PodSpec| {
            !spec.affinity.required.is_empty()
                || !spec.affinity.required_anti.is_empty()
                || !spec.claims.is_empty()
        };
        let cluster = self.draft.deciding();
        if is_counted(cluster.spec_of(waiting)) || is_counted(cluster.spec_of(gone)) {
            return true;
        }
        let class = cluster.pod(waiting).class;
        let Some(engine) = self.profiles.engine_of(cluster, class) else {
            return false;
        };
        !engine.plan(cluster, class).spread.hard.is_empty()
            || engine.refusal_on(cluster, waiting, left).is_none()
    }

    /// As [`relocate`](Self::relocate), but those that wait are not asked, which may be many.
    ///
    /// # Errors
    /// It stays Pending.
    pub(crate) fn relocate_alone(&mut self, pod: PodIdx) -> Result<NodeIdx, Option<Rc<Unfit>>> {
        self.replace(pod);
        self.place(pod);
        self.node_or_refusal(pod)
    }

    /// Takes a pod off its node, and has the one that its controller makes instead wait, with new claims for its generic
    /// ephemeral volumes.
    fn replace(&mut self, pod: PodIdx) {
        self.apply(&Change::DeletePod { pod }, &[]);
        let cluster = self.cluster();
        let claims = &cluster.spec_of(pod).claims;
        if claims.iter().all(|used| used.named.is_some()) {
            return;
        }
        let name = renewed(&cluster.pod(pod).name);
        let namespace = cluster.class_of(pod).key.namespace;
        let has_new_claim = |used: &PodClaim| {
            let claim = cluster.names.get(&used.claim_name(&name, &cluster.names));
            let fact = claim.and_then(|claim| cluster.volumes().claim((namespace, claim)));
            used.named.is_none() && fact.is_some()
        };
        if claims.iter().any(has_new_claim) {
            self.draft.rename(pod, name.into());
        }
    }

    /// Whether a pod that no node took would preempt others. Carries that out; it is to be taken back.
    pub(crate) fn preempts(&mut self, pod: PodIdx) -> bool {
        self.place(pod);
        !self.preempt(pod).is_empty()
    }

    fn node_or_refusal(&self, pod: PodIdx) -> Result<NodeIdx, Option<Rc<Unfit>>> {
        let refused = || self.pods.get(&pod).and_then(|s| s.refused.clone());
        self.draft.pod(pod).node.ok_or_else(refused)
    }

    /// Why the Eviction API refuses to evict a pod now.
    pub fn eviction_refused(&self, pod: PodIdx) -> Option<Refusal> {
        self.refused_with(pod, &self.charges())
    }

    fn refused_with(&self, pod: PodIdx, charges: &Charges) -> Option<Refusal> {
        if self.is_free(pod) {
            return None;
        }
        let budgets = self.budgets.of(&self.draft, pod);
        let budgets: Vec<_> = budgets
            .map(|((_, name), budget)| (*name, budget.counted))
            .collect();
        match *budgets {
            [_, _, ..] => Some(Refusal::SeveralBudgets),
            [(name, false)] => Some(Refusal::NotCounted(name)),
            _ => self.refusing(pod, charges),
        }
    }

    /// Whether one of the profiles decides for a pod.
    pub fn is_decided(&self, pod: PodIdx) -> bool {
        let class = self.draft.pod(pod).class;
        self.profiles.of_class(&self.draft, class).is_some()
    }

    /// The pods that changed since a savepoint, with duplicates.
    pub(crate) fn pods_since(&self, savepoint: Savepoint) -> impl Iterator<Item = PodIdx> + '_ {
        self.draft.pods_since(savepoint.n_changes)
    }

    /// The number of pods that wait for the scheduler.
    pub fn n_waiting(&self) -> usize {
        self.waiting().len()
    }

    /// Each constraint of each workload with its skew, by the first pod that has it.
    ///
    /// Cost: the counts of every constraint are made where no decision has needed them yet.
    pub fn skews(&mut self) -> Vec<Skew> {
        let mut seen: FxHashSet<(Symbol, Option<OwnerRef>, usize, SpreadConstraint)> =
            FxHashSet::default();
        let mut rules = self.rules();
        rules.retain(|rule| {
            seen.insert((
                rule.namespace,
                rule.owner,
                rule.index,
                rule.constraint.clone(),
            ))
        });
        let skew = |rule: Rule| {
            let tally = self.draft.tally(rule.tally);
            Skew {
                skew: (tally.domains() > 0).then(|| tally.skew()),
                namespace: rule.namespace,
                owner: rule.owner,
                constraint: rule.constraint,
                index: rule.index,
                is_default: rule.is_default,
            }
        };
        rules.into_iter().map(skew).collect()
    }

    /// The constraints of all workloads with what they count; a constraint that counts other nodes for some pods than
    /// for others is there for each.
    ///
    /// Cost: the counts of every constraint are made where no decision has needed them yet.
    pub(crate) fn rules(&mut self) -> Vec<Rule> {
        // All counts are read later, so none may go.
        self.draft.deciding().set_census_bytes_max(usize::MAX);
        let mut n_gone: BTreeMap<ClassId, usize> = BTreeMap::new();
        for pod in self.unplaced.iter().filter(|pod| self.is_gone(**pod)) {
            *n_gone.entry(self.draft.pod(*pod).class).or_default() += 1;
        }
        let populated = self.draft.tables().populated();
        let stay = populated.filter(|(id, class)| Some(&class.n_pods()) != n_gone.get(id));
        let classes: BTreeSet<ClassId> = stay.map(|(id, _)| id).collect();
        let mut rules: Vec<Rule> = Vec::new();
        let mut seen: FxHashSet<(Symbol, Option<OwnerRef>, usize, SpreadConstraint, TallyId)> =
            FxHashSet::default();
        for class in classes {
            let cluster = self.draft.deciding();
            let Some(engine) = self.profiles.engine_of(cluster, class) else {
                continue;
            };
            let plan = engine.plan(cluster, class).spread.clone();
            let key = cluster.tables().class(class).key.clone();
            if key.terminating {
                continue;
            }
            for (index, constraint) in plan.effective.constraints.iter().enumerate() {
                let (column, tally) = plan.counted(cluster, class, index);
                let identity = (key.namespace, key.owner, index, constraint.clone(), tally);
                if !seen.insert(identity) {
                    continue;
                }
                rules.push(Rule {
                    namespace: key.namespace,
                    owner: key.owner,
                    constraint: constraint.clone(),
                    index,
                    is_default: plan.effective.origin != Origin::Pod,
                    is_off: plan.is_off(index),
                    shared: Vec::new(),
                    key: column,
                    tally,
                });
            }
        }
        rules
    }
}
