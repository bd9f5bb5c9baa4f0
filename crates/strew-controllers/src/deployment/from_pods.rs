//! ReplicaSets made from their pods, for files that have the pods of a Deployment without its ReplicaSets.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use strew_apiserver::object::{Deployment, Object, Owner, Pod};

use super::revision::REVISION;
use super::rollout::replica_set;

/// The number of a Deployment's present revision; `None` if it has none yet.
pub fn present_revision(deployment: &Deployment) -> Option<i64> {
    deployment.meta.annotation(REVISION)?.parse().ok()
}

/// The ReplicaSet that these pods name as their controller: `owner`, with this template, hash and revision number, and as
/// many replicas as it has active pods.
pub fn replica_set_of_pods(
    deployment: &Deployment,
    owner: &Owner,
    template: PodTemplateSpec,
    hash: &str,
    number: i64,
    pods: &[&Pod],
) -> Object {
    let n = |is_counted: &dyn Fn(&Pod) -> bool| {
        let counted = pods.iter().filter(|pod| pod.is_active() && is_counted(pod));
        i32::try_from(counted.count()).unwrap_or(i32::MAX)
    };
    let (n_active, n_ready) = (n(&|_| true), n(&Pod::is_ready));
    let mut set = replica_set(deployment, template, hash, i64::from(n_active), number);
    set.meta.name.name = Arc::clone(&owner.name);
    set.meta.uid = Arc::clone(&owner.uid);
    set.meta.generation = 1;
    set.status = ReplicaSetStatus {
        observed_generation: Some(1),
        replicas: n_active,
        fully_labeled_replicas: Some(n_active),
        ready_replicas: Some(n_ready),
        available_replicas: Some(n_ready),
        ..ReplicaSetStatus::default()
    };
    set.into()
}
