//! A moment of a cluster for programs: workloads with their pods by domain, what is Pending, nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use strew_view::blocked::{Eviction, Outcome};
use strew_view::skews::Skews;
use strew_view::spread::{Domain, Spread};
use strew_view::usage::{Usage, bytes_text, cpu_text};
use strew_view::view::{Finished, Summary, View};
use strew_view::workload::Workload;
use strew_view::world::World;

/// The state at a moment.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Moment {
    /// The sum over all pods, not only of the shown workloads.
    pods: Totals,
    workloads: Vec<WorkloadReport>,
    /// Only for the first step of a variant's first run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    nodes: Vec<NodeReport>,
    /// Pods that were put on a node, in order of arrival; only for the first step of a variant's first run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    placements: Vec<Placement>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Totals {
    workloads: usize,
    nodes: usize,
    pods: usize,
    bound_before: usize,
    placed: usize,
    pending: usize,
    left_alone: usize,
    finished: usize,
}

/// A workload at the end of a step.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WorkloadReport {
    of: String,
    namespace: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    labels: BTreeMap<String, String>,
    /// The labels of its pods, if they differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pod_labels: BTreeMap<String, String>,
    replicas: usize,
    ready: usize,
    bound_before: usize,
    placed: usize,
    #[serde(skip_serializing_if = "is_zero", default)]
    left_alone: usize,
    #[serde(skip_serializing_if = "is_zero", default)]
    terminating: usize,
    pending: Vec<PendingReport>,
    spread: Vec<SpreadReport>,
    /// Pods on nodes by revision, if there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    revisions: BTreeMap<String, usize>,
    /// Pods that are Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    finished: Option<FinishedReport>,
}

/// The finished pods of a workload, and where they ran.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FinishedReport {
    succeeded: usize,
    failed: usize,
    /// By the zones of nodes that are still there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    zones: BTreeMap<String, usize>,
    /// The number of nodes that they ran on.
    nodes: usize,
    /// The largest number on one node.
    most_on_a_node: usize,
}

