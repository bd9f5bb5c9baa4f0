//! Resources of which nodes have too little, added up over nodes.

use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, NodeIdx};
use strew_scheduler::explain::refused::{Cause, RefusedNode};
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};

use super::words;

/// A resource of which nodes have too little for the pod, over these nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortResource {
    /// The resource.
    pub name: String,
    /// What the pod asks for.
    pub requested: String,
    /// How many nodes have less.
    pub nodes: usize,
    /// The one of them with most.
    pub best: String,
    /// What that one has left.
    pub best_free: String,
    /// What all of them have left together.
    pub free: String,
    /// What the largest of them has in all.
    #[serde(default)]
    pub largest: String,
}

/// A resource of which nodes have too little, added up.
pub(super) struct Sum {
    /// Of the node with most.
    shortage: Shortage,
    /// That node.
    node: NodeIdx,
    /// How many nodes have too little.
    pub(super) n: usize,
    /// What they have left together.
    free: i64,
    /// What the largest of them has in all.
    largest: i64,
}

impl Sum {
    /// `none of 9 nodes has 500m cpu free (best 400m)`, of a resource that all of these nodes lack.
    pub(super) fn whole(&self, n: usize, all: &str, cluster: &Cluster) -> String {
        let Shortage {
            resource,
            requested,
            free,
            ..
        } = self.shortage;
        let name = words::resource(resource, &cluster.names);
        let about = |amount| words::about(resource, amount);
        let [none, each] = match (n, all) {
            (1, "it") => ["it has not", "it"].map(str::to_owned),
            (1, _) => ["the only node has not", "the only node"].map(str::to_owned),
            (_, all) => [format!("none of {all} has"), format!("each of {all}")],
        };
        if resource == Lacking::Pods {
            let most = match n {
                1 => String::new(),
                _ => " at most".to_owned(),
            };
            return format!(
                "{each} has as many pods as it may have ({}{most})",
                self.largest
            );
        }
        if self.largest == 0 {
            return format!("{none} {name} at all ({} wanted)", about(requested));
        }
        if requested > self.largest {
            return format!(
                "{none} {} {name}, even when empty (the largest has {})",
                about(requested),
                about(self.largest)
            );
        }
        let together = match n > 1 && self.free >= requested {
            true => format!(", {} on all of them together", about(self.free)),
            false => String::new(),
        };
        format!(
            "{none} {} {name} free (best {}{together})",
            about(requested),
            about(free.max(0))
        )
    }
}

/// The resources that nodes lack, the one that most nodes lack first.
pub(super) fn sums<'e>(nodes: impl IntoIterator<Item = &'e RefusedNode>) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    for node in nodes {
        for cause in &node.causes {
            let Cause::Shortage(shortage) = cause else {
                continue;
            };
            let free = shortage.free.max(0);
            match sums
                .iter_mut()
                .find(|sum| sum.shortage.resource == shortage.resource)
            {
                Some(sum) => {
                    sum.n += 1;
                    sum.free = sum.free.saturating_add(free);
                    sum.largest = sum.largest.max(shortage.allocatable);
                    if shortage.free > sum.shortage.free {
                        (sum.shortage, sum.node) = (*shortage, node.node);
                    }
                }
                None => sums.push(Sum {
                    shortage: *shortage,
                    node: node.node,
                    n: 1,
                    free,
                    largest: shortage.allocatable,
                }),
            }
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.n));
    sums
}

/// The resources that nodes lack, the one that most nodes lack first; amounts are exact, or rounded for reading with
/// `short`.
pub(super) fn shortages<'e>(
    nodes: impl IntoIterator<Item = &'e RefusedNode>,
    cluster: &Cluster,
    short: bool,
) -> Vec<ShortResource> {
    let amount = |resource: Lacking, amount| match short {
        true => words::about(resource, amount),
        false => words::amount(resource, amount),
    };
    let sums = sums(nodes).into_iter().map(|sum| {
        let resource = sum.shortage.resource;
        ShortResource {
            name: words::resource(resource, &cluster.names).to_owned(),
            requested: amount(resource, sum.shortage.requested),
            nodes: sum.n,
            best: words::node(cluster, sum.node),
            best_free: amount(resource, sum.shortage.free),
            free: amount(resource, sum.free),
            largest: amount(resource, sum.largest),
        }
    });
    sums.collect()
}
