//! Why a pod is on no node, in one sentence: what the nodes have against it, and what no node can tell.

use std::collections::{BTreeMap, HashSet};

use strew_apiserver::object::{Phase, Pod};
use strew_cluster::{NodeIdx, PodIdx};
use strew_manifest::kinds::{self, KindRow};
use strew_manifest::read::nearest;
use strew_scheduler::Explanation;
use strew_scheduler::explain::{Cause, HardExplained, Whereabouts};
use strew_view::cluster_state::{ClusterState, PodState};
use strew_view::explanation::{self as wire, CountedWorkload};

use crate::text::count;

/// The cause; `None` for a pod that a node would take now, and that nothing else keeps from it. `pod` is the stored
/// object, if it is at hand.
pub(crate) fn of(
    world: &ClusterState,
    entry: usize,
    explanation: &Explanation,
    pod: Option<&Pod>,
) -> Option<String> {
    let of_nodes = || wire::cause(explanation, &world.cluster);
    match (&world.pods[entry].standing, &explanation.standing) {
        (PodState::OfAnother(scheduler), _) => Some(no_scheduler(world, scheduler)),
        (PodState::Leaving, _) => Some("it is being deleted".to_owned()),
        _ if is_astray(world, entry, pod) => Some(format!(
            "its spec.nodeName is {:?}, and there is no such node; no scheduler looks at it",
            pod.and_then(|pod| pod.node.as_deref()).unwrap_or_default()
        )),
        (_, Whereabouts::Placed { .. }) => of_nodes(),
        (_, Whereabouts::Gated { gates, .. }) => {
            let gates = gates.iter().map(|&gate| world.cluster.names.text(gate));
            Some(gated(&gates.collect::<Vec<_>>()))
        }
        _ => {
            let of_nodes = of_nodes()?;
            if let Some(waits) = waits_for_victims(world, entry) {
                return Some(waits);
            }
            let mut hard = explanation.hard.iter();
            let shared = hard.find_map(|hard| counts_others(world, entry, explanation, hard));
            Some(match shared {
                Some(shared) => format!("{shared}; {of_nodes}"),
                None => of_nodes,
            })
        }
    }
}

/// `it waits for pod shop/low-1, which is being deleted to make room for it on n-a`; `None` if it is nominated to no node,
/// or nothing less important leaves that node.
fn waits_for_victims(world: &ClusterState, entry: usize) -> Option<String> {
    let cluster = &world.cluster;
    let pod = world.pods[entry].pod;
    let node = world
        .schedulers
        .nominations
        .node_of(&cluster.pod(pod).uid)?;
    let is_on = |node_of: NodeIdx| cluster.node(node_of).name() == node;
    let priority = |pod: PodIdx| cluster.spec_of(pod).priority;
    let victims = (0..world.pods.len()).filter(|&other| {
        let is_there = world.node_of(other).is_some_and(is_on);
        let row = &world.pods[other];
        row.is_leaving && is_there && priority(row.pod) < priority(pod)
    });
    let names = victims.map(|other| {
        let row = &world.pods[other];
        format!("{}/{}", row.namespace, row.name)
    });
    let names: Vec<String> = names.collect();
    let node = cluster.names.text(node);
    match names.as_slice() {
        [] => None,
        [name] => Some(format!(
            "it waits for pod {name}, which is being deleted to make room for it on {node}"
        )),
        [name, others @ ..] => Some(format!(
            "it waits for pod {name} and {}, which are being deleted to make room for it on {node}",
            count(others.len(), "other")
        )),
    }
}

/// True for a pod that never ran and names a node that is not there.
pub(crate) fn is_astray(world: &ClusterState, entry: usize, pod: Option<&Pod>) -> bool {
    let node = world.node_of(entry).map(|node| world.cluster.node(node));
    let is_there = node.is_some_and(|node| node.fact().is_some());
    pod.is_some_and(|pod| pod.node.is_some() && pod.status.phase == Phase::Pending) && !is_there
}

fn gated(gates: &[&str]) -> String {
    let names = gates.join(", ");
    match gates {
        [_] => format!(
            "its scheduling gate {names} is still set; no scheduler tries it before the gate is removed"
        ),
        _ => format!(
            "its scheduling gates {names} are still set; no scheduler tries it before they are removed"
        ),
    }
}

