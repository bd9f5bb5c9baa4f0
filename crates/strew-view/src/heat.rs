//! Nodes in boxes and cells, summed: what a person can see of a cluster that is too large to be seen node by node.
//!
//! It reads [`ClusterValues`], or the [`View`] of which they are made, and counts nothing that they have not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use strew_apiserver::Tables;

use crate::natural_order::natural_order;
use crate::values::{self, ClusterValues, NodeValues};
use crate::view::View;

/// With more nodes, a picture of a cluster has sums instead of nodes and pods.
pub const NODES_MAX: usize = 5_000;

/// As above, of pods.
pub const PODS_MAX: usize = 50_000;

/// The most cells of a box: with more nodes, a cell is several.
pub const CELLS_MAX: usize = 400;

/// The labels by which nodes are in boxes, outermost first.
const KEYS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// The ends of the classes of use, in thousandths of the CPU that a node has: nothing, up to a quarter, a half, three
/// quarters, less than all, all.
const CLASSES: [u32; 5] = [0, 250, 500, 750, 999];

/// A cluster as boxes of cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Heat {
    /// The labels that nest the boxes, outermost first.
    pub keys: Vec<&'static str>,
    /// Parents before their children.
    pub boxes: Vec<HeatBox>,
    /// For each workload, in the order of the values: by box, its pods that are on a node and do not terminate; boxes
    /// without one are left out.
    #[serde(skip)]
    pub workloads: Vec<BTreeMap<usize, usize>>,
}

/// The nodes with the same values of the labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeatBox {
    /// The values, from the first label down; empty text without the label.
    pub path: Vec<String>,
    /// How many nodes.
    pub nodes: usize,
    /// Those that are not ready.
    pub not_ready: usize,
    /// Those that are cordoned.
    pub cordoned: usize,
    /// Pods on them that do not terminate, of all workloads.
    pub pods: usize,
    /// Thousandths of a CPU that they have for pods.
    pub milli_cpu: i64,
    /// Thousandths of a CPU that their pods request.
    pub requested_milli_cpu: i64,
    /// Nodes by their share of use: none of it, up to a quarter, up to a half, up to three quarters, less than all, all.
    pub by_use: [usize; 6],
    /// The nodes of a cell; the last cell may have fewer. 0 for a box with boxes in it.
    pub nodes_per_cell: usize,
    /// By cell, with nodes in the order of their names: the use in thousandths, 1000 at most.
    pub used: Vec<u32>,
    /// By cell: nodes that are not ready.
    pub away: Vec<usize>,
}

/// A picture of the cluster; `None` if it is small enough to be seen node by node.
pub fn of(values: &ClusterValues) -> Option<Heat> {
    let pods: usize = values.workloads.iter().map(|w| w.members.len()).sum();
    let is_large = values.nodes.len() > NODES_MAX || pods > PODS_MAX;
    is_large.then(|| summed(values))
}

/// The sums of a cluster of any size.
pub fn summed(values: &ClusterValues) -> Heat {
    let pods_on = values.workloads.iter().map(|workload| {
        let counted = workload.members.iter().filter(|pod| !pod.terminating);
        counted.filter_map(|pod| pod.node.as_deref())
    });
    boxed(&values.nodes, pods_on)
}

/// As [`summed`], of the values that a view has; its workloads are those of the view's world.
pub fn of_view(view: &View, tables: &Tables) -> Heat {
    let world = &view.world;
    let pods_on = world.members.iter().map(|entries| {
        let counted = { entries.iter() }.filter(|&&entry| !world.pods[entry].is_leaving);
        let nodes = counted.filter_map(|&entry| world.node_of(entry));
        nodes.map(|node| world.node_name(node))
    });
    boxed(&values::nodes(world, tables), pods_on)
}

/// Nodes in boxes; `pods_on` has the nodes of the pods of each workload.
fn boxed<'a, W>(nodes: &[NodeValues], pods_on: W) -> Heat
where
    W: Iterator<Item: Iterator<Item = &'a str>>,
{
    let keys = keys(nodes);
    let mut by_path: BTreeMap<Vec<&str>, Vec<&NodeValues>> = BTreeMap::new();
    for node in nodes {
        let path = path(node, &keys);
        for depth in least_depth(&keys)..=path.len() {
            by_path
                .entry(path[..depth].to_vec())
                .or_default()
                .push(node);
        }
    }
    let mut boxes: Vec<(Vec<&str>, Vec<&NodeValues>)> = by_path.into_iter().collect();
    boxes.sort_by(|(a, _), (b, _)| in_order(a, b));
    let mut of_node: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, (_, nodes)) in boxes.iter().enumerate() {
        for node in nodes {
            of_node.entry(&node.usage.name).or_default().push(index);
        }
    }
    let workloads: Vec<_> = pods_on.map(|nodes| by_box(nodes, &of_node)).collect();
    let boxes = boxes.into_iter().enumerate().map(|(index, (path, nodes))| {
        let has_cells = path.len() == keys.len();
        HeatBox {
            path: path.into_iter().map(str::to_owned).collect(),
            pods: workloads.iter().filter_map(|by| by.get(&index)).sum(),
            ..sums(&nodes, has_cells)
        }
    });
    Heat {
        boxes: boxes.collect(),
        keys,
        workloads,
    }
}

