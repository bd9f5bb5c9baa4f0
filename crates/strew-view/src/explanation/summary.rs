//! Summarizes why no node takes a pod, in one sentence with numbers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use strew_cluster::{Cluster, NodeRow};
use strew_model::{NodeSelectorTerm, ResourceName, Symbol};
use strew_scheduler::explain::constraint::{Domain, HardExplained};
use strew_scheduler::explain::refused::{Blockers, Cause, RefusedNode};
use strew_scheduler::plugins::node_affinity::narrow;
use strew_scheduler::plugins::node_resources_fit::Lacking;
use strew_scheduler::profile::PluginId;
use strew_scheduler::{Explanation, Reason};
use strew_spread::Minimum;

use super::node::{self, Refusal};
use super::shortage::{Sum, shortages, sums};
use super::{against, words};

/// The most reasons in the sentence beside the first.
const REASONS_MAX: usize = 3;

/// Why no node takes the pod: `404 of 1523 nodes have the labels it wants (gpu=T4); none of them has 1000 gpu-milli
/// free (best 140)`. `None` if a node takes it.
pub(super) fn summary(explanation: &Explanation, cluster: &Cluster) -> Option<String> {
    if explanation.feasible > 0 {
        return None;
    }
    if let Some(refusal) = &explanation.refused_outright {
        let refusal = Refusal::outright(refusal, explanation.pod, cluster);
        let told = match refusal.details.is_empty() {
            true => &refusal.reasons,
            false => &refusal.details,
        };
        return Some(told.join(", "));
    }
    let nodes = &explanation.refused;
    if nodes.is_empty() {
        return (explanation.nodes == 0).then(|| "there is no node".to_owned());
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
    if let Some(made) = made_for(explanation, &labelled, cluster) {
        return Some(made);
    }
    if labelled.is_empty() {
        let found = found(explanation, cluster);
        return Some(match explanation.nodes {
            1 => format!("the only node has not the labels it wants{wanted}{found}"),
            _ => format!("none of {all} has the labels it wants{wanted}{found}"),
        });
    }
    let open: Vec<&RefusedNode> = labelled
        .iter()
        .copied()
        .filter(|node| is_free_of(node, &against::BARRED))
        .collect();
    let is_narrowed = labelled.len() < nodes.len();
    let labelled_text = format!(
        "{} of {all} {} the labels it wants{wanted}",
        labelled.len(),
        have(labelled.len())
    );
    let those = |n: usize| match n {
        1 => "it".to_owned(),
        n => format!("those {n}"),
    };
    if open.is_empty() {
        return Some(match is_narrowed {
            false => against::barred(&labelled, &all, cluster),
            true => {
                let barred = against::barred(&labelled, &those(labelled.len()), cluster);
                format!("{labelled_text}; {barred}")
            }
        });
    }
    let n_open = open.len();
    let shut = against::shut(&labelled, cluster);
    let of = match (is_narrowed, shut) {
        (false, None) => return Some(reasons(&open, "of them", &all, explanation, cluster)),
        (true, None) => labelled_text,
        (false, Some(shut)) => {
            format!("{n_open} of {all} {} open to it ({shut})", are(n_open))
        }
        (true, Some(shut)) => format!("{labelled_text}, {n_open} of these open to it ({shut})"),
    };
    let reasons = reasons(&open, "of those", &those(n_open), explanation, cluster);
    Some(format!("{of}; {reasons}"))
}

/// `it is made for node b0: it has not 500m cpu free (best 100m)`, of a pod that node affinity binds to one node, as those
/// of a DaemonSet; `None` for others, and if the node is not there.
fn made_for(
    explanation: &Explanation,
    labelled: &[&RefusedNode],
    cluster: &Cluster,
) -> Option<String> {
    let affinity = &cluster.spec_of(explanation.pod).node_affinity;
    let [name] = narrow(affinity).ok()??[..] else {
        return None;
    };
    let [node] = labelled else { return None };
    let name = cluster.names.text(name);
    let is_open = !node
        .causes
        .iter()
        .any(|cause| against::BARRED.contains(&cause.plugin()));
    let why = match is_open {
        true => reasons(&[*node], "of those", "it", explanation, cluster),
        false => against::barred(labelled, "it", cluster),
    };
    Some(format!("it is made for node {name}: {why}"))
}

/// ` (node-7 has disk=ssd: did you mean that?)`: what nodes have in the place of a value that none has; empty if it is
/// not one value of one label that is wrong.
fn found(explanation: &Explanation, cluster: &Cluster) -> String {
    let affinity = &cluster.spec_of(explanation.pod).node_affinity;
    let rows = explanation.refused.iter();
    let facts: Vec<_> = rows
        .filter_map(|refused| cluster.node(refused.node).fact())
        .collect();
    let missing = affinity.node_selector.iter().filter(|&(key, value)| {
        let has = |fact: &strew_cluster::NodeFact| fact.labels.get(key) == Some(value);
        !facts.iter().any(|fact| has(fact))
    });
    let names = &cluster.names;
    let told = missing.map(|(key, value)| {
        let values: BTreeSet<Symbol> = facts
            .iter()
            .filter_map(|fact| fact.labels.get(key))
            .collect();
        let label = names.text(key);
        match values.is_empty() {
            true => format!("; no node has the label {label}"),
            false => {
                let known = node::known(names.text(value), values.into_iter(), cluster);
                format!("; no node has {label}={}{known}", names.text(value))
            }
        }
    });
    told.collect()
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
    let mut by_reason: Vec<(_, Vec<&RefusedNode>)> = Vec::new();
    for (&node, exceeded) in nodes.iter().zip(exceeded(nodes)) {
        // Causes of one plugin are told apart: a missing label from a skew, room that is kept from none.
        let reason = (
            node.first.plugin,
            exceeded,
            first_cause(node).map(discriminant),
        );
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, members)) => members.push(node),
            None => by_reason.push((reason, vec![node])),
        }
    }
    let groups = by_reason.into_iter();
    let mut groups: Vec<(PluginId, Vec<&RefusedNode>)> = groups
        .map(|((plugin, ..), members)| (plugin, members))
        .collect();
    // Room that is kept for another pod comes first: without it the pod would be placed.
    groups.sort_by_key(|(_, members)| {
        let is_kept = kept_for(members[0]).is_some();
        (!is_kept, Reverse(members.len()))
    });
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
    let text = parts.join("; ");
    match of {
        "of them" => text.replacen("of them", &format!("of {all}"), 1),
        _ => text,
    }
}

