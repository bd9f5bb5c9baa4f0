//! A moment of a cluster for readers: its world, and a summary of each workload.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;
use strew_cluster::NodeIdx;

use crate::blocked::{Blocked, PodOutcome};
use crate::cluster_state::ClusterState;
use crate::moment::{self, Frame, Moment};
use crate::spread::{self, Spread};
use crate::usage::{self, NodeUsage};

/// A moment of a cluster.
pub struct View {
    /// The objects.
    pub world: ClusterState,
    /// Per pod of the world.
    pub outcomes: Vec<PodOutcome>,
    /// Per workload of the world.
    pub summaries: Vec<Summary>,
    /// Per workload of the world.
    pub spreads: Vec<Vec<Spread>>,
    /// Capacity and usage of nodes, by name.
    pub nodes: Vec<NodeUsage>,
}

/// The outcomes of a workload's pods.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Pods that have not finished and are not terminating.
    pub replicas: usize,
    /// Pods on a node that are ready.
    pub ready: usize,
    /// Pods that were on a node in the earlier view.
    pub before: usize,
    /// Pods put on a node since.
    pub placed: usize,
    /// Pods of another scheduler.
    pub left_alone: usize,
    /// Terminating pods.
    pub terminating: usize,
    /// The largest group first.
    pub pending: Vec<PendingGroup>,
    /// Pods on nodes by revision, if there are several.
    pub revisions: BTreeMap<String, usize>,
    /// Pods that are Succeeded or Failed.
    pub finished: Finished,
}

/// The finished pods of a workload, and where they ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// Pods that are Succeeded.
    pub succeeded: usize,
    /// Pods that are Failed.
    pub failed: usize,
    /// Where they ran, by the zones of nodes that are still there; nodes without a zone are left out.
    #[serde(rename = "zones", skip_serializing_if = "BTreeMap::is_empty", default)]
    pub by_zone: BTreeMap<String, usize>,
    /// The number of nodes that they ran on.
    pub nodes: usize,
    /// The largest number on one node.
    pub most_on_a_node: usize,
}

impl Finished {
    /// The number of finished pods.
    pub fn count(&self) -> usize {
        self.succeeded + self.failed
    }
}

/// Pods that stay Pending for the same reason.
#[derive(Debug, Clone)]
pub struct PendingGroup {
    /// The reason.
    pub blocked: Rc<Blocked>,
    /// In order of arrival.
    pub entries: Vec<usize>,
}

impl Summary {
    /// The number of pods that stay Pending.
    pub fn n_pending(&self) -> usize {
        self.pending.iter().map(|group| group.entries.len()).sum()
    }
}

impl View {
    /// The present view. Pods that were on no node in the earlier view count as placed since; without an earlier view,
    /// all pods on nodes do.
    pub fn of(moment: Moment<'_>, frame: &mut Frame, before: Option<&Self>) -> Self {
        let (mut world, mut outcomes) = moment::world(moment, frame);
        let classes = spread::classes(&world);
        let keys = frame.keys.iter();
        let keys: Vec<_> = keys.map(|key| world.cluster.names.intern(key)).collect();
        let mut spreads = spread::of_all(&mut world, &classes, &keys);
        if let Some(before) = before {
            let was_bound = before.bound_uids();
            for (entry, outcome) in world.pods.iter().zip(&mut outcomes) {
                if matches!(outcome, PodOutcome::Placed(_))
                    && was_bound.contains(&*world.cluster.pod(entry.pod).uid)
                {
                    *outcome = PodOutcome::WasBound;
                }
            }
            spread::compare(&mut spreads, &world, &before.spreads, &before.world);
        }
        let mut summaries = summaries(&world, &outcomes);
        count_finished(&world, &mut summaries);
        Self {
            summaries,
            nodes: usage::of_nodes(&world),
            spreads,
            outcomes,
            world,
        }
    }

    /// The uids of all pods on nodes.
    fn bound_uids(&self) -> HashSet<&str> {
        let cluster = &self.world.cluster;
        let rows = self.world.pods.iter().map(|entry| cluster.pod(entry.pod));
        let bound = rows.filter(|row| row.node.is_some());
        bound.map(|row| &*row.uid).collect()
    }

    /// The number of pods that stay Pending, in total.
    pub fn n_pending(&self) -> usize {
        self.summaries.iter().map(Summary::n_pending).sum()
    }
}

fn summaries(world: &ClusterState, outcomes: &[PodOutcome]) -> Vec<Summary> {
    let of = |members: &Vec<usize>| summary(world, outcomes, members);
    world.members.iter().map(of).collect()
}

/// Counts the finished pods of each workload. Every zone of the cluster is named where one of them is.
fn count_finished(world: &ClusterState, summaries: &mut [Summary]) {
    if world.finished.is_empty() {
        return;
    }
    let mut on_nodes: BTreeMap<(usize, NodeIdx), usize> = BTreeMap::new();
    for pod in &world.finished {
        let Some(workload) = pod.workload else {
            continue;
        };
        if let Some(summary) = summaries.get_mut(workload) {
            match pod.has_failed {
                true => summary.finished.failed += 1,
                false => summary.finished.succeeded += 1,
            }
        }
        if let Some(node) = pod.node {
            *on_nodes.entry((workload, node)).or_default() += 1;
        }
    }
    let rows = (0..world.cluster.node_rows()).map(NodeIdx::from);
    let zones: BTreeMap<String, usize> = rows
        .filter_map(|node| Some((usage::zone_of(world, node)?, 0)))
        .collect();
    for ((workload, node), count) in on_nodes {
        let Some(finished) = summaries.get_mut(workload).map(|s| &mut s.finished) else {
            continue;
        };
        finished.nodes += 1;
        finished.most_on_a_node = finished.most_on_a_node.max(count);
        if let Some(zone) = usage::zone_of(world, node) {
            if finished.by_zone.is_empty() {
                finished.by_zone.clone_from(&zones);
            }
            *finished.by_zone.entry(zone).or_default() += count;
        }
    }
}

fn summary(world: &ClusterState, outcomes: &[PodOutcome], members: &[usize]) -> Summary {
    let mut summary = Summary::default();
    for &entry in members {
        let pod = &world.pods[entry];
        if pod.is_leaving {
            summary.terminating += 1;
            continue;
        }
        summary.replicas += 1;
        match &outcomes[entry] {
            PodOutcome::WasBound => summary.before += 1,
            PodOutcome::Placed(_) => summary.placed += 1,
            PodOutcome::LeftAlone => summary.left_alone += 1,
            PodOutcome::Pending(blocked) => {
                let group = summary
                    .pending
                    .iter_mut()
                    .find(|group| group.blocked == *blocked);
                match group {
                    Some(group) => group.entries.push(entry),
                    None => summary.pending.push(PendingGroup {
                        blocked: Rc::clone(blocked),
                        entries: vec![entry],
                    }),
                }
            }
        }
        if world.node_of(entry).is_some() {
            summary.ready += usize::from(pod.is_ready);
            if let Some(revision) = &pod.revision {
                *summary.revisions.entry(revision.to_string()).or_default() += 1;
            }
        }
    }
    if summary.revisions.len() < 2 {
        summary.revisions.clear();
    }
    // A stable sort: equal groups stay in order of arrival.
    summary
        .pending
        .sort_by_key(|group| std::cmp::Reverse(group.entries.len()));
    summary
}
