//! NodeResourcesFit: free resources for the pod's requests, and the score by `scoringStrategy`. Source: spec/scheduler
//! §3.8.

use smallvec::SmallVec;
use strew_cluster::{Cluster, NodeFact, NodeRow};
use strew_model::{ResourceName, Resources, Symbol};

use crate::profile::{FitArgs, PluginId, ScoringStrategy};
use crate::queue::event::Hint;
use crate::status::{Code, Reason, Refusal};

/// An insufficient resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The resource.
    pub resource: Lacking,
    /// The pod's request.
    pub requested: i64,
    /// The node's free amount.
    pub free: i64,
    /// The node's allocatable amount.
    pub allocatable: i64,
}

/// A resource that a node may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// Places for pods.
    Pods,
    /// CPU, in thousandths.
    Cpu,
    /// Memory, in bytes.
    Memory,
    /// Ephemeral storage, in bytes.
    EphemeralStorage,
    /// Any other resource, in its units.
    Scalar(Symbol),
}

impl From<ResourceName> for Lacking {
    fn from(name: ResourceName) -> Self {
        match name {
            ResourceName::Cpu => Self::Cpu,
            ResourceName::Memory => Self::Memory,
            ResourceName::EphemeralStorage => Self::EphemeralStorage,
            ResourceName::Scalar(name) => Self::Scalar(name),
        }
    }
}

impl Shortage {
    /// kube-scheduler's reason.
    pub fn reason(&self) -> Reason {
        match self.resource {
            Lacking::Pods => Reason::TooManyPods,
            Lacking::Cpu => Reason::Cpu,
            Lacking::Memory => Reason::Memory,
            Lacking::EphemeralStorage => Reason::EphemeralStorage,
            Lacking::Scalar(name) => Reason::Scalar(name),
        }
    }
}

/// Everything that a node lacks for these requests, in kube-scheduler's order; scalar resources in the order of names.
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
    check(Lacking::Pods, 1, node.pods().len() as i64, fact.pods_max);
    let common = [
        ResourceName::Cpu,
        ResourceName::Memory,
        ResourceName::EphemeralStorage,
    ];
    let scalars = requests
        .scalars()
        .iter()
        .map(|&(name, _)| ResourceName::Scalar(name));
    for name in common.into_iter().chain(scalars) {
        // A pod without a request of a resource is not refused for lack of it.
        let requested = requests.get(name);
        if requested != 0 {
            check(
                name.into(),
                requested,
                node.used().get(name),
                fact.allocatable.get(name),
            );
        }
    }
    found
}

/// True if the node has enough of everything.
pub fn fits(node: &NodeRow, requests: &Resources) -> bool {
    shortages(node, requests).is_empty()
}

/// Why the node refuses the requests; `None` if it takes them.
pub fn filter(cluster: &Cluster, node: &NodeRow, requests: &Resources) -> Option<Refusal> {
    let mut found = shortages(node, requests);
    if found.is_empty() {
        return None;
    }
    found.sort_by(|a, b| match (a.resource, b.resource) {
        (Lacking::Scalar(a), Lacking::Scalar(b)) => {
            cluster.names.text(a).cmp(cluster.names.text(b))
        }
        _ => std::cmp::Ordering::Equal,
    });
    // "Too many pods" never makes a refusal final, because pods can be evicted.
    let hopeless = |s: &Shortage| s.resource != Lacking::Pods && s.requested > s.allocatable;
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

/// After a node was created or changed: worth a retry if the pod fits on it when empty, and a requested resource grew.
///
/// Ignored resources count here, as upstream.
pub(crate) fn hint_after_node(
    requests: &Resources,
    old: Option<&NodeFact>,
    new: Option<&NodeFact>,
) -> Hint {
    let Some(new) = new else {
        return Hint::Skip;
    };
    let asked = || requested(requests).filter(|&name| requests.get(name) > 0);
    let fits_empty = new.pods_max >= 1
        && requested(requests).all(|name| {
            let amount = requests.get(name);
            amount == 0 || amount <= new.allocatable.get(name)
        });
    let grew = |old: &NodeFact| {
        new.pods_max > old.pods_max
            || asked().any(|name| new.allocatable.get(name) > old.allocatable.get(name))
    };
    Hint::queue_if(fits_empty && old.is_none_or(grew))
}

/// After a pod on a node shrank: worth a retry if the pod requests a resource that shrank.
pub(crate) fn hint_after_scale_down(
    requests: &Resources,
    old: &Resources,
    new: &Resources,
) -> Hint {
    let freed = |name| requests.get(name) != 0 && old.get(name) > new.get(name);
    Hint::queue_if(requested(requests).any(freed))
}

/// The names of all requested resources.
fn requested(requests: &Resources) -> impl Iterator<Item = ResourceName> + '_ {
    let scalars = requests.scalars().iter();
    let scalars = scalars.map(|&(name, _)| ResourceName::Scalar(name));
    let common = [
        ResourceName::Cpu,
        ResourceName::Memory,
        ResourceName::EphemeralStorage,
    ];
    common.into_iter().chain(scalars)
}

