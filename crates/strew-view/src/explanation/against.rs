//! What nodes have against a pod, as the verb phrase of a sentence: `is cordoned`, `have host port 80/TCP taken`.

use strew_cluster::{Cluster, PodIdx};
use strew_model::Taint;
use strew_scheduler::Explanation;
use strew_scheduler::explain::VolumeCause;
use strew_scheduler::explain::refused::{Blockers, Cause, RefusedNode};
use strew_scheduler::profile::PluginId;

use super::{node, words};

/// Taints by which the node controller tells of a node, and what they mean: of one node, and of several.
const TROUBLES: [(&str, [&str; 2]); 8] = [
    (
        "node.kubernetes.io/unreachable",
        ["is unreachable", "are unreachable"],
    ),
    (
        "node.kubernetes.io/not-ready",
        ["is not ready", "are not ready"],
    ),
    (
        "node.kubernetes.io/unschedulable",
        ["is cordoned", "are cordoned"],
    ),
    (
        "node.kubernetes.io/memory-pressure",
        ["has too little memory left", "have too little memory left"],
    ),
    (
        "node.kubernetes.io/disk-pressure",
        ["has too little disk left", "have too little disk left"],
    ),
    (
        "node.kubernetes.io/pid-pressure",
        ["has too many processes", "have too many processes"],
    ),
    (
        "node.kubernetes.io/network-unavailable",
        ["has no network", "have no network"],
    ),
    (
        "node.cloudprovider.kubernetes.io/uninitialized",
        [
            "is not initialized by its cloud provider",
            "are not initialized by their cloud provider",
        ],
    ),
];

/// The plugins that keep every pod without a toleration off a node.
pub(super) const BARRED: [PluginId; 2] = [PluginId::NodeUnschedulable, PluginId::TaintToleration];

/// What a taint means, of one node and of several.
fn taint(taint: &Taint, cluster: &Cluster) -> [String; 2] {
    let key = cluster.names.text(taint.key);
    let text = words::taint(taint, &cluster.names);
    match TROUBLES.iter().find(|(trouble, _)| *trouble == key) {
        Some((_, phrases)) => phrases.map(str::to_owned),
        None => ["has", "have"].map(|have| format!("{have} the taint {text}, not tolerated")),
    }
}

/// The place of a taint among the troubles; the worst first, and every other taint last.
fn rank(cause: &Cause, cluster: &Cluster) -> usize {
    let trouble = |key: &str| TROUBLES.iter().position(|(trouble, _)| *trouble == key);
    match cause {
        Cause::Taint(taint) => trouble(cluster.names.text(taint.key)),
        Cause::Cordoned => trouble("node.kubernetes.io/unschedulable"),
        _ => None,
    }
    .unwrap_or(TROUBLES.len())
}

/// Why a node takes no pod without a toleration, the worst reason; `None` if it is open.
fn bar(refused: &RefusedNode, cluster: &Cluster) -> Option<[String; 2]> {
    let bars = refused.causes.iter();
    let bars = bars.filter(|cause| BARRED.contains(&cause.plugin()));
    let worst = bars.min_by_key(|cause| rank(cause, cluster))?;
    Some(match worst {
        Cause::Taint(taint) => self::taint(taint, cluster),
        _ => ["is cordoned", "are cordoned"].map(str::to_owned),
    })
}

/// Phrases with the number of nodes that each is true of, most nodes first.
fn counted(phrases: impl Iterator<Item = [String; 2]>) -> Vec<([String; 2], usize)> {
    let mut counted: Vec<([String; 2], usize)> = Vec::new();
    for phrase in phrases {
        match counted.iter_mut().find(|(known, _)| *known == phrase) {
            Some((_, n)) => *n += 1,
            None => counted.push((phrase, 1)),
        }
    }
    counted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    counted
}

