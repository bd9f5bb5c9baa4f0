//! A moment of a cluster as values of text and numbers: no symbol, no index, no engine. They can be sent to another
//! thread, compared and written.
//!
//! [`of`] makes them, from a moment of a simulation or from [`Facts`](crate::facts::Facts) alike. The counts are those of
//! [`spread`](mod@crate::spread), the one rule for domains that count.

mod moment;
mod objects;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod};
use strew_cluster::NodeIdx;
use strew_manifest::conditions::node_ready;

use crate::blocked::PodOutcome;
use crate::cluster_state::ClusterState;
use crate::moment::{Frame, Moment};
use crate::natural_order::natural_order;
use crate::spread;
use crate::usage::{self, Amounts, NodeUsage, quantities};
use crate::view::View;
pub use moment::{
    ConstraintValues, CountedBy, Counts, MaxSkew, MomentValues, PendingValues, PlacedPod,
    SpreadValues, Totals, WorkloadValues, max_skews, warning, when_unsatisfiable,
};
use objects::Objects;
pub use objects::services;

/// A cluster at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterValues {
    /// In the order of display.
    pub workloads: Vec<WorkloadDetail>,
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

/// A workload with its pods, and the constraints of each revision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDetail {
    /// Its counts.
    #[serde(flatten)]
    pub counts: WorkloadValues,
    /// `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its pods that have not finished, by name.
    pub members: Vec<PodValues>,
    /// The spread by each constraint of each revision or subset whose constraints differ.
    pub by_revision: Vec<RevisionSpread>,
}

impl WorkloadDetail {
    /// Kind, namespace and name: `Deployment shop/web`.
    pub fn id(&self) -> String {
        format!("{} {}/{}", self.kind, self.counts.namespace, self.name)
    }
}

/// The spread of pods by a constraint that these revisions have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionSpread {
    /// The revisions that have it; empty if the pods tell none.
    pub revisions: BTreeSet<String>,
    /// The constraint with its counts.
    #[serde(flatten)]
    pub spread: SpreadValues,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// When it was created, in seconds of Unix time.
    pub created: u64,
    /// The hash of the template that it was made from.
    pub revision: Option<String>,
    /// Why it is Pending, in the scheduler's words.
    pub pending: Option<String>,
    /// What it requests.
    #[serde(serialize_with = "quantities")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub requests: Amounts,
    /// The names of its PersistentVolumeClaims.
    pub claims: Vec<String>,
}

/// A node, and what is free on it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeValues {
    /// What it has, and what its pods request.
    #[serde(flatten)]
    pub usage: NodeUsage,
    /// False if its condition Ready is not true; true if it has none.
    pub ready: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// `KEY=VALUE:EFFECT`.
    pub taints: Vec<String>,
    /// What its pods leave; negative if they request more than there is.
    #[serde(serialize_with = "quantities")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub free: Amounts,
}

/// A domain, and what is free on its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainValues {
    /// The topology key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its nodes, by name.
    pub nodes: Vec<String>,
    /// The sum of what is free on those that are not cordoned; a node without room counts as zero.
    #[serde(serialize_with = "quantities")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub free: Amounts,
}

/// A Service and its endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceValues {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The ready pods that its selector selects; none without a selector.
    pub endpoints: Vec<EndpointValues>,
    /// The selected pods that are not ready.
    pub not_ready: Vec<String>,
}

/// A ready pod of a Service.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointValues {
    /// Its name, in the namespace of the Service.
    pub pod: String,
    /// Its node.
    pub node: Option<String>,
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    let workloads: Vec<WorkloadDetail> = (0..count)
        .map(|index| detail(&mut view, tables, index))
        .collect();
    let spreads = workloads.iter().flat_map(|workload| &workload.by_revision);
    let keys: BTreeSet<&str> = spreads.map(|of| of.spread.by.as_str()).collect();
    let nodes = nodes(&view.world, tables);
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

fn detail(view: &mut View, tables: &Tables, index: usize) -> WorkloadDetail {
    let name = view.world.workloads[index].name.clone();
    let members = view.world.members[index].iter();
    let mut members: Vec<PodValues> = members.map(|&entry| pod(view, tables, entry)).collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let spreads = spread::by_revision(&mut view.world, index).into_iter();
    let by_revision = spreads.map(|(revisions, spread)| RevisionSpread {
        revisions,
        spread: moment::spread(&view.world, &view.summaries[index], &spread),
    });
    WorkloadDetail {
        by_revision: by_revision.collect(),
        counts: moment::workload(view, index),
        kind: name.kind,
        name: name.name,
        members,
    }
}

fn pod(view: &View, tables: &Tables, entry: usize) -> PodValues {
    let world = &view.world;
    let pod = &world.pods[entry];
    let name = Name::new(pod.namespace.clone(), pod.name.clone());
    let stored = tables.get::<Pod>(&name);
    let created = stored.map_or(0, |stored| stored.meta.created.0 / NANOS);
    PodValues {
        name: pod.name.to_string(),
        node: world.node_of(entry).map(|n| world.node_name(n).to_owned()),
        ready: pod.is_ready,
        terminating: pod.is_leaving,
        revision: pod.revision.as_deref().map(str::to_owned),
        pending: match &view.outcomes[entry] {
            PodOutcome::Pending(blocked) => Some(blocked.message.clone()),
            _ => None,
        },
        requests: usage::amounts(world, &world.cluster.spec_of(pod.pod).requests),
        claims: stored.map_or_else(Vec::new, |stored| claims(stored)),
        created,
    }
}

/// The nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

fn claims(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.volumes.iter().flatten();
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.clone()).collect()
}

/// Every node, in the order of display.
pub(crate) fn nodes(world: &ClusterState, tables: &Tables) -> Vec<NodeValues> {
    let cluster = &world.cluster;
    let text = |symbol| cluster.names.text(symbol).to_owned();
    let of = |node: NodeIdx| {
        let fact = cluster.node(node).fact()?;
        let labels = fact.labels.iter();
        let usage = usage::of_node(world, node)?;
        Some(NodeValues {
            ready: is_ready(tables, &usage.name),
            labels: labels
                .map(|(key, value)| (text(key), text(value)))
                .collect(),
            taints: usage::taints(world, node),
            free: usage.free(),
            usage,
        })
    };
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    let mut nodes: Vec<NodeValues> = rows.filter_map(of).collect();
    nodes.sort_by(|a, b| natural_order(&a.usage.name, &b.usage.name));
    nodes
}

fn is_ready(tables: &Tables, node: &str) -> bool {
    let node = tables.get::<Node>(&Name::new("", node));
    let ready = node.and_then(|node| node_ready(&node.status));
    ready.is_none_or(|ready| ready == "True")
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
            domain.nodes.push(node.usage.name.clone());
            for (name, &free) in node.free.iter().filter(|_| !node.usage.unschedulable) {
                let sum = domain.free.entry(name.clone()).or_default();
                *sum = sum.saturating_add(free.max(0));
            }
        }
    }
    domains.into_values().collect()
}
