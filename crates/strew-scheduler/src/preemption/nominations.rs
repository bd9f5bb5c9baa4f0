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

/// Which pending pod is nominated to which node, by uid and by name: the node may not be there (any more).
///
/// Queries leave out pods that are gone or on a node by now.
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

    /// Those of all pending pods, from their `status.nominatedNodeName`. Cost: every pod is looked at.
    pub fn of(cluster: &Cluster) -> Self {
        let mut nominations = Self::new();
        for (_, row) in cluster.pods().filter(|(_, row)| row.node.is_none()) {
            nominations.set(&row.uid, row.history.nominated);
        }
        nominations
    }

    /// A pod is nominated to a node; `None`: to none (any more).
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

    /// The node that a pod is nominated to.
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

    /// The nodes that some pod is nominated to.
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

/// A node that refuses a pod as soon as the pods nominated to it are added.
#[derive(Debug, Clone)]
pub struct Barred {
    /// The node.
    pub node: NodeIdx,
    /// What the first plugin says then.
    pub refusal: Refusal,
    /// The pods that are nominated to it and whose priority is not below the pod's.
    pub nominated: Vec<PodIdx>,
}

/// What nominations, the pod's own among them, make of one decision.
#[derive(Debug, Default)]
pub(crate) struct NominationEffects {
    /// Nodes that refuse the pod as soon as the pods nominated to them are added.
    pub(crate) barred: Vec<Barred>,
    /// The node that the pod itself is nominated to, and why it is refused there nevertheless.
    pub(crate) own: Option<(NodeIdx, Option<Refusal>)>,
}

/// What nearly every decision has.
pub(crate) static NO_EFFECTS: NominationEffects = NominationEffects {
    barred: Vec::new(),
    own: None,
};

impl NominationEffects {
    /// `None`: neither others' nominations nor one of the pod itself.
    #[inline]
    pub(crate) fn of(cx: Cycle<'_>, pod: PodIdx, nominations: &Nominations) -> Option<Self> {
        let row = cx.cluster.pod(pod);
        let has_any = !nominations.is_empty() || row.history.nominated.is_some();
        has_any.then(|| Self::find(cx, row.class, pod, nominations))
    }

    /// Tries the pod on the nodes that nominations are about. Cost: the plan's tallies are copied, if there are any
    /// such nodes; nothing otherwise.
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

    /// Whether nothing is different from a decision without nominations.
    pub(crate) fn is_empty(&self) -> bool {
        self.barred.is_empty() && self.own.is_none()
    }

    /// Why a node is refused for the sake of pods nominated to it.
    pub(crate) fn bars(&self, node: NodeIdx) -> Option<&Refusal> {
        self.barred_by(node).map(|barred| &barred.refusal)
    }

    /// The node, if it refuses the pod for the sake of pods nominated to it.
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
