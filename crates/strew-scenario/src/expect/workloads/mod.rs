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

pub use budget::{met as budgets_met, within_budget};
pub use constraints::{
    CONSTRAINT_EXCEEDED, ExceededBefore, MATCH_LABEL_KEYS, NOT_MOVED, exceeded_now,
    within_constraints,
};
pub use loss::{HONOR_TAINTS, LossOf, survives};
pub use remarks::{PATCH_NOT_APPLIED, unpatched};
pub(super) use remarks::{lasting, of_rollout};

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Node, Object, Pod, ReplicaSet, Stored};
use strew_apiserver::server::Server;
use strew_scheduler::Profile;

use super::availability::Availability;
use super::{Answer, Verdict};
use crate::format::ObjectTarget;
use replicas::Replicas;

/// The kinds with replicas.
pub(super) const KINDS: [Kind; 7] = [
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::CloneSet,
    Kind::ReplicaSet,
    Kind::ReplicationController,
    Kind::Job,
];

/// True for a workload whose available pods are followed: it asks for a number of them, wherever they run. ReplicaSets
/// of a Deployment are not; their pods are the Deployment's.
pub(super) fn is_counted(object: &Object) -> bool {
    let kind = object.kind();
    KINDS.contains(&kind) && !matches!(kind, Kind::DaemonSet | Kind::Job)
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

/// The uids of what was short at second 0; `given` are the objects of the files. Empty if every workload in the files
/// comes from a cluster: then the question is about the dump itself.
pub fn short_before(server: &Server, profiles: &[Profile], given: &[Object]) -> ShortBefore {
    let is_workload = |object: &&Object| {
        let kind = object.key().kind;
        kind == Pod::KIND || KINDS.contains(&kind)
    };
    let mut workloads = given.iter().filter(is_workload);
    if workloads.all(|object| !object.meta().uid.is_empty()) {
        // No step of the run can make a failed Job well again.
        let failed = given.iter().filter(|object| {
            Replicas::of(object).is_some_and(|replicas| replicas.failed.is_some())
        });
        return failed.map(|job| Arc::clone(&job.meta().uid)).collect();
    }
    let uids = given.iter().map(|object| &object.meta().uid);
    let uids: BTreeSet<&Arc<str>> = uids.filter(|uid| !uid.is_empty()).collect();
    let all = short(server, profiles)
        .into_iter()
        .chain(budget::short(server.tables()));
    let was_there = |short: &Short| short.is_observed && uids.contains(&short.uid);
    all.filter(was_there).map(|short| short.uid).collect()
}

/// The Jobs that have failed, by uid.
pub fn failed(tables: &Tables) -> BTreeSet<Arc<str>> {
    let jobs = tables.all_of(&Kind::Job).into_iter();
    let failed = jobs.filter(|job| Replicas::of(job).is_some_and(|r| r.failed.is_some()));
    failed.map(|job| Arc::clone(&job.meta().uid)).collect()
}

/// Judges whether every workload is rolled out as `kubectl rollout status` understands it: all pods are created, of the
/// newest template, and available. Also, no Job fails in the step, no pod of a Job or without a workload waits for a
/// node, and no pod without a workload is gone. `before` and `failed` are not judged: what was short at second 0, and
/// the Jobs that had failed when the step began.
pub fn rolled_out(
    server: &Server,
    profiles: &[Profile],
    of: Option<&ObjectTarget>,
    [before, failed]: [&BTreeSet<Arc<str>>; 2],
    availability: &Availability,
) -> Verdict {
    let mut short = short(server, profiles);
    short.retain(|short| !failed.contains(&short.uid));
    short.extend(gone(server, availability));
    match of {
        None => of_all(short, before),
        Some(target) => match server.tables().find(&target.key()) {
            Some(_) => of_one(short, |short| is(&short.key, target)),
            None => Verdict::of(Answer::Nothing, format!("there is no {target}")),
        },
    }
}

/// Pods without a workload that ran when the step began and are gone: nothing makes them again.
fn gone(server: &Server, availability: &Availability) -> Vec<Short> {
    let gone = availability.gone();
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

/// Judges whether every workload has its pods, as far as the API server does not refuse to create them. Pods that wait
/// for a node do not fail it.
pub fn created(server: &Server, profiles: &[Profile], before: &ShortBefore) -> Verdict {
    let mut short = short(server, profiles);
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
pub(super) fn name(key: &Key) -> String {
    let kind = key.kind.name().to_lowercase();
    match &*key.name.namespace {
        "default" | "" => format!("{kind}/{}", key.name.name),
        namespace => format!("{namespace}/{kind}/{}", key.name.name),
    }
}

/// Pods of one workload that are on no node, or on one that is not there.
#[derive(Default)]
struct Waiting<'a> {
    pending: Vec<&'a Arc<Pod>>,
    /// Pods whose scheduler name is no profile's, counted by that name.
    left: BTreeMap<Arc<str>, usize>,
    /// Pods whose node is not there, counted by its name: the template's `nodeName`, which no scheduler looks at.
    astray: BTreeMap<Arc<str>, usize>,
}

/// A pod on no node without a workload, and the scheduler that it names if that is no profile's.
type BarePod<'a> = (&'a Arc<Pod>, Option<&'a str>);

/// Everything that is short, kind by kind, in the order of names.
fn short(server: &Server, profiles: &[Profile]) -> Vec<Short> {
    let tables = server.tables();
    let (mut waiting, bare) = waiting(tables, profiles);
    let mut all = Vec::new();
    for object in KINDS.iter().flat_map(|kind| tables.all_of(kind)) {
        let Some(replicas) = Replicas::of(&object) else {
            continue;
        };
        let (key, uid) = (object.key(), &object.meta().uid);
        let waiting = waiting.remove(uid).unwrap_or_default();
        let refusal = replicas.refusal(|| last_refusal(server, &key, uid));
        if let Some(why) = replicas.why(&waiting, refusal.as_deref()) {
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
                    None => "Pending".to_owned(),
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
    let nodes: HashSet<&str> = nodes.map(|node| &*node.meta.name.name).collect();
    for pod in tables.of::<Pod>().iter() {
        if !pod.is_active() {
            continue;
        }
        if let Some(node) = &pod.node {
            if !nodes.contains(&**node)
                && let Some(uid) = workload_of(tables, pod)
            {
                let astray = &mut by_workload.entry(uid).or_default().astray;
                *astray.entry(Arc::clone(node)).or_default() += 1;
            }
            continue;
        }
        let scheduler = pod.spec.scheduler_name.as_deref();
        let scheduler = scheduler.unwrap_or("default-scheduler");
        let is_ours = profiles
            .iter()
            .any(|profile| profile.scheduler_name == scheduler);
        match (workload_of(tables, pod), is_ours) {
            (Some(uid), true) => by_workload.entry(uid).or_default().pending.push(pod),
            (Some(uid), false) => {
                let left = &mut by_workload.entry(uid).or_default().left;
                *left.entry(scheduler.into()).or_default() += 1;
            }
            (None, is_ours) => bare.push((pod, (!is_ours).then_some(scheduler))),
        }
    }
    (by_workload, bare)
}

/// `3 left to scheduler volcano, which no profile is called`.
fn left_to_text(n: usize, scheduler: &str) -> String {
    format!("{n} left to scheduler {scheduler}, which no profile is called")
}

/// The uid of the pod's workload; for the pod of a Deployment, the Deployment's.
pub(super) fn workload_of(tables: &Tables, pod: &Pod) -> Option<Arc<str>> {
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

/// Why the last pod of an object was refused at creation; `None` if a pod was created since.
fn last_refusal(server: &Server, key: &Key, uid: &str) -> Option<String> {
    let of_it = server.events().iter();
    let of_it = of_it.filter(|event| event.regarding == *key && *event.uid == *uid);
    let mut of_creation =
        of_it.filter(|event| ["FailedCreate", "SuccessfulCreate"].contains(&&*event.reason));
    let last = of_creation.next_back()?;
    (&*last.reason == "FailedCreate").then(|| last.note.to_string())
}
