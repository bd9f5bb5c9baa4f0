//! The indexes of nodes and pods in the tables of a cluster.

use strew_model::index_type;

index_type! {
    /// The index of a row in the table of nodes, and in every column. A row is used again when its node is gone and no
    /// pod names it any more.
    pub struct NodeIdx;
}

/// A row in the table of pods, for one pod. Once that pod is gone the index finds nothing: the next pod of the row has
/// another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodIdx {
    pub(crate) row: u32,
    /// The number of pods that had the row before.
    pub(crate) generation: u32,
}
