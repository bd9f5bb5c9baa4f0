//! A moment of a cluster: its objects, the engines that decide in it, and the workloads of pods.

use std::sync::Arc;

use strew_cluster::{Cluster, NodeIdx, PodIdx};

use crate::schedulers::Schedulers;
use crate::workload::Workload;

/// A moment of a cluster.
pub struct ClusterState {
    /// Nodes and pods, with their counts.
    pub cluster: Cluster,
    /// The schedulers.
    pub schedulers: Schedulers,
    /// All workloads; indexes refer to this list.
    pub workloads: Vec<Workload>,
    /// Pods that have not finished, by namespace and name.
    pub pods: Vec<PodEntry>,
    /// Per workload, the indexes of its pods.
    pub members: Vec<Vec<usize>>,
    /// Pods that are Succeeded or Failed, which do not count.
    pub finished: Vec<FinishedPod>,
}

/// A pod that is Succeeded or Failed.
#[derive(Debug, Clone)]
pub struct FinishedPod {
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// The index of its workload; `None` if that is not in the list.
    pub workload: Option<usize>,
    /// The node that it ran on; `None` if it ran on none, or the node is gone.
    pub node: Option<NodeIdx>,
    /// True if it is Failed.
    pub has_failed: bool,
}

/// A pod that has not finished.
#[derive(Debug, Clone)]
pub struct PodEntry {
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// The index of its workload.
    pub workload: usize,
    /// Its row in the cluster.
    pub pod: PodIdx,
    /// Its state.
    pub standing: PodState,
    /// True if it is ready and does not terminate.
    pub is_ready: bool,
    /// True if it terminates: then it counts for no spread.
    pub is_leaving: bool,
    /// The hash of the template that it was made from.
    pub revision: Option<Arc<str>>,
}

/// The state of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodState {
    /// On a node.
    Bound,
    /// In the queue.
    Waiting,
    /// It has scheduling gates.
    Gated,
    /// Another scheduler is responsible.
    OfAnother(Arc<str>),
    /// It terminates, and is on no node.
    Leaving,
}

impl ClusterState {
    /// A world without workloads.
    pub fn empty(cluster: Cluster, schedulers: Schedulers) -> Self {
        Self {
            cluster,
            schedulers,
            workloads: Vec::new(),
            pods: Vec::new(),
            members: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// The node's name.
    pub fn node_name(&self, node: NodeIdx) -> &str {
        self.cluster.names.text(self.cluster.node(node).name())
    }

    /// The node of a pod; `None` if it is on none.
    pub fn node_of(&self, entry: usize) -> Option<NodeIdx> {
        self.cluster.pod(self.pods[entry].pod).node
    }
}
