//! A report as plain values.

use schemars::JsonSchema;
use serde::Serialize;

/// `kind`
pub(crate) const KIND: &str = "DefaultsReport";

/// What policies with default constraints would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DefaultsReport {
    /// `report.strew.dev/v1alpha1`
    pub(crate) api_version: String,
    /// `DefaultsReport`
    pub(crate) kind: String,
    pub(crate) summary: DefaultsSums,
    /// The workloads with pods: those that would change first.
    pub(crate) workloads: Vec<WorkloadDefaults>,
}

/// Numbers of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DefaultsSums {
    /// The workloads with pods.
    pub(crate) workloads: usize,
    /// Those of them whose pods get constraints when they are created again.
    pub(crate) changed: usize,
    /// Those whose pods have the constraints already, by the policies.
    pub(crate) applied: usize,
    /// Those with constraints of their own.
    pub(crate) with_own: usize,
    /// Those that stay as they are for another reason.
    pub(crate) untouched: usize,
    /// Changed ones whose pods are uneven under the constraints where they are now.
    pub(crate) uneven: usize,
    /// Changed ones of which pods stay Pending with the constraints, but not without them, if all are created again.
    pub(crate) pending: usize,
    /// Changed ones with a constraint over a key that none of their nodes has.
    pub(crate) without_domains: usize,
    /// Changed ones of which the policy counts other pods than kube-scheduler's own defaults would.
    pub(crate) counted_otherwise: usize,
}

/// What becomes of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadDefaults {
    pub(crate) namespace: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Its pods that have not finished.
    pub(crate) pods: usize,
    pub(crate) effect: Effect,
    /// The policy that adds the constraints, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// Why it stays as it is, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The constraints, with their counts where the pods are now; by revision.
    pub(crate) constraints: Vec<DefaultCounts>,
    /// True if one of the constraints is not kept now.
    pub(crate) uneven: bool,
    /// The pods that would stay Pending, but do not without the constraints, if all were created again.
    pub(crate) pending: usize,
    /// The scheduler's message about one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// True if the policy counts other pods than kube-scheduler's own defaults would.
    pub(crate) counted_otherwise: bool,
}

/// What the policies do to the pods of a workload that are created from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) enum Effect {
    /// They get the constraints.
    Changed,
    /// They have the constraints already: the policies added them.
    Applied,
    /// They have constraints of their own.
    Own,
    /// They stay as they are.
    Untouched,
}

impl WorkloadDefaults {
    /// The first constraint over a key that none of its nodes has.
    pub(crate) fn without_domains(&self) -> Option<&DefaultCounts> {
        let mut constraints = self.constraints.iter();
        constraints.find(|constraint| constraint.domains.is_empty())
    }
}

/// A constraint of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DefaultCounts {
    pub(crate) topology_key: String,
    pub(crate) max_skew: i32,
    pub(crate) hard: bool,
    /// The pods that count, as kubectl's -l takes it.
    pub(crate) selector: String,
    /// The domains with the pods that count, by name.
    pub(crate) domains: Vec<DomainPods>,
    /// The largest skew.
    pub(crate) skew: i64,
    /// The least number of pods that must change their domain until it is kept: 0 if it is.
    pub(crate) moves: u64,
}

/// A domain and its pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DomainPods {
    /// The value of the topology key.
    pub(crate) domain: String,
    pub(crate) pods: i32,
}
