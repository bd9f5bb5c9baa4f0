//! Placement, `v1beta1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

use super::object::{null_as_default, objects};
use super::policy::{PrioritizerPolicy, SpreadPolicy};
use super::selector::{ClusterPredicate, GroupClusterSelector};

objects! {
    /// Which clusters a workload gets.
    Placement: "cluster.open-cluster-management.io/v1beta1" =
        "cluster.open-cluster-management.io" "v1beta1", "placements", NamespaceResourceScope {
        /// What is asked for; it must be there.
        spec: PlacementSpec,
        /// What was answered.
        status: PlacementStatus,
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementSpec {
    /// The sets to choose from; none: all that are bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_sets: Option<Vec<String>>,
    /// How many; absent: all that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// Which clusters come into question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicates: Option<Vec<ClusterPredicate>>,
    /// Which of them are better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// How they spread over topologies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Which taints are tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How decisions are grouped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
    /// `ClusterName` or `Score`: the order of decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_by: Option<String>,
    /// How often scores alone may change decisions: `1m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_rate_limit: Option<String>,
}

/// A taint that is tolerated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Empty: every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Equal`, also where nothing is written, or `Exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The value that `Equal` wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Empty: every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// For how long after the taint was added; absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How decisions are grouped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionStrategy {
    /// Groups of clusters, for rollouts one after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
}

/// Groups of clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct GroupStrategy {
    /// Groups that are chosen by hand, in this order, before the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_groups: Option<Vec<DecisionGroup>>,
    /// How many a group holds at most: a number, or a percentage of all selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters_per_decision_group: Option<IntOrString>,
}

/// A group that is chosen by hand.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionGroup {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub group_name: String,
    /// Its clusters; it must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_cluster_selector: Option<GroupClusterSelector>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementStatus {
    /// How many clusters are selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_selected_clusters: Option<i32>,
    /// The groups, with the PlacementDecisions of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_groups: Option<Vec<DecisionGroupStatus>>,
    /// Whether it makes sense, found all, spreads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// When scores were written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_score_update_time: Option<Time>,
}

/// A group in the status.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionGroupStatus {
    /// From 0, over all groups.
    #[serde(deserialize_with = "null_as_default")]
    pub decision_group_index: i32,
    /// Its name; empty for the rest.
    #[serde(deserialize_with = "null_as_default")]
    pub decision_group_name: String,
    /// The names of its PlacementDecisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Vec<String>>,
    /// How many clusters are in it.
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_count: i32,
}
