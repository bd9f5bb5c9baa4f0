//! The outcome of a pod, and why it is on no node.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;
use strew_cluster::{NodeIdx, PodIdx};
use strew_scheduler::preemption;
use strew_scheduler::{Decision, PluginId, Preemption, Unfit};

use crate::cluster_state::ClusterState;

/// The outcome of a pod.
#[derive(Debug, Clone)]
pub enum PodOutcome {
    /// It was on a node before.
    WasBound,
    /// It was put on a node since.
    Placed(NodeIdx),
    /// It is on no node, for this reason.
    Pending(Rc<Blocked>),
    /// Another scheduler is responsible, or it is terminating.
    LeftAlone,
}

/// Why a pod is on no node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Blocked {
    /// kube-scheduler's full message, as in the pod's condition.
    pub message: String,
    /// The plugins that refused a node, in the order in which they run.
    pub by: Vec<PluginId>,
    /// The preemption that would make room for it, or is in progress.
    pub eviction: Option<Eviction>,
}

/// The victims of a preemption.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Eviction {
    /// The node that they are on.
    pub node: String,
    /// The most important one first.
    pub victims: Vec<Victim>,
}

/// A pod that must go for another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Victim {
    /// Its name.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
}

/// The API server's message about a pod with gates.
pub const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

impl Blocked {
    /// Why a pod is refused at present; `None` if it is not.
    pub fn now(world: &mut ClusterState, pod: PodIdx) -> Option<Self> {
        let ClusterState {
            cluster,
            schedulers,
            ..
        } = world;
        let Decision::Unfit(unfit) = schedulers.decide(cluster, pod) else {
            return None;
        };
        let preemption = schedulers.preempt(cluster, pod, &unfit);
        Some(Self::of(world, &unfit, &preemption))
    }

    fn of(world: &ClusterState, unfit: &Unfit, preemption: &Preemption) -> Self {
        let mut by: Vec<PluginId> = match unfit {
            Unfit::NoNodes => Vec::new(),
            Unfit::PreFilter(refusal) => vec![refusal.plugin],
            Unfit::EveryNode(refusals) => refusals
                .counted()
                .map(|(refusal, _)| refusal.plugin)
                .collect(),
        };
        by.sort_unstable();
        by.dedup();
        Self {
            message: preemption.message(unfit, &world.cluster),
            by,
            eviction: Eviction::of(world, preemption),
        }
    }
}

impl Eviction {
    fn of(world: &ClusterState, preemption: &Preemption) -> Option<Self> {
        let preemption::Outcome::Preempt(eviction) = &preemption.outcome else {
            return None;
        };
        let cluster = &world.cluster;
        let name = |&pod: &PodIdx| {
            let namespace = cluster.class_of(pod).key.namespace;
            Victim {
                pod: cluster.pod(pod).name.to_string(),
                namespace: cluster.names.text(namespace).to_owned(),
            }
        };
        Some(Self {
            node: world.node_name(eviction.node).to_owned(),
            victims: eviction.victims.iter().map(name).collect(),
        })
    }
}
