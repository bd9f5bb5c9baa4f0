//! Seeded lives in which plans are made and carried out under faults, and what must be true of them.
//!
//! Some nodes are cordoned while Deployments start, so that these are uneven afterwards. One or two processes make plans
//! and carry them out, die, and go on with the same plan or a new one, while budgets, sizes, nodes and pods change and
//! components crash. When all of that is over, one process goes on until a plan has no eviction.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Budget, Key, Kind, Name, Node, Pod, Stored};
use strew_model::Prng;
use strew_model::time::Span;
use strew_sim::auditor::{Rule, Violation};
use strew_sim::chaos::{Going, Life, Parts, Verdict, caught};
use strew_sim::{BindFault, Component, Crash, Fault, WatchFault, WriteFault};
use strew_view::moment::{self, Frame};
use strew_view::workload::Workloads;
use strew_wire::request::{Answer, Request};

use super::carry::{Carrying, Next, NodeLabels, PodSeen};
use super::plan::{self, Asked};
use super::values::RebalancePlan;

const ZONE: &str = "topology.kubernetes.io/zone";

/// When the nodes are no longer cordoned.
const BEGIN: Span = Span::from_secs(90);

/// When faults and changes end.
const CALM: Span = Span::from_secs(600);

/// How long a step may wait.
const PATIENCE: Span = Span::from_secs(120);

/// When the last plan must have ended.
const END: Span = Span::from_secs(3 * 3600);

/// The pause between the end of a plan and the next one.
const BETWEEN_PLANS: Span = Span::from_secs(20);

/// Plays the life of a seed; a panic is a violation.
pub fn play(seed: u64, parts: &Parts) -> Verdict {
    caught(|| {
        let mut balanced = BalancedLife::new(seed, parts);
        let ended = balanced.live();
        balanced.life.end(ended)
    })
}

struct BalancedLife {
    life: Life,
    dice: Prng,
    nodes: Vec<String>,
    cordoned: Vec<String>,
    deployments: Vec<(String, u64)>,
    /// By number.
    plans: Vec<Begun>,
    /// All uids that were evicted.
    evicted: BTreeSet<String>,
}

/// A plan that processes carry out.
struct Begun {
    plan: Arc<RebalancePlan>,
    /// The uids that were evicted for it.
    evicted: BTreeSet<String>,
    /// The most steps that a process has done.
    n_done: usize,
}

/// A process that carries a plan out.
struct Process {
    carrying: Carrying<Arc<RebalancePlan>>,
    /// The plan's number.
    plan: usize,
    /// What it does next, and when.
    next: Act,
    at: Span,
    /// When it began.
    begin: Span,
}

enum Act {
    Look,
    Send(Box<Request>),
}

impl BalancedLife {
    fn new(seed: u64, parts: &Parts) -> Self {
        let mut dice = Prng::new(seed ^ 0x2eba_1a9c_e000_0001);
        let n_nodes = 3 * dice.between(1, 3);
        let cpu = dice.between(3, 12);
        let nodes: Vec<String> = (0..n_nodes).map(|index| format!("n{index}")).collect();
        let zone = dice.between(0, 2);
        let is_cordoned = |index: &u64| index % 3 == zone;
        let mut cordoned: Vec<String> = (0..n_nodes)
            .filter(is_cordoned)
            .map(|index| format!("n{index}"))
            .collect();
        if n_nodes > 3 && dice.chance(1, 4) {
            let further = dice.pick(&nodes).clone();
            cordoned.push(further);
        }
        let mut objects: Vec<Value> = (0..n_nodes).map(|index| node(index, cpu)).collect();
        for object in &mut objects {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let is_cordoned = cordoned.iter().any(|cordoned| cordoned == name);
            object["spec"]["unschedulable"] = json!(is_cordoned);
        }
        let deployments: Vec<(String, u64)> = (0..dice.between(1, 3))
            .map(|index| (format!("w{index}"), dice.between(2, 9)))
            .collect();
        let settings = (seed, parts.scheduler.limits);
        let mut life = Life::begin(settings, objects, false, None, parts);
        for (name, replicas) in &deployments {
            for object in workload(name, *replicas, &mut dice) {
                let answer = life.sim.apply(&object).map(drop);
                life.figures.ask(answer);
            }
        }
        Self {
            life,
            dice,
            nodes,
            cordoned,
            deployments,
            plans: Vec::new(),
            evicted: BTreeSet::new(),
        }
    }

