//! Summarizes why no node takes a pod, in one sentence with numbers; and sums shortages over nodes.

use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, NodeIdx, NodeRow};
use strew_model::{NodeSelectorTerm, ResourceName};
use strew_scheduler::explain::refused::{Blockers, Cause, RefusedNode};
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};
use strew_scheduler::profile::PluginId;
use strew_scheduler::{Explanation, Reason};

use super::{node, words};

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
}

/// The most reasons in the sentence beside the first.
const REASONS_MAX: usize = 3;

/// Why no node takes the pod: `404 of 1523 nodes have the labels it wants (gpu=T4); none of them has 1000 gpu-milli
/// free (best 140)`. `None` if a node takes it, or no node was checked.
pub(super) fn summary(explanation: &Explanation, cluster: &Cluster) -> Option<String> {
    let nodes = &explanation.refused;
    if nodes.is_empty() || explanation.feasible > 0 || explanation.refused_outright.is_some() {
        return None;
    }
    let all = words::count(explanation.nodes, "node");
    let is_free_of = |node: &RefusedNode, plugins: &[PluginId]| {
        !node
            .causes
            .iter()
            .any(|cause| plugins.contains(&cause.plugin()))
    };
    let labelled: Vec<&RefusedNode> = nodes
        .iter()
        .filter(|node| is_free_of(node, &[PluginId::NodeAffinity, PluginId::NodeName]))
        .collect();
    let wanted = wanted(explanation, cluster);
    if labelled.is_empty() {
        return Some(match explanation.nodes {
            1 => format!("the only node has not the labels it wants{wanted}"),
            _ => format!("none of {all} has the labels it wants{wanted}"),
        });
    }
    let barred = [PluginId::NodeUnschedulable, PluginId::TaintToleration];
    let open: Vec<&RefusedNode> = labelled
        .iter()
        .copied()
        .filter(|node| is_free_of(node, &barred))
        .collect();
    let is_narrowed = labelled.len() < nodes.len();
    let n_open = open.len();
    const BARRED: &str = "cordoned or has a taint that it does not tolerate";
    if n_open == 0 {
        let n = labelled.len();
        return Some(match (is_narrowed, n) {
            (false, 1) => format!("the only node is {BARRED}"),
            (false, _) => format!("each of {all} is {BARRED}"),
            (true, 1) => {
                format!("1 of {all} has the labels it wants{wanted}; it is {BARRED}")
            }
            (true, _) => {
                format!("{n} of {all} have the labels it wants{wanted}; each of those is {BARRED}")
            }
        });
    }
    let of = match (is_narrowed, n_open < labelled.len()) {
        (false, false) => None,
        (true, false) => Some(format!(
            "{n_open} of {all} {} the labels it wants{wanted}",
            have(n_open)
        )),
        (false, true) => Some(format!(
            "{n_open} of {all} {} open to it, without cordon or a taint that it does not tolerate",
            are(n_open)
        )),
        (true, true) => Some(format!(
            "{} of {all} {} the labels it wants{wanted}, {n_open} of these without cordon or a taint that it does not tolerate",
            labelled.len(),
            have(labelled.len())
        )),
    };
    let Some(of) = of else {
        return Some(reasons(&open, "of them", &all, explanation, cluster));
    };
    let those = match n_open {
        1 => "it".to_owned(),
        n => format!("those {n}"),
    };
    let reasons = reasons(&open, "of those", &those, explanation, cluster);
    Some(format!("{of}; {reasons}"))
}

fn have(n: usize) -> &'static str {
    if n == 1 { "has" } else { "have" }
}

fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// ` (gpu=T4, zone in (a, b))`; empty if one term cannot express it.
fn wanted(explanation: &Explanation, cluster: &Cluster) -> String {
    let names = &cluster.names;
    let affinity = &cluster.spec_of(explanation.pod).node_affinity;
    let pairs = affinity.node_selector.iter();
    let mut parts: Vec<String> = pairs
        .map(|(key, value)| format!("{}={}", names.text(key), names.text(value)))
        .collect();
    match affinity.terms.as_deref() {
        None => {}
        Some(
            [
                NodeSelectorTerm::AllOf {
                    expressions,
                    fields,
                },
            ],
        ) if fields.is_empty() => {
            let expressions = expressions.iter();
            parts.extend(expressions.map(|e| words::node_expression(e, names)));
        }
        Some(_) => return String::new(),
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join(", ")),
    }
}

