//! PlacementDecision, `v1beta1`.

use serde::{Deserialize, Serialize};

use super::object::{null_as_default, objects};

objects! {
    /// Clusters that a Placement got; it has as many of these objects as its groups and 100 clusters an object need.
    PlacementDecision: "cluster.open-cluster-management.io/v1beta1" =
        "cluster.open-cluster-management.io" "v1beta1", "placementdecisions", NamespaceResourceScope {
        /// The clusters.
        status: PlacementDecisionStatus,
    }
}

/// The clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementDecisionStatus {
    /// At most 100.
    #[serde(deserialize_with = "null_as_default")]
    pub decisions: Vec<ClusterDecision>,
}

/// A cluster that was chosen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterDecision {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_name: String,
    /// Always empty.
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    /// The score, where decisions are sorted by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
