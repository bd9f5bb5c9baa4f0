//! Changes of a cluster that can be taken back.

use std::ops::Deref;
use std::sync::Arc;

use strew_model::Symbol;

use super::Cluster;
use crate::class::ClassId;
use crate::fact::{NodeFact, PodFact};
use crate::index::{NodeIdx, PodIdx};
use crate::node_order::{NodeOrder, zone_key};
use crate::pod_spec::PodSpec;
use crate::volumes::ClaimKey;

/// A cluster with changes that can be taken back. What is not [kept](Self::keep) is taken back on drop.
///
/// After that the facts, their rows and every order that a decision can see are as before. What was counted or interned
/// in between stays known, and so do rows that are free.
///
/// Cost: what the changes touch; a change of the order of nodes copies that order.
#[derive(Debug)]
pub struct Draft<'a> {
    cluster: &'a mut Cluster,
    log: Vec<Entry>,
}

/// The state before a change.
#[derive(Debug)]
enum Entry {
    Node {
        name: Symbol,
        /// `None`: there was no such node.
        fact: Option<Box<NodeFact>>,
        /// `None`: the change keeps it.
        order: Option<Box<NodeOrder>>,
    },
    Pod {
        pod: PodIdx,
        class: ClassId,
        /// Its node, with its index among the pods there.
        place: Option<(NodeIdx, usize)>,
        /// The volumes that were assumed for its claims.
        assumed: Vec<(ClaimKey, Option<Symbol>)>,
    },
    Added(Arc<str>),
    Renamed {
        pod: PodIdx,
        name: Arc<str>,
    },
}

impl<'a> Draft<'a> {
    /// A draft without changes.
    pub fn new(cluster: &'a mut Cluster) -> Self {
        let log = Vec::new();
        Self { cluster, log }
    }

    /// The number of changes so far: a mark for [`undo_to`](Self::undo_to).
    pub fn n_changes(&self) -> usize {
        self.log.len()
    }

    /// The names of the nodes that changed after the first `n` changes, with duplicates.
    pub fn nodes_since(&self, n: usize) -> impl Iterator<Item = Symbol> + '_ {
        self.log[n..].iter().filter_map(|entry| match entry {
            Entry::Node { name, .. } => Some(*name),
            _ => None,
        })
    }

    /// The pods that changed after the first `n` changes, with duplicates.
    pub fn pods_since(&self, n: usize) -> impl Iterator<Item = PodIdx> + '_ {
        self.log[n..].iter().filter_map(|entry| match entry {
            Entry::Pod { pod, .. } => Some(*pod),
            Entry::Added(uid) => self.cluster.find_pod(uid),
            Entry::Node { .. } | Entry::Renamed { .. } => None,
        })
    }

    /// The cluster for decisions, which may count and intern. Facts that are changed through it are not taken back.
    pub fn deciding(&mut self) -> &mut Cluster {
        self.cluster
    }

    /// The symbol of a text.
    pub fn intern(&mut self, text: &str) -> Symbol {
        self.cluster.names.intern(text)
    }

    /// Sets the current state of a node.
    pub fn set_node(&mut self, fact: NodeFact) -> NodeIdx {
        let known = self.cluster.find_node(fact.name);
        let before = known.and_then(|node| self.cluster.node(node).fact().cloned());
        let zone = |fact: &NodeFact| zone_key(&fact.labels);
        let stays = before.as_ref().is_some_and(|b| zone(b) == zone(&fact));
        self.log.push(Entry::Node {
            name: fact.name,
            fact: before.map(Box::new),
            order: (!stays).then(|| Box::new(self.cluster.order.clone())),
        });
        self.cluster.set_node(fact)
    }

    /// Removes a node; its pods stay on it.
    pub fn remove_node(&mut self, name: Symbol) {
        let node = self.cluster.find_node(name);
        let Some(fact) = node.and_then(|node| self.cluster.node(node).fact().cloned()) else {
            return;
        };
        self.log.push(Entry::Node {
            name,
            fact: Some(Box::new(fact)),
            order: Some(Box::new(self.cluster.order.clone())),
        });
        self.cluster.remove_node(name);
    }

    /// Adds a pod with a uid that no pod has; otherwise does nothing. Returns the pod with the uid.
    pub fn add_pod(&mut self, fact: PodFact) -> PodIdx {
        if let Some(known) = self.cluster.find_pod(&fact.uid) {
            return known;
        }
        self.log.push(Entry::Added(Arc::clone(&fact.uid)));
        self.cluster.set_pod(fact)
    }

    /// Binds a pod to a node.
    pub fn bind(&mut self, pod: PodIdx, node: NodeIdx) {
        self.note_pod(pod);
        self.cluster.bind(pod, node);
    }

    /// Unbinds a pod.
    pub fn unbind(&mut self, pod: PodIdx) {
        if self.cluster.pod(pod).node.is_some() {
            self.note_pod(pod);
            self.cluster.unbind(pod);
        }
    }

    /// Changes a pod's spec.
    pub fn respec(&mut self, pod: PodIdx, spec: &PodSpec) {
        self.note_pod(pod);
        self.cluster.respec(pod, spec);
    }

    /// Gives a pod that is on no node another name, as the pod has that is made in its place: the claims of its generic
    /// ephemeral volumes are those of that name.
    pub fn rename(&mut self, pod: PodIdx, name: Arc<str>) {
        let row = self.cluster.row_mut(pod);
        debug_assert!(row.node.is_none(), "its node counts the claims of its name");
        let name = std::mem::replace(&mut row.name, name);
        self.log.push(Entry::Renamed { pod, name });
    }

    /// Takes all changes back after the first `n`.
    pub fn undo_to(&mut self, n: usize) {
        while self.log.len() > n
            && let Some(entry) = self.log.pop()
        {
            self.cluster.undo(entry);
        }
    }

    /// Ends the draft with its changes.
    pub fn keep(mut self) {
        self.log.clear();
    }

    fn note_pod(&mut self, pod: PodIdx) {
        let cluster = &*self.cluster;
        let row = cluster.pod(pod);
        let place = row.node.map(|node| {
            let pods = cluster.node(node).pods();
            (node, pods.iter().position(|&p| p == pod).unwrap_or(0))
        });
        let claims = cluster.claims_of(pod);
        let assumed = claims.map(|key| (key, cluster.volumes.assumed(key)));
        self.log.push(Entry::Pod {
            pod,
            class: row.class,
            place,
            assumed: assumed.collect(),
        });
    }
}

impl Deref for Draft<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        self.undo_to(0);
    }
}

impl Cluster {
    /// Takes the last change back that was not taken back yet.
    fn undo(&mut self, entry: Entry) {
        match entry {
            Entry::Node { name, fact, order } => {
                match fact {
                    Some(fact) => drop(self.set_node(*fact)),
                    None => self.remove_node(name),
                }
                if let Some(order) = order {
                    self.order = *order;
                }
            }
            Entry::Pod {
                pod,
                class,
                place,
                assumed,
            } => {
                self.take_off(pod);
                if self.pod(pod).class != class {
                    self.set_class(pod, class);
                }
                if let Some((node, place)) = place {
                    self.put_on(pod, Some(node));
                    let pods = &mut self.nodes[node.index()].pods;
                    pods.pop();
                    pods.insert(place.min(pods.len()), pod);
                }
                for (claim, volume) in assumed {
                    self.volumes.set_assumed(claim, volume);
                }
            }
            Entry::Added(uid) => self.remove_pod(&uid),
            Entry::Renamed { pod, name } => self.row_mut(pod).name = name,
        }
    }
}
