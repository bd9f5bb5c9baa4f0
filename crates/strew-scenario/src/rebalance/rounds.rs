//! Plans again and again, and carries each plan out: what a controller does beside a cluster. It decides what to ask
//! next, and asks nothing.
//!
//! Only workloads that ask for it by a label are looked at, and only their pods are evicted. One step is under way at a
//! time. A workload waits until all its pods are ready. One whose step went otherwise than planned, or is as uneven as
//! before it, rests for a while, each time for longer: without that a plan that no scheduler follows would evict for
//! ever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Node, Pod};
use strew_model::Span;
use strew_view::cluster_state::{ClusterState, PodEntry, PodState};
use strew_view::workload::{Workload, WorkloadName};
use strew_wire::request::Answer;

use super::carry::{Carrying, Next, NodeLabels, PodSeen};
use super::plan::{self, Asked};
use super::settled::Settled;
use super::values::{PlannedStep, RebalancePlan};

/// The label of a workload, of its pods or of a namespace: `true` or `false`. That of the workload comes before that of
/// its namespace.
pub const LABEL: &str = "rebalance.strew.dev/spread";

/// How long a plan is followed. Then the cluster is looked at anew, labels among the rest.
const PLAN_LASTS: Span = Span::from_secs(120);

/// How long a budget may refuse a step, before other workloads have their turn.
const REFUSED_FOR: Span = Span::from_secs(60);

/// The first rest of a workload; each further one is twice as long.
const REST_FIRST: Span = Span::from_secs(300);

/// The longest rest.
const REST_MAX: Span = Span::from_secs(6 * 3600);

/// How plans are made and carried out.
#[derive(Debug, Clone, Copy)]
pub struct RoundsSettings {
    /// True if soft constraints are looked at, too.
    pub soft: bool,
    /// How long a step waits for the pod in place of the evicted one.
    pub patience: Span,
}

/// What a look at the whole cluster found.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// The workloads with the label.
    pub labelled: usize,
    /// Those of them that are not looked at now, and why.
    pub waiting: Vec<(WorkloadName, String)>,
    /// Why nothing is evicted now although there is a plan.
    pub held: Option<String>,
    /// The plan for the others; `None` if there are none, or no pod is on a node.
    pub plan: Option<Arc<RebalancePlan>>,
}

/// The plan that is carried out, and what was learned from those before.
pub struct Rounds {
    settings: RoundsSettings,
    carrying: Option<Carrying<Arc<RebalancePlan>>>,
    /// When the plan was made.
    since: Span,
    /// When a budget first refused the step that is next.
    refused_since: Option<Span>,
    rests: BTreeMap<WorkloadName, Rest>,
    /// Workloads with a constraint that steps of the plan were to mend, with the moves before.
    tried: BTreeMap<WorkloadName, u64>,
}

/// A workload is left alone.
struct Rest {
    until: Span,
    n_times: u32,
    why: String,
}

impl Rounds {
    /// Nothing is planned yet.
    pub fn new(settings: RoundsSettings) -> Self {
        Self {
            settings,
            carrying: None,
            since: Span::default(),
            refused_since: None,
            rests: BTreeMap::new(),
            tried: BTreeMap::new(),
        }
    }

    /// Makes a plan for a cluster; `tables` are the objects of which it is made. Times are since the start of the process.
    pub fn plan(&mut self, now: Span, world: &mut ClusterState, tables: &Tables) -> Round {
        self.carrying = None;
        // Without trouble for as long as the longest rest, a workload begins with the first one again.
        let is_recent = |rest: &Rest| now.0.saturating_sub(rest.until.0) <= REST_MAX.0;
        self.rests.retain(|_, rest| is_recent(rest));
        let mut round = self.planned(now, world, tables);
        if self.judge(now, round.plan.as_deref()) {
            round = self.planned(now, world, tables);
        }
        let n_placed = round.plan.as_ref().map_or(0, |p| p.summary.placed_first);
        if n_placed > 0 {
            round.held = Some(format!(
                "{n_placed} Pending pods fit now: the scheduler places them first"
            ));
        } else if let Some(plan) = &round.plan {
            let (plan, patience) = (Arc::clone(plan), self.settings.patience);
            self.carrying = Some(Carrying::new(plan, labels(tables), patience));
            self.since = now;
            self.refused_since = None;
        }
        round
    }

