//! Why each node refused a pod.

use strew_cluster::NodeIdx;
use strew_model::{Holds, Marks};

use crate::status::Refusal;

/// The refusal of each node, in the order of the search. Most nodes refuse alike: each different refusal is kept once.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    nodes: Vec<NodeIdx>,
    /// Per node, the place of its refusal in `kinds`.
    kind_of: Vec<u32>,
    /// Different from each other, with their numbers of nodes; some may be no node's any more.
    kinds: Vec<(Refusal, u32)>,
    /// The kind that was looked for last.
    recent: u32,
}

impl Refusals {
    /// Each node with its refusal.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NodeIdx, &Refusal)> {
        let kinds = self.kind_of.iter();
        let each = self.nodes.iter().zip(kinds);
        each.map(|(&node, &kind)| (node, &self.kinds[kind as usize].0))
    }

    /// Each different refusal, with its number of nodes, which is never 0.
    pub fn counted(&self) -> impl Iterator<Item = (&Refusal, usize)> {
        let kinds = self.kinds.iter().filter(|(_, n)| *n > 0);
        kinds.map(|(refusal, n)| (refusal, *n as usize))
    }

    /// The refusal of a node; `None` if it is not among them. Cost: a pass over the nodes.
    pub fn of(&self, node: NodeIdx) -> Option<&Refusal> {
        let place = self.nodes.iter().position(|&other| other == node)?;
        Some(self.at(place))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[NodeIdx] {
        &self.nodes
    }

    /// The refusal of the node at this place.
    pub(crate) fn at(&self, place: usize) -> &Refusal {
        &self.kinds[self.kind_of[place] as usize].0
    }

    /// Replaces the refusal of the node at this place.
    pub(crate) fn replace(&mut self, place: usize, refusal: Refusal) {
        let kind = self.count(refusal);
        let former = std::mem::replace(&mut self.kind_of[place], kind);
        self.kinds[former as usize].1 -= 1;
    }

    /// Counts one more node with a refusal; gives its place in `kinds`, where it is put if it is new.
    fn count(&mut self, refusal: Refusal) -> u32 {
        let at = |kind: u32| self.kinds.get(kind as usize).map(|(refusal, _)| refusal);
        let is_it = |&kind: &u32| at(kind) == Some(&refusal);
        let n_kinds = self.kinds.len() as u32;
        let recent = Some(self.recent).filter(is_it);
        let kind = match recent.or_else(|| (0..n_kinds).find(is_it)) {
            Some(kind) => kind,
            None => {
                self.kinds.push((refusal, 0));
                n_kinds
            }
        };
        self.kinds[kind as usize].1 += 1;
        self.recent = kind;
        kind
    }
}

impl FromIterator<(NodeIdx, Refusal)> for Refusals {
    fn from_iter<I: IntoIterator<Item = (NodeIdx, Refusal)>>(each: I) -> Self {
        let mut refusals = Self::default();
        for (node, refusal) in each {
            let kind = refusals.count(refusal);
            refusals.nodes.push(node);
            refusals.kind_of.push(kind);
        }
        refusals
    }
}

impl PartialEq for Refusals {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Refusals {}

impl Holds for Refusals {
    fn mark(&self, marks: &mut Marks) {
        let kinds = self.kinds.iter();
        kinds.for_each(|(refusal, _)| refusal.mark(marks));
    }
}
