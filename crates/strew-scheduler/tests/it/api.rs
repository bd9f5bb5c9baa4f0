//! A small API server with faults, driven by dice: what the scheduler's properties are tried against.
//!
//! Objects change and are watched; requests fail, are lost, or are carried out while their answers are lost; the
//! scheduler is killed between any two effects and started anew from what is stored.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strew_cluster::{NodeFact, OwnerKind, OwnerRef, PodFact};
use strew_model::{Instant, Interner, Labels, Prng, Selector, Span, Symbol};
use strew_scheduler::Profile;
use strew_scheduler::machine::{
    Condition, Effect, EffectId, Input, Limits, Outcome, Scheduler, TrackedAs,
};
use strew_scheduler::preemption::Budget;

use crate::world::RandomCluster;

/// A stored pod.
#[derive(Clone)]
struct Stored {
    fact: PodFact,
    condition: Option<Condition>,
}

/// Everything that is watched but nodes and pods.
type Rest = BTreeMap<(Symbol, u8, Symbol), Input>;

/// Watches: each tells what changed in order, but nothing orders one after another.
const NODES: usize = 0;
const PODS: usize = 1;
const OTHERS: usize = 2;

pub(crate) struct Api {
    world: RandomCluster,
    pub(crate) dice: Prng,
    pub(crate) now: Instant,
    nodes: BTreeMap<Symbol, NodeFact>,
    pods: BTreeMap<Arc<str>, Stored>,
    rest: Rest,
    watches: [VecDeque<Input>; 3],
    /// Each with whether the replica that sent it still runs.
    requests: Vec<(Effect, bool)>,
    answers: Vec<(EffectId, Outcome)>,
    names: Interner,
    schedulers: Vec<Symbol>,
    gate: Symbol,
    pub(crate) scheduler: Scheduler,
    /// Binds asked for, each with its moment, until they failed.
    binds: BTreeMap<Arc<str>, (EffectId, Instant)>,
    next_pod: usize,
    /// How many effects of each kind were asked for: binds, conditions, nominations, victims, events.
    pub(crate) asked: [usize; 5],
}

fn profiles() -> Vec<Profile> {
    let second = Profile {
        scheduler_name: "second".to_owned(),
        ties: strew_scheduler::TieRule::FirstName,
        ..Profile::default()
    };
    vec![Profile::default(), second]
}

impl Api {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = RandomCluster::new(seed);
        let names = &mut world.cluster.names;
        let schedulers = ["default-scheduler", "second", "somebody-else"]
            .map(|name| names.intern(name))
            .to_vec();
        let gate = names.intern("example.com/gate");
        let names = names.clone();
        let now = Instant::from_secs(1_000) + Span::from_millis(seed % 1000);
        Self {
            world,
            dice: Prng::new(seed ^ 0x5eed),
            now,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            rest: BTreeMap::new(),
            watches: Default::default(),
            requests: Vec::new(),
            answers: Vec::new(),
            scheduler: Scheduler::new(names.clone(), profiles(), crate::machine::limits(seed), now),
            names,
            schedulers,
            gate,
            binds: BTreeMap::new(),
            next_pod: 0,
            asked: [0; 5],
        }
    }
}

// === what people, controllers and kubelets do ===

impl Api {
    /// Something changes, somewhere.
    pub(crate) fn change(&mut self) {
        match self.dice.between(0, 14) {
            14 => self.create_pod(),
            0..=2 => {
                let fact = self.world.node_fact();
                self.nodes.insert(fact.name, fact.clone());
                self.watches[NODES].push_back(Input::NodeSet(fact));
            }
            3 => {
                let name = self.world.node_name();
                if self.nodes.remove(&name).is_some() {
                    self.watches[NODES].push_back(Input::NodeGone(name));
                }
            }
            4..=8 => self.create_pod(),
            9..=10 => self.delete_pod(),
            11 => self.change_pod(),
            _ => self.change_rest(),
        }
    }

    fn create_pod(&mut self) {
        let bound = self.dice.chance(1, 5);
        let mut fact = self.world.pod_fact(bound);
        // Numbers of their own: a uid never comes back.
        fact.uid = format!("pod-{}", self.next_pod).into();
        fact.name = fact.uid.clone();
        self.next_pod += 1;
        fact.terminating &= bound;
        fact.spec.priority = self.dice.between(0, 5) as i32;
        // Half of all pods just want room, so that nodes fill up and pods make others go.
        if self.dice.chance(1, 2) {
            fact.spec.spread = Box::default();
            fact.spec.affinity = Default::default();
            fact.spec.node_affinity = Default::default();
            let requests = strew_model::Resources::of(500 * self.dice.between(1, 6) as i64, 500);
            fact.spec.used = requests.clone();
            fact.spec.requests = requests;
        }
        fact.spec.scheduler_name = match self.dice.between(0, 9) {
            0 => self.schedulers[2],
            1..=3 => self.schedulers[1],
            _ => self.schedulers[0],
        };
        if !bound && self.dice.chance(1, 8) {
            fact.spec.gates = [self.gate].into();
        }
        let condition = None;
        self.store(Stored { fact, condition });
    }