    fn live(&mut self) -> Going {
        self.life.until(Span::from_secs(60))?;
        for node in self.cordoned.clone() {
            self.cordon(&node, false);
        }
        self.life.until(BEGIN)?;
        self.storm()?;
        self.settle()?;
        self.last_plans()
    }

    /// One or two processes, while things change.
    fn storm(&mut self) -> Going {
        let n_processes = 1 + self.dice.index(2);
        let mut processes: Vec<Option<Process>> = Vec::new();
        processes.resize_with(n_processes, || None);
        let mut starts = vec![BEGIN; n_processes];
        let is_same_plan = self.dice.chance(1, 2);
        let n_changes = self.dice.between(0, 12);
        let millis = |span: Span| span.0 / 1_000_000;
        let mut changes: Vec<Span> = (0..n_changes)
            .map(|_| Span::from_millis(self.dice.between(millis(BEGIN), millis(CALM))))
            .collect();
        changes.sort_by_key(|at| std::cmp::Reverse(*at));
        loop {
            let now = self.life.sim.elapsed();
            let due = processes.iter().zip(&starts);
            let due = due.map(|(process, start)| process.as_ref().map_or(*start, |p| p.at));
            let next = due.chain(changes.last().copied()).min().unwrap_or(CALM);
            if next >= CALM {
                return self.life.until(CALM);
            }
            self.life.until(next.max(now))?;
            if changes.last().is_some_and(|at| *at <= next) {
                changes.pop();
                self.change(&mut processes, &mut starts);
                continue;
            }
            for index in 0..n_processes {
                if processes[index].is_none() && starts[index] <= next {
                    let plan = match is_same_plan && !self.plans.is_empty() {
                        true => Some(self.plans.len() - 1),
                        false => self.plan(),
                    };
                    starts[index] = Span(next.0 + BETWEEN_PLANS.0);
                    processes[index] = plan.map(|plan| self.process(plan));
                }
                let Some(process) = &mut processes[index] else {
                    continue;
                };
                if process.at > next {
                    continue;
                }
                let mut process = processes[index].take();
                let goes_on = match &mut process {
                    Some(process) => self.act(process)?,
                    None => false,
                };
                if goes_on {
                    processes[index] = process;
                } else {
                    starts[index] = Span(next.0 + BETWEEN_PLANS.0);
                    // The plan is spent: the next one is new.
                    if self.dice.chance(1, 2) {
                        self.plan();
                    }
                }
            }
        }
    }