/// The counts of a spread by how often they occur, the largest first: pods of a domain, and the domains that have so
/// many. `counts` may leave out domains without pods; `domains` is the number of all.
pub fn folded(counts: impl Iterator<Item = i64>, domains: usize) -> Vec<(i64, usize)> {
    let mut folded: BTreeMap<i64, usize> = BTreeMap::new();
    let mut listed = 0;
    for count in counts {
        *folded.entry(count).or_default() += 1;
        listed += 1;
    }
    let empty = domains.saturating_sub(listed);
    if empty > 0 {
        *folded.entry(0).or_default() += empty;
    }
    folded.into_iter().rev().collect()
}

/// Zone, within region if there are several.
fn keys(nodes: &[NodeValues]) -> Vec<&'static str> {
    let values = |key: &str| -> BTreeSet<&str> {
        let labels = nodes.iter().filter_map(|node| node.labels.get(key));
        labels.map(String::as_str).collect()
    };
    let found = KEYS.into_iter().filter(|key| !values(key).is_empty());
    match found.collect::<Vec<_>>()[..] {
        [region, zone] if values(region).len() < 2 => vec![zone],
        ref keys => keys.to_vec(),
    }
}

/// Without labels there is one box, of all nodes.
fn least_depth(keys: &[&str]) -> usize {
    keys.len().min(1)
}

fn path<'a>(node: &'a NodeValues, keys: &[&str]) -> Vec<&'a str> {
    let value = |key: &&str| node.labels.get(*key).map_or("", String::as_str);
    keys.iter().map(value).collect()
}

fn in_order(a: &[&str], b: &[&str]) -> std::cmp::Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| natural_order(a, b));
    let first = pairs.into_iter().find(|order| order.is_ne());
    first.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn by_box<'a>(
    nodes: impl Iterator<Item = &'a str>,
    of_node: &HashMap<&str, Vec<usize>>,
) -> BTreeMap<usize, usize> {
    let mut by_box = BTreeMap::new();
    for node in nodes {
        for &index in of_node.get(node).into_iter().flatten() {
            *by_box.entry(index).or_default() += 1;
        }
    }
    by_box
}

fn sums(nodes: &[&NodeValues], has_cells: bool) -> HeatBox {
    let per_cell = match has_cells {
        true => nodes.len().div_ceil(CELLS_MAX).max(1),
        false => 0,
    };
    let cells = || nodes.chunks(per_cell.max(1)).filter(|_| has_cells);
    let away = |nodes: &[&NodeValues]| nodes.iter().filter(|node| !node.ready).count();
    let mut by_use = [0; 6];
    for node in nodes {
        by_use[class(share(&[*node]))] += 1;
    }
    let (milli_cpu, requested_milli_cpu) = cpu(nodes);
    HeatBox {
        nodes: nodes.len(),
        not_ready: away(nodes),
        cordoned: nodes.iter().filter(|n| n.usage.unschedulable).count(),
        milli_cpu,
        requested_milli_cpu,
        by_use,
        nodes_per_cell: per_cell,
        used: cells().map(share).collect(),
        away: cells().map(away).collect(),
        ..HeatBox::default()
    }
}

/// What nodes have, and what their pods request, in thousandths of a CPU.
fn cpu(nodes: &[&NodeValues]) -> (i64, i64) {
    let of = |amounts: &BTreeMap<String, i64>| amounts.get("cpu").copied().unwrap_or(0);
    nodes.iter().fold((0, 0), |(has, asked), node| {
        let usage = &node.usage;
        (
            has.saturating_add(of(&usage.allocatable)),
            asked.saturating_add(of(&usage.requested)),
        )
    })
}

/// The use in thousandths: 1000 only if all is requested, and 0 only if nothing is.
fn share(nodes: &[&NodeValues]) -> u32 {
    match cpu(nodes) {
        (_, asked) if asked <= 0 => 0,
        (has, asked) if asked >= has => 1000,
        (has, asked) => {
            let thousandths = i128::from(asked) * 1000 / i128::from(has);
            (thousandths as u32).clamp(1, 999)
        }
    }
}

