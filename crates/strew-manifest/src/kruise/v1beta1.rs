//! The stored version of WorkloadSpread.
//!
//! Source: spec/workloadspread §2.2, §2.3.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PreferredSchedulingTerm, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::object::{object, or_default};
use super::spec::{ScheduleStrategy, TargetFilter, TargetReference};

object! {
    /// Spreads the pods of a workload over subsets, the earlier ones first.
    WorkloadSpread, "WorkloadSpread", "v1beta1", "workloadspreads", WorkloadSpreadSpec, WorkloadSpreadStatus
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(extend("required" = ["subsets", "targetRef"])))]
pub struct WorkloadSpreadSpec {
    /// The workload.
    #[serde(rename = "targetRef", skip_serializing_if = "Option::is_none")]
    pub target_reference: Option<TargetReference>,
    /// Which of its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_filter: Option<TargetFilter>,
    /// Where pods go, the earlier subsets first.
    #[serde(deserialize_with = "or_default")]
    pub subsets: Vec<WorkloadSpreadSubset>,
    /// What is done where a subset lacks room on its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_strategy: Option<ScheduleStrategy>,
}

/// A subset: nodes, a limit, and what its pods get besides.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(extend("required" = ["name"])))]
pub struct WorkloadSpreadSubset {
    /// Its name, unique in the WorkloadSpread.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Its nodes: what they must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_node_selector: Option<NodeSelectorTerm>,
    /// Its nodes: what they should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_node_selector: Option<Vec<PreferredSchedulingTerm>>,
    /// What its pods tolerate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How many pods it takes, a number or a share of all. Absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch of its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("x-kubernetes-preserve-unknown-fields" = true)))]
    pub patch: Option<Value>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadSpreadStatus {
    /// The generation that the controller has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The subsets over all revisions of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset_statuses: Option<Vec<SubsetStatus>>,
    /// The subsets by revision of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versioned_subset_statuses: Option<BTreeMap<String, Vec<SubsetStatus>>>,
}

/// What was found of a subset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(extend("required" = ["missingReplicas", "name", "replicas"])))]
pub struct SubsetStatus {
    /// The subset.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Its active pods.
    #[serde(deserialize_with = "or_default")]
    pub replicas: i32,
    /// For how many more pods it has room; -1: for any number.
    #[serde(deserialize_with = "or_default")]
    pub missing_replicas: i32,
    /// Pods that were admitted and not yet seen, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creating_pods: Option<BTreeMap<String, Time>>,
    /// Pods that are to be deleted and still active, and since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting_pods: Option<BTreeMap<String, Time>>,
    /// Whether its pods can be scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])))]
    pub conditions: Option<Vec<Condition>>,
}
