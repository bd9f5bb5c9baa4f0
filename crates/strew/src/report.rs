//! The result for programs: kind `SimulationReport`, versioned, without any wall-clock time.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::configuration::SchedulingArgs;
use crate::story::Done;
use crate::text::time_text;
use crate::version;
use strew_view::blocked::{Eviction, Outcome};
use strew_view::skews::Skews;
use strew_view::spread::{Domain, Spread};
use strew_view::usage::{Usage, bytes_text, cpu_text};
use strew_view::view::{Summary, View};
use strew_view::workload::Workload;
use strew_view::world::World;

/// The version of everything that strew writes for programs.
pub(crate) const API_VERSION: &str = "report.strew.dev/v1alpha1";

/// `SimulationReport`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    api_version: &'static str,
    kind: &'static str,
    /// The kube-scheduler whose decisions these are.
    kubernetes: &'static str,
    compat: &'static str,
    seed: u64,
    /// Of the first step, as `nodes` and `placements` are.
    summary: Totals,
    steps: Vec<Step>,
    /// The largest skew of each workload and key, at the end of any instant.
    max_skew: Vec<MaxSkew>,
    nodes: Vec<NodeReport>,
    /// Pods that were put on a node, in order of arrival.
    placements: Vec<Placement>,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// When the cluster came to rest, or the step was ended.
    at: String,
    step: &'static str,
    /// What was lost or restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// What was not done, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
    workloads: Vec<WorkloadReport>,
}

/// A workload at the end of a step.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadReport {
    of: String,
    namespace: String,
    replicas: usize,
    ready: usize,
    bound_before: usize,
    placed: usize,
    #[serde(skip_serializing_if = "is_zero")]
    left_alone: usize,
    #[serde(skip_serializing_if = "is_zero")]
    terminating: usize,
    pending: Vec<PendingReport>,
    spread: Vec<SpreadReport>,
    /// Pods on nodes by revision, where there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    revisions: BTreeMap<String, usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingReport {
    count: usize,
    blocked_by: Vec<&'static str>,
    /// kube-scheduler's whole text.
    message: String,
    /// The first of them.
    pod: String,
    /// Who is told to go to make room for that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    preemption: Option<PreemptionReport>,
}

/// Pods that would have to go.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreemptionReport {
    node: String,
    /// Most important first.
    victims: Vec<VictimReport>,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpreadReport {
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraint: Option<ConstraintReport>,
    /// How many domains count.
    domains: usize,
    /// Pods by domain; with many domains, those that hold none are left out.
    counts: Counts,
    skew: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<BeforeReport>,
    /// Counted pods that are not the workload's own.
    #[serde(skip_serializing_if = "is_none")]
    others: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BeforeReport {
    counts: Counts,
    skew: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConstraintReport {
    /// `pod`, or `clusterDefault`.
    source: &'static str,
    index: usize,
    when_unsatisfiable: &'static str,
    max_skew: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_domains: Option<i32>,
    selector: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    match_label_keys: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MaxSkew {
    of: String,
    namespace: String,
    by: String,
    skew: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeReport {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    unschedulable: bool,
    allocatable: Amounts,
    requested: Amounts,
}

/// Quantities by resource, `pods` among them.
type Amounts = BTreeMap<String, String>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Placement {
    pod: String,
    namespace: String,
    of: String,
    node: String,
}

/// Counts by domain, in the order of the domains.
struct Counts(Vec<(String, i32)>);

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

impl Step {
    /// A step that is over, and these workloads.
    pub(crate) fn of(done: &Done, view: &View, shown: &[usize]) -> Self {
        Self {
            at: time_text(done.at),
            step: done.step.name(),
            target: done.target.clone(),
            refused: done.refused.clone(),
            workloads: workloads(view, shown),
        }
    }
}

/// What a moment's report says of these workloads.
pub(crate) fn workloads(view: &View, shown: &[usize]) -> Vec<WorkloadReport> {
    shown.iter().map(|&index| workload(view, index)).collect()
}

impl Report {
    /// The report on these workloads; `view` is of the end of the first step.
    pub(crate) fn of(
        view: &View,
        workloads: &[usize],
        scheduling: &SchedulingArgs,
        steps: Vec<Step>,
        skews: &Skews,
    ) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "SimulationReport",
            kubernetes: version::KUBERNETES,
            compat: scheduling.compat.name(),
            seed: scheduling.seed.unwrap_or(0),
            summary: totals(view),
            steps,
            max_skew: max_skews(&view.world.workloads, workloads, skews),
            nodes: view
                .nodes
                .iter()
                .map(|usage| node(&view.world, usage))
                .collect(),
            placements: placements(view, workloads),
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
    let name = &world.workloads[index].name;
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
        replicas: summary.replicas,
        ready: summary.ready,
        bound_before: summary.before,
        placed: summary.placed,
        left_alone: summary.left_alone,
        terminating: summary.terminating,
        pending: pending.collect(),
        spread: view.spreads[index]
            .iter()
            .map(|s| spread(world, s))
            .collect(),
        revisions: summary.revisions.clone(),
    }
}

/// Domains that are all written out; of more, only those that hold pods.
const DOMAINS_WRITTEN: usize = 64;

fn spread(world: &World, spread: &Spread) -> SpreadReport {
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
    });
    SpreadReport {
        by: text(spread.key),
        constraint,
        domains: spread.domains.len(),
        counts: counts(|d| d.count),
        skew: spread.skew,
        before: spread.skew_before.map(|skew| BeforeReport {
            counts: counts(|d| d.before.unwrap_or(0)),
            skew,
        }),
        others: spread.n_others,
    }
}

/// The field's two values.
pub(crate) fn when_unsatisfiable(hard: bool) -> &'static str {
    match hard {
        true => "DoNotSchedule",
        false => "ScheduleAnyway",
    }
}

/// The largest skews of these workloads, by their places in the list of all.
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