    /// Something else happens: a process dies, or the cluster changes.
    fn change(&mut self, processes: &mut [Option<Process>], starts: &mut [Span]) {
        let now = self.life.sim.elapsed();
        let kind = self.dice.between(0, 11);
        let name = match kind {
            0..=3 => {
                let index = self.dice.index(processes.len());
                if let Some(Process {
                    next: Act::Send(request),
                    ..
                }) = &processes[index]
                    && self.dice.chance(1, 2)
                {
                    // It died after the request was sent.
                    let request = request.clone();
                    let plan = processes[index].as_ref().map_or(0, |process| process.plan);
                    let _unheard = self.evict(plan, &request);
                }
                processes[index] = None;
                starts[index] = Span(now.0 + Span::from_secs(self.dice.between(0, 30)).0);
                "rebalance dies"
            }
            4 | 5 => {
                self.set_budget();
                "budget changes"
            }
            6 => {
                self.scale();
                "size changes"
            }
            7 => {
                let pods = self.pods();
                if !pods.is_empty() {
                    let pod = self.dice.pick(&pods).meta.name.clone();
                    let key = Key {
                        kind: Kind::Pod,
                        name: pod,
                    };
                    let answer = self.life.sim.delete(&key, &DeleteOptions::KUBECTL);
                    self.life.figures.ask(answer);
                }
                "pod deleted by another"
            }
            8 => {
                let node = self.dice.pick(&self.nodes).clone();
                let is_cordoned = self.dice.chance(1, 2);
                self.cordon(&node, is_cordoned);
                "node cordoned"
            }
            9 => {
                let component = *self.dice.pick(&[
                    Component::Scheduler,
                    Component::Controllers,
                    Component::Webhook,
                ]);
                self.life.sim.crash(Crash {
                    component,
                    after_writes: u32::try_from(self.dice.between(0, 5)).unwrap_or(0),
                    down: Span::from_secs(self.dice.between(0, 20)),
                });
                "component dies"
            }
            _ => {
                let ppm = |dice: &mut Prng| u32::try_from(dice.between(0, 300_000)).unwrap_or(0);
                let fault = match self.dice.between(0, 2) {
                    0 => Fault::Watch(WatchFault {
                        delay: Span::from_millis(self.dice.between(0, 10_000)),
                        repeat_ppm: ppm(&mut self.dice),
                        cut_ppm: 0,
                    }),
                    1 => Fault::Write(WriteFault {
                        conflict_ppm: ppm(&mut self.dice),
                        lost_ppm: 0,
                    }),
                    _ => Fault::Bind(BindFault {
                        slow: Span::from_millis(*self.dice.pick(&[0, 100, 5_000])),
                        fail_ppm: ppm(&mut self.dice),
                    }),
                };
                let lasts = Span::from_secs(self.dice.between(5, 60));
                self.life.sim.fault(fault, lasts);
                "requests or watches fail"
            }
        };
        *self.life.figures.faults.entry(name).or_default() += 1;
    }

    fn set_budget(&mut self) {
        let budgets = self.life.sim.server().tables().of::<Budget>();
        let names = budgets.iter().map(|budget| budget.meta.name.clone());
        let budgets: Vec<Name> = names.collect();
        if budgets.is_empty() {
            return;
        }
        let key = Key {
            kind: Kind::PodDisruptionBudget,
            name: self.dice.pick(&budgets).clone(),
        };
        let n = self.dice.between(0, 3);
        self.set(&key, "maxUnavailable", n);
    }

    fn scale(&mut self) {
        let (name, _) = self.dice.pick(&self.deployments).clone();
        let n = self.dice.between(1, 9);
        let key = Key {
            kind: Kind::Deployment,
            name: Name::new("default", name.as_str()),
        };
        self.set(&key, "replicas", n);
    }

    /// Sets a field of an object's spec.
    fn set(&mut self, key: &Key, field: &str, n: u64) {
        let edited = self.life.sim.edit(key, &mut |value| {
            value["spec"][field] = json!(n);
            Ok(())
        });
        self.life.figures.ask(edited.map(drop));
    }

    fn cordon(&mut self, node: &str, is_cordoned: bool) {
        let answer = self.life.sim.cordon(node, is_cordoned);
        self.life.figures.ask(answer);
    }

    /// Ends all faults, gives all nodes back, and waits until nothing waits any more.
    fn settle(&mut self) -> Going {
        self.life.sim.calm();
        for node in self.nodes.clone() {
            self.cordon(&node, false);
        }
        self.life.until(Span(CALM.0 + Span::from_secs(900).0))
    }

