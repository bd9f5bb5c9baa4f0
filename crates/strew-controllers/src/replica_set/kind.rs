//! The common interface of ReplicaSets and ReplicationControllers.

use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationControllerCondition, ReplicationControllerStatus,
};
use strew_apiserver::object::{Object, ReplicaSet, ReplicationController, Stored};
use strew_apiserver::selection::Selection;
use strew_model::time::Span;

use crate::workers;
/// A kind with a number of pods of a template.
pub trait Replicating: Stored + Into<Object> {
    /// The source of its controller's events.
    const SOURCE: &'static str;

    /// The number of objects that its controller syncs concurrently.
    const N_WORKERS: usize;

    /// `spec.replicas`
    fn size(&self) -> usize;

    /// Its selector; `None` if it has an unknown operator.
    fn selection(&self) -> Option<Selection>;

    /// Its pod template.
    fn template(&self) -> Option<&PodTemplateSpec>;

    /// `minReadySeconds`
    fn min_ready(&self) -> Span;

    /// True if both versions share one spec in memory.
    fn shares_spec(&self, other: &Self) -> bool;

    /// Its status.
    fn status(&self) -> ReplicaSetStatus;

    /// Sets the fields of the status that the kind has.
    fn set_status(&mut self, status: ReplicaSetStatus);
}

fn seconds(seconds: Option<i32>) -> Span {
    Span::from_secs(u64::try_from(seconds.unwrap_or(0)).unwrap_or(0))
}

fn size(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}

impl Replicating for ReplicaSet {
    const SOURCE: &'static str = "replicaset-controller";
    const N_WORKERS: usize = workers::REPLICA_SET;

    fn size(&self) -> usize {
        size(self.spec.replicas)
    }

    fn selection(&self) -> Option<Selection> {
        Selection::of(&self.spec.selector)
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.template.as_ref()
    }

    fn min_ready(&self) -> Span {
        seconds(self.spec.min_ready_seconds)
    }

    fn shares_spec(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.spec, &other.spec)
    }

    fn status(&self) -> ReplicaSetStatus {
        self.status.clone()
    }

    fn set_status(&mut self, status: ReplicaSetStatus) {
        self.status = status;
    }
}

impl Replicating for ReplicationController {
    const SOURCE: &'static str = "replication-controller";
    const N_WORKERS: usize = workers::REPLICATION_CONTROLLER;

    fn size(&self) -> usize {
        size(self.spec.replicas)
    }

    /// An empty selector means the template's labels, which the API server sets by default.
    fn selection(&self) -> Option<Selection> {
        let own = self.spec.selector.as_ref().filter(|own| !own.is_empty());
        let template = || self.template()?.metadata.as_ref()?.labels.as_ref();
        own.or_else(template).map(Selection::of_pairs)
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.template.as_ref()
    }

    fn min_ready(&self) -> Span {
        seconds(self.spec.min_ready_seconds)
    }

    fn shares_spec(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.spec, &other.spec)
    }

    fn status(&self) -> ReplicaSetStatus {
        let status = self.status.clone();
        let conditions = status.conditions.map(|conditions| {
            let convert = |c: ReplicationControllerCondition| ReplicaSetCondition {
                last_transition_time: c.last_transition_time,
                message: c.message,
                reason: c.reason,
                status: c.status,
                type_: c.type_,
            };
            conditions.into_iter().map(convert).collect()
        });
        ReplicaSetStatus {
            available_replicas: status.available_replicas,
            conditions,
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            replicas: status.replicas,
            terminating_replicas: None,
        }
    }

    fn set_status(&mut self, status: ReplicaSetStatus) {
        let conditions = status.conditions.map(|conditions| {
            let convert = |c: ReplicaSetCondition| ReplicationControllerCondition {
                last_transition_time: c.last_transition_time,
                message: c.message,
                reason: c.reason,
                status: c.status,
                type_: c.type_,
            };
            conditions.into_iter().map(convert).collect()
        });
        self.status = ReplicationControllerStatus {
            available_replicas: status.available_replicas,
            conditions,
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            replicas: status.replicas,
        };
    }
}
