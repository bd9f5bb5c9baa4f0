//! When evaluating one node per group of equal nodes is faster.

/// Thresholds for [`Engine::set_group_limits`](crate::Engine::set_group_limits). They affect speed only: with all
/// values the decisions are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// Fewer groups than this are always used.
    pub groups_min: usize,
    /// The least average number of nodes per group, at least 1.
    pub nodes_per_group: usize,
    /// After too many groups: the number of decisions that evaluate every node before the next attempt.
    pub rest_decisions: u32,
    /// The least number of decisions between two builds of a class's groups: a build costs as much as evaluating every
    /// node a few times.
    pub decisions_min: u32,
    /// The largest size of the groups of all classes together, in bytes; beyond it all are built again.
    pub bytes_max: usize,
    /// The number of consecutive nodes that are passed over together if none of them can be the first of the best; at
    /// least 1.
    pub nodes_per_block: usize,
}

impl GroupLimits {
    /// The initial thresholds of engines.
    pub const PRODUCTION: Self = Self {
        groups_min: 64,
        nodes_per_group: 8,
        rest_decisions: 512,
        decisions_min: 8,
        bytes_max: 32 << 20,
        nodes_per_block: 256,
    };

    /// The largest useful number of groups of this many nodes.
    pub(crate) fn groups_max(&self, nodes: usize) -> usize {
        let by_nodes = nodes / self.nodes_per_group.max(1);
        self.groups_min.max(by_nodes).min(usize::from(u16::MAX))
    }
}
