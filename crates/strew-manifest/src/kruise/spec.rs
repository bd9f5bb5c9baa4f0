//! The parts of a WorkloadSpread that are the same in both versions.
//!
//! Source: spec/workloadspread §2.2.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use super::object::or_default;

/// The workload whose pods are spread. Of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(extend("required" = ["apiVersion", "kind", "name"])))]
pub struct TargetReference {
    /// API version of the target.
    #[serde(deserialize_with = "or_default")]
    pub api_version: String,
    /// Kind of the target.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// Name of the target.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// Manages only part of the target's pods.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct TargetFilter {
    /// The pods that are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Paths of replica counts in the target, dotted; their sum is the total that percentages are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas_path_list: Option<Vec<String>>,
}

/// What is done where a subset lacks room on its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ScheduleStrategy {
    /// `Adaptive` or `Fixed`; absent is Fixed.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["Adaptive", "Fixed", ""])))]
    pub type_: Option<String>,
    /// Settings of `Adaptive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveStrategy>,
}

/// Settings of the strategy `Adaptive`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct AdaptiveStrategy {
    /// Whether pods are placed without asking if a node takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_simulation_schedule: Option<bool>,
    /// For how many seconds a pod may be unschedulable before it is replaced in another subset. Absent or 0: forever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reschedule_critical_seconds: Option<i32>,
}