    fn planned(&self, now: Span, world: &mut ClusterState, tables: &Tables) -> Round {
        let mut round = Round::default();
        let mut chosen = BTreeSet::new();
        let settled = Settled::of(world, tables);
        for (index, workload) in world.workloads.iter().enumerate() {
            let members = &world.members[index];
            if members.is_empty() || !is_labelled(tables, workload) {
                continue;
            }
            round.labelled += 1;
            let pods = members.iter().map(|&pod| &world.pods[pod]);
            let why = match self.rests.get(&workload.name) {
                Some(rest) if now < rest.until => Some(rest.why.clone()),
                _ => unsettled(tables, &workload.name, pods)
                    .or_else(|| settled.unsettled.get(&index).cloned()),
            };
            match why {
                Some(why) => round.waiting.push((workload.name.clone(), why)),
                None => {
                    chosen.insert(workload.name.clone());
                }
            }
        }
        if !chosen.is_empty() {
            let means = |workload: &Workload| chosen.contains(&workload.name);
            let asked = Asked {
                means: &means,
                evicts: &means,
                soft: self.settings.soft,
                evictions_max: usize::MAX,
                deletes_empty_dirs: false,
            };
            round.plan = plan::plan(world, tables, &asked).map(Arc::new);
        }
        round
    }

    /// Looks whether the steps before did what they were to do: a workload that is no less uneven rests. Returns whether
    /// one does.
    fn judge(&mut self, now: Span, plan: Option<&RebalancePlan>) -> bool {
        let Some(plan) = plan else {
            return false;
        };
        let mut rests = false;
        for (workload, before) in std::mem::take(&mut self.tried) {
            let after = moves(plan, &workload);
            if after >= before {
                let why =
                    format!("an eviction left as many pods that must move as before: {after}");
                self.rest(now, workload, why);
                rests = true;
            }
        }
        rests
    }

    /// The step that is next, or under way; `None` if nothing is to be done before the next plan.
    pub fn step(&self) -> Option<&PlannedStep> {
        self.carrying.as_ref()?.step()
    }

    /// What is next, after a look at the pods of the step's namespace. After `Done` and `Stop` a new plan is to be made.
    pub fn look(&mut self, now: Span, pods: &[PodSeen]) -> Next {
        let Some(carrying) = &mut self.carrying else {
            return Next::Done;
        };
        let is_under_way = carrying.is_under_way();
        if !is_under_way {
            if now.0.saturating_sub(self.since.0) > PLAN_LASTS.0 {
                self.carrying = None;
                return Next::Done;
            }
            let step = carrying.step();
            if let Some(why) = step.and_then(|step| restless(step, pods)) {
                self.carrying = None;
                return Next::Stop(why);
            }
        }
        let step = carrying.step().cloned();
        let n_done = carrying.n_done();
        let next = carrying.look(now, pods);
        let is_done = carrying.n_done() > n_done;
        if let (Some(step), true) = (&step, is_done) {
            self.done(step);
        }
        self.ended(now, step.as_ref().filter(|_| is_under_way), next)
    }

    /// What is next, after the answer to the eviction.
    pub fn answered(&mut self, now: Span, answer: &Answer) -> Next {
        let Some(carrying) = &mut self.carrying else {
            return Next::Done;
        };
        let step = carrying.step().cloned();
        let mut next = carrying.answered(now, answer);
        if answer.code() == Some(429) {
            let since = *self.refused_since.get_or_insert(now);
            if now.0.saturating_sub(since.0) > REFUSED_FOR.0 {
                next = Next::Stop(super::carry::words(answer));
            }
        } else {
            self.refused_since = None;
        }
        // A pod that another client deleted, or its controller made anew, is nobody's failure.
        let is_gone = matches!(answer.code(), Some(404 | 409));
        self.ended(now, step.as_ref().filter(|_| !is_gone), next)
    }

    /// A step is carried out: its workload may go on, and the next plan tells whether it helped.
    fn done(&mut self, step: &PlannedStep) {
        let Some(plan) = self.carrying.as_ref().map(Carrying::plan) else {
            return;
        };
        for effect in &step.effects {
            let workload = WorkloadName {
                kind: effect.workload_kind.clone(),
                namespace: step.namespace.clone(),
                name: effect.workload_name.clone(),
            };
            let moves = moves(plan, &workload);
            if moves > 0 {
                self.tried.entry(workload).or_insert(moves);
            }
        }
    }

    /// Ends the plan if nothing more is to be done; `blamed` is the step that then has failed.
    fn ended(&mut self, now: Span, blamed: Option<&PlannedStep>, next: Next) -> Next {
        if matches!(next, Next::Done | Next::Stop(_)) {
            self.carrying = None;
        }
        if let (Next::Stop(why), Some(step)) = (&next, blamed) {
            let workload = WorkloadName {
                kind: step.workload_kind.clone(),
                namespace: step.namespace.clone(),
                name: step.workload_name.clone(),
            };
            self.rest(now, workload, why.clone());
        }
        next
    }

    fn rest(&mut self, now: Span, workload: WorkloadName, why: String) {
        let rest = self.rests.entry(workload).or_insert(Rest {
            until: now,
            n_times: 0,
            why: String::new(),
        });
        let factor = 1_u64.checked_shl(rest.n_times).unwrap_or(u64::MAX);
        let lasts = REST_FIRST.0.saturating_mul(factor).min(REST_MAX.0);
        rest.until = Span(now.0.saturating_add(lasts));
        rest.n_times = rest.n_times.saturating_add(1);
        rest.why = format!("it rests for {} min: {why}", lasts / 60_000_000_000);
    }
}