fn class(share: u32) -> usize {
    CLASSES
        .iter()
        .position(|&end| share <= end)
        .unwrap_or(CLASSES.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::tests::values;
    use crate::values::{PodValues, WorkloadDetail};

    /// 1,203 nodes in three zones of two regions, every seventh not ready, with the pods of two workloads.
    fn large() -> ClusterValues {
        let mut all = values();
        let (node, workload) = (all.nodes[0].clone(), all.workloads[0].clone());
        let node = |n: usize| {
            let mut node = node.clone();
            node.usage.name = format!("node-{n}");
            node.ready = !n.is_multiple_of(7);
            node.usage.unschedulable = n.is_multiple_of(11);
            let region = if n.is_multiple_of(3) { "us" } else { "eu" };
            node.labels.insert(KEYS[0].to_owned(), region.to_owned());
            node.labels
                .insert(KEYS[1].to_owned(), format!("{region}-{}", n % 3));
            node.usage
                .requested
                .insert("cpu".to_owned(), (n % 5) as i64 * 1000);
            node
        };
        all.nodes = (0..1203).map(node).collect();
        let workload = |replicas: usize, step: usize| {
            let mut one = workload.clone();
            let member = one.members[0].clone();
            let pod = |n: usize| PodValues {
                name: format!("pod-{n}"),
                node: (!n.is_multiple_of(10)).then(|| format!("node-{}", n * step % 1203)),
                terminating: n % 10 == 1,
                ..member.clone()
            };
            one.members = (0..replicas).map(pod).collect();
            one
        };
        all.workloads = vec![workload(2000, 7), workload(30, 1)];
        all
    }

    #[test]
    fn sums_are_those_of_the_nodes_and_pods() {
        let all = large();
        let heat = summed(&all);
        assert_eq!(heat.keys, KEYS);
        let paths: Vec<String> = heat.boxes.iter().map(|b| b.path.join("/")).collect();
        assert_eq!(paths, ["eu", "eu/eu-1", "eu/eu-2", "us", "us/us-0"]);
        for (index, one) in heat.boxes.iter().enumerate() {
            let is_in = |node: &&NodeValues| {
                let labels = one.path.iter().zip(KEYS);
                labels
                    .into_iter()
                    .all(|(value, key)| node.labels[key] == *value)
            };
            let nodes: Vec<&NodeValues> = all.nodes.iter().filter(is_in).collect();
            let names: BTreeSet<&str> = nodes.iter().map(|n| n.usage.name.as_str()).collect();
            assert_eq!(one.nodes, nodes.len());
            assert_eq!(one.not_ready, nodes.iter().filter(|n| !n.ready).count());
            let cordoned = nodes.iter().filter(|n| n.usage.unschedulable);
            assert_eq!(one.cordoned, cordoned.count());
            let requested: i64 = nodes.iter().map(|n| n.usage.requested["cpu"]).sum();
            assert_eq!(one.requested_milli_cpu, requested);
            assert_eq!(one.by_use.iter().sum::<usize>(), one.nodes);
            let of_class = |n: i64| {
                let is_there = move |node: &&&NodeValues| node.usage.requested["cpu"] == n;
                nodes.iter().filter(is_there)
            };
            assert_eq!(one.by_use[0], of_class(0).count());
            assert_eq!(one.by_use[5], of_class(4000).count());
            let counts = |w: &&WorkloadDetail| {
                let there = w.members.iter().filter(|pod| {
                    let node = pod.node.as_deref();
                    !pod.terminating && node.is_some_and(|node| names.contains(node))
                });
                there.count()
            };
            let each: Vec<usize> = all.workloads.iter().map(|w| counts(&w)).collect();
            let by_box = heat.workloads.iter().map(|by| by[&index]);
            assert_eq!(by_box.collect::<Vec<_>>(), each);
            assert_eq!(one.pods, each.iter().sum::<usize>());
            let n_cells = if one.path.len() == 2 {
                one.nodes.div_ceil(2)
            } else {
                0
            };
            assert_eq!((one.used.len(), one.away.len()), (n_cells, n_cells));
            let away: usize = one.away.iter().sum();
            assert_eq!(away, if n_cells == 0 { 0 } else { one.not_ready });
        }
        let tops = heat.boxes.iter().filter(|one| one.path.len() == 1);
        assert_eq!(tops.map(|one| one.nodes).sum::<usize>(), 1203);
    }

    #[test]
    fn a_small_cluster_has_no_sums() {
        assert_eq!(of(&large()), None);
        let mut all = large();
        all.nodes = vec![all.nodes[0].clone(); NODES_MAX + 1];
        assert_eq!(of(&all).map(|heat| heat.keys), Some(vec![KEYS[1]]));
    }

    #[test]
    fn nodes_without_labels_are_one_box() {
        let heat = summed(&values());
        let [all] = &heat.boxes[..] else {
            panic!("{heat:?}");
        };
        assert_eq!(
            (all.path.len(), all.nodes, all.used.clone()),
            (0, 2, vec![250, 0])
        );
        assert_eq!(
            (all.by_use, all.away.clone()),
            ([1, 1, 0, 0, 0, 0], vec![0, 1])
        );
    }

    #[test]
    fn equal_counts_are_folded_with_domains_that_are_not_listed() {
        assert_eq!(
            folded([1, 3, 1, 0].into_iter(), 9),
            [(3, 1), (1, 2), (0, 6)]
        );
    }
}
