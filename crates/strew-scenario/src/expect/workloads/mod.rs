//! Claims about workloads: whether they have the pods that their specs and their budgets ask for, what a loss does to
//! them, and whether their hard constraints hold.
//!
//! Reading order: `replicas` (the numbers of one workload), this file (all workloads and their pods), `budget`, `loss`,
//! `constraints`, `remarks` (findings beside a verdict).

mod budget;
mod constraints;
mod loss;
mod remarks;
pub(super) mod replicas;

pub(crate) use budget::Budgets;
pub use budget::{met as budgets_met, within_budget};
pub use constraints::{
    CONSTRAINT_EXCEEDED, Exceeded, ExceededBefore, exceeded_now, unconstrained, within_constraints,
};
pub use loss::{Hindrance, LossOf, Missing, survives};
pub use remarks::{PATCH_NOT_APPLIED, unpatched};
pub(super) use remarks::{SubsetPods, lasting, of_rollout, subset_pods};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use strew_apiserver::Tables;
use strew_apiserver::object::{Job, Key, Kind, Name, Node, Object, Pod, ReplicaSet, Stored};
use strew_apiserver::server::{EventLog, Server};
use strew_controllers::taint_eviction::no_execute;
use strew_controllers::taint_eviction::toleration::{Stay, stay};
use strew_manifest::kinds::{self, KINDS, KindRow, Pods};
use strew_model::Span;
use strew_scheduler::Profile;
use strew_view::time_text::time_text;

use super::availability::Availability;
use super::pods::other_scheduler;
use super::{Answer, Verdict};
use crate::format::{ObjectTarget, Scenario, Verb};
use replicas::Replicas;

/// Every workload with replicas.
pub(super) fn replicated(tables: &Tables) -> impl Iterator<Item = Object> {
    let rows = KINDS.iter().filter(|row| has_replicas(row));
    rows.flat_map(|row| tables.all_of(&Kind::of(row.kind)))
}

/// True if workloads of the kind have replicas.
pub(super) fn is_replicated(kind: &Kind) -> bool {
    kind.row().is_some_and(has_replicas)
}

/// A CronJob has none: its Jobs have.
fn has_replicas(row: &KindRow) -> bool {
    row.pods == Pods::Make && row.kind != "CronJob"
}

/// True for a workload whose available pods are followed: it asks for a number of them, wherever they run. ReplicaSets
/// of a Deployment are not; their pods are the Deployment's.
pub(crate) fn is_counted(object: &Object) -> bool {
    object.kind().row().is_some_and(|row| row.scales)
}

/// The pods that a workload asks for; 0 if it asks for no number of them.
pub(crate) fn wanted_of(object: &Object) -> u32 {
    let replicas = Replicas::of(object);
    replicas.map_or(0, |replicas| u32::try_from(replicas.wanted).unwrap_or(0))
}

/// ReplicaSets of a Deployment are judged with it.
const DEPLOYMENT: &str = "Deployment";

/// Workloads that a verdict lists by name.
const TOLD_MAX: usize = 4;

/// Uids of the workloads, bare pods and budgets of a dump that were short when the dump was taken. They do not fail a
/// claim about all workloads; a claim that names them does.
pub type ShortBefore = BTreeSet<Arc<str>>;

/// A workload, pod or budget that lacks something.
pub(super) struct Short {
    pub(super) key: Key,
    pub(super) uid: Arc<str>,
    /// True if a controller has ever written its status.
    pub(super) is_observed: bool,
    /// True if pods are missing because the API server refused the last one.
    pub(super) is_refused: bool,
    pub(super) why: String,
}

/// The uids of the objects of a dump beside which something new comes: a workload or a pod that no cluster has made, or a
/// manifest that the scenario applies to one. What is new decides then. Empty if nothing is new: then the question is
/// about the dump itself.
pub fn recorded(given: &[Object], scenario: &Scenario) -> BTreeSet<Arc<str>> {
    let verbs = scenario.timeline.iter().flat_map(|step| &step.verbs);
    let applied = verbs.flat_map(|located| match &located.verb {
        Verb::Apply(manifests) => manifests.as_slice(),
        _ => &[],
    });
    let applied = applied.map(|manifest| Object::of_wire(manifest.object.clone()).key());
    let applied: HashSet<Key> = applied.collect();
    let makes_pods =
        |kind: &Kind| kinds::of_kind(kind.name()).is_some_and(|row| row.pods != Pods::No);
    let is_new = |object: &Object| object.meta().uid.is_empty() || applied.contains(&object.key());
    let (new, recorded): (Vec<_>, Vec<_>) = given.iter().partition(|object| is_new(object));
    match new.iter().any(|object| makes_pods(&object.kind())) {
        true => recorded
            .iter()
            .map(|object| Arc::clone(&object.meta().uid))
            .collect(),
        false => BTreeSet::new(),
    }
}

