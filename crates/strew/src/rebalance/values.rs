//! A plan as plain values, which are written and read again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `kind`
pub(crate) const KIND: &str = "RebalancePlan";

/// Evictions after which constraints are kept again, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RebalancePlan {
    /// `report.strew.dev/v1alpha1`
    pub(crate) api_version: String,
    /// `RebalancePlan`
    pub(crate) kind: String,
    pub(crate) summary: Sums,
    /// The evictions.
    pub(crate) steps: Vec<PlannedStep>,
    /// The constraints that were not kept before, or are not afterwards.
    pub(crate) constraints: Vec<PlannedConstraint>,
}

/// Numbers of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Sums {
    /// True if soft constraints were looked at, too.
    pub(crate) soft: bool,
    /// The evictions.
    pub(crate) evictions: usize,
    /// The workloads whose constraints were looked at.
    pub(crate) workloads: usize,
    /// Those of them with a constraint that is not kept.
    pub(crate) uneven_before: usize,
    /// Those of them with a constraint that is not kept after the last eviction.
    pub(crate) uneven_after: usize,
    /// The least number of pods that must change their domain, summed over all hard constraints.
    pub(crate) moves_before: u64,
    /// The same after the last eviction.
    pub(crate) moves_after: u64,
    /// Pods that wait for the scheduler before and after.
    pub(crate) pending: usize,
    /// Pods that wait and get a node before the first eviction, as the scheduler would give them one.
    pub(crate) placed_first: usize,
}

/// An eviction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlannedStep {
    pub(crate) namespace: String,
    /// The pod's name.
    pub(crate) pod: String,
    /// The pod's uid: another pod of the name is not evicted.
    pub(crate) uid: String,
    pub(crate) workload_kind: String,
    pub(crate) workload_name: String,
    /// The node that it leaves.
    pub(crate) from: String,
    /// The node that the pod in its place gets in the simulation.
    pub(crate) to: String,
    /// The constraints that it changes.
    pub(crate) effects: Vec<PlannedEffect>,
}

/// What an eviction does to a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlannedEffect {
    pub(crate) workload_kind: String,
    pub(crate) workload_name: String,
    pub(crate) topology_key: String,
    pub(crate) max_skew: i32,
    pub(crate) hard: bool,
    /// The domain that the pod leaves; absent: its node does not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) from: Option<DomainCount>,
    /// The domain in which it comes back; absent: its node does not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) to: Option<DomainCount>,
    pub(crate) skew_before: i64,
    pub(crate) skew_after: i64,
}

/// A domain with its pods after a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DomainCount {
    /// The value of the topology key.
    pub(crate) domain: String,
    pub(crate) pods: i32,
}

/// A constraint before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PlannedConstraint {
    pub(crate) namespace: String,
    pub(crate) workload_kind: String,
    pub(crate) workload_name: String,
    pub(crate) topology_key: String,
    pub(crate) max_skew: i32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) min_domains: Option<i32>,
    pub(crate) hard: bool,
    /// True for a default of the cluster.
    #[serde(rename = "default")]
    pub(crate) is_default: bool,
    pub(crate) before: ConstraintCounts,
    pub(crate) after: ConstraintCounts,
    /// Why it is not kept afterwards; empty if it is.
    pub(crate) left: Vec<LeftPods>,
}

/// How a constraint stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ConstraintCounts {
    /// Its domains with the pods that count, by name.
    pub(crate) domains: Vec<DomainCount>,
    /// The largest skew.
    pub(crate) skew: i64,
    /// The least number of pods that must change their domain until it is kept: 0 if it is.
    pub(crate) moves: u64,
}

/// Pods of domains with too many that the plan does not evict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LeftPods {
    /// How many.
    pub(crate) pods: usize,
    /// A word for programs, such as `budget` or `pending`.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) message: String,
}
