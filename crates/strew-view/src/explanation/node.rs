//! Refused nodes on the wire.

use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, PodIdx};
use strew_manifest::read::nearest;
use strew_model::{NodeSelectorTerm, Symbol, well_known};
use strew_scheduler::explain::VolumeCause;
use strew_scheduler::explain::refused::{self as tree, Blockers};
use strew_scheduler::plugins::node_affinity::{Gap, TermGap};
use strew_scheduler::plugins::node_resources_fit::Shortage;
use strew_scheduler::{Explanation, Reason};

use super::constraint::Skew;
use super::words;

/// A node that refuses the pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedNode {
    /// Its name.
    pub name: String,
    /// The first plugin that refuses, with its reasons: what kube-scheduler counts.
    #[serde(flatten)]
    pub first: Refusal,
    /// Everything that any plugin has against it, in the order of plugins.
    pub causes: Vec<Cause>,
}

/// A refusal in kube-scheduler's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The plugin.
    pub plugin: String,
    /// `Unschedulable`, `UnschedulableAndUnresolvable` or `Error`.
    pub code: String,
    /// Its reasons.
    pub reasons: Vec<String>,
    /// What kube-scheduler's words leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// One thing that keeps the pod off a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The plugin that looks at it.
    pub plugin: String,
    /// In words, with the numbers.
    pub text: String,
    /// In two or three words.
    pub short: String,
    /// Of `PodTopologySpread`: the constraint's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<usize>,
    /// Of `PodTopologySpread`: the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// Of `NodeResourcesFit`: the amounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceShortage>,
    /// The first few pods that stand in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// How many pods stand in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_count: Option<usize>,
}

/// A resource of which there is not enough; exact amounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceShortage {
    /// The resource.
    pub name: String,
    /// What the pod asks for.
    pub requested: String,
    /// What the node has left.
    pub free: String,
    /// What the node has in all.
    pub allocatable: String,
    /// What is missing, in thousandths of what is asked for.
    pub missing_permille: i64,
}

impl Refusal {
    pub(crate) fn of(refusal: &strew_scheduler::Refusal, cluster: &Cluster) -> Self {
        let reasons = refusal.reasons.iter();
        Self {
            plugin: refusal.plugin.name().to_owned(),
            code: refusal.code.name().to_owned(),
            reasons: reasons.map(|r| r.text(&cluster.names)).collect(),
            details: Vec::new(),
        }
    }

    /// The refusal of a pod as a whole: kube-scheduler does not say which claims are not bound.
    pub(crate) fn outright(
        refusal: &strew_scheduler::Refusal,
        pod: PodIdx,
        cluster: &Cluster,
    ) -> Self {
        let mut wire = Self::of(refusal, cluster);
        if refusal.reasons.contains(&Reason::UnboundClaims) {
            wire.details = unbound(pod, cluster);
        }
        let namespace = cluster.class_of(pod).key.namespace;
        for reason in &refusal.reasons {
            if let Reason::ClaimMissing(claim) = reason {
                let claims = cluster.volumes().claims_of(namespace);
                let claim = cluster.names.text(*claim);
                let near = known(claim, claims, cluster);
                if !near.is_empty() {
                    wire.details
                        .push(format!("there is no persistentvolumeclaim {claim:?}{near}"));
                }
            }
        }
        wire
    }
}

/// The claims of a pod that are bound to no volume.
fn unbound(pod: PodIdx, cluster: &Cluster) -> Vec<String> {
    let name = |symbol| cluster.names.text(symbol);
    let detail = |key: (Symbol, Symbol)| {
        let fact = cluster.volumes().claim(key)?;
        let claim = name(key.1);
        match fact.volume {
            Some(_) if fact.bound => None,
            Some(volume) => Some(format!(
                "persistentvolumeclaim {claim:?} is not bound to its volume {:?} yet",
                name(volume)
            )),
            None => {
                let class = fact
                    .class
                    .filter(|class| cluster.volumes().class(*class).is_none());
                let class = class.map_or(String::new(), |class| {
                    format!(
                        ", and there is no storage class {:?}{}",
                        name(class),
                        known(name(class), cluster.volumes().classes(), cluster)
                    )
                });
                Some(format!(
                    "persistentvolumeclaim {claim:?} has no volume{class}"
                ))
            }
        }
    };
    cluster.claims_of(pod).filter_map(detail).collect()
}

/// The most names of a list of what there is.
const KNOWN_MAX: usize = 4;