/// The uids of what was short at second 0, of the objects that are [`recorded`]; without any, of the Jobs that had
/// failed: no step of the run can make those well again.
pub fn short_before(
    server: &Server,
    profiles: &[Profile],
    recorded: &BTreeSet<Arc<str>>,
) -> ShortBefore {
    if recorded.is_empty() {
        return failed(server.tables());
    }
    let all = short(stored(server), profiles)
        .into_iter()
        .chain(budget::short(server.tables()));
    let was_there = |short: &Short| short.is_observed && recorded.contains(&short.uid);
    all.filter(was_there).map(|short| short.uid).collect()
}

/// The Jobs that have failed, by uid.
fn failed(tables: &Tables) -> BTreeSet<Arc<str>> {
    let jobs = tables.all_of(&Kind::Job).into_iter();
    let failed = jobs.filter(|job| Replicas::of(job).is_some_and(|r| r.failed.is_some()));
    failed.map(|job| Arc::clone(&job.meta().uid)).collect()
}

/// Judges whether every workload is rolled out as `kubectl rollout status` understands it: all pods are created, of the
/// newest template, and available. Also, no Job has failed, no pod of a Job or without a workload waits for a node, and
/// no pod without a workload is gone that no verb deleted. Without `of`, what was short at second 0 (`before`) is not
/// judged; pods of a dump beside which something new comes (`recorded`) are missed in the step in which they go.
/// `restless`: the time, and how long the cluster would have to be silent, where it did not come to rest; then
/// workloads whose number of replicas still changes are not rolled out.
pub fn rolled_out(
    server: &Server,
    profiles: &[Profile],
    of: Option<&ObjectTarget>,
    [before, recorded]: [&BTreeSet<Arc<str>>; 2],
    (availability, restless): (&Availability, Option<(Span, Span)>),
) -> Verdict {
    let mut short = short(stored(server), profiles);
    for short in &mut short {
        short.why += &preempted(&short.key, availability);
    }
    short.extend(gone(server, availability, recorded));
    let restless = restless.map(|(now, quiet)| restless_ones(availability, now, quiet));
    for new in restless.into_iter().flatten() {
        if !short.iter().any(|known| known.uid == new.uid) {
            short.push(new);
        }
    }
    match of {
        None if short.is_empty()
            && is_without_workload(server.tables())
            && !availability.has_seen_jobs() =>
        {
            Verdict::of(Answer::Nothing, "there is no workload and no pod")
        }
        None => of_all(short, before),
        Some(target) => match server.tables().find(&target.key()) {
            Some(object) => of_one(short, |short| {
                is(&short.key, target) || is_job_of(server.tables(), &short.key, &object)
            }),
            None => Verdict::of(Answer::Nothing, format!("there is no {target}")),
        },
    }
}

/// Workloads that ask for another number of pods again and again.
fn restless_ones(availability: &Availability, now: Span, quiet: Span) -> Vec<Short> {
    let records = availability.records();
    let changing = records.filter_map(|(uid, record)| {
        let n = record.still_changes(now, quiet)?;
        Some(Short {
            key: record.key.clone(),
            uid: Arc::clone(uid),
            is_observed: true,
            is_refused: false,
            why: format!("its number of replicas was changed {n} times, and does not come to rest"),
        })
    });
    changing.collect()
}

/// True if there is neither a pod nor anything that makes pods.
fn is_without_workload(tables: &Tables) -> bool {
    let rows = KINDS.iter().filter(|row| row.pods != Pods::No);
    let mut kinds = rows.map(|row| Kind::of(row.kind));
    tables.of::<Pod>().is_empty() && kinds.all(|kind| tables.all_of(&kind).is_empty())
}

/// True for a Job of this CronJob.
fn is_job_of(tables: &Tables, key: &Key, cron_job: &Object) -> bool {
    let job = tables.get::<Job>(&key.name);
    let owner = job.filter(|_| key.kind == Job::KIND);
    let owner = owner.and_then(|job| job.meta.controller());
    cron_job.kind() == Kind::CronJob && owner.is_some_and(|o| o.uid == cron_job.meta().uid)
}

