//! The parts of a WorkloadSpread that are the same in both versions.
//!
//! Source: spec/workloadspread §2.2.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use super::object::or_default;

/// The types of a version's spec and status, with the names of a subset's selectors and the type of a subset's
/// conditions in that version.
macro_rules! versioned {
    ($required:ident, $preferred:ident, $(#[$listed:meta])* $condition:ty) => {
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
            pub $required: Option<NodeSelectorTerm>,
            /// Its nodes: what they should be.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $preferred: Option<Vec<PreferredSchedulingTerm>>,
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
            $(#[$listed])*
            pub conditions: Option<Vec<$condition>>,
        }
    };
}
pub(super) use versioned;

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