    fn store(&mut self, pod: Stored) {
        self.pods.insert(pod.fact.uid.clone(), pod.clone());
        self.watches[PODS].push_back(pod_set(&pod));
    }

    fn some_pod(&mut self) -> Option<Stored> {
        let place = self.dice.index(self.pods.len().max(1));
        self.pods.values().nth(place).cloned()
    }

    fn delete_pod(&mut self) {
        if let Some(mut pod) = self.some_pod() {
            if !pod.fact.terminating && self.dice.chance(1, 2) {
                pod.fact.terminating = true;
                return self.store(pod);
            }
            self.pods.remove(&pod.fact.uid);
            self.watches[PODS].push_back(Input::PodGone(pod.fact.uid));
        }
    }

    fn change_pod(&mut self) {
        let Some(mut pod) = self.some_pod() else {
            return;
        };
        let other = self.world.pod_fact(false);
        match self.dice.between(0, 2) {
            0 => pod.fact.labels = other.labels,
            1 => pod.fact.spec.gates = Box::default(),
            _ => {
                let more = pod
                    .fact
                    .spec
                    .tolerations
                    .iter()
                    .chain(&other.spec.tolerations);
                pod.fact.spec.tolerations = more.cloned().collect();
            }
        }
        self.store(pod);
    }

    fn change_rest(&mut self) {
        let pod = self.world.pod_fact(false);
        let namespace = pod.namespace;
        let there = self.dice.chance(3, 4);
        let labels = there.then_some(pod.labels);
        let (key, input) = match self.dice.between(0, 3) {
            3 => {
                let selector = labels.as_ref().map(|l| Selector::of_labels(l.iter()));
                let budget = selector.map(|selector| Budget {
                    selector,
                    counted: true,
                    disruptions_allowed: self.dice.between(0, 1) as i32,
                    zone: None,
                    disrupted: Default::default(),
                });
                let name = self.gate;
                let input = Input::BudgetSet {
                    namespace,
                    name,
                    budget,
                };
                ((namespace, 3, name), input)
            }
            0 => {
                let input = Input::NamespaceSet {
                    name: namespace,
                    labels,
                };
                ((namespace, 0, namespace), input)
            }
            1 => {
                let name = self.gate;
                let selector = labels;
                (
                    (namespace, 1, name),
                    Input::ServiceSet {
                        namespace,
                        name,
                        selector,
                    },
                )
            }
            _ => {
                let (kind, name) = (OwnerKind::ReplicaSet, self.gate);
                let owner = OwnerRef { kind, name };
                let selector = labels.map(|l: Labels| Selector::of_labels(l.iter()));
                let input = Input::ControllerSet {
                    namespace,
                    owner,
                    selector,
                };
                ((namespace, 2, name), input)
            }
        };
        self.rest.insert(key, input.clone());
        self.watches[OTHERS].push_back(input);
    }
}

fn pod_set(pod: &Stored) -> Input {
    Input::PodSet {
        fact: Box::new(pod.fact.clone()),
        condition: pod.condition.clone(),
    }
}

// === what happens between the scheduler and the API server ===

impl Api {
    /// One step of anything: a change, a fact told, an effect, a request carried out or not, an answer, time, a crash.
    pub(crate) fn step(&mut self) {
        match self.dice.between(0, 19) {
            0..=2 => self.change(),
            3..=8 => {
                let watch = self.dice.index(self.watches.len());
                self.tell(watch);
            }
            9..=12 => {
                self.ask();
            }
            13..=15 if !self.requests.is_empty() => {
                let place = self.dice.index(self.requests.len());
                let request = self.requests.swap_remove(place);
                self.carry_out_badly(request);
            }
            16..=17 => self.answer(),
            18 => {
                let span = match self.dice.between(0, 9) {
                    0 => Span::from_secs(self.dice.between(1, 400)),
                    _ => Span::from_millis(self.dice.between(1, 3_000)),
                };
                self.now = self.now + span;
                self.scheduler.handle(self.now, Input::Tick);
            }
            _ if self.dice.chance(1, 4) => self.restart(),
            _ => {}
        }
    }

    fn tell(&mut self, watch: usize) -> bool {
        let Some(input) = self.watches[watch].pop_front() else {
            return false;
        };
        self.scheduler.handle(self.now, input);
        true
    }

