//! Carries out changes in a world, and compares by names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use strew_cluster::PodIdx;
use strew_model::{Interner, Symbol};
use strew_plan::{Change, Fate, Keeping, Refusal, Skew, Transaction};
use strew_view::cluster_state::ClusterState;

use super::Asked;
use super::beside::Beside;
use crate::failure::Failure;

/// The results of changes.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Turned {
    /// The changes, as asked for.
    pub(crate) changes: Vec<Changed>,
    /// Pods that moved.
    pub(crate) pods: Vec<TurnedPod>,
    /// Constraints whose skew changed.
    pub(crate) skews: Vec<TurnedSkew>,
    /// Services that lead to more or fewer pods.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) services: Vec<TurnedService>,
    /// Pods of a larger scale that the API server refuses to create.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) not_made: Option<NotMade>,
}

/// Pods that are not created.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NotMade {
    /// How many.
    pub(crate) pods: usize,
    /// In the API server's words.
    pub(crate) why: String,
}

/// A change that was made.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Changed {
    /// As asked for.
    pub(crate) change: String,
    /// The number of nodes that it changed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(crate) nodes: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A pod that moved; a pod that left its node stands for the pod that replaces it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnedPod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// True for a pod that is made by a larger scale.
    #[serde(rename = "new", skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) is_new: bool,
    /// Absent: it was Pending, or is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    pub(crate) becomes: Becomes,
    /// The node that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// Why it is Pending, or kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// The new state of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) enum Becomes {
    /// On a node.
    Placed,
    /// On no node.
    Pending,
    /// No controller creates another one.
    Gone,
    /// On its node still, which a drain cannot empty.
    Kept,
}

/// A Service that leads to more or fewer pods.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnedService {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The number of pods on nodes that it selected.
    pub(crate) before: usize,
    /// Those that get requests now.
    pub(crate) after: usize,
}

/// A constraint whose skew changed.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnedSkew {
    pub(crate) namespace: String,
    /// `deployment/web`.
    pub(crate) workload: String,
    pub(crate) topology_key: String,
    pub(crate) max_skew: i32,
    pub(crate) hard: bool,
    #[serde(rename = "default")]
    pub(crate) is_default: bool,
    /// Absent: no node counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<i32>,
}

/// Carries out changes in the given order, decides again for every waiting pod, and leaves the world so. `entries` are
/// the explained pods, whose constraints a change may be about.
pub(crate) fn carry_out(
    asked: &[Asked],
    (world, beside): (&mut ClusterState, Beside),
    namespace: Option<&str>,
    entries: &[usize],
) -> Result<Turned, Failure> {
    let mut subject: Vec<PodIdx> = entries.iter().map(|&entry| world.pods[entry].pod).collect();
    let mut changes = Vec::new();
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
    trial.set_lives(beside.lives.clone());
    trial.set_health(beside.health.clone());
    let mut not_made = None;
    let (skews_before, endpoints_before) = (trial.skews(), trial.endpoints());
    for asked in asked {
        let mut nodes = BTreeSet::new();
        for mut change in asked.changes(&mut trial, namespace, &subject)? {
            if let Change::Scale { to } = &mut change {
                (*to, not_made) = beside.admitted(&subject, *to);
            }
            let touched = trial.apply(&change, &subject);
            nodes.extend(touched.nodes);
            if let Change::Scale { .. } = change {
                let new = touched
                    .pods
                    .into_iter()
                    .filter(|pod| !subject.contains(pod));
                let new: Vec<PodIdx> = new.collect();
                subject.extend(new);
                subject.retain(|&pod| !trial.is_gone(pod));
            }
        }
        changes.push(Changed {
            change: asked.text.clone(),
            nodes: nodes.len(),
        });
    }
    trial.decide();
    let (skews_after, endpoints_after) = (trial.skews(), trial.endpoints());
    let pods = pods(&trial, |pod| beside.is_known(pod));
    trial.keep();
    Ok(Turned {
        changes,
        pods,
        skews: skews(&skews_before, &skews_after, world),
        services: services(&endpoints_before, &endpoints_after, &world.cluster.names),
        not_made,
    })
}

