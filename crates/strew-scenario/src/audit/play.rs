//! One case: plays the event, and collects what it did to each workload.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use strew_apiserver::eviction::{self, Eviction};
use strew_apiserver::object::{Budget, Key, Kind, Name, Node, Object, Pod, Stored};
use strew_apiserver::{ApiError, Tables};
use strew_controllers::drain::Left;
use strew_controllers::taint_eviction::toleration::{self, Stay};
use strew_model::Instant;
use strew_sim::Simulation;
use strew_view::away::{self, Headroom};
use strew_view::loss::LossVerdict;
use strew_view::values::{self, EndpointValues};
use strew_view::workload::Workloads;

use super::Question;
use super::callers::Representatives;
use super::cause::{self, Before, Elsewhere, Seen};
use super::fix::Edit;
use super::steps::{self, EVENT_STEP};
use super::values::{Blocked, Case, Endpoints, Event, Row, StuckBudget};
use crate::expect::availability::Preemption;
use crate::expect::present::world_of;
use crate::expect::workloads::{LossOf, is_counted, name, wanted_of, workload_of};
use crate::format::Step;
use crate::run::{Plan, RunError, StepResult, StepState, Watcher, play};

/// Plays a case, with these edits done at second 0.
///
/// # Errors
/// The run could not continue.
pub fn play_case(
    base: &Plan,
    question: &Question,
    edits: &[Edit],
    seed: u64,
) -> Result<Case, RunError> {
    let plan = steps::plan(base, question, edits);
    let mut follow = Follow {
        question,
        away: BTreeSet::new(),
        headroom: Headroom::default(),
        services: Vec::new(),
        stuck_budgets: Vec::new(),
        before: BTreeMap::new(),
        blocked: Vec::new(),
        elsewhere: Elsewhere::default(),
        tolerating: BTreeMap::new(),
        workloads: &base.admitted().workloads,
    };
    let played = play(&plan, seed, None, &mut follow)?;
    let Follow {
        headroom,
        services,
        stuck_budgets,
        before,
        blocked,
        elsewhere,
        tolerating,
        ..
    } = follow;
    let refused = played
        .steps
        .first()
        .into_iter()
        .flat_map(|step| &step.refused);
    let refused = refused.map(|refused| refused.why.clone()).collect();
    let event = played.steps.get(EVENT_STEP);
    let losses = event.map_or(&[][..], |step| step.facts.losses.as_slice());
    let preemptions = event.map_or(&[][..], |step| step.facts.preemptions.as_slice());
    let rows = losses.iter().map(|of| {
        let meta = &of.key.name;
        let known = before.get(meta).filter(|(kind, _)| *kind == of.key.kind);
        let by: BTreeSet<String> = { preemptions.iter() }
            .filter(|preemption| preemption.victim_text() == of.name)
            .map(Preemption::by_text)
            .collect();
        let seen = Seen {
            before: known.map(|(_, before)| before),
            elsewhere: &elsewhere,
            is_orphan: of.key.kind == Pod::KIND && base.admitted().workloads.is_orphan(meta),
            tolerating: tolerating.get(&of.key).copied().unwrap_or(0),
            preempted_by: &by,
        };
        row(of, seen, (question, seed))
    });
    let rows: Vec<Row> = rows.collect();
    let seconds = event.map_or(0, |step| step.ended.0.saturating_sub(step.began.0));
    let mut case = Case {
        event: question.event,
        domains: question.domains.clone(),
        at_rest: event.is_some_and(|step| step.state == StepState::AtRest),
        seconds: seconds / 1_000_000_000,
        headroom,
        workloads: rows,
        services,
        refused,
        stuck_budgets,
        blocked,
    };
    case.in_order();
    Ok(case)
}

fn row(of: &LossOf, seen: Seen<'_>, (question, seed): (&Question, u64)) -> Row {
    let meta = &of.key.name;
    let mut row = Row {
        kind: of.key.kind.name().to_owned(),
        namespace: meta.namespace.to_string(),
        name: meta.name.to_string(),
        verdict: String::new(),
        wanted: 0,
        before: 0,
        at_once: 0,
        fewest: 0,
        ready: 0,
        seconds_short: 0,
        seconds_without_ready: 0,
        ready_over_time: Vec::new(),
        budgets: Vec::new(),
        sum: String::new(),
        cause: None,
        seed,
        seeds: 1,
    };
    let mut loss = of.loss.clone();
    if question.quorum && of.key.kind == Kind::StatefulSet {
        loss.quorum = loss.wanted / 2 + 1;
    }
    // A pod that goes may come again: its controller is not played.
    loss.is_unplayed |= seen.is_orphan && loss.verdict() != LossVerdict::Survives;
    row.set(&loss);
    row.set_over_time(&of.over_time);
    let is_well = matches!(loss.verdict(), LossVerdict::Survives | LossVerdict::Unknown);
    if !is_well || loss.is_unplayed {
        row.cause = cause::of(of, seen, question);
    }
    row
}

