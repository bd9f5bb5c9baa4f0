//! What stands against a node, and what counts on it: the output of `strew explain node/NAME -o json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strew_cluster::NodeIdx;

use super::{API_VERSION, PodExplanation};
use crate::cluster_state::ClusterState;
use crate::natural_order::natural_order;
use crate::spread::rule;
use crate::usage::{bytes_short, bytes_text, cpu_short, cpu_text, of_nodes, taints};
use crate::view::View;

/// A node with its pods, resources and constraints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `NodeExplanation`
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The value of its zone label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// The status of its condition Ready if that is not True: `False`, `Unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// `key=value:effect`
    pub taints: Vec<String>,
    /// CPU, memory, pods, and what else it has.
    pub resources: Vec<Amounts>,
    /// By namespace and name.
    pub pods: Vec<OnNode>,
    /// Of all workloads that have pods.
    pub constraints: Vec<Counting>,
    /// One of each group that waits for the same reason.
    pub pending: Vec<Judged>,
}

/// A resource of the node; exact amounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Amounts {
    /// Its name.
    pub name: String,
    /// What no pod has requested.
    pub free: String,
    /// The sum of its pods' requests.
    pub requested: String,
    /// What pods may request.
    pub allocatable: String,
}

/// A pod on the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnNode {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `Deployment web`, as tables name it.
    pub workload: String,
    /// What it requests.
    pub cpu: String,
    /// What it requests.
    pub memory: String,
}

/// The counts of a workload's constraints and topology on the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counting {
    /// `Deployment web`, as tables name it.
    pub workload: String,
    /// The constraint's.
    pub topology_key: String,
    /// `DoNotSchedule maxSkew 1`
    pub constraint: String,
    /// The node's domain; `None` if it lacks the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// True if pods on the node, and the node's domain, are counted.
    pub counts: bool,
    /// The pods in that domain.
    pub pods: i32,
    /// That of the constraint.
    pub skew: i32,
}

/// Pending pods that wait for the same reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    /// The first of them.
    pub pod: String,
    /// How many wait.
    pub n_pods: usize,
    /// Why the node refuses it; absent if the node would take it.
    pub causes: Vec<String>,
}

/// Workloads whose Pending pods are judged: each costs a decision over all nodes.
const PENDING_MAX: usize = 20;

impl NodeExplanation {
    /// Of a node by its name; `not_ready` is the status of its condition Ready if that is not True.
    ///
    /// # Errors
    /// There is none of that name: the names of all nodes.
    pub fn of(mut view: View, name: &str, not_ready: Option<String>) -> Result<Self, Vec<String>> {
        let world = &mut view.world;
        let node = world.cluster.names.get(name);
        let node = node.and_then(|name| world.cluster.find_node(name));
        let usages = of_nodes(world);
        let usage = usages.iter().find(|usage| usage.name == name);
        let (Some(node), Some(usage)) = (node, usage) else {
            return Err(usages.into_iter().map(|usage| usage.name).collect());
        };
        let amounts = |name: &str, text: fn(i64) -> String| {
            let (used, has) = usage.of(name);
            Amounts {
                name: name.to_owned(),
                free: text(has.saturating_sub(used)),
                requested: text(used),
                allocatable: text(has),
            }
        };
        let number = |n: i64| n.to_string();
        let known = [
            ("cpu", cpu_text as fn(i64) -> String),
            ("memory", bytes_text),
            ("pods", number),
        ];
        let known = known.into_iter();
        let others = usage
            .others()
            .map(|(name, ..)| (name, number as fn(i64) -> String));
        let resources = known
            .chain(others)
            .map(|(name, text)| amounts(name, text))
            .collect();
        let taints = taints(world, node);
        let pods = pods_on(world, node);
        let constraints = counting(&mut view, node);
        let pending = judged(&mut view, name);
        Ok(Self {
            api_version: API_VERSION.to_owned(),
            kind: "NodeExplanation".to_owned(),
            name: name.to_owned(),
            zone: usage.zone.clone(),
            unschedulable: usage.unschedulable,
            not_ready,
            taints,
            resources,
            pods,
            constraints,
            pending,
        })
    }
}

fn pods_on(world: &ClusterState, node: NodeIdx) -> Vec<OnNode> {
    let entries = (0..world.pods.len()).filter(|&entry| world.node_of(entry) == Some(node));
    let mut pods: Vec<OnNode> = entries
        .map(|entry| {
            let pod = &world.pods[entry];
            let used = &world.cluster.spec_of(pod.pod).used;
            OnNode {
                namespace: pod.namespace.to_string(),
                name: pod.name.to_string(),
                workload: world.workloads[pod.workload].name.of(),
                cpu: cpu_short(used.cpu_milli),
                memory: bytes_short(used.memory),
            }
        })
        .collect();
    pods.sort_by(|a, b| {
        let by_namespace = a.namespace.cmp(&b.namespace);
        by_namespace.then_with(|| natural_order(&a.name, &b.name))
    });
    pods
}

/// The constraints of all workloads that have pods, with what they say of the node.
fn counting(view: &mut View, node: NodeIdx) -> Vec<Counting> {
    let mut all = Vec::new();
    for (workload, spreads) in view.spreads.iter().enumerate() {
        let world = &mut view.world;
        let first = world.members[workload].first();
        let Some(class) = first.map(|&entry| world.cluster.pod(world.pods[entry].pod).class) else {
            continue;
        };
        for spread in spreads {
            let Some(constraint) = spread.constraint.as_ref().filter(|c| !c.is_off) else {
                continue;
            };
            let rule = rule(world, class, spread.key);
            let cluster = &world.cluster;
            let row = cluster.node(node);
            let counts = rule.admits(row, cluster.tables(), &cluster.names);
            let value = row.fact().and_then(|fact| fact.labels.get(spread.key));
            let domain = value.and_then(|v| spread.domains.occupied().find(|d| d.value == v));
            let action = match constraint.hard {
                true => "DoNotSchedule",
                false => "ScheduleAnyway",
            };
            all.push(Counting {
                workload: world.workloads[workload].name.of(),
                topology_key: cluster.names.text(spread.key).to_owned(),
                constraint: format!("{action} maxSkew {}", constraint.max_skew),
                domain: value.map(|value| cluster.names.text(value).to_owned()),
                counts,
                pods: domain.map_or(0, |domain| domain.count),
                skew: spread.skew,
            });
        }
    }
    all
}

/// What the node has against Pending pods, one of each group.
fn judged(view: &mut View, node: &str) -> Vec<Judged> {
    let groups = view.summaries.iter().flat_map(|summary| &summary.pending);
    let groups: Vec<(usize, usize)> = groups
        .filter_map(|group| Some((*group.entries.first()?, group.entries.len())))
        .take(PENDING_MAX)
        .collect();
    let world = &mut view.world;
    let judged = groups.into_iter().map(|(entry, n_pods)| {
        let pod = world.pods[entry].pod;
        let explanation = world.schedulers.explain(&mut world.cluster, pod, None);
        let wire = PodExplanation::of(&explanation, None, &world.cluster);
        let outright = wire
            .refused_outright
            .iter()
            .flat_map(|refusal| &refusal.reasons);
        let here = wire.refused.iter().filter(|refused| refused.name == node);
        let causes = here
            .flat_map(|refused| &refused.causes)
            .map(|cause| &cause.text);
        let entry = &world.pods[entry];
        Judged {
            pod: format!("{}/{}", entry.namespace, entry.name),
            n_pods,
            causes: outright.chain(causes).cloned().collect(),
        }
    });
    judged.collect()
}