/// Why these nodes refuse the pod, by the first plugin that refuses each; the reason of most nodes comes first.
fn reasons(
    nodes: &[&RefusedNode],
    of: &str,
    all: &str,
    explanation: &Explanation,
    cluster: &Cluster,
) -> String {
    // A missing label of a constraint's key is another reason than a skew, room that is kept another than none.
    let reason = |node: &RefusedNode| {
        let plugin = node.first.plugin;
        let is_skew = |cause: &Cause| matches!(cause, Cause::Skew { .. });
        let of_spread = plugin == PluginId::PodTopologySpread;
        (
            plugin,
            of_spread && node.causes.iter().any(is_skew),
            kept_for(node).is_some(),
        )
    };
    let mut groups: Vec<(PluginId, Vec<&RefusedNode>)> = Vec::new();
    for &node in nodes {
        let known = groups
            .iter_mut()
            .find(|(_, members)| reason(members[0]) == reason(node));
        match known {
            Some((_, members)) => members.push(node),
            None => groups.push((node.first.plugin, vec![node])),
        }
    }
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    if let [(plugin, members)] = groups.as_slice() {
        return whole(*plugin, members, all, explanation, cluster);
    }
    let n_left_out: usize = groups.iter().skip(REASONS_MAX).map(|(_, m)| m.len()).sum();
    let groups = groups.iter().take(REASONS_MAX);
    let mut parts: Vec<String> = groups
        .enumerate()
        .map(|(i, (plugin, members))| {
            let of = if i == 0 {
                format!(" {of}")
            } else {
                String::new()
            };
            let n = members.len();
            format!("{n}{of} {}", part(*plugin, members, explanation, cluster))
        })
        .collect();
    if n_left_out > 0 {
        parts.push(format!("{n_left_out} for other reasons"));
    }
    let text = parts.join(", ");
    match of {
        "of them" => text.replacen("of them", &format!("of {all}"), 1),
        _ => text,
    }
}

/// The sentence if one plugin refuses all nodes.
fn whole(
    plugin: PluginId,
    nodes: &[&RefusedNode],
    all: &str,
    explanation: &Explanation,
    cluster: &Cluster,
) -> String {
    let lacking_on_all: Vec<ShortResource> = shortages(nodes.iter().copied(), cluster, true)
        .into_iter()
        .filter(|short| short.nodes == nodes.len())
        .collect();
    let none = match (nodes.len(), all) {
        (1, "it") => "it has not".to_owned(),
        (1, _) => "the only node has not".to_owned(),
        (_, all) => format!("none of {all} has"),
    };
    if plugin == PluginId::NodeResourcesFit && !lacking_on_all.is_empty() {
        let parts = lacking_on_all.iter().map(|short| {
            format!(
                "{} {} free (best {})",
                short.requested, short.name, short.best_free
            )
        });
        let parts: Vec<String> = parts.collect();
        return format!("{none} {}", parts.join(" or "));
    }
    let each = match (nodes.len(), all) {
        (1, "it") => "it".to_owned(),
        (1, _) => "the only node".to_owned(),
        (_, all) => format!("each of {all}"),
    };
    // The verb for a single node.
    let part = part(plugin, &nodes[..1], explanation, cluster);
    match plugin {
        PluginId::NodeResourcesFit => {
            let part = self::part(plugin, nodes, explanation, cluster);
            format!("{each} {}", part.replacen("have", "has", 1))
        }
        _ => format!("{each} {part}"),
    }
}

