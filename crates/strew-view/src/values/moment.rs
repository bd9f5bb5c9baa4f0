//! A moment of a cluster for programs: workloads with their pods by domain, what is Pending, nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::blocked::{Eviction, PodOutcome};
use crate::cluster_state::ClusterState;
use crate::domains::Domain;
use crate::skews::Skews;
use crate::spread::Spread;
use crate::usage::NodeUsage;
use crate::view::{Finished, Summary, View};
use crate::workload::Workload;

/// The state at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MomentValues {
    /// The sum over all pods, not only of the shown workloads.
    pub pods: Totals,
    /// The shown ones, in the order of display.
    pub workloads: Vec<WorkloadValues>,
    /// Only for the first step of a variant's first run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub nodes: Vec<NodeUsage>,
    /// Pods that were put on a node, in order of arrival; only for the first step of a variant's first run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub placements: Vec<PlacedPod>,
}

/// Sums over all workloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// All workloads.
    pub workloads: usize,
    /// All nodes.
    pub nodes: usize,
    /// Pods that have not finished.
    pub pods: usize,
    /// Pods that were on a node before.
    pub bound_before: usize,
    /// Pods put on a node since.
    pub placed: usize,
    /// Pods that stay Pending.
    pub pending: usize,
    /// Pods of another scheduler.
    pub left_alone: usize,
    /// Pods that are Succeeded or Failed.
    pub finished: usize,
}

/// A workload at the end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadValues {
    /// `deployment/web`.
    pub of: String,
    /// Its namespace.
    pub namespace: String,
    /// Its own labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub labels: BTreeMap<String, String>,
    /// The labels of its pods, if they differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub pod_labels: BTreeMap<String, String>,
    /// Its pods that have not finished and do not terminate.
    pub replicas: usize,
    /// Those on a node that are ready.
    pub ready: usize,
    /// Those that were on a node before.
    pub bound_before: usize,
    /// Those put on a node since.
    pub placed: usize,
    /// Those of another scheduler.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub left_alone: usize,
    /// Terminating pods.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub terminating: usize,
    /// Pods that stay Pending, by reason, the largest group first.
    pub pending: Vec<PendingValues>,
    /// By the keys of its constraints, zone and node.
    pub spread: Vec<SpreadValues>,
    /// Pods on nodes by revision, if there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub revisions: BTreeMap<String, usize>,
    /// Pods that are Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finished: Option<Finished>,
}

/// Pods that stay Pending for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingValues {
    /// Their number.
    pub count: usize,
    /// The plugins that refused a node.
    pub blocked_by: Vec<&'static str>,
    /// kube-scheduler's complete message.
    pub message: String,
    /// The first of the pods.
    pub pod: String,
    /// The victims whose deletion was requested for that pod.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub preemption: Option<Eviction>,
}

/// The spread of a workload by a topology key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadValues {
    /// The topology key.
    pub by: String,
    /// The constraint over this key, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub constraint: Option<ConstraintValues>,
    /// The number of domains that count.
    pub domains: usize,
    /// Pods by domain; if there are many domains, empty ones are left out.
    pub counts: Counts,
    /// The largest minus the smallest count.
    pub skew: i32,
    /// Counts and skew before the step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<CountedBy>,
    /// The workload's own pods over the same domains, whatever the constraint counts; without a constraint they equal
    /// `counts`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub own: Option<CountedBy>,
    /// A probable mistake.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warning: Option<String>,
    /// Counted pods of other workloads.
    #[serde(skip_serializing_if = "is_none", default)]
    pub others: i64,
}

/// Pods by domain, with their skew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedBy {
    /// Pods by domain.
    pub counts: Counts,
    /// The largest minus the smallest count.
    pub skew: i32,
}

/// A constraint of the pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConstraintValues {
    /// `pod`, or `clusterDefault`.
    pub source: &'static str,
    /// Its index in the pods' spec, or in the defaults.
    pub index: usize,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: &'static str,
    /// `maxSkew`.
    pub max_skew: i32,
    /// `minDomains`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_domains: Option<i32>,
    /// The pods that count.
    pub selector: String,
    /// `matchLabelKeys`, if they have an effect.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub match_label_keys: Vec<String>,
    /// The scheduler's profile disables the part of PodTopologySpread that evaluates the constraint.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub without_effect: bool,
}

/// The largest skew of a workload's own pods by a key, during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaxSkew {
    /// The workload: `deployment/web`.
    pub of: String,
    /// Its namespace.
    pub namespace: String,
    /// The topology key.
    pub by: String,
    /// The largest minus the smallest count.
    pub skew: i32,
}

/// A pod that was put on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacedPod {
    /// Its name.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
    /// Its workload: `deployment/web`.
    pub of: String,
    /// The node.
    pub node: String,
}

/// Counts by domain, in the order of the domains.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct Counts(#[schemars(with = "BTreeMap<String, i32>")] pub Vec<(String, i32)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (domain, count) in &self.0 {
            map.serialize_entry(domain, count)?;
        }
        map.end()
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn is_none(count: &i64) -> bool {
    *count == 0
}

impl MomentValues {
    /// These workloads of a view, and the sum over all pods.
    pub fn of(view: &View, workloads: &[usize]) -> Self {
        Self {
            pods: totals(view),
            workloads: workloads.iter().map(|&w| workload(view, w)).collect(),
            nodes: Vec::new(),
            placements: Vec::new(),
        }
    }

    /// The same with its nodes and the placements of these workloads' pods.
    pub fn in_full(view: &View, workloads: &[usize]) -> Self {
        Self {
            nodes: view.nodes.clone(),
            placements: placements(view, workloads),
            ..Self::of(view, workloads)
        }
    }
}

