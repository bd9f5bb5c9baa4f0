//! The tables of nodes and pods, and their changes by facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Interner, Labels, Selector, Symbol};

use crate::census::{CensusKey, Censuses};
use crate::changes::ChangeLog;
use crate::class::{ClassId, ClassTables, PodClass};
use crate::eligibility::EligibleNodes;
use crate::fact::PodHistory;
use crate::images::Images;
use crate::index::{NodeIdx, PodIdx};
use crate::node_order::NodeOrder;
use crate::owners::{OwnerRef, Owners};
use crate::pod_spec::PodSpec;
use crate::topology::{KeyId, Topology, TopologyColumn};
use crate::volumes::{AttachLimits, ClaimFact, StorageClassFact, VolumeFact, Volumes};

mod audit;
mod counts;
mod draft;
mod nodes;
mod pod_table;
mod pods;
mod row;
mod sweep;

pub use draft::Draft;
use pod_table::PodTable;
pub use row::NodeRow;
use sweep::Sweeping;
pub use sweep::{Kept, Sweep};

/// A pod that has not finished.
#[derive(Debug, Clone)]
pub struct PodRow {
    /// Its identity.
    pub uid: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its class.
    pub class: ClassId,
    /// The node that it is bound to, or assumed on.
    pub node: Option<NodeIdx>,
    /// The parts of its status that preemption reads.
    pub history: PodHistory,
    /// Its index among the members of its class, while it is on a node.
    member: u32,
}

/// The number of node changes that a cache may miss before it must start again.
const CHANGES_REMEMBERED: usize = 8192;

/// The largest size of censuses with their tallies, in bytes.
const CENSUS_BYTES_MAX: usize = 64 << 20;

/// All nodes and pods, with the counts of them.
///
/// Facts may arrive in any order: a pod may name a node that is not known yet, and counts as soon as the node appears.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The strings of all facts.
    pub names: Interner,
    nodes: Vec<NodeRow>,
    node_by_name: FxHashMap<Symbol, NodeIdx>,
    nodes_free: Vec<NodeIdx>,
    nodes_present: usize,
    order: NodeOrder,
    topology: Topology,
    images: Images,
    owners: Owners,
    volumes: Volumes,
    namespaces: FxHashMap<Symbol, Labels>,
    tables: ClassTables,
    pods: PodTable,
    pod_by_uid: FxHashMap<Arc<str>, PodIdx>,
    /// The number of pods on nodes, by priority.
    priorities: BTreeMap<i32, u32>,
    censuses: Censuses,
    eligible: EligibleNodes,
    usage: ChangeLog,
    structure: ChangeLog,
    /// How often a class was weighed for a census.
    weighed: u64,
    sweeping: Sweeping,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}
// === what is there ===

impl Cluster {
    /// An empty cluster.
    pub fn new() -> Self {
        Self {
            names: Interner::new(),
            nodes: Vec::new(),
            node_by_name: FxHashMap::default(),
            nodes_free: Vec::new(),
            nodes_present: 0,
            order: NodeOrder::default(),
            topology: Topology::default(),
            images: Images::default(),
            owners: Owners::default(),
            volumes: Volumes::default(),
            namespaces: FxHashMap::default(),
            tables: ClassTables::default(),
            pods: PodTable::default(),
            pod_by_uid: FxHashMap::default(),
            priorities: BTreeMap::new(),
            censuses: Censuses::new(CENSUS_BYTES_MAX),
            eligible: EligibleNodes::default(),
            usage: ChangeLog::new(CHANGES_REMEMBERED),
            structure: ChangeLog::new(CHANGES_REMEMBERED),
            weighed: 0,
            sweeping: Sweeping::default(),
        }
    }

    /// A row of the table of nodes.
    #[inline]
    pub fn node(&self, node: NodeIdx) -> &NodeRow {
        &self.nodes[node.index()]
    }

    /// The number of rows in the table of nodes, unknown nodes included: the length of every column.
    pub fn node_rows(&self) -> usize {
        self.nodes.len()
    }

    /// The number of existing nodes.
    pub fn nodes_present(&self) -> usize {
        self.nodes_present
    }

    /// The row of a node by name, even if only pods name it.
    pub fn find_node(&self, name: Symbol) -> Option<NodeIdx> {
        self.node_by_name.get(&name).copied()
    }

    /// The nodes in kube-scheduler's order of visits, as of the last [`refresh_order`](Self::refresh_order).
    pub fn node_order(&self) -> &[NodeIdx] {
        debug_assert!(
            !self.order.is_stale(),
            "a decision begins with refresh_order"
        );
        self.order.list()
    }