/// `, 2 preempted for deployment/high`: the pods of a workload that were deleted in the step to make room.
fn preempted(key: &Key, availability: &Availability) -> String {
    let all = availability.preemptions().iter();
    let mut by: BTreeMap<String, usize> = BTreeMap::new();
    for preemption in all.filter(|preemption| preemption.victim_of.as_ref() == Some(key)) {
        *by.entry(preemption.by_text()).or_default() += 1;
    }
    let by = by.iter().map(|(by, n)| format!(", {n} preempted for {by}"));
    by.collect()
}

/// Pods without a workload that ran when the step began and are gone: nothing makes them again.
fn gone(server: &Server, availability: &Availability, recorded: &BTreeSet<Arc<str>>) -> Vec<Short> {
    let gone = availability.gone(recorded);
    gone.map(|(uid, record)| {
        let why = match availability.preemption_of(&record.key.name) {
            Some(preemption) => format!("preempted for {}", preemption.by_text()),
            None => why_gone(server, uid),
        };
        Short {
            key: record.key.clone(),
            uid: Arc::clone(uid),
            is_observed: true,
            is_refused: false,
            why: format!("gone for good, since it has no workload: {why}"),
        }
    })
    .collect()
}

/// The last reason for the deletion of a pod, from its events.
fn why_gone(server: &Server, uid: &str) -> String {
    const REASONS: [&str; 2] = ["TaintManagerEviction", "Evicted"];
    let mut events = server.events().iter().rev();
    let last = events.find(|event| *event.uid == *uid && REASONS.contains(&&*event.reason));
    last.map_or("deleted".to_owned(), |event| event.reason.to_string())
}

/// What a server has stored and recorded.
fn stored(server: &Server) -> (&Tables, &EventLog) {
    (server.tables(), server.events())
}

/// What the workload lacks of the pods that it asks for, as text: `5 of 6 pods made, creation refused: exceeded quota`.
/// `None` if it lacks nothing, or is not there.
pub fn lacks(
    (tables, events): (&Tables, &EventLog),
    profiles: &[Profile],
    workload: &ObjectTarget,
) -> Option<String> {
    let short = short((tables, events), profiles).into_iter();
    let mut meant = short.filter(|short| is(&short.key, workload));
    meant.next().map(|short| short.why)
}

/// How many pods a workload asks for, and why the last one was refused at creation, if one was. `None` if it is not
/// there, or of a kind that asks for no number of pods of its own.
pub fn wanted(
    (tables, events): (&Tables, &EventLog),
    workload: &ObjectTarget,
) -> Option<(usize, Option<String>)> {
    let key = workload.key();
    let object = tables.find(&key).filter(is_counted)?;
    let replicas = Replicas::of(&object)?;
    let uid = &object.meta().uid;
    let recorded = || last_refusal(events, &key, uid).or_else(|| refusal_of_sets(tables, uid));
    let refusal = replicas.refusal(recorded);
    Some((usize::try_from(replicas.wanted).ok()?, refusal))
}

/// What the conditions of a Deployment's ReplicaSets say of pods that were refused: it outlives the events.
fn refusal_of_sets(tables: &Tables, uid: &str) -> Option<String> {
    let mut sets = tables.of::<ReplicaSet>().iter();
    sets.find_map(|set| {
        let is_its = set
            .meta
            .controller()
            .is_some_and(|owner| *owner.uid == *uid);
        is_its.then(|| replicas::creation_refused(&set.status))?
    })
}

/// Judges whether every workload has its pods, as far as the API server does not refuse to create them. Pods that wait
/// for a node do not fail it.
pub fn created(server: &Server, profiles: &[Profile], before: &ShortBefore) -> Verdict {
    let mut short = short(stored(server), profiles);
    short.retain(|short| short.is_refused);
    of_all(short, before)
}

/// Judges all workloads: holds if nothing is short except what was short at second 0.
pub(super) fn of_all(short: Vec<Short>, before: &ShortBefore) -> Verdict {
    let (known, new): (Vec<_>, Vec<_>) =
        { short.into_iter() }.partition(|short| before.contains(&short.uid));
    let mut told = told(&new);
    if !known.is_empty() {
        told.push(format!(
            "not judged: {} that were so from the start",
            known.len()
        ));
    }
    Verdict::new(new.is_empty(), told.join("; "))
}

/// Judges the workloads that `is_meant` selects: holds if none of them is short.
pub(super) fn of_one(short: Vec<Short>, is_meant: impl Fn(&Short) -> bool) -> Verdict {
    let meant: Vec<Short> = short.into_iter().filter(is_meant).collect();
    Verdict::new(meant.is_empty(), told(&meant).join("; "))
}

