//! The common interface of ReplicaSets and ReplicationControllers.

use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationControllerCondition, ReplicationControllerStatus,
};
use strew_apiserver::object::{Object, ReplicaSet, ReplicationController, Stored};
use strew_apiserver::selection::Selection;
use strew_model::time::Span;

use crate::workers;
/// A kind that keeps so many pods of a template.
pub trait Replicating: Stored + Into<Object> {
    /// How its controller is called in events.
    const SOURCE: &'static str;

    /// How many objects its controller looks at at the same time.
    const N_WORKERS: usize;

    /// How many pods there are to be.
    fn size(&self) -> usize;

    /// Which pods are its own; `None`: an unknown operator.
    fn selection(&self) -> Option<Selection>;

    /// What the pods are made from.
    fn template(&self) -> Option<&PodTemplateSpec>;

    /// How long a pod must be ready to be available.
    fn min_ready(&self) -> Span;

    /// Whether another version of it has the very same spec, without looking into it.
    fn shares_spec(&self, other: &Self) -> bool;

    /// What is.
    fn status(&self) -> ReplicaSetStatus;

    /// The same with another status, as far as the kind has its fields.
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

    /// An empty selector is the template's labels, as the API server fills it in.
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
