//! A moment of a cluster as a reader sees it: its world, and what to tell of each workload.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use strew_sim::Simulation;

use crate::blocked::{Blocked, Outcome};
use crate::label_query::LabelQuery;
use crate::live::{self, Frame};
use crate::spread::{self, Spread};
use crate::usage::{self, Usage};
use crate::world::World;

/// A moment of a cluster.
pub(crate) struct View {
    pub(crate) world: World,
    /// Per pod of the world.
    pub(crate) outcomes: Vec<Outcome>,
    /// Per workload of the world.
    pub(crate) summaries: Vec<Summary>,
    /// Per workload of the world.
    pub(crate) spreads: Vec<Vec<Spread>>,
    pub(crate) nodes: Vec<Usage>,
}

/// What became of the pods of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    /// Pods that have not finished, and that nobody has asked to go.
    pub(crate) replicas: usize,
    /// On a node, and ready.
    pub(crate) ready: usize,
    /// On a node in the view before.
    pub(crate) before: usize,
    /// Put on a node since.
    pub(crate) placed: usize,
    /// Of another scheduler.
    pub(crate) left_alone: usize,
    /// Being deleted.
    pub(crate) terminating: usize,
    /// Largest group first.
    pub(crate) pending: Vec<PendingGroup>,
    /// Pods on nodes by revision, where there is more than one.
    pub(crate) revisions: BTreeMap<String, usize>,
}

/// Pods that stay Pending for the same.
#[derive(Debug, Clone)]
pub(crate) struct PendingGroup {
    pub(crate) blocked: Rc<Blocked>,
    /// In order of arrival.
    pub(crate) entries: Vec<usize>,
}

impl Summary {
    /// How many stay Pending.
    pub(crate) fn n_pending(&self) -> usize {
        self.pending.iter().map(|group| group.entries.len()).sum()
    }
}

impl View {
    /// The cluster as it is now. Pods that were on no node in an earlier view are placed since; without one, all that
    /// are on a node.
    pub(crate) fn of(simulation: &Simulation, frame: &mut Frame, before: Option<&Self>) -> Self {
        let (mut world, mut outcomes) = live::world(simulation, frame);
        let classes = spread::classes(&world);
        let mut spreads = spread::of_all(&mut world, &classes);
        if let Some(before) = before {
            let was_bound = before.bound_uids();
            for (entry, outcome) in world.pods.iter().zip(&mut outcomes) {
                if matches!(outcome, Outcome::Placed(_))
                    && was_bound.contains(&*world.cluster.pod(entry.pod).uid)
                {
                    *outcome = Outcome::WasBound;
                }
            }
            spread::compare(&mut spreads, &world, &before.spreads, &before.world);
        }
        Self {
            summaries: summaries(&world, &outcomes),
            nodes: usage::of_nodes(&world),
            spreads,
            outcomes,
            world,
        }
    }

    /// The uids of all pods that are on a node.
    fn bound_uids(&self) -> HashSet<&str> {
        let cluster = &self.world.cluster;
        let rows = self.world.pods.iter().map(|entry| cluster.pod(entry.pod));
        let bound = rows.filter(|row| row.node.is_some());
        bound.map(|row| &*row.uid).collect()
    }

    /// How many pods stay Pending, in all.
    pub(crate) fn n_pending(&self) -> usize {
        self.summaries.iter().map(Summary::n_pending).sum()
    }
}

fn summaries(world: &World, outcomes: &[Outcome]) -> Vec<Summary> {
    let of = |members: &Vec<usize>| summary(world, outcomes, members);
    world.members.iter().map(of).collect()
}

fn summary(world: &World, outcomes: &[Outcome], members: &[usize]) -> Summary {
    let mut summary = Summary::default();
    for &entry in members {
        let pod = &world.pods[entry];
        if pod.is_leaving {
            summary.terminating += 1;
            continue;
        }
        summary.replicas += 1;
        match &outcomes[entry] {
            Outcome::WasBound => summary.before += 1,
            Outcome::Placed(_) => summary.placed += 1,
            Outcome::LeftAlone => summary.left_alone += 1,
            Outcome::Pending(blocked) => {
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

/// Which workloads to show.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// Places in the list of workloads.
    pub(crate) workloads: Vec<usize>,
    /// How many more there are of those meant.
    pub(crate) n_left_out: usize,
}

/// Those of a namespace and with these labels: in the order of the files; the worst first if only the top is shown.
pub(crate) fn select(
    view: &View,
    namespace: Option<&str>,
    query: Option<&LabelQuery>,
    top: usize,
) -> Shown {
    let all = view.world.workloads.iter().enumerate();
    let meant = all.filter(|(_, workload)| {
        namespace.is_none_or(|n| n == workload.name.namespace)
            && query.is_none_or(|q| q.matches(&workload.labels))
    });
    let mut workloads: Vec<usize> = meant.map(|(index, _)| index).collect();
    let n_left_out = workloads.len().saturating_sub(top);
    if n_left_out > 0 {
        let badness = |&index: &usize| {
            let skews = view.spreads[index].iter().map(|spread| spread.skew);
            let key = (view.summaries[index].n_pending(), skews.max().unwrap_or(0));
            std::cmp::Reverse(key)
        };
        workloads.sort_by_key(badness);
        workloads.truncate(top);
    }
    Shown {
        workloads,
        n_left_out,
    }
}