/// `each of 3 nodes is cordoned`, or `of 3 nodes, 2 are cordoned and 1 has the taint x=y:NoSchedule, not tolerated`; for
/// nodes that are all barred. `all` is what they are called together, such as `9 nodes` or `those 3`.
pub(super) fn barred(nodes: &[&RefusedNode], all: &str, cluster: &Cluster) -> String {
    let bars = counted(nodes.iter().filter_map(|node| bar(node, cluster)));
    match (bars.as_slice(), nodes.len()) {
        ([], _) => format!("each of {all} is barred"),
        ([([one, _], _)], 1) if all == "it" => format!("it {one}"),
        ([([one, _], _)], 1) => format!("the only node {one}"),
        ([([one, _], _)], _) => format!("each of {all} {one}"),
        (bars, _) => format!("of {all}, {}", listed(bars)),
    }
}

/// `3 are cordoned`, of the nodes that are barred; `None` if none is.
pub(super) fn shut(nodes: &[&RefusedNode], cluster: &Cluster) -> Option<String> {
    let bars = counted(nodes.iter().filter_map(|node| bar(node, cluster)));
    (!bars.is_empty()).then(|| listed(&bars))
}

/// How many phrases are written out.
const PHRASES_MAX: usize = 3;

fn listed(phrases: &[([String; 2], usize)]) -> String {
    let rest: usize = phrases.iter().skip(PHRASES_MAX).map(|(_, n)| n).sum();
    let first = phrases.iter().take(PHRASES_MAX);
    let mut parts: Vec<String> = first
        .map(|([one, many], n)| format!("{n} {}", if *n == 1 { one } else { many }))
        .collect();
    if rest > 0 {
        parts.push(format!("{rest} more are barred for other reasons"));
    }
    parts.join(" and ")
}

/// Why the emptiest domain of a constraint takes no pod: `, and its 3 nodes are cordoned`. Empty if nothing is known
/// against its nodes.
pub(super) fn domain(
    nodes: &[&RefusedNode],
    constraint: usize,
    explanation: &Explanation,
    cluster: &Cluster,
) -> String {
    let against = nodes.iter().filter_map(|node| {
        bar(node, cluster).or_else(|| {
            let others = node.causes.iter();
            let mut others = others.filter(|cause| cause.constraint() != Some(constraint));
            others
                .next()
                .map(|cause| phrase(cause, explanation, cluster))
        })
    });
    let against = counted(against);
    match (against.as_slice(), nodes.len()) {
        ([], _) => String::new(),
        ([([one, _], _)], 1) => format!(", and its only node {one}"),
        ([([_, many], n)], all) if *n == all => format!(", and its {n} nodes {many}"),
        (against, _) => format!(", and of its nodes {}", listed(against)),
    }
}

/// What a cause says of one node, and of several; names are those of the first node.
pub(super) fn phrase(cause: &Cause, explanation: &Explanation, cluster: &Cluster) -> [String; 2] {
    let names = &cluster.names;
    let name = |symbol| names.text(symbol);
    let have = |what: String| ["has", "have"].map(|have| format!("{have} {what}"));
    match cause {
        Cause::Cordoned => ["is cordoned", "are cordoned"].map(str::to_owned),
        Cause::Taint(taint) => self::taint(taint, cluster),
        Cause::NodeAffinity(_) | Cause::NarrowedOut => {
            ["has not", "have not"].map(|not| format!("{not} the labels it wants"))
        }
        Cause::Port { port, holders } => have(format!(
            "host port {}/{} taken ({})",
            port.port,
            name(port.protocol),
            such_as(holders, cluster)
        )),
        Cause::Shortage(short) => have(format!(
            "too little {}",
            words::resource(short.resource, names)
        )),
        Cause::NoTopologyLabel { key, .. } => have(format!("no label {}", name(*key))),
        Cause::Skew { constraint, .. } => ["is", "are"].map(|are| {
            let n = constraint + 1;
            format!("{are} refused by the spread constraint {n}")
        }),
        Cause::PodAffinity {
            term,
            key,
            labelled,
        } => match labelled {
            true => have(format!(
                "no pod with {} in the same {}, which its podAffinity requires",
                term_selector(explanation, cluster, *term, false),
                name(*key)
            )),
            false => have(format!(
                "no label {}, which its podAffinity requires",
                name(*key)
            )),
        },
        Cause::AntiAffinity { term, key, found } => have(format!(
            "a pod with {} in the same {}, which its podAntiAffinity forbids ({})",
            term_selector(explanation, cluster, *term, true),
            name(*key),
            such_as(found, cluster)
        )),
        Cause::ExistingAntiAffinity { key, found } => have(format!(
            "a pod in the same {} whose podAntiAffinity forbids it ({})",
            name(*key),
            such_as(found, cluster)
        )),
        Cause::Volume(cause) => volume(cause, cluster),
        Cause::Nominated { pods, .. } => have(format!(
            "its room kept for {}, nominated to it",
            node::pods(pods, cluster)
        )),
        Cause::Other(refusal) => {
            let reasons: Vec<String> = refusal.reasons.iter().map(|r| r.text(names)).collect();
            let (plugin, reasons) = (refusal.plugin.name(), reasons.join(", "));
            ["is", "are"].map(|are| format!("{are} refused by {plugin} ({reasons})"))
        }
    }
}

