//! Chooses the nodes to try for preemption, and the candidate.

use std::cmp::Reverse;

use strew_cluster::{Cluster, NodeIdx};

use super::victims::{Candidate, started};
use crate::profile::PreemptionArgs;
use crate::status::{Code, Unfit};

/// The nodes where evictions might help: those with code `Unschedulable`, in the order of nodes. Nodes that no longer
/// exist are left out.
pub(crate) fn nodes_to_try(cluster: &Cluster, unfit: &Unfit) -> Vec<NodeIdx> {
    match unfit {
        Unfit::PreFilter(refusal) if refusal.code == Code::Unschedulable => {
            cluster.node_order().to_vec()
        }
        Unfit::NoNodes | Unfit::PreFilter(_) => Vec::new(),
        Unfit::EveryNode(refusals) => {
            let curable = refusals
                .iter()
                .filter(|(_, r)| r.code == Code::Unschedulable);
            let there = |&node: &NodeIdx| cluster.node(node).fact().is_some();
            curable.map(|(node, _)| node).filter(there).collect()
        }
    }
}

/// The number of candidates at which the search stops. Source: spec/scheduler §3.16, 3.
pub(crate) fn candidates_wanted(args: &PreemptionArgs, nodes: usize) -> usize {
    let share = nodes * usize::from(args.candidate_nodes_percentage_min) / 100;
    share.max(args.candidate_nodes_min as usize).min(nodes)
}

/// The best candidate: fewest violated budgets; lowest priority of its most important victim; smallest sum of
/// priorities; fewest victims; latest start of the earliest among its victims of the highest priority. Of equal
/// candidates upstream takes any, strew the first in the order of nodes. Source: spec/scheduler §3.16, 5.
pub(crate) fn choose<'a>(
    cluster: &Cluster,
    candidates: &'a [Candidate],
    now_s: i64,
) -> Option<&'a Candidate> {
    /// Added to each priority, so that a sum is first of all a count.
    const OFFSET: i64 = 1 << 31;
    candidates.iter().min_by_key(|candidate| {
        let victims = candidate.victims.iter();
        let priority = |&pod| cluster.spec_of(pod).priority;
        let highest = victims.clone().map(priority).max();
        let sum: i64 = victims
            .clone()
            .map(|v| i64::from(priority(v)) + OFFSET)
            .sum();
        let most_important = victims.filter(|&pod| Some(priority(pod)) == highest);
        let earliest = most_important
            .map(|&pod| started(cluster, pod, now_s))
            .min();
        (
            candidate.violations,
            highest,
            sum,
            candidate.victims.len(),
            Reverse(earliest),
        )
    })
}