/// For each node that spread constraints refuse: the one whose maxSkew it is told to exceed. The constraint that most
/// nodes exceed comes first, so that few of them account for all nodes, and each number of nodes is true.
fn exceeded(nodes: &[&RefusedNode]) -> Vec<Option<usize>> {
    let mut told = vec![None; nodes.len()];
    loop {
        let mut by_constraint: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, node) in nodes.iter().enumerate() {
            if told[place].is_none() && node.first.plugin == PluginId::PodTopologySpread {
                for (constraint, _) in skews(node) {
                    by_constraint.entry(constraint).or_default().push(place);
                }
            }
        }
        let most = by_constraint.into_iter();
        let most = most.max_by_key(|(constraint, of)| (of.len(), Reverse(*constraint)));
        let Some((constraint, of)) = most else {
            return told;
        };
        of.into_iter()
            .for_each(|place| told[place] = Some(constraint));
    }
}

/// The spread constraints whose maxSkew a pod on the node would exceed, each with its maxSkew.
fn skews(node: &RefusedNode) -> impl Iterator<Item = (usize, i64)> {
    node.causes.iter().filter_map(|cause| match cause {
        Cause::Skew {
            constraint, check, ..
        } => Some((*constraint, check.max_skew.into())),
        _ => None,
    })
}

