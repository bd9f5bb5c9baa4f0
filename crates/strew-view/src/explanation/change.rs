//! Changes that would place a refused pod, in words that a user can act on.

use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, Policy};
use strew_model::Symbol;
use strew_plan::{Change, Target, suggest as tree};
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};
use strew_scheduler::plugins::pod_topology_spread::Origin;
use strew_scheduler::{Explanation, Reason};

use super::words;

/// What would turn a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// Single changes that help, the smallest first; each was decided on.
    pub suggestions: Vec<Suggestion>,
    /// How many changes were decided on.
    pub tried: usize,
    /// The kinds of changes that were tried in vain, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_vain: Vec<String>,
}

/// A change that helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// What kind of change it is: `Uncordon`, `MaxSkew`, `AddNode`, ...
    pub kind: String,
    /// The change.
    pub text: String,
    /// The node that the pod goes to then; absent: the node that the change adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_go_to: Option<String>,
}

impl WhatIf {
    pub(crate) fn of(what_if: &tree::WhatIf, explanation: &Explanation, cluster: &Cluster) -> Self {
        let suggestion = |s: &tree::Suggestion| Suggestion {
            kind: s.change.kind().name().to_owned(),
            text: Texts {
                explanation,
                cluster,
            }
            .change(&s.change),
            would_go_to: match s.target {
                Target::Node(node) => Some(words::node(cluster, node)),
                Target::NewNode => None,
            },
        };
        Self {
            suggestions: what_if.suggestions.iter().map(suggestion).collect(),
            tried: what_if.tried,
            in_vain: what_if
                .in_vain
                .iter()
                .map(|kind| kind.words().to_owned())
                .collect(),
        }
    }
}

struct Texts<'a> {
    explanation: &'a Explanation,
    cluster: &'a Cluster,
}