/// A pod whose `schedulerName` no profile has.
fn no_scheduler(world: &ClusterState, scheduler: &str) -> String {
    let cluster = &world.cluster;
    let of_it = world.pods.iter().filter(|entry| {
        let row = cluster.pod(entry.pod);
        let name = cluster.spec_of(entry.pod).scheduler_name;
        row.node.is_some() && cluster.names.text(name) == scheduler
    });
    match of_it.count() {
        0 => {
            let profiles = world.schedulers.profiles();
            let names: Vec<&str> = profiles.iter().map(|p| p.scheduler_name.as_str()).collect();
            let known = match nearest(scheduler, names.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known: {}", names.join(", ")),
            };
            format!("no scheduler is called {scheduler:?}, its schedulerName ({known})")
        }
        n => format!(
            "it is left to scheduler {scheduler:?}, which has placed {} here; strew has no profile of that name",
            count(n, "other pod")
        ),
    }
}

/// `its spread constraint 1 counts 11 pods of deployment/cart beside 3 of its own`; `None` if it counts only its own, or
/// refuses no node.
fn counts_others(
    world: &ClusterState,
    entry: usize,
    explanation: &Explanation,
    hard: &HardExplained,
) -> Option<String> {
    let index = hard.common.index;
    let is_it =
        |cause: &Cause| matches!(cause, Cause::Skew { constraint, .. } if *constraint == index);
    let mut causes = explanation.refused.iter().flat_map(|node| &node.causes);
    if !causes.any(is_it) {
        return None;
    }
    let others = others(world, entry, &hard.counted);
    let n: usize = others.iter().map(|other| other.pods).sum();
    if n == 0 {
        return None;
    }
    let first = others.first()?;
    let whose = match others.len() {
        1 => format!("{}/{}", first.kind.to_lowercase(), first.name),
        more => format!(
            "{}/{} and {}",
            first.kind.to_lowercase(),
            first.name,
            count(more - 1, "other workload")
        ),
    };
    Some(format!(
        "its spread constraint {} counts {} of {whose} beside {} of its own",
        index + 1,
        count(n, "pod"),
        hard.counted.len().saturating_sub(n)
    ))
}

/// The workloads of these pods but for the own one of the pod at `entry`, those with most pods first.
pub(crate) fn others(
    world: &ClusterState,
    entry: usize,
    counted: &[PodIdx],
) -> Vec<CountedWorkload> {
    let own = world.pods[entry].workload;
    if world.workloads[own].name.kind == "Pod" {
        // A pod of its own has no others to be told apart from.
        return Vec::new();
    }
    let counted: HashSet<PodIdx> = counted.iter().copied().collect();
    let mut pods: BTreeMap<usize, usize> = BTreeMap::new();
    let of_it = world.pods.iter();
    for entry in of_it.filter(|entry| counted.contains(&entry.pod)) {
        *pods.entry(entry.workload).or_default() += 1;
    }
    pods.remove(&own);
    let of_workload = |(workload, pods): (usize, usize)| {
        let name = &world.workloads[workload].name;
        CountedWorkload {
            kind: name.kind.clone(),
            name: name.name.clone(),
            pods,
        }
    };
    let mut others: Vec<CountedWorkload> = pods.into_iter().map(of_workload).collect();
    others.sort_by_key(|other| std::cmp::Reverse(other.pods));
    others
}

/// `deployment/web -n shop: 1 of 4 pods is Pending; the rollout hangs on it, 3 pods of another revision run`. `None` for
/// a pod of its own, and for one that has a node.
pub(crate) fn of_workload(world: &ClusterState, entry: usize) -> Option<String> {
    let pod = &world.pods[entry];
    let workload = &world.workloads[pod.workload].name;
    if workload.kind == "Pod" || world.node_of(entry).is_some() || pod.is_leaving {
        return None;
    }
    let members = world.members[pod.workload].iter().copied();
    let members: Vec<usize> = members.filter(|&m| !world.pods[m].is_leaving).collect();
    let pending = members.iter().filter(|&&m| world.node_of(m).is_none());
    let n = pending.count();
    let is_old = |m: &&usize| {
        let other = &world.pods[**m];
        world.node_of(**m).is_some() && other.revision != pod.revision
    };
    let old = members.iter().filter(is_old).count();
    let is_rolled_out = kinds::of_kind(&workload.kind).is_some_and(KindRow::rolls_replicas);
    let rollout = match (is_rolled_out && pod.revision.is_some(), old) {
        (false, _) | (_, 0) => String::new(),
        (true, 1) => "; the rollout hangs: 1 pod of another revision is still there".to_owned(),
        (true, old) => {
            format!("; the rollout hangs: {old} pods of another revision are still there")
        }
    };
    let namespace = match workload.namespace.as_str() {
        "default" | "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let are = if n == 1 { "is" } else { "are" };
    Some(format!(
        "{}{namespace}: {n} of {} {are} Pending{rollout}",
        workload.of(),
        count(members.len(), "pod")
    ))
}
