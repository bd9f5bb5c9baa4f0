//! A cluster without some of its nodes: how much room their pods would need, and why a pod could not go elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Resources, Symbol, Toleration, tolerates_all};
use strew_scheduler::explain::Cause;
use strew_scheduler::explain::constraint::{HardExplained, Warning};
use strew_scheduler::{PluginId, Reason};

use crate::cluster_state::ClusterState;
use crate::words::short_key;

/// Nodes, by name.
pub type Nodes<'a> = BTreeSet<&'a str>;

/// Amounts of CPU in thousandths of a core, and of memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Headroom {
    /// CPU that the pods in the domains request, DaemonSets' left out.
    pub needs_milli_cpu: i64,
    /// CPU that is free on the other nodes that take such pods: neither cordoned nor tainted for all of them.
    pub free_milli_cpu: i64,
    /// Memory that the pods request.
    pub needs_bytes: i64,
    /// Memory that is free elsewhere.
    pub free_bytes: i64,
}

impl Headroom {
    /// True if the sums elsewhere are too small. Sums that suffice do not mean that each pod finds a node.
    pub fn is_short(&self) -> bool {
        self.needs_milli_cpu > self.free_milli_cpu || self.needs_bytes > self.free_bytes
    }
}

/// The headroom without these nodes. `stays` is asked for each pod on them by its uid: true for one that is made on its
/// own node only. A node counts as free if one of the pods that move, or any pod, tolerates its taints.
pub fn headroom(world: &ClusterState, away: &Nodes<'_>, stays: impl Fn(&str) -> bool) -> Headroom {
    let mut found = Headroom::default();
    let cluster = &world.cluster;
    let mut tolerations: Vec<&[Toleration]> = vec![&[]];
    let (gone, left): (Vec<NodeIdx>, Vec<NodeIdx>) =
        nodes(cluster).partition(|&node| is_in(cluster, node, away));
    for pod in gone.iter().flat_map(|&node| cluster.node(node).pods()) {
        if stays(&cluster.pod(*pod).uid) {
            continue;
        }
        let spec = cluster.spec_of(*pod);
        found.needs_milli_cpu = found
            .needs_milli_cpu
            .saturating_add(spec.requests.cpu_milli);
        found.needs_bytes = found.needs_bytes.saturating_add(spec.requests.memory);
        if !tolerations.contains(&&*spec.tolerations) {
            tolerations.push(&spec.tolerations);
        }
    }
    for node in left {
        let row = cluster.node(node);
        let Some(fact) = row.fact() else { continue };
        let mut all = tolerations.iter();
        let is_tolerated = all.any(|tolerations| tolerates_all(tolerations, &fact.taints));
        if !fact.unschedulable && is_tolerated {
            let [cpu, memory] = free(&fact.allocatable, row.used());
            found.free_milli_cpu = found.free_milli_cpu.saturating_add(cpu);
            found.free_bytes = found.free_bytes.saturating_add(memory);
        }
    }
    found
}

fn free(allocatable: &Resources, used: &Resources) -> [i64; 2] {
    [
        allocatable.cpu_milli.saturating_sub(used.cpu_milli).max(0),
        allocatable.memory.saturating_sub(used.memory).max(0),
    ]
}

fn nodes(cluster: &Cluster) -> impl Iterator<Item = NodeIdx> + use<> {
    (0..cluster.node_rows()).map(NodeIdx::from)
}

/// Why a pod of some nodes could not be on another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no other node.
    NoNode,
    /// Its volume exists on these nodes only.
    Volume,
    /// Its node selector, its affinity or taints admit none of the others.
    Pool,
    /// Those that it may go to have no room for it: what they lack, by kube-scheduler's words, with the number of nodes.
    Room(BTreeMap<String, usize>),
    /// Those that it may go to are refused by this plugin.
    Other(&'static str),
    /// None: so many other nodes would take it.
    None(usize),
}

/// Plugins that say which nodes a pod may go to at all.
const POOL: [PluginId; 4] = [
    PluginId::NodeAffinity,
    PluginId::TaintToleration,
    PluginId::NodeName,
    PluginId::NodeUnschedulable,
];

const VOLUME: [PluginId; 2] = [PluginId::VolumeBinding, PluginId::VolumeZone];

const ROOM: [PluginId; 2] = [PluginId::NodeResourcesFit, PluginId::NodePorts];