/// Looks at the cluster right before the event, and at its end.
struct Follow<'a> {
    question: &'a Question,
    /// The nodes of the domains.
    away: BTreeSet<Arc<str>>,
    headroom: Headroom,
    services: Vec<Endpoints>,
    stuck_budgets: Vec<StuckBudget>,
    /// The workloads whose ready pods are all in the domains, by name.
    before: BTreeMap<Name, (Kind, Before)>,
    blocked: Vec<Blocked>,
    elsewhere: Elsewhere,
    /// By workload: its pods at the end that are in the domains, and go there though they are cordoned.
    tolerating: BTreeMap<Key, usize>,
    workloads: &'a Workloads,
}

impl Watcher for Follow<'_> {
    fn begin_step(&mut self, number: usize, _: &Step, simulation: &Simulation) {
        if number == EVENT_STEP {
            self.look(simulation);
        }
    }

    fn step(
        &mut self,
        number: usize,
        _: &Step,
        result: &StepResult,
        simulation: &Simulation,
    ) -> ControlFlow<()> {
        if number == EVENT_STEP && self.question.event == Event::Drain {
            let (now, tables) = (simulation.now(), simulation.server().tables());
            self.blocked = blocked(tables, &self.away, now, self.workloads);
            let left = result.refused.iter().flat_map(|refused| &refused.left);
            take_left(&mut self.blocked, left, tables);
        }
        if number == EVENT_STEP && self.question.event == Event::Shift {
            self.tolerating = tolerating(simulation.server().tables(), &self.away);
        }
        ControlFlow::Continue(())
    }
}

impl Follow<'_> {
    fn look(&mut self, simulation: &Simulation) {
        let tables = simulation.server().tables();
        let nodes = tables.of::<Node>().iter();
        let nodes = nodes.filter(|node| of_domains(node, self.question));
        self.away = nodes.map(|node| Arc::clone(&node.meta.name.name)).collect();
        for node in tables.of::<Node>().iter() {
            if !of_domains(node, self.question) {
                self.elsewhere.add(node);
            }
        }
        self.services = services(tables, &self.away);
        self.stuck_budgets = stuck_budgets(tables);
        let mut world = world_of(simulation);
        let away: away::Nodes<'_> = self.away.iter().map(|name| &**name).collect();
        let stays = staying(tables);
        self.headroom = away::headroom(&world, &away, |uid| stays.contains(uid));
        let keys: BTreeSet<String> = { tables.of::<Node>().iter() }
            .flat_map(|node| node.meta.labels.keys().cloned())
            .collect();
        for (uid, pods) in concentrated(tables, &self.away) {
            let Some(first) = pods.first() else { continue };
            let Some(obstacle) = away::obstacle(&mut world, &first.meta.uid, &away) else {
                continue;
            };
            let own = match first.meta.uid == uid {
                true => Some((Pod::KIND, first.meta.name.clone(), 1)),
                false => workload(tables, first),
            };
            let Some((kind, name, wanted)) = own else {
                continue;
            };
            let before = Before {
                obstacle,
                over: cause::over(first, &self.question.key, &keys),
                wanted,
                ready: pods.len(),
            };
            self.before.insert(name, (kind, before));
        }
    }
}

/// The workload of a pod: its kind and name, and the pods that it asks for.
pub(super) fn workload(tables: &Tables, pod: &Pod) -> Option<(Kind, Name, u32)> {
    let owner = pod.meta.controller()?;
    let of = |kind: Kind, name: &str| {
        let key = Key {
            kind,
            name: Name::new(Arc::clone(&pod.meta.name.namespace), name),
        };
        tables.find(&key)
    };
    let mut object = of(Kind::of(&owner.kind), &owner.name)?;
    if let Object::ReplicaSet(set) = &object
        && let Some(above) = set.meta.controller()
        && let Some(found) = of(Kind::of(&above.kind), &above.name)
    {
        object = found;
    }
    is_counted(&object).then(|| {
        (
            object.kind(),
            object.meta().name.clone(),
            wanted_of(&object),
        )
    })
}