/// The sentence if one plugin refuses all nodes.
fn whole(
    plugin: PluginId,
    nodes: &[&RefusedNode],
    all: &str,
    explanation: &Explanation,
    cluster: &Cluster,
) -> String {
    let lacking_on_all: Vec<Sum> = sums(nodes.iter().copied())
        .into_iter()
        .filter(|sum| sum.n == nodes.len())
        .collect();
    let is_of_resources = plugin == PluginId::NodeResourcesFit && kept_for(nodes[0]).is_none();
    if is_of_resources && !lacking_on_all.is_empty() {
        let parts: Vec<String> = lacking_on_all
            .iter()
            .map(|sum| sum.whole(nodes.len(), all, cluster))
            .collect();
        return parts.join(", and ");
    }
    let each = match (nodes.len(), all) {
        (1, "it") => "it".to_owned(),
        (1, _) => "the only node".to_owned(),
        (_, all) => format!("each of {all}"),
    };
    match plugin {
        PluginId::NodeResourcesFit => {
            let part = part(plugin, nodes, explanation, cluster);
            format!("{each} {}", part.replacen("have", "has", 1))
        }
        PluginId::PodTopologySpread if nodes.len() == explanation.nodes => {
            let part = || spread(nodes, 1, explanation, cluster).unwrap_or_default();
            unknown_key(nodes, cluster).unwrap_or_else(|| format!("{each} {}", part()))
        }
        // The verb for a single node.
        PluginId::PodTopologySpread => {
            let part = spread(nodes, 1, explanation, cluster);
            format!("{each} {}", part.unwrap_or_default())
        }
        _ => {
            let part = part(plugin, &nodes[..1], explanation, cluster);
            format!("{each} {part}")
        }
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
        // The limit on the number of pods is no amount that a pod asks for.
        let (pods, amounts): (Vec<_>, Vec<_>) = short.iter().partition(|s| s.name == "pods");
        let parts = amounts.iter().map(|short| {
            format!(
                "{} ({} wanted, best {})",
                short.name, short.requested, short.best_free
            )
        });
        let parts: Vec<String> = parts.collect();
        let few = "no place for another pod";
        return match (parts.is_empty(), pods.is_empty()) {
            (true, _) => format!("{} {few}", have(n)),
            (false, true) => format!("{} too little {}", have(n), parts.join(" or ")),
            (false, false) => format!("{} too little {} or {few}", have(n), parts.join(" or ")),
        };
    }
    if plugin == PluginId::PodTopologySpread
        && let Some(spread) = spread(nodes, n, explanation, cluster)
    {
        return spread;
    }
    if let Some(cause) = nodes.first().and_then(|node| first_cause(node)) {
        let [one, many] = against::phrase(cause, explanation, cluster);
        return if n == 1 { one } else { many };
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

/// `no node has the label zonne (did you mean "zone"?)`, of nodes that all lack the label of one constraint.
fn unknown_key(nodes: &[&RefusedNode], cluster: &Cluster) -> Option<String> {
    let lacked = |node: &&RefusedNode| match first_cause(node) {
        Some(Cause::NoTopologyLabel { key, .. }) => Some(*key),
        _ => None,
    };
    let key = nodes.first().and_then(lacked)?;
    if !nodes.iter().all(|node| lacked(node) == Some(key)) {
        return None;
    }
    let facts = nodes
        .iter()
        .filter_map(|node| cluster.node(node.node).fact());
    let keys: BTreeSet<Symbol> = facts
        .flat_map(|fact| fact.labels.iter().map(|(key, _)| key))
        .collect();
    let name = cluster.names.text(key);
    let near = match name.strip_prefix(OLD_PREFIX) {
        Some(rest) => {
            let new = format!("topology.kubernetes.io/{rest}");
            let mut keys = keys.iter().map(|&key| cluster.names.text(key));
            let found = keys.find(|key| *key == new);
            found.map_or(String::new(), |new| {
                format!(" (it was replaced by {new}, which nodes have)")
            })
        }
        None => match node::known(name, keys.into_iter(), cluster) {
            near if near.contains("did you mean") => near,
            _ => String::new(),
        },
    };
    Some(format!(
        "no node has the label {name} of its spread constraint{near}"
    ))
}

/// The prefix of labels that `topology.kubernetes.io/` has replaced.
const OLD_PREFIX: &str = "failure-domain.beta.kubernetes.io/";

/// The first cause of the plugin that refuses a node first.
fn first_cause(node: &RefusedNode) -> Option<&Cause> {
    let mut causes = node.causes.iter();
    causes.find(|cause| cause.plugin() == node.first.plugin)
}

/// `would exceed maxSkew 1 over topology.kubernetes.io/zone: zone-c counts 0, and its 3 nodes are cordoned`; `None` if
/// no spread constraint is against these nodes. The verb is for `n` nodes.
fn spread(
    nodes: &[&RefusedNode],
    n: usize,
    explanation: &Explanation,
    cluster: &Cluster,
) -> Option<String> {
    let mut causes = nodes.iter().flat_map(|node| &node.causes);
    let is_of_all = |(constraint, _): &(usize, i64)| {
        let mut all = nodes.iter();
        all.all(|node| skews(node).any(|(other, _)| other == *constraint))
    };
    let first = nodes.first();
    let skew = first.and_then(|first| skews(first).find(is_of_all));
    let mut hard = explanation.hard.iter();
    if let Some((index, max_skew)) = skew
        && let Some(hard) = hard.find(|hard| hard.common.index == index)
    {
        let key = cluster.names.text(hard.common.constraint.key);
        let why = minimum(hard, explanation, cluster);
        return Some(format!("would exceed maxSkew {max_skew} over {key}{why}"));
    }
    causes.find_map(|cause| match cause {
        Cause::NoTopologyLabel { key, .. } => {
            Some(format!("{} no label {}", have(n), cluster.names.text(*key)))
        }
        _ => None,
    })
}

/// The most domains that a sentence names.
const DOMAINS_MAX: usize = 3;

/// `: zone-c counts 0, and its 3 nodes are cordoned`: what holds the minimum of a constraint down.
fn minimum(hard: &HardExplained, explanation: &Explanation, cluster: &Cluster) -> String {
    let text = |symbol| cluster.names.text(symbol);
    let count = match hard.minimum {
        Minimum::TooFewDomains {
            domains,
            min_domains,
        } => {
            let exist = if domains == 1 { "exists" } else { "exist" };
            return format!(
                ": minDomains is {min_domains} and only {domains} {exist}, so the minimum is 0"
            );
        }
        Minimum::Emptiest(count) => count,
    };
    let emptiest: Vec<&Domain> = hard
        .domains
        .iter()
        .filter(|domain| domain.is_emptiest && domain.exists())
        .collect();
    let (Some(first), n) = (emptiest.first(), emptiest.len()) else {
        return String::new();
    };
    let key = hard.common.constraint.key;
    let is_in = |refused: &&RefusedNode| {
        let fact = cluster.node(refused.node).fact();
        fact.and_then(|fact| fact.labels.get(key)) == Some(first.value)
    };
    match n {
        1 => {
            let nodes: Vec<&RefusedNode> = explanation.refused.iter().filter(is_in).collect();
            let why = against::domain(&nodes, hard.common.index, explanation, cluster);
            format!(": {} counts {count}{why}", text(first.value))
        }
        _ => {
            let named = emptiest.iter().take(DOMAINS_MAX);
            let named: Vec<&str> = named.map(|domain| text(domain.value)).collect();
            let more = match n.saturating_sub(DOMAINS_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(": {}{more} count {count} each", named.join(", "))
        }
    }
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
