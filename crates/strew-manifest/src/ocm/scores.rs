//! AddOnPlacementScore, `v1alpha1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::object::{null_as_default, objects};

objects! {
    /// What an add-on thinks of a cluster, whose name is the namespace.
    AddOnPlacementScore: "cluster.open-cluster-management.io/v1alpha1" =
        "cluster.open-cluster-management.io" "v1alpha1", "addonplacementscores", NamespaceResourceScope {
        /// The scores.
        status: AddOnPlacementScoreStatus,
    }
}

/// The scores.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AddOnPlacementScoreStatus {
    /// Of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// By name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<Vec<AddOnPlacementScoreItem>>,
    /// The last moment at which they count; absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Time>,
}

/// A score.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AddOnPlacementScoreItem {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// -100 to 100.
    #[serde(deserialize_with = "null_as_default")]
    pub value: i32,
}
