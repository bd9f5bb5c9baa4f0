//! kube-scheduler's order of nodes: one node of each zone in turn.
//!
//! Source: `pkg/scheduler/backend/cache/node_tree.go`, v1.36.3; spec/scheduler §0 (zone key) and §4.6.

use strew_model::{Holds, Labels, Marks, Symbol, well_known};

use crate::index::NodeIdx;
use crate::topology::MISSING;

/// Region and zone; both empty if the node has neither label.
pub type ZoneKey = (Symbol, Symbol);

/// The zone key of a node with these labels; labels from before v1.17 take precedence.
pub fn zone_key(labels: &Labels) -> ZoneKey {
    let first = |old, new| {
        labels
            .get(old)
            .or_else(|| labels.get(new))
            .unwrap_or(well_known::EMPTY)
    };
    (
        first(well_known::REGION_BETA, well_known::REGION),
        first(well_known::ZONE_BETA, well_known::ZONE),
    )
}

/// Nodes by zone in order of arrival, and the list made from them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeOrder {
    /// Zones in order of first appearance; an emptied zone is removed.
    zones: Vec<(ZoneKey, Vec<NodeIdx>)>,
    list: Vec<NodeIdx>,
    /// By node: its position in the list, or [`MISSING`].
    positions: Vec<u32>,
    stale: bool,
}

impl NodeOrder {
    /// Adds a node.
    pub fn add(&mut self, node: NodeIdx, zone: ZoneKey) {
        self.enter(node, zone);
        self.stale = true;
    }

    /// Removes a node.
    pub fn remove(&mut self, node: NodeIdx, zone: ZoneKey) {
        self.leave(node, zone);
        self.stale = true;
    }

    /// Changes a node's zone. The list keeps the old order until a node is added or removed, as upstream's does.
    pub fn rezone(&mut self, node: NodeIdx, from: ZoneKey, to: ZoneKey) {
        if from != to {
            self.leave(node, from);
            self.enter(node, to);
        }
    }

    /// Rebuilds the list if nodes were added or removed.
    pub fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.list.clear();
        let longest = self
            .zones
            .iter()
            .map(|(_, nodes)| nodes.len())
            .max()
            .unwrap_or(0);
        for round in 0..longest {
            let of_round = self.zones.iter().filter_map(|(_, nodes)| nodes.get(round));
            self.list.extend(of_round);
        }
        let rows = self.list.iter().map(|n| n.index() + 1).max().unwrap_or(0);
        self.positions.clear();
        self.positions.resize(rows, MISSING);
        for (position, node) in self.list.iter().enumerate() {
            self.positions[node.index()] = position as u32;
        }
    }

    /// A node's position in the list; `None` if it is not there.
    pub fn position(&self, node: NodeIdx) -> Option<usize> {
        let position = self.positions.get(node.index()).copied().unwrap_or(MISSING);
        (position != MISSING).then_some(position as usize)
    }

    /// The nodes in the order of the last [`refresh`](Self::refresh).
    pub fn list(&self) -> &[NodeIdx] {
        &self.list
    }

    /// True if [`refresh`](Self::refresh) would change the list.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    fn enter(&mut self, node: NodeIdx, zone: ZoneKey) {
        match self.zones.iter_mut().find(|(z, _)| *z == zone) {
            Some((_, nodes)) => nodes.push(node),
            None => self.zones.push((zone, vec![node])),
        }
    }

    fn leave(&mut self, node: NodeIdx, zone: ZoneKey) {
        if let Some(i) = self.zones.iter().position(|(z, _)| *z == zone) {
            self.zones[i].1.retain(|&n| n != node);
            if self.zones[i].1.is_empty() {
                self.zones.remove(i);
            }
        }
    }
}

impl Holds for NodeOrder {
    fn mark(&self, marks: &mut Marks) {
        for (zone, _) in &self.zones {
            zone.mark(marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_take_turns() {
        let mut order = NodeOrder::default();
        let (a, b) = (
            (Symbol::default(), well_known::ZONE),
            (Symbol::default(), well_known::REGION),
        );
        for (node, zone) in [(0, a), (1, a), (2, b), (3, a), (4, b)] {
            order.add(NodeIdx(node), zone);
        }
        order.refresh();
        let list = |order: &NodeOrder| order.list().iter().map(|n| n.0).collect::<Vec<_>>();
        assert_eq!(list(&order), [0, 2, 1, 4, 3]);
        order.rezone(NodeIdx(0), a, b);
        order.refresh();
        assert_eq!(
            list(&order),
            [0, 2, 1, 4, 3],
            "a change of zone alone does not make the list anew"
        );
        order.remove(NodeIdx(4), b);
        order.refresh();
        assert_eq!(
            list(&order),
            [1, 2, 3, 0],
            "node 0 moved to the end of zone b"
        );
    }
}
