//! Pods, with the fields that the controller reads.
//!
//! Source: spec/workloadspread §2.3, §5.3 to §5.7.

use std::sync::Arc;

use strew_cluster::NodeAffinity;
use strew_cluster::scale_down::{Progress, Stage};
use strew_model::{Holds, Instant, Labels, Marks, Symbol, Toleration};

use super::spec::WsKey;
use super::workload::Controller;
use crate::marker::Marked;

/// `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not all of its containers have started.
    Pending,
    /// Its node does not respond.
    Unknown,
    /// At least one container runs.
    Running,
    /// All containers ended successfully.
    Succeeded,
    /// All containers ended, one of them with a failure.
    Failed,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// The uids of all its owners.
    pub owners: Box<[Arc<str>]>,
    /// The owner that is its controller.
    pub controller: Option<Controller>,
    /// Its phase.
    pub phase: Phase,
    /// True if it has a deletion timestamp.
    pub deleting: bool,
    /// Its node.
    pub node: Option<Symbol>,
    /// `metadata.creationTimestamp`.
    pub created: Instant,
    /// True if its condition `PodScheduled` is False with reason `Unschedulable`.
    pub unschedulable: bool,
    /// True if it has the scheduling gate [`GATE`](crate::GATE).
    pub gated: bool,
    /// The time since which its condition `Ready` is True; `None` if it is not ready.
    pub ready_since: Option<Instant>,
    /// The largest number of restarts of one container.
    pub restarts: i32,
    /// Its annotation [`MARKER_ANNOTATION`](crate::MARKER_ANNOTATION).
    pub marker: Marked,
    /// Its annotation [`COST_ANNOTATION`](crate::COST_ANNOTATION), as stored.
    pub cost: Option<Arc<str>>,
    /// The nodes that it must run on.
    pub node_affinity: NodeAffinity,
    /// Its tolerations.
    pub tolerations: Box<[Toleration]>,
}

impl Pod {
    /// True if it counts: neither finished nor being deleted.
    pub fn is_active(&self) -> bool {
        is_active(self.phase, self.deleting)
    }

    /// What decides before its cost when its controller deletes pods.
    pub fn stage(&self) -> Stage {
        Stage {
            is_assigned: self.node.is_some(),
            progress: match self.phase {
                Phase::Pending => Progress::Pending,
                Phase::Unknown => Progress::Unknown,
                Phase::Running | Phase::Succeeded | Phase::Failed => Progress::Running,
            },
            is_ready: self.ready_since.is_some(),
        }
    }

    /// The WorkloadSpread that its marker names.
    pub fn marked_for(&self) -> Option<WsKey> {
        let marker = self.marker.marker()?;
        let (namespace, name) = (self.namespace, Arc::clone(&marker.workload_spread));
        Some(WsKey { namespace, name })
    }
}

/// True if a pod of this phase counts (spec/workloadspread §2.3).
pub fn is_active(phase: Phase, deleting: bool) -> bool {
    !deleting && !matches!(phase, Phase::Succeeded | Phase::Failed)
}

impl Holds for Pod {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            uid: _,
            name: _,
            namespace,
            labels,
            owners: _,
            controller,
            phase: _,
            deleting: _,
            node,
            created: _,
            unschedulable: _,
            gated: _,
            ready_since: _,
            restarts: _,
            marker: _,
            cost: _,
            node_affinity,
            tolerations,
        } = self;
        namespace.mark(marks);
        labels.mark(marks);
        controller.mark(marks);
        node.mark(marks);
        node_affinity.mark(marks);
        tolerations.mark(marks);
    }
}
