//! Which pods are worth a try to delete: the last resort, since their work stops.

use strew_cluster::{NodeIdx, PodIdx, PodSpec};
use strew_scheduler::explain::{Blockers, Cause, VolumeCause};
use strew_scheduler::plugins::node_resources_fit::Shortage;

use crate::candidates::{Candidates, amount};
use crate::change::Change;
use crate::suggest::TRIES_OF_A_KIND_MAX;

/// The priority of `system-cluster-critical`, and the least of what a cluster itself needs.
pub(crate) const SYSTEM_PRIORITY: i32 = 2_000_000_000;

impl Candidates<'_> {
    /// The pod on a node whose leaving makes room: of the lowest priority, then the smallest that does.
    pub(crate) fn smallest_that_covers(&self, node: NodeIdx, short: &[Shortage]) -> Option<PodIdx> {
        let covers = |spec: &PodSpec| {
            short
                .iter()
                .all(|s| amount(&spec.used, s.resource) >= s.requested - s.free)
        };
        let pods = self.cluster.node(node).pods().iter().copied();
        let able = pods.filter(|&p| self.may_go(p) && covers(self.cluster.spec_of(p)));
        able.min_by_key(|&p| {
            let spec = self.cluster.spec_of(p);
            (spec.priority, spec.used.cpu_milli, spec.used.memory, p)
        })
    }

    /// False for a pod whose end would not help or would do harm: another replica of the same controller, which makes it
    /// again, and pods that the cluster itself needs.
    fn may_go(&self, pod: PodIdx) -> bool {
        let owner = |pod| {
            let key = &self.cluster.class_of(pod).key;
            key.owner.map(|owner| (key.namespace, owner))
        };
        let is_sibling = owner(self.pod).is_some() && owner(pod) == owner(self.pod);
        !is_sibling && self.cluster.spec_of(pod).priority < SYSTEM_PRIORITY
    }

    /// The one pod that stands in the way of a node.
    pub(crate) fn delete_blocker(&self) -> Vec<Change> {
        let mut pods: Vec<PodIdx> = Vec::new();
        for node in self.refused {
            let mut blockers = node.causes.iter().map(|cause| match cause {
                Cause::Port { holders, .. } => Some(holders),
                Cause::AntiAffinity { found, .. } | Cause::ExistingAntiAffinity { found, .. } => {
                    Some(found)
                }
                Cause::Volume(VolumeCause::InUse { holders, .. }) => Some(holders),
                _ => None,
            });
            let one = |found: &Blockers| (found.count == 1).then(|| found.named[0]);
            let Some(Some(first)) = blockers.next().map(|b| b.and_then(one)) else {
                continue;
            };
            let same = blockers.all(|b| b.and_then(one) == Some(first));
            if same && self.may_go(first) && !pods.contains(&first) {
                pods.push(first);
            }
            if pods.len() == TRIES_OF_A_KIND_MAX {
                break;
            }
        }
        pods.sort_by_key(|&pod| self.cluster.spec_of(pod).priority);
        pods.into_iter()
            .map(|pod| Change::DeletePod { pod })
            .collect()
    }

    /// A pod with volumes on each node that can attach no more, those of the lowest priority first.
    pub(crate) fn delete_for_volumes(&self) -> Vec<Change> {
        let is_full = |cause: &Cause| matches!(cause, Cause::Volume(VolumeCause::Limit { .. }));
        let full = self.one_cause().filter(|(_, cause)| is_full(cause));
        let priority = |pod: &PodIdx| self.cluster.spec_of(*pod).priority;
        let holder = |node: NodeIdx| {
            let pods = self.cluster.node(node).pods().iter().copied();
            let with_volumes = pods
                .filter(|&pod| self.may_go(pod) && !self.cluster.spec_of(pod).claims.is_empty());
            with_volumes.min_by_key(|pod| (priority(pod), *pod))
        };
        let mut pods: Vec<PodIdx> = full.filter_map(|(node, _)| holder(node)).collect();
        pods.sort_by_key(priority);
        let pods = pods.into_iter();
        pods.map(|pod| Change::DeletePod { pod }).collect()
    }
}