/// `have too little cpu (2 wanted, best 500m)`, to follow the number of nodes.
fn part(
    plugin: PluginId,
    nodes: &[&RefusedNode],
    explanation: &Explanation,
    cluster: &Cluster,
) -> String {
    let n = nodes.len();
    if let Some(node) = nodes.first()
        && let Some(pods) = kept_for(node)
    {
        return room_kept(node, nodes, pods, cluster);
    }
    if plugin == PluginId::NodeResourcesFit {
        let short = shortages(nodes.iter().copied(), cluster, true);
        let parts = short.iter().map(|short| {
            format!(
                "{} ({} wanted, best {})",
                short.name, short.requested, short.best_free
            )
        });
        let parts: Vec<String> = parts.take(2).collect();
        return format!("{} too little {}", have(n), parts.join(" or "));
    }
    let causes = || {
        let causes = nodes.iter().flat_map(|node| &node.causes);
        causes.filter(|cause| cause.plugin() == plugin)
    };
    if plugin == PluginId::PodTopologySpread {
        let constraint = causes().find_map(|cause| match cause {
            Cause::Skew {
                constraint, check, ..
            } => Some((*constraint, check.max_skew)),
            _ => None,
        });
        let hard = explanation.hard.iter();
        let mut hard = hard.map(|hard| &hard.common);
        if let Some((index, max_skew)) = constraint
            && let Some(common) = hard.find(|common| common.index == index)
        {
            let key = cluster.names.text(common.constraint.key);
            return format!("would exceed maxSkew {max_skew} over {key}");
        }
        if let Some(Cause::NoTopologyLabel { key, .. }) = causes().next() {
            return format!("{} no label {}", have(n), cluster.names.text(*key));
        }
    }
    let reasons = nodes.first().map(|node| &node.first.reasons);
    let reasons = reasons.into_iter().flatten();
    let reasons: Vec<String> = reasons.map(|r| r.text(&cluster.names)).collect();
    format!(
        "{} refused by {} ({})",
        are(n),
        plugin.name(),
        reasons.join(", ")
    )
}

/// The nominated pods for which a node keeps its room; `None` if the node's first plugin refuses the pod without them,
/// too.
fn kept_for(node: &RefusedNode) -> Option<&Blockers> {
    let mut of_first = { node.causes.iter() }.filter(|cause| cause.plugin() == node.first.plugin);
    match of_first.next()? {
        Cause::Nominated { pods, .. } => Some(pods),
        _ => None,
    }
}

/// `has 1900m cpu free, kept for pod pay/pay-0 nominated to it`, of the first of these nodes.
fn room_kept(
    node: &RefusedNode,
    nodes: &[&RefusedNode],
    pods: &Blockers,
    cluster: &Cluster,
) -> String {
    let pods = node::pods(pods, cluster);
    let kept = format!("kept for {pods} nominated to it");
    let left =
        { node.first.reasons.iter() }.find_map(|reason| left(reason, cluster.node(node.node)));
    let room = left.map_or("room".to_owned(), |(resource, left)| {
        let name = words::resource(resource, &cluster.names);
        format!("{} {name} free", words::about(resource, left))
    });
    match nodes.len() {
        1 => format!("has {room}, {kept}"),
        _ => format!(
            "have room kept for pods nominated to them ({}: {room}, {kept})",
            words::node(cluster, node.node)
        ),
    }
}

/// What a node has left of the resource that a reason names.
fn left(reason: &Reason, node: &NodeRow) -> Option<(Lacking, i64)> {
    let name = match reason {
        Reason::Cpu => ResourceName::Cpu,
        Reason::Memory => ResourceName::Memory,
        Reason::EphemeralStorage => ResourceName::EphemeralStorage,
        Reason::Scalar(name) => ResourceName::Scalar(*name),
        _ => return None,
    };
    let allocatable = node.fact()?.allocatable.get(name);
    Some((
        name.into(),
        allocatable.saturating_sub(node.used().get(name)),
    ))
}

/// The resources that nodes lack, the one that most nodes lack first; amounts are exact, or rounded for reading with
/// `short`.
pub(super) fn shortages<'e>(
    nodes: impl IntoIterator<Item = &'e RefusedNode>,
    cluster: &Cluster,
    short: bool,
) -> Vec<ShortResource> {
    struct Sum {
        shortage: Shortage,
        node: NodeIdx,
        n: usize,
        free: i64,
    }
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
                    if shortage.free > sum.shortage.free {
                        (sum.shortage, sum.node) = (*shortage, node.node);
                    }
                }
                None => sums.push(Sum {
                    shortage: *shortage,
                    node: node.node,
                    n: 1,
                    free,
                }),
            }
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.n));
    let amount = |resource: Lacking, amount| match short {
        true => words::about(resource, amount),
        false => words::amount(resource, amount),
    };
    let sums = sums.into_iter().map(|sum| {
        let resource = sum.shortage.resource;
        ShortResource {
            name: words::resource(resource, &cluster.names).to_owned(),
            requested: amount(resource, sum.shortage.requested),
            nodes: sum.n,
            best: words::node(cluster, sum.node),
            best_free: amount(resource, sum.shortage.free),
            free: amount(resource, sum.free),
        }
    });
    sums.collect()
}