impl Texts<'_> {
    fn text(&self, symbol: Symbol) -> &str {
        self.cluster.names.text(symbol)
    }

    fn change(&self, change: &Change) -> String {
        let (cluster, names) = (self.cluster, &self.cluster.names);
        let node = |node| words::node(cluster, node);
        match change {
            Change::LoseNode { node: n } => format!("lose node {}", node(*n)),
            Change::LoseDomain { key, value } => {
                let (key, value) = (self.text(*key), self.text(*value));
                format!("lose the nodes with {key}={value}")
            }
            Change::DrainNode { node: n } => format!("drain node {}", node(*n)),
            Change::Shift { node: n } => format!("take node {} out of service", node(*n)),
            Change::Scale { to } => format!("scale to {}", words::count(*to, "pod")),
            Change::AddConstraint { constraint } => format!(
                "add a constraint over {} with maxSkew {}",
                self.text(constraint.key),
                constraint.max_skew
            ),
            Change::AllowDisruptions { name, allowed, .. } => {
                let disruptions =
                    words::count(usize::try_from(*allowed).unwrap_or(0), "disruption");
                format!("allow {disruptions} in budget {}", self.text(*name))
            }
            Change::Cordon { node: n } => format!("cordon node {}", node(*n)),
            Change::Uncordon { node: n } => format!("uncordon node {}", node(*n)),
            Change::TaintNode { node: n, taint } => {
                format!(
                    "taint node {} with {}",
                    node(*n),
                    words::taint(taint, names)
                )
            }
            Change::UntaintNode {
                node: n,
                key,
                effect,
            } => {
                let effect = effect.map_or(String::new(), |e| format!(":{}", e.name()));
                let key = self.text(*key);
                format!("take the taint {key}{effect} off node {}", node(*n))
            }
            Change::UnlabelNode { node: n, key } => {
                format!("take the label {} off node {}", self.text(*key), node(*n))
            }
            Change::MovePod { pod, to } => {
                format!(
                    "move pod {} to node {}",
                    words::pod(cluster, *pod),
                    node(*to)
                )
            }
            Change::LabelNode {
                node: n,
                key,
                value,
                is_topology,
            } => {
                let (key, value, n) = (self.text(*key), self.text(*value), node(*n));
                match (is_topology, value == n) {
                    (true, true) => format!("label node {n} with its {key} (any value will do)"),
                    (true, false) => {
                        format!("label node {n} with its {key} (it takes the pod in {value:?})")
                    }
                    (false, _) => format!("label node {n} with {key}={value}"),
                }
            }
            Change::Tolerate { taint, nodes } => format!(
                "tolerate the taint {} (all that keeps the pod off {})",
                words::taint(taint, names),
                words::count(*nodes, "node")
            ),
            Change::Policy {
                constraint,
                on_taints,
                to,
            } => {
                let field = match on_taints {
                    true => "nodeTaintsPolicy",
                    false => "nodeAffinityPolicy",
                };
                let to = match to {
                    Policy::Honor => "Honor",
                    Policy::Ignore => "Ignore",
                };
                format!("{field}: {to} in {}", self.constraint(*constraint))
            }
            Change::MaxSkew {
                constraint,
                from,
                to,
            } => format!(
                "maxSkew: {to} instead of {from} in {}",
                self.constraint(*constraint)
            ),
            Change::MinDomains {
                constraint,
                from,
                to,
            } => format!(
                "minDomains: {to} instead of {from} in {}",
                self.constraint(*constraint)
            ),
            Change::ScheduleAnyway { constraint } => format!(
                "whenUnsatisfiable: ScheduleAnyway in {}",
                self.constraint(*constraint)
            ),
            Change::DropConstraint { constraint } => {
                format!("drop {}", self.constraint(*constraint))
            }
            Change::RequestLess { resource, from, to } => format!(
                "request {} {} instead of {}",
                words::resource(*resource, names),
                words::round(*resource, *to, false),
                words::amount(*resource, *from)
            ),
            Change::FreeResources { node: n, short } => self.free(&node(*n), short),
            Change::DeletePod { pod } => {
                let on = cluster.pod(*pod).node.map(node).unwrap_or_default();
                format!("delete pod {} from node {on}", words::pod(cluster, *pod))
            }
            Change::AddNodeLike { like, place } => {
                let place = place
                    .map(|(key, value)| format!(" with {}={}", self.text(key), self.text(value)));
                format!(
                    "add a node like {}{}",
                    node(*like),
                    place.unwrap_or_default()
                )
            }
            Change::AddNodeInNewDomain { like, key } => format!(
                "add a node like {} with a new value of {}",
                node(*like),
                self.text(*key)
            ),
            Change::AddFirstNode => self.first_node(),
            Change::DropNodeSelector { key, value } => format!(
                "drop {}={} from spec.nodeSelector",
                self.text(*key),
                self.text(*value)
            ),
            Change::DropNodeExpression { term, expression } => format!(
                "drop {:?} from required node affinity term {}",
                words::node_expression(expression, names),
                term + 1
            ),
            Change::DropNodeAffinity => "drop required node affinity".to_owned(),
            Change::DropPodAffinity { term, anti } => {
                let kind = if *anti {
                    "podAntiAffinity"
                } else {
                    "podAffinity"
                };
                format!("drop required {kind} term {}", term + 1)
            }
            Change::StartPod {
                node: n,
                namespace,
                labels,
            } => {
                let labels: Vec<String> = labels
                    .iter()
                    .map(|&(k, v)| format!("{}={}", self.text(k), self.text(v)))
                    .collect();
                format!(
                    "start a pod with {} in namespace {} on node {}",
                    labels.join(","),
                    self.text(*namespace),
                    node(*n)
                )
            }
            Change::DropHostPort { port } => format!("drop host port {port}"),
            Change::DropClaim { claim } => self.without_claim(*claim),
            Change::DropUnsupported { need } => self.unsupported(*need),
        }
    }

    /// `constraint 1 (topology.kubernetes.io/zone)`.
    fn constraint(&self, index: usize) -> String {
        let hard = self.explanation.hard.iter();
        let key = hard
            .filter(|h| h.common.index == index)
            .map(|h| self.text(h.common.constraint.key))
            .next()
            .unwrap_or_default();
        let whose = match self.explanation.origin {
            Origin::Pod => "",
            _ => "default ",
        };
        format!("{whose}constraint {} ({key})", index + 1)
    }

    fn free(&self, node: &str, short: &[Shortage]) -> String {
        let names = &self.cluster.names;
        let lack = |s: &Shortage| {
            let more = words::round(s.resource, s.requested - s.free, true);
            match s.resource {
                Lacking::Pods => format!("{more} more place for pods"),
                resource => format!("{more} more {}", words::resource(resource, names)),
            }
        };
        let lacks: Vec<String> = short.iter().map(lack).collect();
        let lacks = lacks.join(" and ");
        let too_large = |s: &&Shortage| s.requested > s.allocatable;
        match short.iter().find(too_large) {
            Some(s) => format!(
                "{lacks} on node {node}, which has {} {} in all",
                words::about(s.resource, s.allocatable),
                words::resource(s.resource, names)
            ),
            None => format!("free {lacks} on node {node}"),
        }
    }

    fn first_node(&self) -> String {
        let requests = &self.cluster.spec_of(self.explanation.pod).requests;
        let mut needs = Vec::new();
        let mut need = |resource, amount| {
            if amount > 0 {
                needs.push(format!(
                    "{} {}",
                    words::resource(resource, &self.cluster.names),
                    words::amount(resource, amount)
                ));
            }
        };
        need(Lacking::Cpu, requests.cpu_milli);
        need(Lacking::Memory, requests.memory);
        need(Lacking::EphemeralStorage, requests.ephemeral_storage);
        for &(name, amount) in requests.scalars() {
            need(Lacking::Scalar(name), amount);
        }
        match needs.is_empty() {
            true => "add a node".to_owned(),
            false => format!("add a node with {}", needs.join(", ")),
        }
    }

    fn without_claim(&self, claim: usize) -> String {
        let spec = self.cluster.spec_of(self.explanation.pod);
        let used = spec.claims.get(claim).copied();
        let names = &self.cluster.names;
        let pod = &self.cluster.pod(self.explanation.pod).name;
        let text = used.map(|used| {
            let (volume, claim) = (names.text(used.volume), used.claim_name(pod, names));
            format!("without volume {volume:?} (persistentvolumeclaim {claim:?})")
        });
        text.unwrap_or_default()
    }

    fn unsupported(&self, need: usize) -> String {
        let spec = self.cluster.spec_of(self.explanation.pod);
        let reason = spec
            .unsupported
            .get(need)
            .map(|n| Reason::Unsupported(n.clone()));
        let text = reason.map(|r| r.text(&self.cluster.names));
        let text = text.unwrap_or_default();
        // "strew does not implement what this pod needs: volume …" ends with the need itself.
        let need = text
            .split_once(": ")
            .map_or(text.as_str(), |(_, need)| need);
        format!("without this need ({need})")
    }
}
