//! A moment of a cluster: what there is, the engine that decides in it, and what belongs to which workload.

use std::sync::Arc;

use strew_cluster::{Cluster, NodeIdx, PodIdx};

use crate::schedulers::Schedulers;
use crate::workload::Workload;

/// A moment of a cluster.
pub struct World {
    /// Nodes, pods and what they are counted by.
    pub cluster: Cluster,
    /// What decides in it.
    pub schedulers: Schedulers,
    /// Each at its place.
    pub workloads: Vec<Workload>,
    /// Pods that have not finished, by namespace and name.
    pub pods: Vec<PodEntry>,
    /// Per workload its pods.
    pub members: Vec<Vec<usize>>,
    /// Namespaces and names of pods that are Succeeded or Failed: they count nowhere.
    pub finished: Vec<(Box<str>, Box<str>)>,
}

/// A pod that has not finished.
#[derive(Debug, Clone)]
pub struct PodEntry {
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// The place of its workload.
    pub workload: usize,
    /// Its row in the cluster.
    pub pod: PodIdx,
    /// How it stands.
    pub standing: Standing,
    /// Ready, and not being deleted.
    pub is_ready: bool,
    /// It is being deleted: it counts for no spread.
    pub is_leaving: bool,
    /// The hash of the template that it was made from.
    pub revision: Option<Arc<str>>,
}

/// How a pod stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
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

    /// The same world with its cluster as a plan has left it: the same rows of pods, other nodes and other places.
    pub fn continue_with(&mut self, mut cluster: Cluster) {
        let profiles = self.schedulers.profiles();
        // What engines remember is of the cluster before.
        let schedulers = Schedulers::of(&profiles, &mut cluster.names);
        let before = std::mem::replace(&mut self.schedulers, schedulers);
        self.schedulers.budgets = before.budgets;
        self.schedulers.nominations = before.nominations;
        self.cluster = cluster;
    }

    /// The node's name.
    pub fn node_name(&self, node: NodeIdx) -> &str {
        self.cluster.names.text(self.cluster.node(node).name())
    }

    /// The node that a pod is on.
    pub fn node_of(&self, entry: usize) -> Option<NodeIdx> {
        self.cluster.pod(self.pods[entry].pod).node
    }
}