/// The requests that Filter checks: all but the extended resources that the profile ignores.
pub(crate) fn filtered(cluster: &Cluster, args: &FitArgs, requests: &Resources) -> Resources {
    let mut kept = requests.clone();
    for &(name, _) in requests.scalars() {
        let group = cluster
            .names
            .text(name)
            .split_once('/')
            .map(|(group, _)| group);
        let of_group = group.is_some_and(|g| args.ignored_resource_groups.iter().any(|i| i == g));
        if of_group || args.ignored_resources.contains(&name) {
            kept.set_scalar(name, 0);
        }
    }
    kept
}

/// The score of a node, 0 to 100, for a pod that counts with `scored` CPU (milli) and memory (bytes).
pub fn score(node: &NodeRow, args: &FitArgs, requests: &Resources, scored: (i64, i64)) -> u8 {
    let Some(fact) = node.fact() else {
        return 0;
    };
    let (mut sum, mut weights) = (0i64, 0i64);
    for &(name, weight) in &args.resources {
        let capacity = fact.allocatable.get(name);
        let unasked = matches!(name, ResourceName::Scalar(_)) && requests.get(name) == 0;
        // A resource that the node does not have is left out.
        if capacity == 0 || unasked {
            continue;
        }
        let requested = match name {
            ResourceName::Cpu => node.used_scored().0.saturating_add(scored.0),
            ResourceName::Memory => node.used_scored().1.saturating_add(scored.1),
            other => node.used().get(other).saturating_add(requests.get(other)),
        };
        let one = args.strategy.score(requested, capacity);
        // The ratio strategy also leaves resources with score 0 out of the mean.
        if one > 0 || !matches!(args.strategy, ScoringStrategy::RequestedToCapacityRatio(_)) {
            sum += weight * one;
            weights += weight;
        }
    }
    match (weights, &args.strategy) {
        (0, _) => 0,
        (_, ScoringStrategy::RequestedToCapacityRatio(_)) => {
            (sum as f64 / weights as f64).round() as u8
        }
        _ => (sum / weights) as u8,
    }
}

impl ScoringStrategy {
    /// The score of one resource, 0 to 100.
    fn score(&self, requested: i64, capacity: i64) -> i64 {
        match self {
            Self::LeastAllocated if requested > capacity => 0,
            Self::LeastAllocated => percent(capacity - requested, capacity),
            Self::MostAllocated => percent(requested.min(capacity), capacity),
            Self::RequestedToCapacityRatio(points) => {
                let utilization = if requested > capacity {
                    100
                } else {
                    percent(requested, capacity)
                };
                on_line(points, utilization)
            }
        }
    }
}

/// Memory in bytes times 100 may exceed 63 bits.
fn percent(part: i64, whole: i64) -> i64 {
    match part.checked_mul(100) {
        Some(product) => product / whole,
        None => (i128::from(part) * 100 / i128::from(whole)) as i64,
    }
}

/// The value of a piecewise linear function; scores of points are 0 to 10, and are multiplied by 10.
fn on_line(points: &[(i64, i64)], utilization: i64) -> i64 {
    let after = points.iter().position(|&(u, _)| utilization <= u);
    match after {
        None => points.last().map_or(0, |&(_, score)| 10 * score),
        Some(0) => 10 * points[0].1,
        Some(i) => {
            let ((u0, s0), (u1, s1)) = (points[i - 1], points[i]);
            10 * s0 + (10 * s1 - 10 * s0) * (utilization - u0) / (u1 - u0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_score_without_overflow() {
        use ScoringStrategy::*;
        let ratio = RequestedToCapacityRatio(vec![(0, 0), (50, 10), (100, 4)]);
        for (strategy, requested, capacity, expected) in [
            (LeastAllocated, 0, i64::MAX, 100),
            (LeastAllocated, i64::MAX, i64::MAX, 0),
            (LeastAllocated, 1, 3, 66),
            (LeastAllocated, 4, 3, 0),
            (MostAllocated, 1, 3, 33),
            (MostAllocated, 4, 3, 100),
            (ratio.clone(), 0, 100, 0),
            (ratio.clone(), 25, 100, 50),
            (ratio.clone(), 75, 100, 70),
            (ratio, 101, 100, 40),
        ] {
            assert_eq!(
                strategy.score(requested, capacity),
                expected,
                "{strategy:?} {requested}/{capacity}"
            );
        }
    }
}
