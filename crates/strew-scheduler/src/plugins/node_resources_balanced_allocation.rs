//! NodeResourcesBalancedAllocation: even use of CPU and memory. Source: spec/scheduler §3.9.

use strew_cluster::NodeRow;
use strew_model::Resources;

/// Whether the plugin has anything to say of a pod with these requests.
pub fn applies(requests: &Resources) -> bool {
    requests.cpu_milli > 0 || requests.memory > 0
}

/// How much more balanced the node becomes with the pod: 0 to 100, 75 at most where it was even before.
pub fn score(node: &NodeRow, requests: &Resources) -> u8 {
    let Some(fact) = node.fact() else {
        return 0;
    };
    let (used, has) = (node.used(), &fact.allocatable);
    let balance = |extra_cpu: i64, extra_memory: i64| {
        let fraction = |used: i64, extra: i64, has: i64| {
            // Go divides the two int64 as float64 and caps the result.
            (has > 0).then(|| (used.saturating_add(extra) as f64 / has as f64).min(1.0))
        };
        let cpu = fraction(used.cpu_milli, extra_cpu, has.cpu_milli);
        let memory = fraction(used.memory, extra_memory, has.memory);
        let deviation = match (cpu, memory) {
            (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
            _ => 0.0,
        };
        ((1.0 - deviation) * 100.0) as i64
    };
    let with = balance(requests.cpu_milli, requests.memory);
    let without = balance(0, 0);
    (50 + (50 + with - without) / 2) as u8
}
