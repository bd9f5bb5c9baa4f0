//! How clusters are scored and spread.

use serde::{Deserialize, Serialize};

use super::cluster::ManagedCluster;
use super::object::null_as_default;

/// What scores count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PrioritizerPolicy {
    /// `Additive` (also where nothing is written) or `Exact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Weights of scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configurations: Option<Vec<PrioritizerConfig>>,
}

/// The weight of one score.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PrioritizerConfig {
    /// Which score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_coordinate: Option<ScoreCoordinate>,
    /// -10 to 10; 1 where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// A score by its source.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ScoreCoordinate {
    /// `BuiltIn` or `AddOn`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The name of a built-in prioritizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    /// An add-on's score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

/// An add-on's score.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AddOnScore {
    /// The name of the AddOnPlacementScore.
    #[serde(deserialize_with = "null_as_default")]
    pub resource_name: String,
    /// The name of the score in it.
    #[serde(deserialize_with = "null_as_default")]
    pub score_name: String,
}

/// How clusters spread over topologies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadPolicy {
    /// The most important first; at most 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_constraints: Option<Vec<SpreadConstraintsTerm>>,
}

/// One level of topologies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraintsTerm {
    /// A label's key, or a claim's name.
    #[serde(deserialize_with = "null_as_default")]
    pub topology_key: String,
    /// `Label` or `Claim`.
    #[serde(deserialize_with = "null_as_default")]
    pub topology_key_type: String,
    /// At least 1; 1 where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_skew: Option<i32>,
    /// `DoNotSchedule`, or `ScheduleAnyway`, also where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_unsatisfiable: Option<String>,
    /// Ours, not OCM's: how much each topology should hold, compared with its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_weights: Option<Vec<TopologyWeight>>,
    /// strew's, not OCM's: the least number of topologies to use; 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_groups: Option<i32>,
    /// strew's, not OCM's: the largest number of topologies to use; 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_groups: Option<i32>,
}

impl SpreadConstraintsTerm {
    /// The pairs of a cluster that its key is one of: labels or claims.
    pub fn pairs<'c>(&self, cluster: &'c ManagedCluster) -> Vec<(&'c str, &'c str)> {
        match self.topology_key_type.as_str() {
            "Claim" => cluster.claims().collect(),
            _ => cluster.labels().collect(),
        }
    }

    /// A cluster's topology; `None` if it lacks the key.
    pub fn value<'c>(&self, cluster: &'c ManagedCluster) -> Option<&'c str> {
        let mut pairs = self.pairs(cluster).into_iter();
        let own = pairs.find(|(key, _)| *key == self.topology_key);
        own.map(|(_, value)| value)
    }
}

/// The weight of a topology.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyWeight {
    /// The value of its label or claim; `*` for all that are not named.
    #[serde(deserialize_with = "null_as_default")]
    pub value: String,
    /// 0 to 1000.
    #[serde(deserialize_with = "null_as_default")]
    pub weight: i64,
}