fn volume(cause: &VolumeCause, cluster: &Cluster) -> [String; 2] {
    let name = |symbol| cluster.names.text(symbol);
    match cause {
        VolumeCause::NodeAffinity {
            claim,
            volume,
            terms,
        } => {
            let wanted = match terms.is_empty() {
                true => "no node".to_owned(),
                false => {
                    let terms = terms.iter().map(|term| node::term(term, cluster));
                    terms.collect::<Vec<_>>().join(" or ")
                }
            };
            let of = format!(
                "where its volume {:?} is (claim {:?}: {wanted})",
                name(*volume),
                name(*claim)
            );
            ["is not", "are not"].map(|not| format!("{not} {of}"))
        }
        VolumeCause::Zone {
            claim,
            volume,
            key,
            values,
            ..
        } => {
            let values: Vec<&str> = values.iter().map(|&value| name(value)).collect();
            let of = format!(
                "where its volume {:?} is (claim {:?}: {}={})",
                name(*volume),
                name(*claim),
                name(*key),
                values.join(" or ")
            );
            ["is not", "are not"].map(|not| format!("{not} {of}"))
        }
        VolumeCause::Limit { driver, limit, .. } => {
            let limit = usize::try_from(*limit).unwrap_or(0);
            let of = format!(
                "no more volumes of driver {} (at most {limit})",
                name(*driver)
            );
            ["attaches", "attach"].map(|attach| format!("{attach} {of}"))
        }
        VolumeCause::InUse { claim, holders } => ["is", "are"].map(|are| {
            let (claim, holders) = (name(*claim), node::pods(holders, cluster));
            format!(
                "{are} refused, since claim {claim:?} is ReadWriteOncePod and used by {holders}"
            )
        }),
        VolumeCause::NoVolume { claim, class, .. } => {
            let class = class.map_or("without a storage class".to_owned(), |class| {
                format!("of storage class {:?}", name(class))
            });
            let of = format!("no volume for its claim {:?} {class}", name(*claim));
            ["has", "have"].map(|have| format!("{have} {of}"))
        }
    }
}

/// One of these pods, as an example: another node has others.
fn such_as(found: &Blockers, cluster: &Cluster) -> String {
    let pod = |&pod: &PodIdx| words::pod(cluster, pod);
    let first = found.named.first().map_or(String::new(), pod);
    format!("such as pod {first}")
}

fn term_selector(explanation: &Explanation, cluster: &Cluster, term: usize, anti: bool) -> String {
    let affinity = &cluster.spec_of(explanation.pod).affinity;
    let terms = match anti {
        true => &affinity.required_anti,
        false => &affinity.required,
    };
    let term = terms.get(term);
    term.map_or("its labels".to_owned(), |term| {
        term.selector.text(&cluster.names)
    })
}