/// The workloads whose ready pods are all on these nodes, with those pods; a pod without a workload is one. By uid.
fn concentrated<'a>(
    tables: &'a Tables,
    away: &BTreeSet<Arc<str>>,
) -> BTreeMap<Arc<str>, Vec<&'a Arc<Pod>>> {
    let mut inside: BTreeMap<Arc<str>, Vec<&Arc<Pod>>> = BTreeMap::new();
    let mut outside: BTreeSet<Arc<str>> = BTreeSet::new();
    let ready = tables.of::<Pod>().iter();
    for pod in ready.filter(|pod| pod.is_ready() && pod.is_active()) {
        let uid = match pod.meta.controller() {
            Some(_) => workload_of(tables, pod),
            None => Some(Arc::clone(&pod.meta.uid)),
        };
        let Some(uid) = uid else { continue };
        match pod.node.as_ref().is_some_and(|node| away.contains(node)) {
            true => inside.entry(uid).or_default().push(pod),
            false => drop(outside.insert(uid)),
        }
    }
    inside.retain(|uid, _| !outside.contains(uid));
    inside
}

/// The pods on these nodes that tolerate that they are cordoned, by workload.
fn tolerating(tables: &Tables, away: &BTreeSet<Arc<str>>) -> BTreeMap<Key, usize> {
    let cordoned = [Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }];
    let mut found = BTreeMap::new();
    for pod in away.iter().flat_map(|node| tables.pods_on(node)) {
        if toleration::stay(&pod.spec, &cordoned) != Stay::Not
            && pod.is_active()
            && !stays(pod)
            && let Some((kind, name, _)) = workload(tables, pod)
        {
            *found.entry(Key { kind, name }).or_default() += 1;
        }
    }
    found
}

/// True for a node of the domains that a case is about.
pub(super) fn of_domains(node: &Node, question: &Question) -> bool {
    let value = node.meta.label(&question.key);
    value.is_some_and(|value| question.domains.iter().any(|domain| domain == value))
}

/// The uids of pods that are made on their own nodes only.
pub(super) fn staying(tables: &Tables) -> BTreeSet<&str> {
    let pods = tables.of::<Pod>().iter().filter(|pod| stays(pod));
    pods.map(|pod| &*pod.meta.uid).collect()
}

/// True for a pod that is made on its own node only: a DaemonSet's, or a static one.
fn stays(pod: &Pod) -> bool {
    let owner = pod.meta.controller();
    owner.is_some_and(|owner| matches!(&*owner.kind, "DaemonSet" | "Node"))
}

/// Services with ready pods on these nodes, those with the fewest other endpoints first.
pub(super) fn services(tables: &Tables, away: &BTreeSet<Arc<str>>) -> Vec<Endpoints> {
    let representatives = LazyCell::new(|| Representatives::of(tables));
    let endpoints = values::services(tables).into_iter().filter_map(|service| {
        let stays = |of: &&EndpointValues| of.node.as_deref().is_none_or(|n| !away.contains(n));
        let at_once = service.endpoints.iter().filter(stays).count();
        let before = service.endpoints.len();
        (at_once < before).then(|| Endpoints {
            callers: match at_once {
                0 => representatives.callers(&service),
                _ => Vec::new(),
            },
            namespace: service.namespace,
            name: service.name,
            before,
            at_once,
        })
    });
    let mut found: Vec<Endpoints> = endpoints.collect();
    found.sort_by(|a, b| {
        (a.at_once, &a.namespace, &a.name).cmp(&(b.at_once, &b.namespace, &b.name))
    });
    found
}

/// Budgets that allow no eviction though all their pods are healthy, by their controller's count.
fn stuck_budgets(tables: &Tables) -> Vec<StuckBudget> {
    let number = |number: Option<i32>| number.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let each = tables.of::<Budget>().iter().filter_map(|budget| {
        let status = &budget.status;
        let pods = number(status.expected_pods);
        let is_stuck = pods > 0
            && number(status.current_healthy) >= pods
            && number(status.disruptions_allowed) == 0;
        is_stuck.then(|| StuckBudget {
            namespace: budget.meta.name.namespace.to_string(),
            name: budget.meta.name.name.to_string(),
            pods,
            asks: number(status.desired_healthy),
        })
    });
    each.collect()
}

/// Why kubectl drain refuses the nodes of these pods as a whole; `None`: it does not.
fn bare_pod(tables: &Tables, pods: &[&Arc<Pod>], workloads: &Workloads) -> Option<String> {
    let is_bare = |pod: &&Arc<Pod>| {
        pod.meta.controller().is_none()
            && !workloads.is_orphan(&pod.meta.name)
            && !stays(pod)
            && !pod.is_finished()
    };
    let bare = pods.iter().find_map(|pod| {
        let node = pod.node.as_ref()?;
        let bare = tables.pods_on(node).find(is_bare)?;
        Some((bare.meta.uid == pod.meta.uid, bare, node))
    });
    bare.map(|(is_itself, bare, node)| match is_itself {
        true => "it has no workload: kubectl drain refuses its node without --force".to_owned(),
        false => format!(
            "pod {} on its node {node} has no workload: kubectl drain refuses the node without --force",
            bare.meta.name.name
        ),
    })
}