    /// Polls one effect.
    fn ask(&mut self) -> bool {
        let Some(effect) = self.scheduler.poll_effect() else {
            return false;
        };
        self.asked[match &effect {
            Effect::Bind { .. } => 0,
            Effect::PodCondition { .. } => 1,
            Effect::Nominate { .. } => 2,
            Effect::DeleteVictim { .. } => 3,
            Effect::Event(_) => 4,
        }] += 1;
        if let Effect::Bind { id, pod, .. } = &effect {
            let before = self.binds.insert(pod.uid.clone(), (*id, self.now));
            if let Some((_, at)) = before {
                let given_up = self.now.since(at) >= Limits::production().lost_after;
                assert!(given_up, "pod {} is bound twice", pod.uid);
            }
        }
        self.requests.push((effect, true));
        true
    }

    fn carry_out_badly(&mut self, (request, lives): (Effect, bool)) {
        let id = request.id().filter(|_| lives);
        let (carried_out, answered) = match self.dice.between(0, 9) {
            0 => (false, Some(Outcome::Failed("timeout".into()))),
            1 => (true, Some(Outcome::Failed("connection reset".into()))),
            2 => (true, None),
            3 => (false, None),
            _ => (true, Some(Outcome::Ok)),
        };
        let outcome = match carried_out {
            true => self.carry_out(request),
            false => Outcome::Ok,
        };
        if let (Some(id), Some(answered)) = (id, answered) {
            let outcome = if answered == Outcome::Ok {
                outcome
            } else {
                answered
            };
            self.answers.push((id, outcome));
        }
    }

    fn carry_out(&mut self, request: Effect) -> Outcome {
        match request {
            Effect::Bind { pod, node, .. } => {
                let Some(mut stored) = self.pods.get(&pod.uid).cloned() else {
                    return Outcome::Gone;
                };
                let fact = &mut stored.fact;
                if fact.node.is_some() || fact.terminating || !fact.spec.gates.is_empty() {
                    return Outcome::Conflict("pod is already assigned".into());
                }
                fact.node = Some(node);
                // Not always: the gate ClearingNominatedNodeNameAfterBinding may be off.
                if self.dice.chance(3, 4) {
                    fact.history.nominated = None;
                }
                stored.condition = None;
                self.store(stored);
                Outcome::Ok
            }
            Effect::PodCondition { pod, condition, .. } => {
                let Some(mut stored) = self.pods.get(&pod.uid).cloned() else {
                    return Outcome::Gone;
                };
                if stored.fact.node.is_none() {
                    stored.condition = Some(condition);
                    self.store(stored);
                }
                Outcome::Ok
            }
            Effect::Nominate { pod, node, .. } => {
                let Some(mut stored) = self.pods.get(&pod.uid).cloned() else {
                    return Outcome::Gone;
                };
                if stored.fact.node.is_none() {
                    stored.fact.history.nominated = node;
                    self.store(stored);
                }
                Outcome::Ok
            }
            Effect::DeleteVictim { victim, .. } => {
                let Some(mut stored) = self.pods.get(&victim.uid).cloned() else {
                    return Outcome::Gone;
                };
                stored.fact.terminating = true;
                stored.fact.history.preempted = true;
                self.store(stored);
                Outcome::Ok
            }
            Effect::Event(_) => Outcome::Ok,
        }
    }

    fn answer(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let place = self.dice.index(self.answers.len());
        let (effect, outcome) = self.answers.swap_remove(place);
        if outcome != Outcome::Ok {
            self.binds.retain(|_, (id, _)| *id != effect);
        }
        let input = Input::Outcome { effect, outcome };
        self.scheduler.handle(self.now, input);
    }

    /// Every fact, as a list tells them, in some order.
    pub(crate) fn list(&mut self) -> Vec<Input> {
        let nodes = self.nodes.values().cloned().map(Input::NodeSet);
        let pods = self.pods.values().map(pod_set);
        let mut all: Vec<Input> = nodes
            .chain(pods)
            .chain(self.rest.values().cloned())
            .collect();
        self.dice.shuffle(&mut all);
        all
    }

    fn restart(&mut self) {
        // Requests that are under way may still be carried out; no replica waits for their answers.
        self.scheduler = self.fresh();
        self.answers.clear();
        self.requests
            .iter_mut()
            .for_each(|(_, lives)| *lives = false);
        self.binds.clear();
        self.watches = Default::default();
    }

    /// A scheduler that was told what is stored, and nothing else.
    pub(crate) fn fresh(&mut self) -> Scheduler {
        let names = self.names.clone();
        let mut fresh = Scheduler::new(names, profiles(), Limits::production(), self.now);
        for input in self.list() {
            fresh.handle(self.now, input);
        }
        fresh
    }
}

// === calm, and what must be then ===

