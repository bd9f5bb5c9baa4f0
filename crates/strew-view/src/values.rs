//! A moment of a cluster as values of text and numbers: no symbol, no index, no engine. They can be sent to another
//! thread, compared and written.
//!
//! [`of`] makes them, from a moment of a simulation or from [`Facts`](crate::facts::Facts) alike. The counts are those of
//! [`spread`](mod@crate::spread), the one rule for domains that count.

mod objects;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Pod};
use strew_cluster::NodeIdx;
use strew_model::Resources;

use crate::blocked::Outcome;
use crate::moment::{Frame, Moment};
use crate::spread::{self, Spread};
use crate::view::View;
use crate::world::World;
use objects::Objects;

/// A cluster at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterValues {
    /// In the order of display.
    pub workloads: Vec<WorkloadValues>,
    /// By name.
    pub nodes: Vec<NodeValues>,
    /// The domains of every topology key that a constraint names, by key and value.
    pub domains: Vec<DomainValues>,
    /// By namespace and name, as all that follow.
    pub services: Vec<ServiceValues>,
    /// PodDisruptionBudgets.
    pub budgets: Vec<BudgetValues>,
    /// PersistentVolumeClaims.
    pub claims: Vec<ClaimValues>,
    /// PersistentVolumes.
    pub volumes: Vec<VolumeValues>,
    /// HorizontalPodAutoscalers.
    pub autoscalers: Vec<AutoscalerValues>,
    /// WorkloadSpreads.
    pub workload_spreads: Vec<WorkloadSpreadValues>,
    /// Placements.
    pub placements: Vec<PlacementValues>,
}

/// A workload with its pods and constraints.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadValues {
    /// `Deployment`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its own labels.
    pub labels: BTreeMap<String, String>,
    /// Its pods that have not finished, by name.
    pub pods: Vec<PodValues>,
    /// Pods that are Succeeded, and Failed.
    pub finished: (usize, usize),
    /// One for each constraint of each revision or subset whose constraints differ.
    pub constraints: Vec<ConstraintValues>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodValues {
    /// Its name, in the namespace of its workload.
    pub name: String,
    /// `None`: it is on no node.
    pub node: Option<String>,
    /// True if it is ready and does not terminate.
    pub ready: bool,
    /// True if it terminates.
    pub terminating: bool,
    /// The hash of the template that it was made from.
    pub revision: Option<String>,
    /// Why it is Pending, in the scheduler's words.
    pub pending: Option<String>,
    /// What it requests.
    pub requests: Amounts,
    /// The names of its PersistentVolumeClaims.
    pub claims: Vec<String>,
}

/// A constraint of a workload's pods, with what it counts and the workload's own pods.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConstraintValues {
    /// The revisions that have it; empty if the pods tell none.
    pub revisions: BTreeSet<String>,
    /// The index in the pods' spec, or in the defaults.
    pub index: usize,
    /// True for a default of the cluster.
    pub is_default: bool,
    /// The topology key.
    pub topology_key: String,
    /// `whenUnsatisfiable: DoNotSchedule`.
    pub hard: bool,
    /// `maxSkew`.
    pub max_skew: i32,
    /// `minDomains`.
    pub min_domains: Option<i32>,
    /// The pods that count, with the labels of `matchLabelKeys`.
    pub selector: String,
    /// `matchLabelKeys`, if they have an effect.
    pub match_label_keys: Vec<String>,
    /// True if the pods' profile does not evaluate it.
    pub is_off: bool,
    /// The largest minus the smallest count.
    pub skew: i32,
    /// The same for the workload's own pods.
    pub own_skew: i32,
    /// Every domain that counts, or has pods of the workload.
    pub counts: Vec<DomainCount>,
    /// Counted pods of other workloads.
    pub others: i64,
    /// The workload's own pods on nodes that the selector does not select.
    pub uncounted: i32,
}

/// The pods of a constraint in a domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainCount {
    /// The value of the topology key.
    pub domain: String,
    /// Pods that the constraint counts.
    pub counted: i32,
    /// The workload's own.
    pub own: i32,
}

/// A node, and what is free on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeValues {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// True if it is cordoned.
    pub unschedulable: bool,
    /// `KEY=VALUE:EFFECT`.
    pub taints: Vec<String>,
    /// What it has for pods.
    pub allocatable: Amounts,
    /// What its pods leave; negative if they request more than there is.
    pub free: Amounts,
}

