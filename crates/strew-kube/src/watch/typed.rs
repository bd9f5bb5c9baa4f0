//! Kubernetes' own kinds, decoded from bytes into their types without JSON values in between.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::Client;
use strew_runtime::watch::{Kind, Object, Reading, Scope};
use strew_wire::facts::Named;

use super::stream;

/// A watch of a kind that is decoded into its type; `None` for kinds that are read by name.
pub(super) fn events(
    client: &Client,
    kind: &Kind,
    reading: Reading,
    scope: &Scope,
) -> Option<stream::Events> {
    if reading != Reading::Known || scope.namespace.is_some() {
        return None;
    }
    macro_rules! first_of {
        ($($type:ty),* $(,)?) => {
            $(if *kind == Kind::of::<$type>() {
                return Some(stream::typed::<$type>(client.clone(), scope));
            })*
        };
    }
    first_of!(
        Pod,
        Node,
        Namespace,
        Service,
        ReplicationController,
        PersistentVolumeClaim,
        PersistentVolume,
        Deployment,
        ReplicaSet,
        StatefulSet,
        Job,
        PodDisruptionBudget,
        StorageClass,
        CSINode,
    );
    None
}

/// Lists all objects of a kind in a namespace. Only pods are ever listed again.
pub(super) async fn list(client: Client, kind: &Kind, namespace: &str) -> Vec<(Named, Object)> {
    match *kind == Kind::of::<Pod>() {
        true => stream::list::<Pod>(client, namespace).await,
        false => Vec::new(),
    }
}