fn services(
    before: &BTreeMap<(Symbol, Symbol), usize>,
    after: &BTreeMap<(Symbol, Symbol), usize>,
    names: &Interner,
) -> Vec<TurnedService> {
    let both = before.iter().zip(after.values());
    let turned = both.filter(|((_, before), after)| before != after);
    let service =
        |((&(namespace, name), &before), &after): ((&(Symbol, Symbol), &usize), &usize)| {
            TurnedService {
                namespace: names.text(namespace).to_owned(),
                name: names.text(name).to_owned(),
                before,
                after,
            }
        };
    let mut services: Vec<TurnedService> = turned.map(service).collect();
    services.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    services
}

fn pods(trial: &Transaction<'_>, is_known: impl Fn(PodIdx) -> bool) -> Vec<TurnedPod> {
    let cluster = trial.cluster();
    let name = |node| cluster.names.text(node).to_owned();
    let entry = |turned: strew_plan::Turned| {
        let is_new = !is_known(turned.pod);
        let class = cluster.class_of(turned.pod);
        let from = turned.from.map(name);
        let (becomes, to, message) = match turned.to {
            Fate::On(node) => (Becomes::Placed, Some(name(node)), None),
            Fate::Pending(unfit) => {
                let text = unfit.map(|u| u.message(cluster.nodes_present(), &cluster.names));
                (Becomes::Pending, None, text)
            }
            Fate::Gone => (Becomes::Gone, None, None),
            Fate::Kept(keeping) => {
                let bare = |pod: PodIdx| cluster.pod(pod).name.to_string();
                let text = match keeping {
                    Keeping::Bare(pod) if pod == turned.pod => {
                        "it has no workload: kubectl drain refuses its node without --force"
                            .to_owned()
                    }
                    Keeping::Bare(pod) => format!(
                        "pod {} on its node has no workload: kubectl drain refuses the node without --force",
                        bare(pod)
                    ),
                    Keeping::Refused(refusal) => refused(refusal, name),
                };
                (Becomes::Kept, from.clone(), Some(text))
            }
        };
        TurnedPod {
            namespace: name(class.key.namespace),
            name: cluster.pod(turned.pod).name.to_string(),
            is_new,
            from,
            becomes,
            to,
            message,
        }
    };
    let mut pods: Vec<TurnedPod> = trial.turned().into_iter().map(entry).collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    pods
}

/// Why the Eviction API refuses a pod.
fn refused(refusal: Refusal, name: impl Fn(Symbol) -> String) -> String {
    match refusal {
        Refusal::Budget(budget) => format!("its budget {} allows no eviction", name(budget)),
        Refusal::NotCounted(budget) => format!(
            "its budget {} allows no eviction: it has no status yet",
            name(budget)
        ),
        Refusal::Stale(budget) => format!(
            "its budget {} allows no eviction: it was not counted since it changed",
            name(budget)
        ),
        Refusal::OtherZone(budget) => format!(
            "its budget by zone {} allows no eviction while pods of another zone are away",
            name(budget)
        ),
        Refusal::SeveralBudgets => {
            "several budgets select it: the API server refuses its eviction".to_owned()
        }
    }
}

fn skews(before: &[Skew], after: &[Skew], world: &ClusterState) -> Vec<TurnedSkew> {
    let names = &world.cluster.names;
    let turned = |now: &Skew| {
        // A change may have replaced the constraint itself.
        let is_same = |old: &&Skew| {
            let of = |s: &Skew| (s.namespace, s.owner, s.index, s.constraint.key);
            of(old) == of(now) && old.constraint.selector == now.constraint.selector
        };
        let old = before.iter().find(is_same)?;
        (old.skew != now.skew).then(|| TurnedSkew {
            namespace: names.text(now.namespace).to_owned(),
            workload: workload(now, world),
            topology_key: names.text(now.constraint.key).to_owned(),
            max_skew: now.constraint.max_skew,
            hard: now.constraint.hard,
            is_default: now.is_default,
            before: old.skew,
            after: now.skew,
        })
    };
    after.iter().filter_map(turned).collect()
}

/// The workload of the pods of a constraint.
fn workload(skew: &Skew, world: &ClusterState) -> String {
    let of = |pod: &&strew_view::cluster_state::PodEntry| {
        let key = &world.cluster.class_of(pod.pod).key;
        (key.namespace, key.owner) == (skew.namespace, skew.owner)
    };
    let entry = world.pods.iter().find(of);
    entry.map_or_else(String::new, |pod| world.workloads[pod.workload].name.of())
}
