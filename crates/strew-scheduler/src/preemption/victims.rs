//! Finds the victims on one node.

use std::cmp::Reverse;

use strew_cluster::{Cluster, NodeIdx, PodIdx};

use super::budget::Budgets;
use super::tryout::Tryout;
use crate::status::Refusal;

/// A node on which the pod would fit without these pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The node.
    pub node: NodeIdx,
    /// The pods, at least one, most important first.
    pub victims: Vec<PodIdx>,
    /// The number of victims whose eviction violates a disruption budget.
    pub violations: usize,
}

/// Why evictions on a node do not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotHelped {
    /// No pod on it has a lower priority.
    NoVictims,
    /// It refuses the pod even without all pods of lower priority.
    Refused(Refusal),
    /// It takes the pod without evictions: the refusal is of another state of the cluster. An error upstream.
    FitsAsItIs,
}

/// Finds the victims on a node.
///
/// First all pods of lower priority are removed. Then each is added back if the pod fits beside it: those that violate
/// a budget first, and the most important first. Cost: pods × filters of one node. Source: spec/scheduler §3.16, 3.
///
/// # Errors
/// Why evictions do not help.
pub(crate) fn dry_run(
    tryout: &mut Tryout<'_>,
    node: NodeIdx,
    priority: i32,
    nominated: &[PodIdx],
    budgets: &Budgets,
    now_s: i64,
) -> Result<Candidate, NotHelped> {
    let cluster = tryout.cluster();
    // Most clusters have one priority: then no node need be checked.
    if cluster
        .lowest_priority()
        .is_none_or(|lowest| lowest >= priority)
    {
        return Err(NotHelped::NoVictims);
    }
    let lower = |&&pod: &&PodIdx| cluster.spec_of(pod).priority < priority;
    let pods: Vec<PodIdx> = cluster
        .node(node)
        .pods()
        .iter()
        .filter(lower)
        .copied()
        .collect();
    if pods.is_empty() {
        return Err(NotHelped::NoVictims);
    }
    let mut tried = tryout.on(node);
    pods.iter().for_each(|&pod| tried.remove(pod));
    if let Some(refusal) = tried.refusal(nominated) {
        return Err(NotHelped::Refused(refusal));
    }
    let pods = by_importance(cluster, &pods, now_s);
    let (violating, others) = budgets.split(cluster, &pods);
    let mut victims = Vec::new();
    let mut reprieve = |pods: &[PodIdx]| {
        for &pod in pods {
            tried.add(pod);
            if tried.refusal(nominated).is_some() {
                tried.remove(pod);
                victims.push(pod);
            }
        }
        victims.len()
    };
    let violations = reprieve(&violating);
    reprieve(&others);
    if victims.is_empty() {
        return Err(NotHelped::FitsAsItIs);
    }
    let place = |pod: &PodIdx| pods.iter().position(|other| other == pod);
    victims.sort_by_key(place);
    Ok(Candidate {
        node,
        victims,
        violations,
    })
}

/// A pod's start time for comparisons; a pod that has not started counts as starting now, after all others.
pub(super) fn started(cluster: &Cluster, pod: PodIdx, now_s: i64) -> (i64, bool) {
    let started = cluster.pod(pod).history.started_s;
    (started.unwrap_or(now_s), started.is_none())
}

/// The pods of a node, most important first: higher priority, then earlier start.
///
/// Upstream reads the clock at each comparison for a pod that has not started, so the first of two such pods counts as
/// the older one. Its sort (an insertion sort up to 12 pods) therefore reverses their order on the node (a quirk). With
/// more than 12 pods its sort is not stable, and strew's order of equal pods is one of the possible results.
fn by_importance(cluster: &Cluster, pods: &[PodIdx], now_s: i64) -> Vec<PodIdx> {
    let mut placed: Vec<(usize, PodIdx)> = pods.iter().copied().enumerate().collect();
    placed.sort_by_key(|&(place, pod)| {
        let (started, unstarted) = started(cluster, pod, now_s);
        let among_equals = match unstarted {
            true => pods.len() - place,
            false => place,
        };
        let priority = Reverse(cluster.spec_of(pod).priority);
        (priority, started, unstarted, among_equals)
    });
    placed.into_iter().map(|(_, pod)| pod).collect()
}
