//! Environments, and the values of their variables.

use std::collections::BTreeMap;

use crate::value::{Val, Value};

/// What an expression may name.
///
/// Both have CEL's standard functions and macros, optional types, and the API server's libraries for strings, lists,
/// regular expressions, URLs, quantities, IP addresses and CIDRs, `format` and semantic versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Expectations of scenarios: variables `pods`, `nodes`, `objects`, `now`. Pods have [`POD_FIELDS`], nodes
    /// [`NODE_FIELDS`].
    ///
    /// Maps under `labels`, `annotations` and `domains` are *open*: `==`, `!=` and `in` read a key that is not there
    /// as a label that is not set, equal to nothing, as Kubernetes' label selectors do. So
    /// `p.labels.subset == 'ecs'` is false, and `!= 'ecs'` true, for a pod without that label. It is an error only
    /// where no answer would be right: two labels that are both not set compared with each other, a label that is
    /// not set handed to a function, put in order, or kept as a value. All other maps keep CEL's rule: a missing
    /// key is an error.
    Scenario,
    /// OCM's `celSelector`: variable `managedCluster`, with `managedCluster.scores("name")`, and
    /// `"text".parseJSON()`. A missing key is an error, and OCM reads every error as no match.
    ManagedCluster,
    /// Conditions and variables of admission policies: `object`, `params` and `variables`. A missing key is an error.
    Admission,
}

/// The fields of each pod in a scenario.
pub const POD_FIELDS: [&str; 10] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "phase",
    "node",
    "ready",
    "terminating",
    "domains",
    "spec",
];

/// The fields of each node in a scenario.
pub const NODE_FIELDS: [&str; 5] = ["name", "labels", "ready", "unschedulable", "pods"];

impl Environment {
    pub(crate) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Scenario => &["pods", "nodes", "objects", "now"],
            Self::ManagedCluster => &["managedCluster"],
            Self::Admission => &["object", "params", "variables"],
        }
    }

    /// What one expression may cost.
    ///
    /// For clusters OCM's 1,000,000 (placement, filter of predicates); for scenarios 100,000,000, enough for a
    /// condition on each of 100,000 pods that asks a hundred things; for admission 10,000,000, the API server's limit
    /// for all expressions of a policy.
    #[must_use]
    pub fn cost_max(self) -> u64 {
        match self {
            Self::Scenario => 100_000_000,
            Self::ManagedCluster => 1_000_000,
            Self::Admission => 10_000_000,
        }
    }

    /// What all expressions of a selector may cost together for one cluster: OCM's 10,000,000.
    pub const COST_MAX_PER_SELECTOR: u64 = 10_000_000;
}

/// The values of an environment's variables.
#[derive(Clone, Debug)]
pub struct Variables {
    pub(crate) environment: Environment,
    /// In the order of [`Environment::variables`].
    pub(crate) values: Vec<Option<Val>>,
    pub(crate) scores: BTreeMap<String, Val>,
}

impl Variables {
    /// Of a scenario: lists of pods and nodes, all objects, and the time. Time is whatever value the caller
    /// measures it in; nothing here reads a clock.
    #[must_use]
    pub fn scenario(pods: Value, nodes: Value, objects: Value, now: Value) -> Self {
        Self {
            environment: Environment::Scenario,
            values: [pods, nodes, objects, now].map(|v| Some(v.0)).into(),
            scores: BTreeMap::new(),
        }
    }

    /// A cluster, with the lists of `{name, value}` in its AddOnPlacementScores, by the name of the object.
    #[must_use]
    pub fn managed_cluster(cluster: Value, scores: BTreeMap<String, Value>) -> Self {
        Self {
            environment: Environment::ManagedCluster,
            values: vec![Some(cluster.0)],
            scores: scores.into_iter().map(|(k, v)| (k, v.0)).collect(),
        }
    }

    /// An object that is created, the parameter of its policy, if it has one, and the policy's variables by name.
    #[must_use]
    pub fn admission(object: Value, params: Option<Value>, variables: Value) -> Self {
        Self {
            environment: Environment::Admission,
            values: vec![Some(object.0), params.map(|v| v.0), Some(variables.0)],
            scores: BTreeMap::new(),
        }
    }
}