impl FinishedReport {
    fn of(finished: &Finished) -> Option<Self> {
        (finished.count() > 0).then(|| Self {
            succeeded: finished.succeeded,
            failed: finished.failed,
            zones: finished.by_zone.clone(),
            nodes: finished.nodes,
            most_on_a_node: finished.most_on_a_node,
        })
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PendingReport {
    count: usize,
    blocked_by: Vec<&'static str>,
    /// kube-scheduler's complete message.
    message: String,
    /// The first of the pods.
    pod: String,
    /// The victims whose deletion was requested for that pod.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    preemption: Option<PreemptionReport>,
}

/// Pods that would be preempted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreemptionReport {
    node: String,
    /// The most important one first.
    victims: Vec<VictimReport>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VictimReport {
    pod: String,
    namespace: String,
}

impl From<&Eviction> for PreemptionReport {
    fn from(eviction: &Eviction) -> Self {
        let victims = eviction.victims.iter();
        let victims = victims.map(|(namespace, pod)| VictimReport {
            pod: pod.clone(),
            namespace: namespace.clone(),
        });
        Self {
            node: eviction.node.clone(),
            victims: victims.collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SpreadReport {
    by: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    constraint: Option<ConstraintReport>,
    /// The number of domains that count.
    domains: usize,
    /// Pods by domain; if there are many domains, empty ones are left out.
    counts: Counts,
    skew: i32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    before: Option<CountedBy>,
    /// The workload's own pods over the same domains, whatever the constraint counts; without a constraint they equal
    /// `counts`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    own: Option<CountedBy>,
    /// A probable mistake.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    warning: Option<String>,
    /// Counted pods of other workloads.
    #[serde(skip_serializing_if = "is_none", default)]
    others: i64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CountedBy {
    counts: Counts,
    skew: i32,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ConstraintReport {
    /// `pod`, or `clusterDefault`.
    source: &'static str,
    index: usize,
    when_unsatisfiable: &'static str,
    max_skew: i32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    min_domains: Option<i32>,
    selector: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    match_label_keys: Vec<String>,
    /// The scheduler's profile disables the part of PodTopologySpread that evaluates the constraint.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    without_effect: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MaxSkew {
    of: String,
    namespace: String,
    by: String,
    skew: i32,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NodeReport {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    zone: Option<String>,
    #[serde(skip_serializing_if = "is_false", default)]
    unschedulable: bool,
    allocatable: Amounts,
    requested: Amounts,
}

/// Quantities by resource, `pods` among them.
type Amounts = BTreeMap<String, String>;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Placement {
    pod: String,
    namespace: String,
    of: String,
    node: String,
}

/// Counts by domain, in the order of the domains.
#[derive(JsonSchema)]
struct Counts(#[schemars(with = "BTreeMap<String, i32>")] Vec<(String, i32)>);

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

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Moment {
    /// These workloads of a view, and the sum over all pods.
    pub(crate) fn of(view: &View, workloads: &[usize]) -> Self {
        Self {
            pods: totals(view),
            workloads: workloads.iter().map(|&w| workload(view, w)).collect(),
            nodes: Vec::new(),
            placements: Vec::new(),
        }
    }

    /// The same with its nodes and the placements of these workloads' pods.
    pub(crate) fn in_full(view: &View, workloads: &[usize]) -> Self {
        let nodes = view.nodes.iter().map(|usage| node(&view.world, usage));
        Self {
            nodes: nodes.collect(),
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

fn workload(view: &View, index: usize) -> WorkloadReport {
    let world = &view.world;
    let Workload {
        name,
        labels,
        pod_labels,
        ..
    } = &world.workloads[index];
    let summary = &view.summaries[index];
    let pending = summary.pending.iter().map(|group| PendingReport {
        count: group.entries.len(),
        blocked_by: group
            .blocked
            .by
            .iter()
            .map(|plugin| plugin.name())
            .collect(),
        message: group.blocked.message.clone(),
        pod: world.pods[group.entries[0]].name.to_string(),
        preemption: group.blocked.eviction.as_ref().map(Into::into),
    });
    WorkloadReport {
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
        finished: FinishedReport::of(&summary.finished),
    }
}

/// The number of domains up to which all are written; of more, only those with pods.
const DOMAINS_WRITTEN: usize = 64;

fn spread(world: &World, summary: &Summary, spread: &Spread) -> SpreadReport {
    let text = |symbol| world.cluster.names.text(symbol).to_owned();
    let counts = |of: fn(&Domain) -> i32| {
        let all = spread.domains.len() <= DOMAINS_WRITTEN;
        let written = spread.domains.iter().filter(|d| all || of(d) != 0);
        Counts(written.map(|d| (text(d.value), of(d))).collect())
    };
    let constraint = spread.constraint.as_ref().map(|c| ConstraintReport {
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
    SpreadReport {
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
pub(crate) fn warning(summary: &Summary, spread: &Spread) -> Option<String> {
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
pub(crate) fn when_unsatisfiable(hard: bool) -> &'static str {
    match hard {
        true => "DoNotSchedule",
        false => "ScheduleAnyway",
    }
}

/// The largest skews of these workloads, by their indexes in the list of all.
pub(crate) fn max_skews(all: &[Workload], of: &[usize], skews: &Skews) -> Vec<MaxSkew> {
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

fn node(world: &World, usage: &Usage) -> NodeReport {
    let amounts = |cpu: i64, memory: i64, storage: i64, pods: i64| {
        let mut amounts = Amounts::new();
        amounts.insert("cpu".to_owned(), cpu_text(cpu));
        amounts.insert("memory".to_owned(), bytes_text(memory));
        if usage.allocatable.ephemeral_storage > 0 {
            amounts.insert("ephemeral-storage".to_owned(), bytes_text(storage));
        }
        amounts.insert("pods".to_owned(), pods.to_string());
        amounts
    };
    let (has, used) = (&usage.allocatable, &usage.requested);
    let mut allocatable = amounts(
        has.cpu_milli,
        has.memory,
        has.ephemeral_storage,
        usage.pods_max,
    );
    let mut requested = amounts(
        used.cpu_milli,
        used.memory,
        used.ephemeral_storage,
        usage.n_pods as i64,
    );
    for (name, used, has) in usage.scalars(world) {
        allocatable.insert(name.clone(), has.to_string());
        requested.insert(name, used.to_string());
    }
    NodeReport {
        name: usage.name.clone(),
        zone: usage.zone.clone(),
        unschedulable: usage.unschedulable,
        allocatable,
        requested,
    }
}

fn placements(view: &View, workloads: &[usize]) -> Vec<Placement> {
    let world = &view.world;
    let mut shown = vec![false; world.workloads.len()];
    workloads.iter().for_each(|&index| shown[index] = true);
    let outcomes = view.outcomes.iter().zip(&world.pods);
    outcomes
        .filter_map(|(outcome, pod)| match outcome {
            Outcome::Placed(node) if shown[pod.workload] => Some(Placement {
                pod: pod.name.to_string(),
                namespace: pod.namespace.to_string(),
                of: world.workloads[pod.workload].name.of(),
                node: world.node_name(*node).to_owned(),
            }),
            _ => None,
        })
        .collect()
}
