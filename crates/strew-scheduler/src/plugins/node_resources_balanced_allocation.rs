//! NodeResourcesBalancedAllocation: prefers nodes whose resources would be used evenly. Source: spec/scheduler §3.9.

use smallvec::SmallVec;
use strew_cluster::NodeRow;
use strew_model::{ResourceName, Resources};

/// True if the plugin scores a pod with these requests.
pub fn applies(requests: &Resources, resources: &[ResourceName]) -> bool {
    resources.iter().any(|&name| requests.get(name) > 0)
}

/// How much more balanced the node becomes with the pod: 0 to 100; at most 75 if it was balanced before.
pub fn score(node: &NodeRow, requests: &Resources, resources: &[ResourceName]) -> u8 {
    let with = balance(node, resources, requests, true);
    let without = balance(node, resources, requests, false);
    (50 + (50 + with - without) / 2) as u8
}

/// 100 minus the deviation of the used shares, with or without the pod.
fn balance(node: &NodeRow, resources: &[ResourceName], requests: &Resources, with: bool) -> i64 {
    let Some(fact) = node.fact() else {
        return 0;
    };
    let share = |&name: &ResourceName| {
        let (has, asked) = (fact.allocatable.get(name), requests.get(name));
        let unasked = matches!(name, ResourceName::Scalar(_)) && asked == 0;
        if has == 0 || unasked {
            return None;
        }
        let used = node
            .used()
            .get(name)
            .saturating_add(if with { asked } else { 0 });
        // Go divides both int64 as float64 and caps the result.
        Some((used as f64 / has as f64).min(1.0))
    };
    let shares: SmallVec<[f64; 2]> = resources.iter().filter_map(share).collect();
    let deviation = match *shares {
        [] | [_] => 0.0,
        [a, b] => ((a - b) / 2.0).abs(),
        ref many => {
            let mean = many.iter().sum::<f64>() / many.len() as f64;
            let squares: f64 = many
                .iter()
                .map(|share| (share - mean) * (share - mean))
                .sum();
            (squares / many.len() as f64).sqrt()
        }
    };
    ((1.0 - deviation) * 100.0) as i64
}