/// Why a pod could not go to a node that is not away, by the scheduler's own filters at this moment; `None` if the pod is
/// not there. A pod on a node is taken off for the question.
pub fn obstacle(world: &mut ClusterState, uid: &str, away: &Nodes<'_>) -> Option<Obstacle> {
    let pod = world.cluster.find_pod(uid)?;
    let on = world.cluster.pod(pod).node;
    if on.is_some() {
        world.cluster.unbind(pod);
    }
    let found = without(world, pod, away);
    if let Some(node) = on {
        world.cluster.bind(pod, node);
    }
    Some(found)
}

fn without(world: &mut ClusterState, pod: PodIdx, away: &Nodes<'_>) -> Obstacle {
    let ClusterState {
        cluster,
        schedulers,
        ..
    } = &mut *world;
    let class = cluster.pod(pod).class;
    let nominations = schedulers.nominations.clone();
    let refused = schedulers
        .engine(cluster, class)
        .all_refusals(cluster, pod, &nominations);
    let there = nodes(cluster).filter(|&node| cluster.node(node).fact().is_some());
    let others: Vec<NodeIdx> = there.filter(|&node| !is_in(cluster, node, away)).collect();
    let n_others = others.len();
    let Some(&first) = others.first() else {
        return Obstacle::NoNode;
    };
    // A pod that is refused as a whole is refused by no node.
    let outright = match refused.is_empty() {
        true => schedulers
            .engine(cluster, class)
            .refusal_on(cluster, pod, first),
        false => None,
    };
    let outright = outright.map(|refusal| refusal.plugin);
    let is_away = |node: NodeIdx| is_in(cluster, node, away);
    let refused: Vec<_> = { refused.into_iter() }
        .filter(|refusals| !is_away(refusals.node))
        .collect();
    let n_taking = n_others.saturating_sub(refused.len());
    if n_taking > 0 {
        return match outright {
            Some(plugin) if VOLUME.contains(&plugin) => Obstacle::Volume,
            Some(plugin) => Obstacle::Other(plugin.name()),
            None => Obstacle::None(n_taking),
        };
    }
    let mut left: Vec<_> = refused.iter().map(|node| node.alone.as_slice()).collect();
    for (plugins, obstacle) in [
        (POOL.as_slice(), Obstacle::Pool),
        (&VOLUME, Obstacle::Volume),
    ] {
        left.retain(|node| !node.iter().any(|refusal| plugins.contains(&refusal.plugin)));
        if left.is_empty() {
            let volume = refused.iter().flat_map(|node| &node.alone);
            let has_volume = volume
                .clone()
                .any(|refusal| VOLUME.contains(&refusal.plugin));
            return match has_volume {
                true => Obstacle::Volume,
                false => obstacle,
            };
        }
    }
    let mut lacks: BTreeMap<String, usize> = BTreeMap::new();
    let all = left.iter().flat_map(|node| node.iter());
    for reason in all.flat_map(|refusal| {
        let counts = ROOM.contains(&refusal.plugin);
        refusal.reasons.iter().filter(move |_| counts)
    }) {
        *lacks.entry(reason_text(reason, cluster)).or_default() += 1;
    }
    left.retain(|node| !node.iter().any(|refusal| ROOM.contains(&refusal.plugin)));
    match left.first().and_then(|node| node.first()) {
        None => Obstacle::Room(lacks),
        Some(refusal) => Obstacle::Other(refusal.plugin.name()),
    }
}

/// Why the hard constraints of a Pending pod refuse the nodes that it may go to, where the reason is not a domain that
/// takes no pod of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusing {
    /// The constraint over this key asks for more domains than there are.
    MinDomains {
        /// The topology key.
        key: String,
        /// `minDomains`.
        min: i32,
        /// The domains that count.
        there: u32,
    },
    /// The constraint over this key counts domains that take no pod of it, though they are not lost: they hold the minimum
    /// down.
    Unusable {
        /// The topology key.
        key: String,
        /// The domains.
        domains: Vec<String>,
    },
    /// The constraint counts domains whose nodes are all lost, or cordoned.
    Lost,
    /// The constraint over this key counts pods of other workloads.
    Others {
        /// The topology key.
        key: String,
        /// The counted pods of other workloads.
        others: usize,
        /// All counted pods.
        all: usize,
    },
}