/// ` (did you mean "a"?)`, else ` (there is "b", "c")`; empty if there is none.
pub(super) fn known(wanted: &str, all: impl Iterator<Item = Symbol>, cluster: &Cluster) -> String {
    let mut all: Vec<&str> = all.map(|symbol| cluster.names.text(symbol)).collect();
    all.sort_unstable();
    match (nearest(wanted, all.iter().copied()), all.len()) {
        (Some(near), _) => format!(" (did you mean {near:?}?)"),
        (None, 0) => String::new(),
        (None, 1..=KNOWN_MAX) => {
            let all: Vec<String> = all.iter().map(|name| format!("{name:?}")).collect();
            format!(" (there is {})", all.join(", "))
        }
        (None, _) => String::new(),
    }
}

impl RefusedNode {
    pub(crate) fn of(
        refused: &tree::RefusedNode,
        explanation: &Explanation,
        cluster: &Cluster,
    ) -> Self {
        let causes = refused.causes.iter();
        Self {
            name: words::node(cluster, refused.node),
            first: Refusal::of(&refused.first, cluster),
            causes: causes.map(|c| Cause::of(c, explanation, cluster)).collect(),
        }
    }
}

impl Cause {
    fn of(cause: &tree::Cause, explanation: &Explanation, cluster: &Cluster) -> Self {
        let (text, short) = texts(cause, explanation, cluster);
        let mut wire = Self {
            plugin: cause.plugin().name().to_owned(),
            text,
            short,
            constraint: cause.constraint(),
            skew: None,
            resource: None,
            pods: Vec::new(),
            pods_count: None,
        };
        match cause {
            tree::Cause::Skew { check, .. } => wire.skew = Some(Skew::of(*check)),
            tree::Cause::Shortage(shortage) => {
                wire.resource = Some(ResourceShortage::of(shortage, cluster));
            }
            tree::Cause::Port { holders: found, .. }
            | tree::Cause::Volume(VolumeCause::InUse { holders: found, .. })
            | tree::Cause::AntiAffinity { found, .. }
            | tree::Cause::ExistingAntiAffinity { found, .. }
            | tree::Cause::Nominated { pods: found, .. } => {
                wire.pods = found
                    .named
                    .iter()
                    .map(|&p| words::pod(cluster, p))
                    .collect();
                wire.pods_count = Some(found.count);
            }
            _ => {}
        }
        wire
    }
}

/// The long and the short text of a cause.
fn texts(cause: &tree::Cause, explanation: &Explanation, cluster: &Cluster) -> (String, String) {
    let names = &cluster.names;
    let key = |symbol| names.text(symbol);
    match cause {
        tree::Cause::Cordoned => ("cordoned".to_owned(), "cordoned".to_owned()),
        tree::Cause::Taint(taint) => {
            let taint = words::taint(taint, names);
            (format!("taint {taint}"), format!("taint {taint}"))
        }
        tree::Cause::NodeAffinity(gap) => (
            gap_text(gap, explanation, cluster),
            "node affinity".to_owned(),
        ),
        tree::Cause::NarrowedOut => (
            "required node affinity names other nodes".to_owned(),
            "node affinity".to_owned(),
        ),
        tree::Cause::Port { port, holders } => {
            let port = format!("{}/{}", port.port, key(port.protocol));
            let text = format!("host port {port} is held by {}", pods(holders, cluster));
            (text, format!("host port {port}"))
        }
        tree::Cause::Shortage(s) => {
            let name = words::resource(s.resource, names);
            let about = |amount| words::about(s.resource, amount);
            let text = format!(
                "{name}: asks {}, {} free of {}",
                about(s.requested),
                about(s.free),
                about(s.allocatable)
            );
            (text, s.reason().text(names))
        }
        tree::Cause::NoTopologyLabel { key: label, .. } => {
            let text = format!("no label {}", key(*label));
            (text.clone(), text)
        }
        tree::Cause::Skew {
            constraint,
            domain,
            check,
        } => {
            let n = constraint + 1;
            let mut hard = explanation.hard.iter();
            let place = hard
                .find(|h| h.common.index == *constraint)
                // The node is the domain, and its name is in the text already.
                .filter(|h| h.common.constraint.key != well_known::HOSTNAME)
                .and_then(|h| h.domains.iter().find(|d| d.domain == *domain))
                .map(|d| format!(" in {:?}", key(d.value)))
                .unwrap_or_default();
            let text = format!(
                "constraint {n}: skew {} > maxSkew {}{place}",
                check.skew(),
                check.max_skew
            );
            (text, format!("skew (constraint {n})"))
        }
        tree::Cause::PodAffinity {
            term,
            key: label,
            labelled,
        } => {
            let (label, n) = (key(*label), term + 1);
            let text = match labelled {
                true => format!(
                    "required podAffinity term {n}{} finds no pod in this {label}",
                    term_selector(*term, false, explanation, cluster)
                ),
                false => format!("no label {label}, which required podAffinity term {n} needs"),
            };
            (text, "pod affinity".to_owned())
        }
        tree::Cause::AntiAffinity {
            term,
            key: label,
            found,
        } => {
            let text = format!(
                "required podAntiAffinity term {}{} finds {} in this {}",
                term + 1,
                term_selector(*term, true, explanation, cluster),
                pods(found, cluster),
                key(*label)
            );
            (text, "pod anti-affinity".to_owned())
        }
        tree::Cause::ExistingAntiAffinity { key: label, found } => {
            let text = format!(
                "{} in this {} will not have the pod around (required podAntiAffinity)",
                pods(found, cluster),
                key(*label)
            );
            (text, "existing pods' anti-affinity".to_owned())
        }
        tree::Cause::Volume(cause) => volume(cause, cluster),
        tree::Cause::Nominated {
            reason,
            pods: nominated,
            ..
        } => {
            let text = format!(
                "room is kept for {}, nominated to it: {}",
                pods(nominated, cluster),
                reason.text(names)
            );
            (text, "room kept for nominated pods".to_owned())
        }
        tree::Cause::Other(refusal) => {
            let reasons: Vec<String> = refusal.reasons.iter().map(|r| r.text(names)).collect();
            (reasons.join(", "), refusal.plugin.name().to_owned())
        }
    }
}