    /// One process goes on until a plan has no eviction: the pods that must move fall, none waits that did not wait, and
    /// what stays uneven has a reason.
    fn last_plans(&mut self) -> Going {
        let before = self.pods().iter().filter(|pod| pod.node.is_none()).count();
        let mut moves: Option<u64> = None;
        loop {
            let Some(number) = self.plan() else {
                return self.blame("there is no plan, though pods are on nodes".to_owned());
            };
            let plan = Arc::clone(&self.plans[number].plan);
            let sums = &plan.summary;
            if sums.moves_after > sums.moves_before
                || sums.evictions as u64 > sums.moves_before - sums.moves_after
            {
                return self.blame(format!("a step does not lower the moves: {sums:?}"));
            }
            let explained =
                |c: &super::values::PlannedConstraint| (c.after.moves == 0) == c.left.is_empty();
            if !plan.constraints.iter().all(explained) {
                return self.blame(format!(
                    "what is left uneven has no reason: {:?}",
                    plan.constraints
                ));
            }
            if moves.is_some_and(|before| sums.moves_before > before) {
                return self.blame(format!("more pods must move than before: {sums:?}"));
            }
            moves = Some(sums.moves_before);
            if sums.evictions == 0 {
                break;
            }
            let n_before = self.evicted.len();
            let mut process = self.process(number);
            loop {
                self.life.until(process.at)?;
                if self.life.sim.elapsed() >= END {
                    return self.blame("it does not end".to_owned());
                }
                if !self.act(&mut process)? {
                    break;
                }
            }
            if self.evicted.len() == n_before {
                return self.blame("a plan for a quiet cluster evicts nothing".to_owned());
            }
            self.life
                .until(Span(self.life.sim.elapsed().0 + Span::from_secs(120).0))?;
        }
        let after = self.pods().iter().filter(|pod| pod.node.is_none()).count();
        match after > before {
            true => self.blame(format!("{after} pods wait, and {before} did before")),
            false => Going::Continue(()),
        }
    }

    /// Makes a plan; returns its number.
    fn plan(&mut self) -> Option<usize> {
        let moment = crate::moment(&self.life.sim);
        let mut frame = Frame {
            names: moment.names.clone(),
            profiles: moment.profiles.to_vec(),
            workloads: Workloads::default(),
            keys: Vec::new(),
        };
        let (mut world, _) = moment::world(moment, &mut frame);
        let asked = Asked {
            means: &|_| true,
            evicts: &|_| true,
            soft: false,
            evictions_max: usize::MAX,
            deletes_empty_dirs: false,
        };
        let plan = plan::plan(&mut world, moment.tables, &asked)?;
        self.plans.push(Begun {
            plan: Arc::new(plan),
            evicted: BTreeSet::new(),
            n_done: 0,
        });
        Some(self.plans.len() - 1)
    }

    /// A process that begins a plan now.
    fn process(&self, plan: usize) -> Process {
        let now = self.life.sim.elapsed();
        let of = Arc::clone(&self.plans[plan].plan);
        Process {
            carrying: Carrying::new(of, self.labels(), PATIENCE),
            plan,
            next: Act::Look,
            at: now,
            begin: now,
        }
    }

    /// Lets a process do what it does next. Returns false when its plan has ended.
    fn act(&mut self, process: &mut Process) -> ControlFlow<Vec<Violation>, bool> {
        let now = self.life.sim.elapsed();
        let own = Span(now.0 - process.begin.0);
        let next = match std::mem::replace(&mut process.next, Act::Look) {
            Act::Look => {
                let pods = self.seen();
                process.carrying.look(own, &pods)
            }
            Act::Send(request) => {
                let n_done = process.carrying.n_done();
                let mut answer = self.evict(process.plan, &request);
                if self.life.sim.elapsed() < CALM && self.dice.chance(1, 12) {
                    answer = Answer::Lost("no answer in time".into());
                }
                self.judge(process, n_done)?;
                process.carrying.answered(own, &answer)
            }
        };
        process.at = match next {
            Next::Evict(request) => {
                process.next = Act::Send(request);
                Span(now.0 + Span::from_millis(self.dice.between(1, 2_000)).0)
            }
            Next::Look(after) => Span(now.0 + after.0.max(1_000_000)),
            Next::Done | Next::Stop(_) => return ControlFlow::Continue(false),
        };
        ControlFlow::Continue(true)
    }

