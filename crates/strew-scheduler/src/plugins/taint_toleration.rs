//! TaintToleration: refuses nodes for their taints, or scores them lower. Source: spec/scheduler §3.5.

use strew_cluster::{Cluster, NodeFact, NodeIdx};
use strew_model::{Effect, Taint, Toleration, tolerates_all};

use crate::queue::event::Hint;

/// True if the pod tolerates every taint with effect NoSchedule or NoExecute.
pub fn allows(node: &NodeFact, tolerations: &[Toleration]) -> bool {
    tolerates_all(tolerations, &node.taints)
}

/// The taints with these effects that are not tolerated, for explanations.
pub fn untolerated<'a>(
    node: &'a NodeFact,
    tolerations: &'a [Toleration],
) -> impl Iterator<Item = &'a Taint> {
    let forbidding = node.taints.iter().filter(|t| t.forbids_scheduling());
    forbidding.filter(|taint| !tolerations.iter().any(|t| t.tolerates(taint)))
}

/// The number of `PreferNoSchedule` taints that the pod does not tolerate; fewer is better.
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

/// After a node was created or changed: worth a retry if its taints are tolerated now and were not before.
pub(crate) fn hint_after_node(
    tolerations: &[Toleration],
    old: Option<&NodeFact>,
    new: Option<&NodeFact>,
) -> Hint {
    let tolerated = |node: &NodeFact| allows(node, tolerations);
    Hint::queue_if(!old.is_some_and(tolerated) && new.is_some_and(tolerated))
}
