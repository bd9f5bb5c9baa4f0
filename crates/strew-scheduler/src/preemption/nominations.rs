//! Nominations: pods with a nominated node on which they are not bound yet.
//!
//! Source: spec/scheduler §2.4, step 3, and §2.6.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_cluster::{ClassId, Cluster, NodeIdx, PodIdx};
use strew_model::{Holds, Marks, Symbol};

use super::tryout::Tryout;
use crate::cycle::Cycle;
use crate::status::Refusal;

/// The nominated nodes of pending pods, by the pod's uid and the node's name: the node need not exist.
///
/// Queries leave out pods that are gone or bound.
#[derive(Debug, Clone, Default)]
pub struct Nominations {
    node_of: BTreeMap<Arc<str>, Symbol>,
    pods_of: BTreeMap<Symbol, Vec<Arc<str>>>,
}

impl Nominations {
    /// No nominations.
    pub const fn new() -> Self {
        Self {
            node_of: BTreeMap::new(),
            pods_of: BTreeMap::new(),
        }
    }

    /// The nominations of all pending pods, from their `status.nominatedNodeName`. Cost: visits every pod.
    pub fn of(cluster: &Cluster) -> Self {
        let mut nominations = Self::new();
        for (_, row) in cluster.pods().filter(|(_, row)| row.node.is_none()) {
            nominations.set(&row.uid, row.history.nominated);
        }
        nominations
    }

    /// Sets the nomination of a pod; `None` clears it.
    pub fn set(&mut self, uid: &Arc<str>, node: Option<Symbol>) {
        if let Some(before) = self.node_of.remove(uid)
            && let Some(pods) = self.pods_of.get_mut(&before)
        {
            pods.retain(|other| other != uid);
            if pods.is_empty() {
                self.pods_of.remove(&before);
            }
        }
        if let Some(node) = node {
            self.node_of.insert(Arc::clone(uid), node);
            self.pods_of.entry(node).or_default().push(Arc::clone(uid));
        }
    }

    /// The nominated node of a pod.
    pub fn node_of(&self, uid: &str) -> Option<Symbol> {
        self.node_of.get(uid).copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.node_of.is_empty()
    }

    /// Other pods nominated to a node whose priority is not below the pod's: the pod must fit beside them.
    pub(crate) fn beside(&self, cluster: &Cluster, pod: PodIdx, node: NodeIdx) -> Vec<PodIdx> {
        let own = cluster.spec_of(pod).priority;
        let counts = |&other: &PodIdx| other != pod && cluster.spec_of(other).priority >= own;
        self.waiting(cluster, node).filter(counts).collect()
    }

    /// Pods nominated to a node whose priority is below the pod's.
    pub(crate) fn below(&self, cluster: &Cluster, pod: PodIdx, node: NodeIdx) -> Vec<PodIdx> {
        let own = cluster.spec_of(pod).priority;
        let lower = |&other: &PodIdx| cluster.spec_of(other).priority < own;
        self.waiting(cluster, node).filter(lower).collect()
    }

    fn waiting<'a>(
        &'a self,
        cluster: &'a Cluster,
        node: NodeIdx,
    ) -> impl Iterator<Item = PodIdx> + 'a {
        let pods = self.pods_of.get(&cluster.node(node).name());
        let pods = pods.into_iter().flatten();
        let found = pods.filter_map(|uid| cluster.find_pod(uid));
        found.filter(|&pod| cluster.pod(pod).node.is_none())
    }

    /// The nodes with nominated pods.
    fn nodes<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = NodeIdx> + 'a {
        let found = self.pods_of.keys();
        let found = found.filter_map(|&name| cluster.find_node(name));
        found.filter(|&node| cluster.node(node).fact().is_some())
    }
}

impl Holds for Nominations {
    fn mark(&self, marks: &mut Marks) {
        self.pods_of.keys().for_each(|node| node.mark(marks));
    }
}

/// A node that refuses a pod when the pods nominated to the node are added.
#[derive(Debug, Clone)]
pub struct Barred {
    /// The node.
    pub node: NodeIdx,
    /// The refusal of the first plugin then.
    pub refusal: Refusal,
    /// The pods nominated to it whose priority is not below the pod's.
    pub nominated: Vec<PodIdx>,
}

/// The effects of nominations, the pod's own included, on one decision.
#[derive(Debug, Default)]
pub(crate) struct NominationEffects {
    /// Nodes that refuse the pod when the pods nominated to them are added.
    pub(crate) barred: Vec<Barred>,
    /// The pod's own nominated node, with the refusal if it does not take the pod.
    pub(crate) own: Option<(NodeIdx, Option<Refusal>)>,
}

/// The effects in nearly all decisions: none.
pub(crate) static NO_EFFECTS: NominationEffects = NominationEffects {
    barred: Vec::new(),
    own: None,
};

impl NominationEffects {
    /// `None` if there are no relevant nominations.
    #[inline]
    pub(crate) fn of(cx: Cycle<'_>, pod: PodIdx, nominations: &Nominations) -> Option<Self> {
        let row = cx.cluster.pod(pod);
        let has_any = !nominations.is_empty() || row.history.nominated.is_some();
        has_any.then(|| Self::find(cx, row.class, pod, nominations))
    }

    /// Tries the pod on the nodes of nominations. Cost: copies the plan's tallies if there are such nodes; otherwise
    /// nothing.
    fn find(cx: Cycle<'_>, class: ClassId, pod: PodIdx, nominations: &Nominations) -> Self {
        let cluster = cx.cluster;
        let mut claims = Self::default();
        let mut tryout = None;
        for node in nominations.nodes(cluster) {
            let beside = nominations.beside(cluster, pod, node);
            if beside.is_empty() {
                continue;
            }
            let tryout = tryout.get_or_insert_with(|| Tryout::new(cx, class));
            let refusal = tryout.on(node).refusal_beside(&beside);
            claims.barred.extend(refusal.map(|refusal| Barred {
                node,
                refusal,
                nominated: beside,
            }));
        }
        let own = cluster.pod(pod).history.nominated;
        let own = own.and_then(|name| cluster.find_node(name));
        claims.own = own
            .filter(|&node| cluster.node(node).fact().is_some())
            .map(|node| {
                let barred = claims.bars(node).cloned();
                (node, barred.or_else(|| cx.first_refusal(node)))
            });
        claims
    }

    /// True if the decision is the same as without nominations.
    pub(crate) fn is_empty(&self) -> bool {
        self.barred.is_empty() && self.own.is_none()
    }

    /// Why a node is refused because of pods nominated to it.
    pub(crate) fn bars(&self, node: NodeIdx) -> Option<&Refusal> {
        self.barred_by(node).map(|barred| &barred.refusal)
    }

    /// The node's entry, if it refuses the pod because of pods nominated to it.
    pub(crate) fn barred_by(&self, node: NodeIdx) -> Option<&Barred> {
        self.barred.iter().find(|barred| barred.node == node)
    }

    /// The pod's own nominated node, if it still takes the pod.
    pub(crate) fn granted(&self) -> Option<NodeIdx> {
        match self.own {
            Some((node, None)) => Some(node),
            _ => None,
        }
    }

    /// The pod's own nominated node, if it does not take the pod, and why.
    pub(crate) fn denied(&self) -> Option<(NodeIdx, &Refusal)> {
        let (node, refusal) = self.own.as_ref()?;
        Some((*node, refusal.as_ref()?))
    }
}
