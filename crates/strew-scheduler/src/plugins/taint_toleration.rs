//! TaintToleration: taints that forbid, and those that only discourage. Source: spec/scheduler §3.5.

use strew_cluster::{Cluster, NodeFact, NodeIdx};
use strew_model::{Effect, Taint, Toleration, tolerates_all};

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