    /// Sends an eviction, and notes the pod that goes.
    fn evict(&mut self, plan: usize, request: &Request) -> Answer {
        let uid = request.precondition.uid.clone().unwrap_or_default();
        let pods = self.pods();
        let is_there = pods
            .iter()
            .any(|pod| *pod.meta.uid == *uid && !pod.meta.is_terminating());
        let answer = self.life.sim.execute(request);
        if is_there && answer.object().is_some() {
            self.life.figures.choices += 1;
            self.plans[plan].evicted.insert(uid.to_string());
            self.evicted.insert(uid.to_string());
        }
        answer
    }

    /// For the steps of a plan that are done, and the one under way, one pod each was evicted at most, by whichever
    /// process; and it is the pod of the step.
    fn judge(&mut self, process: &Process, n_done: usize) -> Going {
        let begun = &mut self.plans[process.plan];
        begun.n_done = begun.n_done.max(n_done);
        let steps = begun.plan.steps.iter().take(begun.n_done + 1);
        let known: BTreeSet<&str> = steps.map(|step| step.uid.as_str()).collect();
        let mut evicted = begun.evicted.iter();
        let stranger = evicted.find(|uid| !known.contains(uid.as_str()));
        match stranger.cloned() {
            Some(uid) => {
                let text = format!("{uid} was evicted before the steps that come before it");
                self.blame(text)
            }
            None => Going::Continue(()),
        }
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        let pods = self.life.sim.server().tables().of::<Pod>().iter();
        pods.cloned().collect()
    }

    fn seen(&self) -> Vec<PodSeen> {
        let pods = self.pods().into_iter();
        let items: Vec<Value> = pods.map(|pod| Pod::into_object(pod).to_json()).collect();
        PodSeen::of_list(&json!({"items": items}))
    }

    fn labels(&self) -> NodeLabels {
        let nodes = self.life.sim.server().tables().of::<Node>().iter();
        let labels = |node: &Arc<Node>| {
            let labels = node.meta.labels.iter();
            let labels: BTreeMap<String, String> = labels
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect();
            (node.meta.name.name.to_string(), labels)
        };
        nodes.map(labels).collect()
    }

    fn blame(&self, text: String) -> Going {
        Going::Break(vec![Violation {
            rule: Rule::Rebalance,
            after: self.life.sim.elapsed(),
            actor: "rebalance".to_owned(),
            text,
        }])
    }
}

fn node(index: u64, cpu: u64) -> Value {
    let name = format!("n{index}");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {ZONE: format!("zone-{}", index % 3), "kubernetes.io/hostname": name},
        },
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A Deployment with a hard constraint over zones, sometimes one over hosts, too; and in two of three cases a budget,
/// half of them by zone.
fn workload(name: &str, replicas: u64, dice: &mut Prng) -> Vec<Value> {
    let labels = json!({"app": name});
    let constraint = |key: &str, max_skew: u64| {
        json!({
            "maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": labels},
        })
    };
    let mut constraints = vec![constraint(ZONE, dice.between(1, 2))];
    if dice.chance(1, 3) {
        constraints.push(constraint("kubernetes.io/hostname", dice.between(1, 2)));
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
                    "topologySpreadConstraints": constraints,
                },
            },
        },
    });
    let mut objects = vec![deployment];
    if dice.chance(2, 3) {
        let mut budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": dice.between(1, 3), "selector": {"matchLabels": labels}},
        });
        if dice.chance(1, 2) {
            budget["metadata"]["annotations"] = json!({"strew.dev/zone-aware": ZONE});
        }
        objects.push(budget);
    }
    objects
}
