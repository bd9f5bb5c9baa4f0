//! NodeResourcesFit: room for what the pod asks for, and the `LeastAllocated` score. Source: spec/scheduler §3.8.

use smallvec::SmallVec;
use strew_cluster::{Cluster, NodeRow};
use strew_model::{Resources, Symbol};

use crate::profile::PluginId;
use crate::status::{Code, Reason, Refusal};

/// One resource of which there is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Which.
    pub resource: ResourceName,
    /// What the pod asks for.
    pub requested: i64,
    /// What the node has left.
    pub free: i64,
    /// What the node has in all.
    pub allocatable: i64,
}

/// A resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceName {
    /// Places for pods.
    Pods,
    /// CPU, in thousandths.
    Cpu,
    /// Memory, in bytes.
    Memory,
    /// Ephemeral storage, in bytes.
    EphemeralStorage,
    /// Any other, in its units.
    Scalar(Symbol),
}

impl Shortage {
    /// The reason that kube-scheduler counts it under.
    pub fn reason(&self) -> Reason {
        match self.resource {
            ResourceName::Pods => Reason::TooManyPods,
            ResourceName::Cpu => Reason::Cpu,
            ResourceName::Memory => Reason::Memory,
            ResourceName::EphemeralStorage => Reason::EphemeralStorage,
            ResourceName::Scalar(name) => Reason::Scalar(name),
        }
    }
}

/// Everything that a node lacks for these requests, in kube-scheduler's order. Scalars stand in the order of names.
pub fn shortages(node: &NodeRow, requests: &Resources) -> SmallVec<[Shortage; 2]> {
    let mut found = SmallVec::new();
    let Some(fact) = node.fact() else {
        return found;
    };
    let mut check = |resource, requested, used: i64, allocatable: i64| {
        let free = allocatable.saturating_sub(used);
        if requested > free {
            found.push(Shortage {
                resource,
                requested,
                free,
                allocatable,
            });
        }
    };
    check(
        ResourceName::Pods,
        1,
        node.pods().len() as i64,
        fact.pods_max,
    );
    let (used, has) = (node.used(), &fact.allocatable);
    // A pod that asks for nothing of a resource is not refused for the lack of it.
    if requests.cpu_milli > 0 {
        check(
            ResourceName::Cpu,
            requests.cpu_milli,
            used.cpu_milli,
            has.cpu_milli,
        );
    }
    if requests.memory > 0 {
        check(
            ResourceName::Memory,
            requests.memory,
            used.memory,
            has.memory,
        );
    }
    if requests.ephemeral_storage > 0 {
        let (used, has) = (used.ephemeral_storage, has.ephemeral_storage);
        check(
            ResourceName::EphemeralStorage,
            requests.ephemeral_storage,
            used,
            has,
        );
    }
    for &(name, amount) in requests.scalars() {
        if amount != 0 {
            check(
                ResourceName::Scalar(name),
                amount,
                used.scalar(name),
                has.scalar(name),
            );
        }
    }
    found
}

/// Whether the node has room.
pub fn fits(node: &NodeRow, requests: &Resources) -> bool {
    shortages(node, requests).is_empty()
}

/// Why the node has no room; `None` if it has.
pub fn filter(cluster: &Cluster, node: &NodeRow, requests: &Resources) -> Option<Refusal> {
    let mut found = shortages(node, requests);
    if found.is_empty() {
        return None;
    }
    found.sort_by(|a, b| match (a.resource, b.resource) {
        (ResourceName::Scalar(a), ResourceName::Scalar(b)) => {
            cluster.names.text(a).cmp(cluster.names.text(b))
        }
        _ => std::cmp::Ordering::Equal,
    });
    // "Too many pods" never makes a refusal final: pods may go.
    let hopeless = |s: &Shortage| s.resource != ResourceName::Pods && s.requested > s.allocatable;
    let code = match found.iter().any(hopeless) {
        true => Code::UnschedulableAndUnresolvable,
        false => Code::Unschedulable,
    };
    let reasons = found.iter().map(Shortage::reason).collect();
    Some(Refusal {
        plugin: PluginId::NodeResourcesFit,
        code,
        reasons,
    })
}

/// `LeastAllocated` over CPU and memory, equal weights: 0 to 100.
pub fn score(node: &NodeRow, scored: (i64, i64)) -> u8 {
    let Some(fact) = node.fact() else {
        return 0;
    };
    let used = node.used_scored();
    let (mut sum, mut weights) = (0i64, 0i64);
    for (own, used, capacity) in [
        (scored.0, used.0, fact.allocatable.cpu_milli),
        (scored.1, used.1, fact.allocatable.memory),
    ] {
        // A node that has none of a resource is not judged by it.
        if capacity > 0 {
            weights += 1;
            sum += least_requested(used.saturating_add(own), capacity);
        }
    }
    if weights == 0 {
        0
    } else {
        (sum / weights) as u8
    }
}

fn least_requested(requested: i64, capacity: i64) -> i64 {
    if requested > capacity {
        return 0;
    }
    // Memory in bytes times 100 may pass 63 bits.
    (i128::from(capacity - requested) * 100 / i128::from(capacity)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_requested_never_overflows() {
        assert_eq!(least_requested(0, i64::MAX), 100);
        assert_eq!(least_requested(i64::MAX, i64::MAX), 0);
        assert_eq!(least_requested(1, 3), 66);
        assert_eq!(least_requested(4, 3), 0);
    }
}