impl fmt::Display for Refusing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MinDomains { key, min, there } => write!(
                f,
                "minDomains {min} over {}, and there are {there}: each takes no more than maxSkew",
                short_key(key)
            ),
            Self::Unusable { key, domains } => write!(
                f,
                "its hard constraint over {} counts {}, which take{} no pod of it and hold{} the minimum down",
                short_key(key),
                domains.join(" and "),
                if domains.len() == 1 { "s" } else { "" },
                if domains.len() == 1 { "s" } else { "" },
            ),
            Self::Lost => {
                f.write_str("its hard constraint counts a domain that is lost or cordoned")
            }
            Self::Others { key, others, all } => write!(
                f,
                "{others} of the {all} pods that its hard constraint over {} counts are of other workloads",
                short_key(key)
            ),
        }
    }
}

/// What the engine's explanation says of the first hard constraint that refuses a domain that the pod may use. `None` if
/// none does, if no node is refused for constraints alone, or if the pod is not there.
pub fn refusing(world: &mut ClusterState, uid: &str) -> Option<Refusing> {
    let pod = world.cluster.find_pod(uid)?;
    let ClusterState {
        cluster,
        schedulers,
        ..
    } = &mut *world;
    let explanation = schedulers.explain(cluster, pod, None);
    // Where nodes lack room as well, another constraint would not place it.
    let is_of_skew = |cause: &Cause| matches!(cause, Cause::Skew { .. });
    let mut refused = explanation.refused.iter();
    if !refused.any(|node| !node.causes.is_empty() && node.causes.iter().all(is_of_skew)) {
        return None;
    }
    let refuses = |hard: &&HardExplained| {
        let mut usable = hard.domains.iter().filter(|domain| domain.usable > 0);
        usable.any(|domain| domain.check.is_some_and(|check| !check.allowed()))
    };
    let hard = explanation.hard.iter().find(refuses)?;
    let constraint = &hard.common.constraint;
    let key = cluster.names.text(constraint.key).to_owned();
    let there = hard.domains_existing;
    let min = constraint.min_domains.unwrap_or(0);
    if u32::try_from(min).is_ok_and(|min| min > there) {
        return Some(Refusing::MinDomains { key, min, there });
    }
    let holds_minimum = |warning: &Warning| matches!(warning, Warning::UnusableMinimum(_));
    if hard.common.warnings.iter().any(holds_minimum) {
        let usable = hard.domains.iter().filter(|d| d.exists() && d.usable > 0);
        let lowest = usable.map(|domain| domain.count).min().unwrap_or(0);
        let holding = hard.domains.iter();
        let holding = holding.filter(|d| d.exists_for_others_only() && d.count < lowest);
        let open = holding.filter(|domain| !is_closed(cluster, constraint.key, domain.value));
        let domains: Vec<String> = open
            .map(|domain| cluster.names.text(domain.value).to_owned())
            .collect();
        return Some(match domains.is_empty() {
            true => Refusing::Lost,
            false => Refusing::Unusable { key, domains },
        });
    }
    let workload = world.pods.iter().find(|entry| entry.pod == pod)?.workload;
    let own = world.members.get(workload)?.iter();
    let own: BTreeSet<PodIdx> = own.map(|&entry| world.pods[entry].pod).collect();
    let counted = hard.counted.iter();
    let others = counted.filter(|pod| !own.contains(pod)).count();
    (others > 0).then_some(Refusing::Others {
        key,
        others,
        all: hard.counted.len(),
    })
}

/// Taints of nodes of which the control plane hears nothing good.
const TROUBLE: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// True if all nodes of a domain are cordoned, not ready or unreachable.
fn is_closed(cluster: &Cluster, key: Symbol, value: Symbol) -> bool {
    let facts = nodes(cluster).filter_map(|node| cluster.node(node).fact());
    let mut its = facts.filter(|fact| fact.labels.get(key) == Some(value));
    its.all(|fact| {
        let mut taints = fact.taints.iter();
        fact.unschedulable || taints.any(|taint| TROUBLE.contains(&cluster.names.text(taint.key)))
    })
}

fn is_in(cluster: &Cluster, node: NodeIdx, away: &Nodes<'_>) -> bool {
    away.contains(cluster.names.text(cluster.node(node).name()))
}

fn reason_text(reason: &Reason, cluster: &Cluster) -> String {
    reason.text(&cluster.names)
}
