//! The first version of WorkloadSpread: two fields have other names, and conditions have their own type.
//!
//! Source: spec/workloadspread §2.2, §2.3.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PreferredSchedulingTerm, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::object::{object, or_default};
use super::spec::{ScheduleStrategy, TargetFilter, TargetReference, versioned};

object! {
    /// Spreads the pods of a workload over subsets, the earlier ones first.
    WorkloadSpread, "WorkloadSpread", "v1alpha1", "workloadspreads", WorkloadSpreadSpec, WorkloadSpreadStatus
}

versioned! {
    required_node_selector_term, preferred_node_selector_terms,
    SubsetCondition
}

/// A condition of a subset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "schemas", schemars(extend("required" = ["status", "type"])))]
pub struct SubsetCondition {
    /// `Schedulable`.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: String,
    /// When the status changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