/// The long and the short text of a volume's reason against a node.
fn volume(cause: &VolumeCause, cluster: &Cluster) -> (String, String) {
    let name = |symbol| cluster.names.text(symbol);
    match cause {
        VolumeCause::InUse { claim, holders } => {
            let claim = name(*claim);
            let text = format!(
                "persistentvolumeclaim {claim:?} (ReadWriteOncePod) is used by {}",
                pods(holders, cluster)
            );
            (text, "claim in use".to_owned())
        }
        VolumeCause::Limit {
            driver,
            attached,
            wanted,
            limit,
        } => {
            let driver = name(*driver);
            let text = format!(
                "driver {driver} attaches at most {}: {attached} there + {wanted} of this pod",
                words::count(usize::try_from(*limit).unwrap_or(0), "volume")
            );
            (text, format!("volumes of {driver}"))
        }
        VolumeCause::NodeAffinity {
            claim,
            volume,
            terms,
        } => {
            let terms: Vec<String> = terms.iter().map(|t| term(t, cluster)).collect();
            let wanted = match terms.is_empty() {
                true => "no node".to_owned(),
                false => format!("nodes with {}", terms.join(", or with ")),
            };
            let text = format!("{}, which is for {wanted}", bound(*claim, *volume, cluster));
            (text, "volume's node affinity".to_owned())
        }
        VolumeCause::NoVolume {
            claim,
            class,
            of_class,
            fitting,
        } => {
            let of = match class {
                Some(class) => format!("of storage class {:?}", name(*class)),
                None => "without a storage class".to_owned(),
            };
            let found = match (of_class, fitting) {
                (0, _) => format!("no volume {of} is free, and no provisioner makes one here"),
                (n, 0) => format!(
                    "none of {} {of} fits by size, access modes, volume mode and labels",
                    words::count(*n, "free volume")
                ),
                (_, n) => format!(
                    "this node reaches none of {} {of} that would fit",
                    words::count(*n, "free volume")
                ),
            };
            let text = format!(
                "persistentvolumeclaim {:?} gets no volume: {found}",
                name(*claim)
            );
            (text, "no volume to bind".to_owned())
        }
        VolumeCause::Zone {
            claim,
            volume,
            key,
            values,
            found,
        } => {
            let values: Vec<&str> = values.iter().map(|&v| name(v)).collect();
            let has = match found {
                Some(found) => format!("the node has {}", name(*found)),
                None => "the node has no such label".to_owned(),
            };
            let text = format!(
                "{} of {}={}, {has}",
                bound(*claim, *volume, cluster),
                name(*key),
                values.join(" or ")
            );
            (text, "volume's zone".to_owned())
        }
    }
}

