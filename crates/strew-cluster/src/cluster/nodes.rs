//! Facts about nodes.

use strew_model::Symbol;

use super::{Cluster, NodeRow};
use crate::fact::NodeFact;
use crate::index::NodeIdx;
use crate::node_order::zone_key;

impl Cluster {
    /// Sets the current state of a node.
    pub fn set_node(&mut self, fact: NodeFact) -> NodeIdx {
        let node = self.node_slot(fact.name);
        if self.nodes[node.index()].fact.as_ref() == Some(&fact) {
            return node;
        }
        let zone = zone_key(&fact.labels);
        match self.detach_node(node) {
            Some(before) => self.order.rezone(node, zone_key(&before.labels), zone),
            None => {
                self.order.add(node, zone);
                self.nodes_present += 1;
            }
        }
        self.images.add(&fact.images);
        self.topology.set_node(node, Some(&fact.labels));
        self.nodes[node.index()].fact = Some(fact);
        self.attach_node(node);
        node
    }

    /// Removes a node. Its pods stay known until they are removed too.
    pub fn remove_node(&mut self, name: Symbol) {
        let Some(node) = self.find_node(name) else {
            return;
        };
        if let Some(before) = self.detach_node(node) {
            self.order.remove(node, zone_key(&before.labels));
            self.nodes_present -= 1;
            self.topology.set_node(node, None);
            self.attach_node(node);
            self.forget_if_empty(node);
        }
    }

    /// Frees the row of a node that does not exist and that no pod names, so that a cluster whose nodes always have new
    /// names does not grow.
    pub(super) fn forget_if_empty(&mut self, node: NodeIdx) {
        let row = &self.nodes[node.index()];
        if row.fact.is_none() && row.pods.is_empty() {
            self.node_by_name.remove(&row.name);
            self.nodes_free.push(node);
        }
    }

    /// Removes a node from all counts, and returns its fact.
    fn detach_node(&mut self, node: NodeIdx) -> Option<NodeFact> {
        self.censuses
            .detach_node(node, &self.eligible, &self.topology);
        let fact = self.nodes[node.index()].fact.take()?;
        self.images.remove(&fact.images);
        Some(fact)
    }

    fn attach_node(&mut self, node: NodeIdx) {
        let row = &self.nodes[node.index()];
        self.eligible.refresh(node, row, &self.tables, &self.names);
        self.censuses
            .attach_node(node, self.nodes.len(), &self.eligible, &self.topology);
        self.structure.push(node);
        self.usage.push(node);
    }

    pub(super) fn node_slot(&mut self, name: Symbol) -> NodeIdx {
        if let Some(node) = self.find_node(name) {
            return node;
        }
        let node = match self.nodes_free.pop() {
            Some(node) => {
                self.nodes[node.index()] = NodeRow::new(name);
                node
            }
            None => {
                self.nodes.push(NodeRow::new(name));
                NodeIdx::from(self.nodes.len() - 1)
            }
        };
        self.node_by_name.insert(name, node);
        self.topology.set_node(node, None);
        self.eligible
            .refresh(node, &self.nodes[node.index()], &self.tables, &self.names);
        self.censuses.grow(self.nodes.len());
        node
    }
}
