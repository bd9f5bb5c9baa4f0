//! Decides whether a pod may preempt others.

use strew_cluster::{Cluster, PodIdx};

use crate::status::{Code, Unfit};

/// Why a pod may not preempt now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ineligible {
    /// Its `preemptionPolicy` is `Never`.
    PolicyNever,
    /// A preempted pod is still terminating on the node that the pod is nominated to: the pod must wait for its room.
    VictimTerminating,
}

impl Ineligible {
    /// kube-scheduler's sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::PolicyNever => "not eligible due to preemptionPolicy=Never.",
            Self::VictimTerminating => {
                "not eligible due to a terminating pod on the nominated node."
            }
        }
    }
}

/// Why the pod may not preempt; `None` if it may. Source: spec/scheduler §3.16, 1.
pub(crate) fn ineligible(cluster: &Cluster, pod: PodIdx, unfit: &Unfit) -> Option<Ineligible> {
    let spec = cluster.spec_of(pod);
    if spec.never_preempts {
        return Some(Ineligible::PolicyNever);
    }
    let node = cluster.find_node(cluster.pod(pod).history.nominated?)?;
    cluster.node(node).fact()?;
    let code = match unfit {
        Unfit::NoNodes => None,
        Unfit::PreFilter(refusal) => Some(refusal.code),
        Unfit::EveryNode(refusals) => refusals.of(node).map(|refusal| refusal.code),
    };
    // If eviction would not help, the pod does not wait.
    if code == Some(Code::UnschedulableAndUnresolvable) {
        return None;
    }
    let leaves = |&other: &PodIdx| {
        cluster.class_of(other).key.terminating
            && cluster.pod(other).history.preempted
            && cluster.spec_of(other).priority < spec.priority
    };
    let any = cluster.node(node).pods().iter().any(leaves);
    any.then_some(Ineligible::VictimTerminating)
}
