//! Whether workloads are what their specs ask for, and keep the pods that their budgets ask for.
//!
//! Reading order: `replicas` (the numbers of one workload), this file (all of them, and their pods), `budget`.

mod budget;
mod replicas;

pub use budget::within_budget;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Object, Pod, ReplicaSet, Stored};
use strew_apiserver::server::Server;
use strew_scheduler::Profile;

use super::Verdict;
use crate::format::ObjectTarget;
use replicas::Replicas;

/// The kinds that have replicas.
const KINDS: [Kind; 7] = [
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::CloneSet,
    Kind::ReplicaSet,
    Kind::ReplicationController,
    Kind::Job,
];

/// The kind that answers for ReplicaSets.
const DEPLOYMENT: &str = "Deployment";

/// Workloads that are told by name.
const TOLD_MAX: usize = 4;

/// Workloads, bare pods and budgets of a dump that were not as asked for when it was taken, by uid. They decide nothing,
/// unless a claim names them.
pub type ShortBefore = BTreeSet<Arc<str>>;

/// A workload that is not as asked for.
pub(super) struct Short {
    pub(super) key: Key,
    pub(super) uid: Arc<str>,
    /// Whether its status was ever written.
    pub(super) is_observed: bool,
    pub(super) why: String,
}

/// What was not as asked for at second 0, of the objects that a cluster had: `given` are those of the files. Nothing where
/// no workload among them is new: then the dump itself is what is asked about.
pub fn short_before(server: &Server, profiles: &[Profile], given: &[Object]) -> ShortBefore {
    let is_workload = |object: &&Object| {
        let kind = object.key().kind;
        kind == Pod::KIND || KINDS.contains(&kind)
    };
    let mut workloads = given.iter().filter(is_workload);
    if workloads.all(|object| !object.meta().uid.is_empty()) {
        return ShortBefore::new();
    }
    let uids = given.iter().map(|object| &object.meta().uid);
    let uids: BTreeSet<&Arc<str>> = uids.filter(|uid| !uid.is_empty()).collect();
    let all = short(server, profiles)
        .into_iter()
        .chain(budget::short(server.tables()));
    let was_there = |short: &Short| short.is_observed && uids.contains(&short.uid);
    all.filter(was_there).map(|short| short.uid).collect()
}

/// Judges whether workloads have every pod that they ask for: made, of the newest template, and available; and no pod
/// without a workload, or of a Job, waits for a node. What `kubectl rollout status` says when it is done.
pub fn rolled_out(
    server: &Server,
    profiles: &[Profile],
    of: Option<&ObjectTarget>,
    before: &ShortBefore,
) -> Verdict {
    let short = short(server, profiles);
    match of {
        None => of_all(short, before),
        Some(target) => of_one(short, |short| is(&short.key, target)),
    }
}

/// Whether nothing is short but what was so before; what is.
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

/// Whether nothing that is meant is short.
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

/// `deployment/web`, `shop/deployment/web` in another namespace than the default one.
fn name(key: &Key) -> String {
    let kind = key.kind.name().to_lowercase();
    match &*key.name.namespace {
        "default" | "" => format!("{kind}/{}", key.name.name),
        namespace => format!("{namespace}/{kind}/{}", key.name.name),
    }
}

/// Pods of one workload that are on no node.
#[derive(Default)]
struct Waiting<'a> {
    pending: Vec<&'a Arc<Pod>>,
    /// By the scheduler that they are left to, which no profile is.
    left: BTreeMap<Arc<str>, usize>,
}

/// Every workload that is not as asked for, kind by kind, in the order of names.
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
        if let Some(why) = replicas.why(&waiting, || last_refusal(server, &key, uid)) {
            all.push(Short {
                uid: Arc::clone(uid),
                key,
                is_observed: replicas.is_observed,
                why,
            });
        }
    }
    // Nobody else answers for pods of what is not here, or of a kind that nobody models.
    let of_others = waiting.into_values().flat_map(|waiting| waiting.pending);
    all.extend(bare.into_iter().chain(of_others).map(|pod| Short {
        key: Key {
            kind: Pod::KIND,
            name: pod.meta.name.clone(),
        },
        uid: Arc::clone(&pod.meta.uid),
        is_observed: true,
        why: "Pending".to_owned(),
    }));
    all
}

/// Pods that are on no node, by the uid of their workload; those without one that a profile is to place.
fn waiting<'a>(
    tables: &'a Tables,
    profiles: &[Profile],
) -> (BTreeMap<Arc<str>, Waiting<'a>>, Vec<&'a Arc<Pod>>) {
    let mut by_workload: BTreeMap<Arc<str>, Waiting<'_>> = BTreeMap::new();
    let mut bare = Vec::new();
    for pod in tables.of::<Pod>().iter() {
        if pod.node.is_some() || !pod.is_active() {
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
            (None, true) => bare.push(pod),
            (None, false) => {}
        }
    }
    (by_workload, bare)
}

/// The uid of the workload that a pod belongs to: of a Deployment's pod the Deployment.
fn workload_of(tables: &Tables, pod: &Pod) -> Option<Arc<str>> {
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

/// Why the last pod of an object was refused at its creation, unless one was made since.
fn last_refusal(server: &Server, key: &Key, uid: &str) -> Option<String> {
    let of_it = server.events().iter();
    let of_it = of_it.filter(|event| event.regarding == *key && *event.uid == *uid);
    let mut of_creation =
        of_it.filter(|event| ["FailedCreate", "SuccessfulCreate"].contains(&&*event.reason));
    let last = of_creation.next_back()?;
    (&*last.reason == "FailedCreate").then(|| last.note.to_string())
}
