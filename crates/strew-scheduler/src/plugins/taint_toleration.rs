//! TaintToleration: refuses nodes for their taints, or scores them lower. Source: spec/scheduler §3.5.

use strew_cluster::{Cluster, NodeFact, NodeIdx};
use strew_model::{Effect, Taint, Toleration, tolerates_all};

use crate::queue::hint::Hint;

/// Whether the pod tolerates every taint that forbids scheduling.
pub fn allows(node: &NodeFact, tolerations: &[Toleration]) -> bool {
    tolerates_all(tolerations, &node.taints)
}

/// The taints that forbid scheduling and are not tolerated, for explanations.
pub fn untolerated<'a>(
    node: &'a NodeFact,
    tolerations: &'a [Toleration],
) -> impl Iterator<Item = &'a Taint> {
    let forbidding = node.taints.iter().filter(|t| t.forbids_scheduling());
    forbidding.filter(|taint| !tolerations.iter().any(|t| t.tolerates(taint)))
}

/// How many `PreferNoSchedule` taints the pod does not tolerate; fewer is better.
pub fn raw_score(cluster: &Cluster, node: NodeIdx, tolerations: &[Toleration]) -> i32 {
    let Some(fact) = cluster.node(node).fact() else {
        return 0;
    };
    let discouraging = fact
        .taints
        .iter()
        .filter(|t| t.effect == Effect::PreferNoSchedule);
    discouraging
        .filter(|taint| !tolerations.iter().any(|t| t.tolerates(taint)))
        .count() as i32
}

/// After a node came or changed: worth a try if its taints are tolerated now and were not before.
pub(crate) fn hint_after_node(
    tolerations: &[Toleration],
    old: Option<&NodeFact>,
    new: Option<&NodeFact>,
) -> Hint {
    let tolerated = |node: &NodeFact| allows(node, tolerations);
    Hint::queue_if(!old.is_some_and(tolerated) && new.is_some_and(tolerated))
}
