//! The wire form of an explanation: the output of `strew explain -o json`, from which the text is rendered.
//!
//! It has names instead of indexes, and numbers beside every sentence. Fields may be added within `v1alpha1`; no field
//! changes its meaning.
//!
//! Reading order: [`PodExplanation`], [`constraint`], [`node`], `summary`, `against`, `shortage`, [`choice`], [`change`], `words`;
//! [`NodeExplanation`].

mod against;
pub mod change;
pub mod choice;
pub mod constraint;
pub mod node;
mod of_node;
mod shortage;
mod summary;
mod words;

use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, NodeIdx};
use strew_plan::suggest as tree;
use strew_scheduler::Explanation;
use strew_scheduler::explain::Whereabouts;

pub use change::{Suggestion, WhatIf};
pub use choice::{Choice, Score, ScoreRow, ScoringPlugin, SoftShare};
pub use constraint::{
    Constraint, Constraints, CountedWorkload, Deduced, Domain, MergedKey, OtherReason, Owner, Skew,
    SpreadOff, Weight, WithoutEffect,
};
pub use node::{Cause, Refusal, RefusedNode, ResourceShortage};
pub use of_node::{Amounts, Counting, Judged, NodeExplanation, OnNode};
pub use shortage::ShortResource;
pub use words::reading;

/// `apiVersion` of [`PodExplanation`].
pub const API_VERSION: &str = "explain.strew.dev/v1alpha1";

/// `kind` of [`PodExplanation`].
pub const KIND: &str = "PodExplanation";

/// Why a pod is where it is, or nowhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Which pod.
    pub metadata: Metadata,
    /// Where it stands.
    pub standing: State,
    /// The node that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The node that it would go to if it were decided on now; of a gated pod, without its gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_go_to: Option<String>,
    /// Its scheduling gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// kube-scheduler's own sentence; of a pod that would go to a node, the one it will have then; empty for one that no
    /// scheduler looks at.
    pub message: String,
    /// kube-scheduler's sentence on what the rest explains, where that is another: a placed or gated pod judged anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_now: Option<String>,
    /// The cause, in a sentence with numbers: why no node takes the pod, or what else keeps it from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many of them would take the pod.
    pub feasible: usize,
    /// Topology spread constraints.
    pub constraints: Constraints,
    /// The refusal of the pod as a whole, before any node was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_outright: Option<Refusal>,
    /// The nodes that refuse it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedNode>,
    /// The resources of which some of these have too little, the one that most of them lack first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short: Vec<ShortResource>,
    /// How the node is chosen among those that take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// What would turn the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIf>,
}

/// Which pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Metadata {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Where a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum State {
    /// On no node, and no node takes it now.
    Pending,
    /// On no node; decided now, it goes to `wouldGoTo`.
    WouldGo,
    /// On `node`. The rest judges it as if it were to be placed now, taken off that node.
    Placed,
    /// Held by `gates`. The rest judges it as if it had none.
    Gated,
}

/// Why no node takes a pod, in a sentence with numbers; `None` if one does.
pub fn cause(explanation: &Explanation, cluster: &Cluster) -> Option<String> {
    summary::summary(explanation, cluster)
}

impl PodExplanation {
    /// An explanation, and what would turn a refusal, with the names of their cluster.
    pub fn of(
        explanation: &Explanation,
        what_if: Option<&tree::WhatIf>,
        cluster: &Cluster,
    ) -> Self {
        let name = |node: NodeIdx| words::node(cluster, node);
        let names = &cluster.names;
        let (state, node, gates) = match &explanation.standing {
            Whereabouts::Pending => (State::Pending, None, &[][..]),
            Whereabouts::WouldGo { .. } => (State::WouldGo, None, &[][..]),
            Whereabouts::Placed { node, .. } => (State::Placed, Some(name(*node)), &[][..]),
            Whereabouts::Gated { gates, .. } => (State::Gated, None, &gates[..]),
        };
        let pod = cluster.pod(explanation.pod);
        let namespace = cluster.class_of(explanation.pod).key.namespace;
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata: Metadata {
                namespace: names.text(namespace).to_owned(),
                name: pod.name.to_string(),
            },
            standing: state,
            node,
            would_go_to: explanation.standing.would_go().map(name),
            gates: gates.iter().map(|&g| names.text(g).to_owned()).collect(),
            message: explanation.sentence.clone(),
            message_now: explanation.sentence_now.clone(),
            summary: summary::summary(explanation, cluster),
            nodes: explanation.nodes,
            feasible: explanation.feasible,
            constraints: Constraints::of(explanation, cluster),
            refused_outright: explanation
                .refused_outright
                .as_ref()
                .map(|refusal| Refusal::outright(refusal, explanation.pod, cluster)),
            refused: explanation
                .refused
                .iter()
                .map(|node| RefusedNode::of(node, explanation, cluster))
                .collect(),
            short: shortage::shortages(&explanation.refused, cluster, false),
            choice: explanation
                .choice
                .as_ref()
                .map(|choice| Choice::of(choice, cluster)),
            what_if: what_if.map(|what_if| WhatIf::of(what_if, explanation, cluster)),
        }
    }
}
