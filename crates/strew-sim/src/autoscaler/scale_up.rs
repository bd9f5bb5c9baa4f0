//! Scale-up: chooses the group that takes the pods that fit nowhere, and the number of its new nodes.
//!
//! Source: spec/controllers §11: each group is tried alone on a copy, with template nodes added one by one and the
//! largest pods first; one group grows per scan.

use std::cmp::Reverse;
use std::sync::Arc;

use strew_apiserver::object::Pod;
use strew_cluster::PodIdx;
use strew_model::Prng;
use strew_model::time::Instant;

use super::view::View;
use super::{Autoscaler, Expander, Ordered};

/// The growth of one group, and what it is worth.
#[derive(Debug, Clone, PartialEq)]
struct Growth {
    group: usize,
    n_nodes: u32,
    n_pods: usize,
    /// The idle shares of the new nodes' CPU and memory, in thousandths, summed.
    waste: u64,
}

impl Autoscaler {
    pub(super) fn scale_up(
        &mut self,
        now: Instant,
        mut view: View,
        waiting: &[Arc<Pod>],
        dice: &mut Prng,
    ) {
        for ordered in &self.ordered {
            view.add_node(self.groups[ordered.group].node(ordered.number));
        }
        let pods = waiting.iter().filter_map(|pod| view.pod(pod));
        let mut pods: Vec<PodIdx> = pods.collect();
        pods.retain(|&pod| !view.place(pod));
        if pods.is_empty() {
            return;
        }
        let size = |&pod: &PodIdx| {
            let requests = &view.cluster.spec_of(pod).requests;
            Reverse((requests.cpu_milli, requests.memory))
        };
        // The sort is stable: equal pods stay in the order of their names.
        pods.sort_by_key(size);
        let groups = 0..self.groups.len();
        let growths: Vec<Growth> = groups
            .filter_map(|group| self.estimate(group, &view, &pods))
            .collect();
        let Some(chosen) = self.choose(growths, dice) else {
            return;
        };
        let boot = self.groups[chosen.group].boot.unwrap_or(self.boot);
        for number in self.free_numbers(chosen.group, chosen.n_nodes) {
            self.ordered.push(Ordered {
                group: chosen.group,
                number,
                ready_at: now + boot.draw(dice),
            });
        }
        self.last_growth = Some(now);
    }

    /// The nodes of a group that the pods need; `None` if it would take none of the pods.
    fn estimate(&self, group: usize, view: &View, pods: &[PodIdx]) -> Option<Growth> {
        let room = self.groups[group].max.saturating_sub(self.size(group));
        let numbers = self.free_numbers(group, room.min(pods.len() as u32));
        let mut numbers = numbers.into_iter();
        let mut view = view.fork();
        let mut nodes: Vec<(strew_cluster::NodeIdx, bool)> = Vec::new();
        let mut n_pods = 0;
        for &pod in pods {
            let found = nodes.iter_mut().find(|(node, _)| view.place_on(pod, *node));
            if let Some((_, is_used)) = found {
                *is_used = true;
                n_pods += 1;
                continue;
            }
            if nodes.last().is_some_and(|(_, is_used)| !is_used) {
                // The pod does not fit on an empty node.
                continue;
            }
            let Some(number) = numbers.next() else {
                break;
            };
            let node = view.add_node(self.groups[group].node(number))?;
            let fits = view.place_on(pod, node);
            nodes.push((node, fits));
            n_pods += usize::from(fits);
        }
        let used = nodes.iter().filter(|(_, is_used)| *is_used);
        let idle = used.clone().map(|&(node, _)| idle_share(&view, node));
        let waste: u64 = idle.sum();
        let n_nodes = u32::try_from(used.count()).unwrap_or(u32::MAX);
        (n_nodes > 0).then_some(Growth {
            group,
            n_nodes,
            n_pods,
            waste: waste / u64::from(n_nodes.max(1)),
        })
    }

    fn choose(&self, growths: Vec<Growth>, dice: &mut Prng) -> Option<Growth> {
        let key = |growth: &Growth| match self.settings.expander {
            Expander::LeastWaste => growth.waste,
            Expander::MostPods => u64::MAX - growth.n_pods as u64,
            Expander::Random => 0,
        };
        let best = growths.iter().map(key).min()?;
        let ties: Vec<Growth> = growths.into_iter().filter(|g| key(g) == best).collect();
        Some(dice.pick(&ties).clone())
    }
}

/// The idle shares of a node's CPU and memory, in thousandths, summed.
fn idle_share(view: &View, node: strew_cluster::NodeIdx) -> u64 {
    let row = view.cluster.node(node);
    let Some(fact) = row.fact() else {
        return 0;
    };
    let share = |used: i64, of: i64| match u64::try_from(of) {
        Ok(of) if of > 0 => (of.saturating_sub(used.max(0) as u64)) * 1000 / of,
        _ => 0,
    };
    let requested = row.used();
    share(requested.cpu_milli, fact.allocatable.cpu_milli)
        + share(requested.memory, fact.allocatable.memory)
}