/// A domain, and what is free on its nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainValues {
    /// The topology key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its nodes, by name.
    pub nodes: Vec<String>,
    /// The sum of what is free on those that are not cordoned; a node without room counts as zero.
    pub free: Amounts,
}

/// Amounts of resources: CPU in thousandths of a core, memory and storage in bytes, others by name.
pub type Amounts = BTreeMap<String, i64>;

/// A Service and its endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The ready pods that its selector selects; none without a selector.
    pub endpoints: Vec<String>,
    /// The selected pods that are not ready.
    pub not_ready: Vec<String>,
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `minAvailable`, as written.
    pub min_available: Option<String>,
    /// `maxUnavailable`, as written.
    pub max_unavailable: Option<String>,
    /// The pods that it selects.
    pub pods: Vec<String>,
    /// Those of them that are ready.
    pub healthy: usize,
    /// `status.disruptionsAllowed`; `None` without a status.
    pub disruptions_allowed: Option<i32>,
}

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The volume that it is bound to.
    pub volume: Option<String>,
    /// The class; `None`: the default one.
    pub class: Option<String>,
}

/// A PersistentVolume.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeValues {
    /// Its name.
    pub name: String,
    /// `NAMESPACE/NAME` of its claim.
    pub claim: Option<String>,
    /// The nodes that can mount it; `None`: the volume does not say, so all can.
    pub nodes: Option<Vec<String>>,
}

/// A HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `Deployment/web`.
    pub target: String,
    /// `minReplicas`, 1 if absent.
    pub min: i32,
    /// `maxReplicas`.
    pub max: i32,
}

/// A WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpreadValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `Deployment/web`; `None` without a target.
    pub target: Option<String>,
    /// The names of its subsets, in their order.
    pub subsets: Vec<String>,
}

/// A Placement.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `numberOfClusters`; `None`: all that match.
    pub wanted: Option<i32>,
    /// The clusters of its PlacementDecisions, by name.
    pub clusters: Vec<String>,
}

/// The values of a moment.
pub fn of(moment: Moment<'_>, frame: &mut Frame) -> ClusterValues {
    let tables = moment.tables;
    let mut view = View::of(moment, frame, None);
    let count = view.world.workloads.len();
    let workloads: Vec<WorkloadValues> = (0..count)
        .map(|index| workload(&mut view, tables, index))
        .collect();
    let keys = workloads.iter().flat_map(|workload| &workload.constraints);
    let keys: BTreeSet<&str> = keys.map(|c| c.topology_key.as_str()).collect();
    let nodes = nodes(&view.world);
    let domains = domains(&nodes, &keys);
    let objects = Objects::of(tables, &view.world);
    ClusterValues {
        domains,
        nodes,
        workloads,
        services: objects.services,
        budgets: objects.budgets,
        claims: objects.claims,
        volumes: objects.volumes,
        autoscalers: objects.autoscalers,
        workload_spreads: objects.workload_spreads,
        placements: objects.placements,
    }
}

fn workload(view: &mut View, tables: &Tables, index: usize) -> WorkloadValues {
    let name = view.world.workloads[index].name.clone();
    let members = view.world.members[index].iter();
    let mut pods: Vec<PodValues> = members.map(|&entry| pod(view, tables, entry)).collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    let finished = &view.summaries[index].finished;
    let finished = (finished.succeeded, finished.failed);
    let constraints = spread::by_revision(&mut view.world, index).into_iter();
    let constraints =
        constraints.filter_map(|(revisions, spread)| constraint(&view.world, revisions, &spread));
    WorkloadValues {
        kind: name.kind,
        namespace: name.namespace,
        name: name.name,
        labels: view.world.workloads[index].labels.clone(),
        pods,
        finished,
        constraints: constraints.collect(),
    }
}