impl Api {
    /// No faults any more: all is told, carried out and answered, until nothing moves for a flush.
    pub(crate) fn calm(&mut self) {
        let end = self.now + Span::from_secs(40 * 60);
        loop {
            self.settle();
            match self.scheduler.next_wake() {
                Some(wake) if wake <= end => {
                    self.now = self.now.max(wake);
                    self.scheduler.handle(self.now, Input::Tick);
                }
                _ => break,
            }
        }
        self.now = end;
        self.scheduler.handle(self.now, Input::Tick);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for watch in 0..self.watches.len() {
                while self.tell(watch) {
                    moved = true;
                }
            }
            moved |= self.ask();
            while let Some((request, lives)) = self.requests.pop() {
                moved = true;
                let id = request.id().filter(|_| lives);
                let outcome = self.carry_out(request);
                if let Some(id) = id {
                    self.answers.push((id, outcome));
                }
            }
            while !self.answers.is_empty() {
                moved = true;
                self.answer();
            }
            // Those that are asked to go, go: else room that is to be had by waiting is waited for without end.
            let leaving = self.pods.values().find(|p| p.fact.terminating);
            if let Some(uid) = leaving.map(|p| p.fact.uid.clone()) {
                self.pods.remove(&uid);
                self.watches[PODS].push_back(Input::PodGone(uid));
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    /// What must hold after calm.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        self.scheduler.audit()?;
        let kept = fingerprint(&self.scheduler);
        let mut fresh = self.fresh();
        fresh.audit()?;
        if kept != fingerprint(&fresh) {
            let told = fingerprint(&fresh);
            let only = |a: &str, b: &str| {
                let lines = a
                    .lines()
                    .filter(|line| b.lines().all(|other| other != *line));
                lines.collect::<Vec<_>>().join("\n")
            };
            let (ours, theirs) = (only(&kept, &told), only(&told, &kept));
            return Err(format!("kept\n{ours}\ntold afresh\n{theirs}"));
        }
        while let Some(effect) = fresh.poll_effect() {
            match effect {
                Effect::Bind { pod, .. } => {
                    return Err(format!("pod {} fits and was left", pod.uid));
                }
                Effect::DeleteVictim { victim, .. } => {
                    return Err(format!("pod {} makes room and was left", victim.uid));
                }
                _ => {}
            }
        }
        let mut cluster = self.scheduler.cluster().clone();
        cluster.refresh_order();
        for pod in self.pods.values() {
            let uid = &*pod.fact.uid;
            let expected = match pod.fact.node {
                Some(_) => TrackedAs::Bound,
                None if pod.fact.spec.scheduler_name == self.schedulers[2] => TrackedAs::Ignored,
                None => TrackedAs::Queued,
            };
            let standing = self.scheduler.standing(uid);
            if standing != Some(expected) {
                return Err(format!("pod {uid} is {standing:?}, not {expected:?}"));
            }
            if expected == TrackedAs::Queued && pod.fact.spec.gates.is_empty() {
                let row = cluster.find_pod(uid).ok_or("a pod of the queue is known")?;
                if let Some(node) = crate::world::fits_somewhere(&cluster, &profiles()[0], row) {
                    let said = pod.condition.as_ref().map(|c| &c.message);
                    let nominated = self
                        .pods
                        .values()
                        .filter(|p| p.fact.history.nominated.is_some());
                    let nominated: Vec<_> = nominated
                        .map(|p| {
                            (
                                &p.fact.uid,
                                p.fact.node,
                                p.fact.history,
                                p.fact.spec.priority,
                                &p.condition,
                            )
                        })
                        .collect();
                    return Err(format!(
                        "pod {uid} fits on {node:?} and is Pending: {said:?}; nominated: {nominated:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// All that a scheduler knows and would act on, as lines.
fn fingerprint(scheduler: &Scheduler) -> String {
    let cluster = scheduler.cluster();
    let mut lines = Vec::new();
    for i in 0..cluster.node_rows() {
        let row = cluster.node(i.into());
        if let Some(fact) = row.fact() {
            let mut ports = row.host_ports().to_vec();
            ports.sort_by_key(|p| (p.port, p.ip, p.protocol));
            lines.push(format!("{fact:?} {:?} {ports:?}", row.used()));
        }
    }
    for (_, row) in cluster.pods() {
        let node = row.node.map(|n| cluster.node(n).name());
        let class = &cluster.tables().class(row.class).key;
        let labels = cluster.tables().labels(class.labels);
        let spec = cluster.tables().spec(class.spec);
        // A pod that is being deleted is tried once, and then ignored.
        let standing = match (scheduler.standing(&row.uid), class.terminating) {
            (Some(TrackedAs::Queued), true) => Some(TrackedAs::Ignored),
            (standing, _) => standing,
        };
        lines.push(format!(
            "{} {node:?} {standing:?} {:?} {} {labels:?} {spec:?} {:?}",
            row.uid, class.namespace, class.terminating, row.history
        ));
    }
    lines.sort();
    lines.join("\n")
}