/// Adds the pods that a drain has left for a reason that is no longer seen: one for each workload that is not told yet.
fn take_left<'a>(
    blocked: &mut Vec<Blocked>,
    left: impl Iterator<Item = &'a Left>,
    tables: &Tables,
) {
    let known: BTreeSet<String> = blocked.iter().map(|known| known.object.clone()).collect();
    let mut found: BTreeMap<String, Blocked> = BTreeMap::new();
    for left in left {
        let pod = tables.get::<Pod>(&left.pod);
        let Some(pod) = pod.filter(|pod| pod.node.as_ref() == Some(&left.node)) else {
            continue;
        };
        let object = object_of(tables, pod);
        if known.contains(&object) {
            continue;
        }
        let blocked = found.entry(object).or_insert_with_key(|object| {
            let (code, why) = why_left(left);
            let budgets = eviction::budgets_of(pod, tables);
            let budget = budgets.first().filter(|_| left.refusal.is_some());
            Blocked {
                object: object.clone(),
                pods: 0,
                code: code.to_owned(),
                why,
                budget: budget.map(|budget| {
                    let name = &budget.meta.name;
                    [name.namespace.to_string(), name.name.to_string()]
                }),
                seeds: 1,
            }
        });
        blocked.pods += 1;
    }
    blocked.extend(found.into_values());
}

/// Why a drain has left a pod: a code, and a sentence.
fn why_left(left: &Left) -> (&'static str, String) {
    let Left { node, pod, refusal } = left;
    let Some(refusal) = refusal else {
        let text = format!(
            "{} stays on {node}: it terminates and does not end",
            pod.name
        );
        return ("terminating", text);
    };
    let (code, said) = match refusal {
        ApiError::TooManyRequests { cause, .. } if !cause.is_empty() => {
            ("budget", cause.to_string())
        }
        other => ("refused", other.to_string()),
    };
    // What a webhook says, without the API server's words around it.
    let said = said
        .split_once("denied the request: ")
        .map_or(&*said, |(_, said)| said);
    let text = format!("{} stays on {node}: {said}", pod.name);
    (code, text)
}

/// The workload of a pod in words; without one the pod itself.
fn object_of(tables: &Tables, pod: &Pod) -> String {
    match workload(tables, pod) {
        Some((kind, of, _)) => name(&Key { kind, name: of }),
        None => name(&Key {
            kind: Pod::KIND,
            name: pod.meta.name.clone(),
        }),
    }
}

/// The pods that a drain has left on these nodes, by workload.
fn blocked(
    tables: &Tables,
    away: &BTreeSet<Arc<str>>,
    now: Instant,
    workloads: &Workloads,
) -> Vec<Blocked> {
    let mut left: BTreeMap<String, Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in away.iter().flat_map(|node| tables.pods_on(node)) {
        if stays(pod) || pod.is_finished() || pod.meta.is_terminating() {
            continue;
        }
        left.entry(object_of(tables, pod)).or_default().push(pod);
    }
    let each = left.into_iter().filter_map(|(object, pods)| {
        let n_pods = pods.len();
        let refused = pods
            .iter()
            .find_map(|pod| refusing_budgets(tables, pod, now));
        let (code, why, budget) = match refused.as_deref() {
            Some([budget, others @ ..]) => {
                let name = &budget.meta.name;
                let named = [name.namespace.to_string(), name.name.to_string()];
                let text = match others {
                    [] => budget_text(budget),
                    [other, ..] => format!(
                        "it has two budgets, {} and {}: the API server refuses its eviction",
                        name.name, other.meta.name.name
                    ),
                };
                ("budget", text, Some(named))
            }
            Some([]) | None => ("bare-pod", bare_pod(tables, &pods, workloads)?, None),
        };
        Some(Blocked {
            object,
            pods: n_pods,
            code: code.to_owned(),
            why,
            budget,
            seeds: 1,
        })
    });
    each.collect()
}

/// The budgets of a pod whose eviction the API refuses now; `None` if it does not.
fn refusing_budgets(tables: &Tables, pod: &Pod, now: Instant) -> Option<Vec<Arc<Budget>>> {
    let budgets = eviction::budgets_of(pod, tables);
    let decided = eviction::decide(pod, &budgets, now);
    matches!(decided, Eviction::Refuse(_)).then_some(budgets)
}

fn budget_text(budget: &Budget) -> String {
    let status = &budget.status;
    let number = |number: Option<i32>| number.unwrap_or(0);
    format!(
        "budget {} allows no eviction: {} of {} pods are healthy, and it asks for {}",
        budget.meta.name.name,
        number(status.current_healthy),
        number(status.expected_pods),
        number(status.desired_healthy),
    )
}
