//! The state of a cluster after a step: one type for the real control plane and the simulation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The state of all workloads and budgets, without names that are drawn, times and versions: equal states are equal
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outcome {
    /// By `kind/name`.
    pub(crate) workloads: BTreeMap<String, Workload>,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) budgets: BTreeMap<String, Budget>,
    /// Nodes that do not report Ready.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) lost_nodes: BTreeSet<String>,
    /// The verbs of the step that were refused or did not finish.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<String>,
    /// The workloads whose pods come and go, if the cluster came to no rest. The outcome then holds nothing else.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) restless: BTreeSet<String>,
}

/// A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job that nothing else owns, or a pod on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    /// What is asked for: `spec.replicas`; for a DaemonSet the nodes that it wants; for a Job its completions.
    pub(crate) replicas: u64,
    /// Its ready pods, as its status counts them.
    pub(crate) ready: u64,
    /// Pods without a node.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) pending: u64,
    /// The scheduler's messages about pending pods.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) messages: BTreeSet<String>,
    /// Pods that have succeeded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) succeeded: u64,
    /// Pods with a deletion timestamp that stay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) terminating: u64,
    /// Bound pods that have not ended, by topology key and domain; the domains are those of all nodes, empty ones too.
    pub(crate) bound: Counts,
    /// The same counts for each revision, the oldest first, if there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) revisions: Vec<Revision>,
}

/// A template that a workload had, or has.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revision {
    /// The replicas of a Deployment's ReplicaSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<u64>,
    /// Its pods that are ready.
    pub(crate) ready: u64,
    /// Its bound pods that have not ended.
    pub(crate) bound: Counts,
}

/// Pods by topology key and domain.
pub(crate) type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// The status of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Budget {
    pub(crate) expected_pods: u64,
    pub(crate) current_healthy: u64,
    pub(crate) desired_healthy: u64,
    pub(crate) disruptions_allowed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Outcome {
    /// Every single fact, by its subject. The number of pods in each named domain is one fact; the numbers in the
    /// fullest domain, the next and so on are another: symmetric domains make the first vary.
    pub(crate) fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        let mut tell = |about: String, fact: String| {
            facts.insert(about, fact);
        };
        for (name, workload) in &self.workloads {
            tell(format!("{name} replicas"), workload.replicas.to_string());
            tell(format!("{name} ready"), workload.ready.to_string());
            tell(format!("{name} pending"), workload.pending.to_string());
            let messages: Vec<&str> = workload.messages.iter().map(String::as_str).collect();
            tell(format!("{name} messages"), messages.join(" | "));
            tell(format!("{name} succeeded"), workload.succeeded.to_string());
            tell(
                format!("{name} terminating"),
                workload.terminating.to_string(),
            );
            tell_counts(name, &workload.bound, &mut tell);
            for (i, revision) in workload.revisions.iter().enumerate() {
                let name = format!("{name} revision {}", i + 1);
                let replicas = revision.replicas.map_or("-".to_owned(), |n| n.to_string());
                tell(format!("{name} replicas"), replicas);
                tell(format!("{name} ready"), revision.ready.to_string());
                tell_counts(&name, &revision.bound, &mut tell);
            }
        }
        for (name, budget) in &self.budgets {
            tell(format!("budget {name}"), format!("{budget:?}"));
        }
        tell("lost nodes".to_owned(), format!("{:?}", self.lost_nodes));
        tell("refused".to_owned(), format!("{:?}", self.refused));
        tell("restless".to_owned(), format!("{:?}", self.restless));
        facts
    }
}

/// Marks a fact that names domains.
pub(crate) const BY_NAME: &str = " by name of ";

fn tell_counts(name: &str, counts: &Counts, tell: &mut impl FnMut(String, String)) {
    for (key, domains) in counts {
        let exact: Vec<String> = domains.iter().map(|(d, n)| format!("{d}={n}")).collect();
        tell(format!("{name}{BY_NAME}{key}"), exact.join(" "));
        let mut sorted: Vec<u64> = domains.values().copied().collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let sorted: Vec<String> = sorted.iter().map(u64::to_string).collect();
        tell(format!("{name} by {key}"), sorted.join("/"));
    }
}