fn told(short: &[Short]) -> Vec<String> {
    let first = short.iter().take(TOLD_MAX);
    let mut told: Vec<String> = first
        .map(|short| format!("{}: {}", name(&short.key), short.why))
        .collect();
    if short.len() > TOLD_MAX {
        told.push(format!("and {} more", short.len() - TOLD_MAX));
    }
    told
}

pub(super) fn is(key: &Key, target: &ObjectTarget) -> bool {
    let is_here = |namespace: &str| *key.name.namespace == *namespace;
    key.kind.name() == target.type_name.kind
        && *key.name.name == *target.name
        && target.namespace.as_deref().is_none_or(is_here)
}

/// `deployment/web`; `shop/deployment/web` outside the namespace `default`.
pub(crate) fn name(key: &Key) -> String {
    let kind = key.kind.name().to_lowercase();
    match &*key.name.namespace {
        "default" | "" => format!("{kind}/{}", key.name.name),
        namespace => format!("{namespace}/{kind}/{}", key.name.name),
    }
}

/// Pods of one workload that are on no node, on one that is not there, or on one that they may not stay on.
#[derive(Default)]
struct Waiting<'a> {
    pending: Vec<&'a Arc<Pod>>,
    /// Pods whose scheduler name is no profile's, counted by that name.
    left: BTreeMap<Arc<str>, usize>,
    /// Pods whose node is not there, counted by its name: the template's `nodeName`, which no scheduler looks at.
    astray: BTreeMap<Arc<str>, usize>,
    /// Pods that a taint of their node evicts, counted by `taint maint=x:NoExecute evicts them after 1m`.
    evicted: BTreeMap<String, usize>,
}

/// A pod on no node without a workload, and the scheduler that it names if that is no profile's.
type BarePod<'a> = (&'a Arc<Pod>, Option<&'a str>);

/// Everything that is short, kind by kind, in the order of names.
fn short((tables, events): (&Tables, &EventLog), profiles: &[Profile]) -> Vec<Short> {
    let (mut waiting, bare) = waiting(tables, profiles);
    let mut all = Vec::new();
    for object in replicated(tables) {
        let Some(replicas) = Replicas::of(&object) else {
            continue;
        };
        let (key, uid) = (object.key(), &object.meta().uid);
        let waiting = waiting.remove(uid).unwrap_or_default();
        let refusal = replicas.refusal(|| last_refusal(events, &key, uid));
        if let Some(mut why) = replicas.why(&waiting, refusal.as_deref()) {
            if replicas.is_past_deadline() {
                why += &was_pending(events, &key, uid);
            }
            all.push(Short {
                uid: Arc::clone(uid),
                key,
                is_observed: replicas.is_observed,
                is_refused: refusal.is_some(),
                why,
            });
        }
    }
    // A pod whose workload is missing, or of a kind that strew does not model, is reported by itself.
    let of_others = waiting.into_values().flat_map(|waiting| waiting.pending);
    let of_others = of_others.map(|pod| (pod, None));
    all.extend(
        bare.into_iter()
            .chain(of_others)
            .map(|(pod, left_to)| Short {
                key: Key {
                    kind: Pod::KIND,
                    name: pod.meta.name.clone(),
                },
                uid: Arc::clone(&pod.meta.uid),
                is_observed: true,
                is_refused: false,
                why: match left_to {
                    None => replicas::pending_text(pod),
                    Some(scheduler) => left_to_text(1, scheduler),
                },
            }),
    );
    all
}

/// Pods on no node, or on one that is not there, by the uid of their workload; and the pods on no node without a
/// workload, with the scheduler that they name if it is no profile's.
fn waiting<'a>(
    tables: &'a Tables,
    profiles: &[Profile],
) -> (BTreeMap<Arc<str>, Waiting<'a>>, Vec<BarePod<'a>>) {
    let mut by_workload: BTreeMap<Arc<str>, Waiting<'_>> = BTreeMap::new();
    let mut bare = Vec::new();
    let nodes = tables.of::<Node>().iter();
    let nodes: HashMap<&str, Vec<Taint>> = nodes
        .map(|node| (&*node.meta.name.name, no_execute(node)))
        .collect();
    for pod in tables.of::<Pod>().iter() {
        let taints = pod.node.as_ref().and_then(|node| nodes.get(&**node));
        if let Some(why) = taints.and_then(|taints| eviction(pod, taints))
            && !pod.is_finished()
            && let Some(uid) = workload_of(tables, pod)
        {
            let evicted = &mut by_workload.entry(uid).or_default().evicted;
            *evicted.entry(why).or_default() += 1;
        }
        if !pod.is_active() {
            continue;
        }
        if let Some(node) = &pod.node {
            if !nodes.contains_key(&**node)
                && let Some(uid) = workload_of(tables, pod)
            {
                let astray = &mut by_workload.entry(uid).or_default().astray;
                *astray.entry(Arc::clone(node)).or_default() += 1;
            }
            continue;
        }
        let left_to = other_scheduler(pod, profiles);
        match (workload_of(tables, pod), left_to) {
            (Some(uid), None) => by_workload.entry(uid).or_default().pending.push(pod),
            (Some(uid), Some(scheduler)) => {
                let left = &mut by_workload.entry(uid).or_default().left;
                *left.entry(scheduler.into()).or_default() += 1;
            }
            (None, left_to) => bare.push((pod, left_to)),
        }
    }
    (by_workload, bare)
}

