//! When it pays to evaluate one node per group of equal nodes.

/// Thresholds for [`Engine::set_group_limits`](crate::Engine::set_group_limits). They set speed, not decisions: with any
/// of them each decision is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// Fewer groups than this are always worth it.
    pub groups_min: usize,
    /// Nodes that must stand behind a group on average, at least 1.
    pub nodes_per_group: usize,
    /// After finding too many groups: decisions that ask every node before the next try.
    pub rest_decisions: u32,
    /// Decisions between two times that the groups of a class are made: it costs as much as asking every node a few
    /// times.
    pub decisions_min: u32,
    /// Bytes that the groups of all classes may take together; beyond that all are made again.
    pub bytes_max: usize,
}

impl GroupLimits {
    /// Those that engines begin with.
    pub const PRODUCTION: Self = Self {
        groups_min: 64,
        nodes_per_group: 8,
        rest_decisions: 512,
        decisions_min: 8,
        bytes_max: 32 << 20,
    };

    /// More groups of this number of nodes are not worth it.
    pub(crate) fn groups_max(&self, nodes: usize) -> usize {
        let by_nodes = nodes / self.nodes_per_group.max(1);
        self.groups_min.max(by_nodes).min(usize::from(u16::MAX))
    }
}