/// The pods that must move for the constraints of a workload, before the first step of a plan.
fn moves(plan: &RebalancePlan, workload: &WorkloadName) -> u64 {
    let constraints = plan.constraints.iter();
    let own = constraints.filter(|c| {
        c.workload_kind == workload.kind
            && c.namespace == workload.namespace
            && c.workload_name == workload.name
    });
    own.map(|constraint| constraint.before.moves).sum()
}

/// True if a workload, or else its namespace, asks to be rebalanced.
fn is_labelled(tables: &Tables, workload: &Workload) -> bool {
    let asks = |value: Option<&str>| match value? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let own = asks(workload.labels.get(LABEL).map(String::as_str));
    own.unwrap_or_else(|| {
        let namespace = Key {
            kind: Kind::of("Namespace"),
            name: Name::new("", workload.name.namespace.as_str()),
        };
        let namespace = tables.find(&namespace);
        let label = namespace.as_ref().and_then(|n| n.meta().label(LABEL));
        asks(label).unwrap_or(false)
    })
}

/// Why a workload waits: a pod is on its way, or there are not as many as it asks for. `None` if it is at rest.
fn unsettled<'a>(
    tables: &Tables,
    workload: &WorkloadName,
    pods: impl Iterator<Item = &'a PodEntry> + Clone,
) -> Option<String> {
    let state = |entry: &PodEntry| match &entry.standing {
        PodState::Leaving => Some("is being deleted"),
        _ if entry.is_leaving => Some("is being deleted"),
        PodState::Waiting | PodState::Gated | PodState::OfAnother(_) => Some("is Pending"),
        PodState::Bound => (!entry.is_ready).then_some("is not ready"),
    };
    let mut on_their_way = { pods.clone() }.filter_map(|entry| Some((&entry.name, state(entry)?)));
    if let Some((name, state)) = on_their_way.next() {
        return Some(format!("{name} {state}"));
    }
    if is_rolling(tables, pods.clone()) {
        return Some("a rollout is under way".to_owned());
    }
    let n_pods = i32::try_from(pods.count()).unwrap_or(i32::MAX);
    let object = tables.find(&Key {
        kind: Kind::of(&workload.kind),
        name: Name::new(workload.namespace.as_str(), workload.name.as_str()),
    });
    let wanted = object.and_then(|object| object.replicas())?;
    (wanted != n_pods).then(|| format!("it has {n_pods} of {wanted} pods"))
}

/// True if the pods of a workload have several controllers: a rollout is under way.
fn is_rolling<'a>(tables: &Tables, pods: impl Iterator<Item = &'a PodEntry>) -> bool {
    let owner = |entry: &PodEntry| {
        let name = Name::new(Arc::clone(&entry.namespace), Arc::clone(&entry.name));
        let pod = tables.get::<Pod>(&name)?;
        pod.meta.controller().map(|owner| Arc::clone(&owner.uid))
    };
    pods.filter_map(owner).collect::<BTreeSet<_>>().len() > 1
}

/// The workloads with evictions in a plan whose rollout is under way.
pub fn rolling<'w>(
    plan: &RebalancePlan,
    world: &'w ClusterState,
    tables: &Tables,
) -> Vec<&'w WorkloadName> {
    let is_evicted = |name: &WorkloadName| plan.steps.iter().any(|step| evicts(step, name));
    let mut found = Vec::new();
    for (workload, members) in world.workloads.iter().zip(&world.members) {
        let staying = members
            .iter()
            .map(|&pod| &world.pods[pod])
            .filter(|pod| !pod.is_leaving);
        if is_evicted(&workload.name) && is_rolling(tables, staying) {
            found.push(&workload.name);
        }
    }
    found
}

fn evicts(step: &PlannedStep, workload: &WorkloadName) -> bool {
    step.namespace == workload.namespace
        && step.workload_kind == workload.kind
        && step.workload_name == workload.name
}

/// Why a step does not begin: a pod of the same controller is on its way.
fn restless(step: &PlannedStep, pods: &[PodSeen]) -> Option<String> {
    let owner = pods.iter().find(|pod| pod.uid() == step.uid)?.owner()?;
    let mut others = pods.iter().filter(|pod| pod.owner() == Some(owner));
    let other = others.find(|pod| !pod.is_settled())?;
    Some(format!("{} is not ready", other.name()))
}

fn labels(tables: &Tables) -> NodeLabels {
    let nodes = tables.of::<Node>().iter();
    nodes
        .map(|node| (node.meta.name.name.to_string(), (*node.meta.labels).clone()))
        .collect()
}
