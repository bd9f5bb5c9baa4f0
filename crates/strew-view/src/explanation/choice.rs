//! Scores on the wire.

use serde::{Deserialize, Serialize};
use strew_cluster::Cluster;
use strew_scheduler::TieRule;
use strew_scheduler::explain::choice as tree;

use super::words;

/// How the node is chosen among those that take the pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    /// The node that is taken.
    pub taken: String,
    /// The plugins that score; empty where one node alone takes the pod, for then it is not scored.
    pub plugins: Vec<ScoringPlugin>,
    /// The taken node, the runners-up, and the node that the pod is on.
    pub rows: Vec<ScoreRow>,
    /// The nodes with the highest total.
    pub best: Vec<String>,
    /// How one of several best is taken: `upstream-1.36`, `first-name` or `random (seed N)`.
    pub tie_rule: String,
    /// Whether the draw of a simulation took another than the rule takes while nodes are looked at one after the other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
}

/// A plugin that scores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoringPlugin {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i64,
}

/// A node's scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreRow {
    /// The node.
    pub node: String,
    /// The sum of weighted scores.
    pub total: i64,
    /// Per plugin.
    pub scores: Vec<Score>,
    /// What soft constraints add up to, before it is put on the scale of 0 to 100; lower is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_raw: Option<i64>,
    /// Per soft constraint, its part in that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<SoftShare>,
}

/// A plugin's score of a node: 0 to 100, before the weight; `null` if it had nothing to say of this pod.
pub type Score = Option<i32>;

/// A soft constraint's part in a raw score: `pods * weight + (maxSkew - 1)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SoftShare {
    /// The node's domain; absent: the node lacks the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Pods counted there.
    pub pods: i32,
    /// What is added, to six decimals.
    pub adds: f64,
}

impl Choice {
    pub(crate) fn of(choice: &tree::Choice, cluster: &Cluster) -> Self {
        let name = |&node: &strew_cluster::NodeIdx| words::node(cluster, node);
        let plugins = choice.plugins.iter();
        Self {
            taken: name(&choice.taken),
            plugins: plugins
                .map(|&(plugin, weight)| ScoringPlugin {
                    name: plugin.name().to_owned(),
                    weight,
                })
                .collect(),
            rows: choice
                .rows
                .iter()
                .map(|row| ScoreRow::of(row, cluster))
                .collect(),
            best: choice.best.iter().map(name).collect(),
            tie_rule: match choice.ties {
                TieRule::Upstream136 => "upstream-1.36".to_owned(),
                TieRule::FirstName => "first-name".to_owned(),
                TieRule::Random(seed) => format!("random (seed {seed})"),
            },
            drawn: choice.is_drawn,
        }
    }
}

impl ScoreRow {
    fn of(row: &tree::ScoreRow, cluster: &Cluster) -> Self {
        let share = |share: &tree::SoftShare| SoftShare {
            value: share.value.map(|v| cluster.names.text(v).to_owned()),
            pods: share.count,
            adds: words::decimals(share.term),
        };
        Self {
            node: words::node(cluster, row.node),
            total: row.total,
            scores: row.scores.clone(),
            spread_raw: row.spread_raw,
            spread: row.spread.iter().map(share).collect(),
        }
    }
}
