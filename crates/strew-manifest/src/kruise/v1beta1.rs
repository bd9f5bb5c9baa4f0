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
use super::spec::{ScheduleStrategy, TargetFilter, TargetReference, versioned};

object! {
    /// Spreads the pods of a workload over subsets, the earlier ones first.
    WorkloadSpread, "WorkloadSpread", "v1beta1", "workloadspreads", WorkloadSpreadSpec, WorkloadSpreadStatus
}

versioned! {
    required_node_selector, preferred_node_selector,
    #[cfg_attr(feature = "schemas", schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])))]
    Condition
}
