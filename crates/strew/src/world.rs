//! A moment of a cluster: what there is, the engine that decides in it, and what belongs to which workload.

use std::sync::Arc;

use strew_cluster::{Cluster, NodeIdx, PodIdx};

use crate::configuration::CompatArg;
use crate::schedulers::Schedulers;
use crate::workload::Workload;

/// A moment of a cluster.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) schedulers: Schedulers,
    pub(crate) compat: CompatArg,
    pub(crate) workloads: Vec<Workload>,
    /// Pods that have not finished, by namespace and name.
    pub(crate) pods: Vec<PodEntry>,
    /// Per workload its pods.
    pub(crate) members: Vec<Vec<usize>>,
    /// Namespaces and names of pods that are Succeeded or Failed: they count nowhere.
    pub(crate) finished: Vec<(Box<str>, Box<str>)>,
}

/// A pod that has not finished.
#[derive(Debug, Clone)]
pub(crate) struct PodEntry {
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) workload: usize,
    pub(crate) pod: PodIdx,
    pub(crate) standing: Standing,
    pub(crate) is_ready: bool,
    /// It is being deleted: it counts for no spread.
    pub(crate) is_leaving: bool,
    pub(crate) revision: Option<Arc<str>>,
}

/// How a pod stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// On a node.
    Bound,
    /// In the queue.
    Waiting,
    /// It has scheduling gates.
    Gated,
    /// It is another scheduler's.
    OfAnother(Arc<str>),
    /// It is being deleted, and was on no node.
    Leaving,
}

impl World {
    pub(crate) fn empty(cluster: Cluster, schedulers: Schedulers, compat: CompatArg) -> Self {
        Self {
            cluster,
            schedulers,
            compat,
            workloads: Vec::new(),
            pods: Vec::new(),
            members: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// The node's name.
    pub(crate) fn node_name(&self, node: NodeIdx) -> &str {
        self.cluster.names.text(self.cluster.node(node).name())
    }

    /// The node that a pod is on.
    pub(crate) fn node_of(&self, entry: usize) -> Option<NodeIdx> {
        self.cluster.pod(self.pods[entry].pod).node
    }
}