/// `taint maint=x:NoExecute evicts them after 1m`; `None` if the pod may stay under these taints.
fn eviction(pod: &Pod, taints: &[Taint]) -> Option<String> {
    let after = match stay(&pod.spec, taints) {
        Stay::Forever => return None,
        Stay::Not => "at once".to_owned(),
        Stay::For(time) => format!("after {}", time_text(time)),
    };
    let limits = |taint: &&Taint| stay(&pod.spec, std::slice::from_ref(*taint)) != Stay::Forever;
    let taints = taints.iter().filter(limits).map(|taint| {
        let value = taint.value.as_deref().filter(|value| !value.is_empty());
        let value = value.map_or(String::new(), |value| format!("={value}"));
        format!("{}{value}:{}", taint.key, taint.effect)
    });
    let taints: Vec<String> = taints.collect();
    Some(format!("taint {} evicts them {after}", taints.join(", ")))
}

/// `3 left to scheduler volcano, which no profile is called`.
fn left_to_text(n: usize, scheduler: &str) -> String {
    format!("{n} left to scheduler {scheduler}, which no profile is called")
}

/// The uid of the pod's workload; for the pod of a Deployment, the Deployment's.
pub(crate) fn workload_of(tables: &Tables, pod: &Pod) -> Option<Arc<str>> {
    let owner = pod.meta.controller()?;
    let name = Name::new(
        Arc::clone(&pod.meta.name.namespace),
        Arc::clone(&owner.name),
    );
    let above = match &*owner.kind {
        "ReplicaSet" => tables
            .get::<ReplicaSet>(&name)
            .and_then(|set| set.meta.controller()),
        _ => None,
    };
    let above = above.filter(|above| *above.kind == *DEPLOYMENT);
    Some(Arc::clone(&above.unwrap_or(owner).uid))
}

/// `, 1 was Pending (0/3 nodes are available: 3 Insufficient cpu)`: the pods of an object that never came to a node, with
/// the scheduler's last reason for one of them. Empty if there was none.
fn was_pending(events: &EventLog, key: &Key, uid: &str) -> String {
    let made = events.iter().filter(|event| *event.uid == *uid);
    let made = made.filter_map(|event| event.note.strip_prefix("Created pod: "));
    let made: HashSet<&str> = made.collect();
    let mut waited: BTreeMap<&str, &str> = BTreeMap::new();
    for event in events.iter() {
        let Key { kind, name } = &event.regarding;
        let is_its = *kind == Pod::KIND && name.namespace == key.name.namespace;
        if !is_its || !made.contains(&*name.name) {
            continue;
        }
        match &*event.reason {
            "FailedScheduling" => drop(waited.insert(&name.name, &event.note)),
            "Scheduled" => drop(waited.remove(&*name.name)),
            _ => {}
        }
    }
    let were = if waited.len() == 1 { "was" } else { "were" };
    let first = waited.values().next();
    first.map_or_else(String::new, |note| {
        let reason = replicas::reason(note);
        format!(", {} {were} Pending ({reason})", waited.len())
    })
}

/// Why the last pod of an object was refused at creation; `None` if a pod was created since.
fn last_refusal(events: &EventLog, key: &Key, uid: &str) -> Option<String> {
    let of_it = events.iter();
    let of_it = of_it.filter(|event| event.regarding == *key && *event.uid == *uid);
    let mut of_creation =
        of_it.filter(|event| ["FailedCreate", "SuccessfulCreate"].contains(&&*event.reason));
    let last = of_creation.next_back()?;
    (&*last.reason == "FailedCreate").then(|| last.note.to_string())
}
