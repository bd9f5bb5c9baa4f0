//! A plan as plain values, which are written and read again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `kind`
pub const KIND: &str = "RebalancePlan";

/// Evictions after which constraints are kept again, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebalancePlan {
    /// `report.strew.dev/v1alpha1`
    pub api_version: String,
    /// `RebalancePlan`
    pub kind: String,
    /// Numbers of the plan.
    pub summary: Sums,
    /// The evictions.
    pub steps: Vec<PlannedStep>,
    /// The constraints that were not kept before, or are not afterwards: of each workload its own.
    pub constraints: Vec<PlannedConstraint>,
    /// Workloads about whose constraints there is something else to say.
    #[serde(default)]
    pub notes: Vec<WorkloadNote>,
}

/// Numbers of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sums {
    /// True if soft constraints were looked at, too.
    pub soft: bool,
    /// The evictions.
    pub evictions: usize,
    /// The workloads whose constraints were looked at.
    pub workloads: usize,
    /// Those of them with a constraint that is not kept.
    pub uneven_before: usize,
    /// Those of them with a constraint that is not kept after the last eviction.
    pub uneven_after: usize,
    /// Those of them with a hard constraint without a domain, so new pods get no node; `notes` say why.
    #[serde(default)]
    pub without_domain: usize,
    /// Workloads with a hard constraint that were not looked at: their scheduler is not simulated.
    #[serde(default)]
    pub other_scheduler: usize,
    /// Those of the workloads that have pods on nodes which are not there: whether their constraints are kept is not
    /// known.
    #[serde(default)]
    pub off_nodes: usize,
    /// Workloads with hard constraints that have no effect, since the scheduler's profile does not enforce them.
    #[serde(default)]
    pub not_enforced: usize,
    /// The least number of pods that must change their domain, summed over all hard constraints that were looked at.
    pub moves_before: u64,
    /// The same after the last eviction.
    pub moves_after: u64,
    /// Pods that wait for the scheduler before and after.
    pub pending: usize,
    /// Pods that wait and get a node before the first eviction, as the scheduler would give them one.
    pub placed_first: usize,
}

/// Something about a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadNote {
    /// The namespace.
    pub namespace: String,
    /// The kind of the workload.
    pub workload_kind: String,
    /// The name of the workload.
    pub workload_name: String,
    /// A word for programs: `offNodes`, `otherScheduler`, `withoutDomain` or `notEnforced`.
    pub reason: String,
    /// What it is, for people.
    pub message: String,
}

/// An eviction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedStep {
    /// The namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid: another pod of the name is not evicted.
    pub uid: String,
    /// The kind of the workload.
    pub workload_kind: String,
    /// The name of the workload.
    pub workload_name: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that the pod in its place gets in the simulation.
    pub to: String,
    /// The constraints that it changes.
    pub effects: Vec<PlannedEffect>,
}

/// What an eviction does to a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedEffect {
    /// The kind of the workload.
    pub workload_kind: String,
    /// The name of the workload.
    pub workload_name: String,
    /// `topologyKey`
    pub topology_key: String,
    /// `maxSkew`
    pub max_skew: i32,
    /// True for `whenUnsatisfiable: DoNotSchedule`.
    pub hard: bool,
    /// The domain that the pod leaves; absent: its node does not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<DomainCount>,
    /// The domain in which it comes back; absent: its node does not count.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<DomainCount>,
    /// The largest skew before the eviction.
    pub skew_before: i64,
    /// The same when the pod in its place has a node.
    pub skew_after: i64,
}

/// A domain with its pods after a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DomainCount {
    /// The value of the topology key.
    pub domain: String,
    /// The pods that count.
    pub pods: i32,
}

/// A constraint before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedConstraint {
    /// The namespace.
    pub namespace: String,
    /// The kind of the workload.
    pub workload_kind: String,
    /// The name of the workload.
    pub workload_name: String,
    /// `topologyKey`
    pub topology_key: String,
    /// `maxSkew`
    pub max_skew: i32,
    /// The pods that it counts, in the form of `kubectl -l`.
    #[serde(default)]
    pub selector: String,
    /// `minDomains`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_domains: Option<i32>,
    /// True for `whenUnsatisfiable: DoNotSchedule`.
    pub hard: bool,
    /// True for a default of the cluster.
    #[serde(rename = "default")]
    pub is_default: bool,
    /// Now, before the scheduler places what waits and fits, and before the first eviction.
    pub before: ConstraintCounts,
    /// After the last one.
    pub after: ConstraintCounts,
    /// Why it is not kept afterwards; empty if it is.
    pub left: Vec<LeftPods>,
}

/// How a constraint stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConstraintCounts {
    /// Its domains with the pods that count, by name.
    pub domains: Vec<DomainCount>,
    /// The largest skew.
    pub skew: i64,
    /// The least number of pods that must change their domain until it is kept: 0 if it is.
    pub moves: u64,
}

/// Pods of domains with too many that the plan does not evict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftPods {
    /// How many.
    pub pods: usize,
    /// A word for programs, such as `budget` or `pending`.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}