fn pod(view: &View, tables: &Tables, entry: usize) -> PodValues {
    let world = &view.world;
    let pod = &world.pods[entry];
    let name = Name::new(pod.namespace.clone(), pod.name.clone());
    let claims = tables.get::<Pod>(&name).map(|stored| claims(stored));
    PodValues {
        name: pod.name.to_string(),
        node: world.node_of(entry).map(|n| world.node_name(n).to_owned()),
        ready: pod.is_ready,
        terminating: pod.is_leaving,
        revision: pod.revision.as_deref().map(str::to_owned),
        pending: match &view.outcomes[entry] {
            Outcome::Pending(blocked) => Some(blocked.message.clone()),
            _ => None,
        },
        requests: amounts(world, &world.cluster.spec_of(pod.pod).requests, None),
        claims: claims.unwrap_or_default(),
    }
}

fn claims(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.volumes.iter().flatten();
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.clone()).collect()
}

fn constraint(
    world: &World,
    revisions: BTreeSet<String>,
    spread: &Spread,
) -> Option<ConstraintValues> {
    let constraint = spread.constraint.as_ref()?;
    let text = |symbol| world.cluster.names.text(symbol).to_owned();
    let keys = constraint.match_label_keys.iter();
    let counts = spread.domains.iter().map(|domain| DomainCount {
        domain: text(domain.value),
        counted: domain.count,
        own: domain.own,
    });
    Some(ConstraintValues {
        revisions,
        index: constraint.index,
        is_default: constraint.is_default,
        topology_key: text(spread.key),
        hard: constraint.hard,
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains,
        selector: constraint.selector.clone(),
        match_label_keys: keys.map(|&key| text(key)).collect(),
        is_off: constraint.is_off,
        skew: spread.skew,
        own_skew: spread.own_skew,
        counts: counts.collect(),
        others: spread.n_others,
        uncounted: spread.n_uncounted,
    })
}

/// Amounts by name; with `pods`, that number too.
fn amounts(world: &World, resources: &Resources, pods: Option<i64>) -> Amounts {
    let mut amounts = Amounts::new();
    let mut set = |name: &str, amount| {
        amounts.insert(name.to_owned(), amount);
    };
    set("cpu", resources.cpu_milli);
    set("memory", resources.memory);
    set("ephemeral-storage", resources.ephemeral_storage);
    for &(name, amount) in resources.scalars() {
        set(world.cluster.names.text(name), amount);
    }
    if let Some(pods) = pods {
        set("pods", pods);
    }
    amounts
}

fn nodes(world: &World) -> Vec<NodeValues> {
    let cluster = &world.cluster;
    let text = |symbol| cluster.names.text(symbol).to_owned();
    let of = |node: NodeIdx| {
        let row = cluster.node(node);
        let fact = row.fact()?;
        let allocatable = amounts(world, &fact.allocatable, Some(fact.pods_max));
        let n_pods = i64::try_from(row.pods().len()).unwrap_or(i64::MAX);
        let used = amounts(world, row.used(), Some(n_pods));
        let left = |(name, has): (&String, &i64)| {
            let used = used.get(name).copied().unwrap_or(0);
            (name.clone(), has.saturating_sub(used))
        };
        let taint = |taint: &strew_model::Taint| {
            let (key, value) = (text(taint.key), text(taint.value));
            format!("{key}={value}:{:?}", taint.effect)
        };
        Some(NodeValues {
            name: text(fact.name),
            labels: { fact.labels.iter() }
                .map(|(key, value)| (text(key), text(value)))
                .collect(),
            unschedulable: fact.unschedulable,
            taints: fact.taints.iter().map(taint).collect(),
            free: allocatable.iter().map(left).collect(),
            allocatable,
        })
    };
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    let mut nodes: Vec<NodeValues> = rows.filter_map(of).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes
}

fn domains(nodes: &[NodeValues], keys: &BTreeSet<&str>) -> Vec<DomainValues> {
    let mut domains: BTreeMap<(&str, &str), DomainValues> = BTreeMap::new();
    for node in nodes {
        for &key in keys {
            let Some(value) = node.labels.get(key) else {
                continue;
            };
            let domain = domains.entry((key, value)).or_insert_with(|| DomainValues {
                key: key.to_owned(),
                value: value.clone(),
                nodes: Vec::new(),
                free: Amounts::new(),
            });
            domain.nodes.push(node.name.clone());
            for (name, &free) in node.free.iter().filter(|_| !node.unschedulable) {
                let sum = domain.free.entry(name.clone()).or_default();
                *sum = sum.saturating_add(free.max(0));
            }
        }
    }
    domains.into_values().collect()
}