fn totals(view: &View) -> Totals {
    let sum = |of: fn(&Summary) -> usize| view.summaries.iter().map(of).sum();
    Totals {
        workloads: view.world.workloads.len(),
        nodes: view.nodes.len(),
        pods: view.world.pods.len(),
        bound_before: sum(|s| s.before),
        placed: sum(|s| s.placed),
        pending: view.n_pending(),
        left_alone: sum(|s| s.left_alone),
        finished: view.world.finished.len(),
    }
}

pub(super) fn workload(view: &View, index: usize) -> WorkloadValues {
    let world = &view.world;
    let Workload {
        name,
        labels,
        pod_labels,
        ..
    } = &world.workloads[index];
    let summary = &view.summaries[index];
    let pending = summary.pending.iter().map(|group| PendingValues {
        count: group.entries.len(),
        blocked_by: group
            .blocked
            .by
            .iter()
            .map(|plugin| plugin.name())
            .collect(),
        message: group.blocked.message.clone(),
        pod: world.pods[group.entries[0]].name.to_string(),
        preemption: group.blocked.eviction.clone(),
    });
    WorkloadValues {
        of: name.of(),
        namespace: name.namespace.clone(),
        labels: labels.clone(),
        pod_labels: match pod_labels == labels {
            true => BTreeMap::new(),
            false => pod_labels.clone(),
        },
        replicas: summary.replicas,
        ready: summary.ready,
        bound_before: summary.before,
        placed: summary.placed,
        left_alone: summary.left_alone,
        terminating: summary.terminating,
        pending: pending.collect(),
        spread: view.spreads[index]
            .iter()
            .map(|s| spread(world, summary, s))
            .collect(),
        revisions: summary.revisions.clone(),
        finished: (summary.finished.count() > 0).then(|| summary.finished.clone()),
    }
}

/// The number of domains up to which all are written; of more, only those with pods.
const DOMAINS_WRITTEN: usize = 64;

pub(super) fn spread(world: &ClusterState, summary: &Summary, spread: &Spread) -> SpreadValues {
    let text = |symbol| world.cluster.names.text(symbol).to_owned();
    let counts = |of: fn(&Domain) -> i32| {
        let written = |d: Domain| (text(d.value), of(&d));
        Counts(match spread.domains.len() <= DOMAINS_WRITTEN {
            true => spread.domains.iter().map(written).collect(),
            false => {
                let occupied = spread.domains.occupied().filter(|d| of(d) != 0);
                occupied.map(written).collect()
            }
        })
    };
    let constraint = spread.constraint.as_ref().map(|c| ConstraintValues {
        source: if c.is_default {
            "clusterDefault"
        } else {
            "pod"
        },
        index: c.index,
        when_unsatisfiable: when_unsatisfiable(c.hard),
        max_skew: c.max_skew,
        min_domains: c.min_domains,
        selector: c.selector.clone(),
        match_label_keys: c.match_label_keys.iter().map(|&key| text(key)).collect(),
        without_effect: c.is_off,
    });
    SpreadValues {
        by: text(spread.key),
        constraint,
        domains: spread.domains.len(),
        counts: counts(|d| d.count),
        skew: spread.skew,
        own: spread.constraint.as_ref().map(|_| CountedBy {
            counts: counts(|d| d.own),
            skew: spread.own_skew,
        }),
        warning: warning(summary, spread),
        before: spread.skew_before.map(|skew| CountedBy {
            counts: counts(|d| d.before.unwrap_or(0)),
            skew,
        }),
        others: spread.n_others,
    }
}

/// A constraint that does not count its own pods does not spread them. In a rollout with matchLabelKeys, pods of other
/// revisions are not meant.
pub fn warning(summary: &Summary, spread: &Spread) -> Option<String> {
    let constraint = spread.constraint.as_ref()?;
    let n = spread.n_uncounted;
    if n == 0 || !summary.revisions.is_empty() {
        return None;
    }
    let own = spread.n_own;
    let pods = match n == own {
        true => format!("none of the {own} pods"),
        false => format!("only {} of the {own} pods", own - n),
    };
    let selector = &constraint.selector;
    Some(format!(
        "the constraint counts {pods} of the workload, so it does not spread them: its selector is {selector}"
    ))
}

/// The two values of the field.
pub fn when_unsatisfiable(hard: bool) -> &'static str {
    match hard {
        true => "DoNotSchedule",
        false => "ScheduleAnyway",
    }
}

/// The largest skews of these workloads, by their indexes in the list of all.
pub fn max_skews(all: &[Workload], of: &[usize], skews: &Skews) -> Vec<MaxSkew> {
    let each = of.iter().flat_map(|&workload| {
        let name = &all[workload].name;
        skews.of(workload).map(|(key, largest)| MaxSkew {
            of: name.of(),
            namespace: name.namespace.clone(),
            by: key.to_owned(),
            skew: largest.run,
        })
    });
    each.collect()
}

fn placements(view: &View, workloads: &[usize]) -> Vec<PlacedPod> {
    let world = &view.world;
    let mut shown = vec![false; world.workloads.len()];
    workloads.iter().for_each(|&index| shown[index] = true);
    let outcomes = view.outcomes.iter().zip(&world.pods);
    outcomes
        .filter_map(|(outcome, pod)| match outcome {
            PodOutcome::Placed(node) if shown[pod.workload] => Some(PlacedPod {
                pod: pod.name.to_string(),
                namespace: pod.namespace.to_string(),
                of: world.workloads[pod.workload].name.of(),
                node: world.node_name(*node).to_owned(),
            }),
            _ => None,
        })
        .collect()
}
