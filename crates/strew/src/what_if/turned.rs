//! Carries out changes on a copy of the world, and compares by names.

use serde::Serialize;
use strew_cluster::PodIdx;
use strew_plan::{Fate, Skew, Trial};
use strew_view::world::World;

use super::Asked;
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
    /// Absent: it was Pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    pub(crate) becomes: Becomes,
    /// The node that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// Why it is Pending.
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
    world: &mut World,
    namespace: Option<&str>,
    entries: &[usize],
) -> Result<Turned, Failure> {
    let subject: Vec<PodIdx> = entries.iter().map(|&entry| world.pods[entry].pod).collect();
    let mut plan = Vec::new();
    let mut changes = Vec::new();
    for asked in asked {
        let (meant, nodes) = asked.changes(world, namespace, &subject)?;
        plan.extend(meant);
        changes.push(Changed {
            change: asked.text.clone(),
            nodes,
        });
    }
    let profiles = world.schedulers.profiles();
    let mut trial = Trial::new(&world.cluster, &profiles);
    let before = trial.skews();
    plan.iter().for_each(|change| trial.apply(change, &subject));
    trial.decide();
    let after = trial.skews();
    let turned = Turned {
        changes,
        pods: pods(&trial, world),
        skews: skews(&before, &after, world),
    };
    let cluster = trial.into_cluster();
    world.continue_with(cluster);
    Ok(turned)
}

fn pods(trial: &Trial<'_>, world: &World) -> Vec<TurnedPod> {
    let (base, now) = (&world.cluster, trial.cluster());
    let entry = |turned: strew_plan::Turned| {
        let class = now.class_of(turned.pod);
        let name = |cluster: &strew_cluster::Cluster, node| {
            cluster.names.text(cluster.node(node).name()).to_owned()
        };
        let (becomes, to, message) = match turned.to {
            Fate::On(node) => (Becomes::Placed, Some(name(now, node)), None),
            Fate::Pending(unfit) => {
                let text = unfit.map(|u| u.message(now.nodes_present(), &now.names));
                (Becomes::Pending, None, text)
            }
            Fate::Gone => (Becomes::Gone, None, None),
        };
        TurnedPod {
            namespace: now.names.text(class.key.namespace).to_owned(),
            name: now.pod(turned.pod).name.to_string(),
            from: turned.from.map(|node| name(base, node)),
            becomes,
            to,
            message,
        }
    };
    let mut pods: Vec<TurnedPod> = trial.turned().into_iter().map(entry).collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    pods
}

fn skews(before: &[Skew], after: &[Skew], world: &World) -> Vec<TurnedSkew> {
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
fn workload(skew: &Skew, world: &World) -> String {
    let of = |pod: &&strew_view::world::PodEntry| {
        let key = &world.cluster.class_of(pod.pod).key;
        (key.namespace, key.owner) == (skew.namespace, skew.owner)
    };
    let entry = world.pods.iter().find(of);
    entry.map_or_else(String::new, |pod| world.workloads[pod.workload].name.of())
}