fn bound(claim: Symbol, volume: Symbol, cluster: &Cluster) -> String {
    let name = |symbol| cluster.names.text(symbol);
    let (claim, volume) = (name(claim), name(volume));
    format!("persistentvolumeclaim {claim:?} is bound to {volume:?}")
}

/// A term of a volume's node affinity.
pub(super) fn term(term: &NodeSelectorTerm, cluster: &Cluster) -> String {
    let NodeSelectorTerm::AllOf { expressions, .. } = term else {
        return "a term that matches none".to_owned();
    };
    let names = &cluster.names;
    let mut parts: Vec<String> = { expressions.iter() }
        .map(|e| words::node_expression(e, names))
        .collect();
    parts.extend(name_test(term, cluster).filter(|test| !test.is_empty()));
    parts.join(" and ")
}

/// ` (app=db)`: the pods that a term of the pod selects.
fn term_selector(term: usize, anti: bool, explanation: &Explanation, cluster: &Cluster) -> String {
    let affinity = &cluster.spec_of(explanation.pod).affinity;
    let terms = if anti {
        &affinity.required_anti
    } else {
        &affinity.required
    };
    let text = |t: &strew_cluster::AffinityTerm| format!(" ({})", t.selector.text(&cluster.names));
    terms.get(term).map(text).unwrap_or_default()
}

pub(super) fn pods(found: &Blockers, cluster: &Cluster) -> String {
    let named: Vec<String> = found
        .named
        .iter()
        .map(|&p| words::pod(cluster, p))
        .collect();
    let more = found.count - named.len();
    match more {
        0 => format!("pod {}", named.join(", ")),
        more => format!("pods {} and {more} more", named.join(", ")),
    }
}

fn gap_text(gap: &Gap, explanation: &Explanation, cluster: &Cluster) -> String {
    let names = &cluster.names;
    let key = |symbol| names.text(symbol);
    let mut parts: Vec<String> = Vec::new();
    for pair in &gap.pairs {
        let wanted = format!("nodeSelector wants {}={}", key(pair.key), key(pair.wanted));
        parts.push(match pair.found {
            Some(found) => format!("{wanted}, the node has {}", key(found)),
            None => format!("{wanted}, the node has no such label"),
        });
    }
    if gap.no_terms {
        parts.push("required node affinity has no term: no node matches".to_owned());
    }
    let spec = cluster.spec_of(explanation.pod);
    let terms = spec.node_affinity.terms.as_deref().unwrap_or_default();
    for (i, term) in gap.terms.iter().enumerate() {
        let which = match terms.len() {
            1 => "required node affinity".to_owned(),
            _ => format!("required node affinity term {}", i + 1),
        };
        parts.push(match term {
            TermGap::NoNode => format!("{which} matches no node at all"),
            TermGap::Fails { expressions, name } => {
                let mut wants: Vec<String> = expressions
                    .iter()
                    .map(|e| words::node_expression(e, names))
                    .collect();
                if *name {
                    wants.extend(terms.get(i).and_then(|t| name_test(t, cluster)));
                }
                format!("{which} wants {}", wants.join(" and "))
            }
        });
    }
    parts.join("; ")
}

/// The requirement of a term for the node's name.
fn name_test(term: &NodeSelectorTerm, cluster: &Cluster) -> Option<String> {
    let NodeSelectorTerm::AllOf { fields, .. } = term else {
        return None;
    };
    let test = |f: &strew_model::FieldMatch| {
        let sign = if f.is_in { "=" } else { "!=" };
        format!("metadata.name{sign}{}", cluster.names.text(f.name))
    };
    let tests: Vec<String> = fields.iter().map(test).collect();
    Some(tests.join(" and "))
}

impl ResourceShortage {
    fn of(shortage: &Shortage, cluster: &Cluster) -> Self {
        let amount = |amount| words::amount(shortage.resource, amount);
        let missing = i128::from(shortage.requested) - i128::from(shortage.free);
        let permille = missing * 1000 / i128::from(shortage.requested.max(1));
        Self {
            name: words::resource(shortage.resource, &cluster.names).to_owned(),
            requested: amount(shortage.requested),
            free: amount(shortage.free),
            allocatable: amount(shortage.allocatable),
            missing_permille: i64::try_from(permille).unwrap_or(i64::MAX),
        }
    }
}