    /// A node's position in [`node_order`](Self::node_order); `None` if it is not there.
    #[inline]
    pub fn node_position(&self, node: NodeIdx) -> Option<usize> {
        self.order.position(node)
    }

    /// Updates the order of nodes; a decision begins with this.
    pub fn refresh_order(&mut self) {
        self.order.refresh();
    }

    /// A pod.
    ///
    /// # Panics
    /// The pod is gone.
    #[inline]
    pub fn pod(&self, pod: PodIdx) -> &PodRow {
        self.pods
            .get(pod)
            .expect("an index is used only while its pod is there")
    }

    /// A pod, if it is still there.
    pub fn try_pod(&self, pod: PodIdx) -> Option<&PodRow> {
        self.pods.get(pod)
    }

    /// A pod by uid.
    pub fn find_pod(&self, uid: &str) -> Option<PodIdx> {
        self.pod_by_uid.get(uid).copied()
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = (PodIdx, &PodRow)> {
        self.pods.iter()
    }

    /// Label sets, specs and classes.
    pub fn tables(&self) -> &ClassTables {
        &self.tables
    }

    /// The class of a pod.
    #[inline]
    pub fn class_of(&self, pod: PodIdx) -> &PodClass {
        self.tables.class(self.pod(pod).class)
    }

    /// The spec of a pod.
    pub fn spec_of(&self, pod: PodIdx) -> &PodSpec {
        self.tables.spec(self.class_of(pod).key.spec)
    }

    /// The labels of a pod.
    pub fn labels_of(&self, pod: PodIdx) -> &Labels {
        self.tables.labels(self.class_of(pod).key.labels)
    }

    /// Services and controllers.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Claims, volumes, storage classes, and volume limits of nodes.
    pub fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// Images on nodes.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// Nodes whose pods changed.
    pub fn usage_changes(&self) -> &ChangeLog {
        &self.usage
    }

    /// Nodes that were added or removed, or whose own facts changed.
    pub fn structure_changes(&self) -> &ChangeLog {
        &self.structure
    }

    /// The column of a topology key.
    pub fn column(&self, key: KeyId) -> &TopologyColumn {
        self.topology.column(key)
    }
}
// === facts about all else ===

impl Cluster {
    /// Sets the selector of a Service; `None` if it was deleted, or has none.
    pub fn set_service(&mut self, namespace: Symbol, name: Symbol, selector: Option<Labels>) {
        self.owners.set_service(namespace, name, selector);
    }

    /// Sets the selector of a controller; `None` if it was deleted.
    pub fn set_controller(
        &mut self,
        namespace: Symbol,
        owner: OwnerRef,
        selector: Option<Selector>,
    ) {
        self.owners.set_controller(namespace, owner, selector);
    }

    /// Sets a claim, or removes it (`None`). Returns whether anything changed.
    pub fn set_claim(&mut self, namespace: Symbol, name: Symbol, fact: Option<ClaimFact>) -> bool {
        self.volumes.set_claim((namespace, name), fact)
    }

    /// Sets a volume, or removes it (`None`). Returns whether anything changed.
    pub fn set_volume(&mut self, name: Symbol, fact: Option<VolumeFact>) -> bool {
        self.volumes.set_volume(name, fact)
    }

    /// Sets a storage class, or removes it (`None`). Returns whether anything changed.
    pub fn set_storage_class(&mut self, name: Symbol, fact: Option<StorageClassFact>) -> bool {
        self.volumes.set_class(name, fact)
    }

    /// Sets a node's volume limit per driver, or removes it (`None`). Returns whether anything changed.
    pub fn set_attach_limits(&mut self, node: Symbol, limits: Option<AttachLimits>) -> bool {
        self.volumes.set_limits(node, limits)
    }

    /// Sets the labels of a namespace; `None` if it was deleted.
    pub fn set_namespace(&mut self, name: Symbol, labels: Option<Labels>) {
        if self.namespaces.get(&name) == labels.as_ref() {
            return;
        }
        match labels {
            Some(labels) => self.namespaces.insert(name, labels),
            None => self.namespaces.remove(&name),
        };
        // Only terms of pod affinity read labels of namespaces; they are counted again when needed.
        let mut dropped = Vec::new();
        self.censuses
            .drop_where(|key| !matches!(key, CensusKey::Spread { .. }), &mut dropped);
        self.forget_censuses(&dropped);
    }

    /// The labels of a namespace, if it is known.
    pub fn namespace_labels(&self, name: Symbol) -> Option<&Labels> {
        self.namespaces.get(&name)
    }
}
