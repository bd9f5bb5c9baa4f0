//! ImageLocality: prefers nodes that have the pod's images. Source: spec/scheduler §3.11.

use strew_cluster::{Cluster, NodeIdx, PodSpec};

const MIB: i64 = 1 << 20;
/// Images below this sum count as 0.
const SUM_MIN: i64 = 23 * MIB;
/// The most that a container counts.
const SUM_MAX_PER_CONTAINER: i64 = 1000 * MIB;

/// The share of the pod's images that the node has, weighted by how widespread each is: 0 to 100.
pub fn score(cluster: &Cluster, node: NodeIdx, spec: &PodSpec) -> i32 {
    let Some(fact) = cluster.node(node).fact() else {
        return 0;
    };
    let nodes = cluster.nodes_present() as f64;
    let mut sum: i64 = 0;
    for &image in &spec.images {
        let Some(state) = cluster.images().get(image) else {
            continue;
        };
        if fact.images.iter().any(|&(name, _)| name == image) {
            let share = f64::from(state.nodes) / nodes;
            sum = sum.saturating_add((state.size as f64 * share) as i64);
        }
    }
    let max = SUM_MAX_PER_CONTAINER * i64::from(spec.containers.max(1));
    let sum = sum.clamp(SUM_MIN, max);
    (100 * (sum - SUM_MIN) / (max - SUM_MIN)) as i32
}
