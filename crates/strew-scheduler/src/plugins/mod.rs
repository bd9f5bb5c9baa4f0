//! The plugins, one file each, named as in kube-scheduler.
//!
//! Each file has its rule once: `allows`/`filter` for one node, `score` for one node or a list of nodes. Columns and
//! tallies only cache the answers.

pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod pod_volumes;
pub mod selector_spread;
pub mod taint_toleration;
pub mod unsupported;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

/// kube-scheduler's `DefaultNormalizeScore`: scales to 0 to 100 by the largest score. Source: spec/scheduler §3.
pub(crate) fn normalize(scores: &mut [i32], reverse: bool) {
    let max = scores.iter().copied().max().unwrap_or(0);
    if max == 0 {
        if reverse {
            scores.fill(100);
        }
        return;
    }
    for score in scores {
        let share = (100 * i64::from(*score) / i64::from(max)) as i32;
        *score = if reverse { 100 - share } else { share };
    }
}
