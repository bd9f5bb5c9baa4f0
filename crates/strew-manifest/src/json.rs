//! Objects of the wire to and from JSON values.
//!
//! The decoders of Kubernetes' types are large, and a generic function compiles them again in each crate that calls it.
//! So they are compiled here only: other crates call [`Json`], or [`KubeObject`](crate::read::KubeObject) for whole
//! objects of any kind. A test of the project fails where another crate decodes such a type itself.

use k8s_openapi::ByteString;
use k8s_openapi::api::{
    apps, authentication, autoscaling, batch, coordination, core, events, node, policy,
};
use k8s_openapi::api::{scheduling, storage};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Result, Value};

use crate::kruise::{v1beta1, workloads};
use crate::ocm;

/// A type with a JSON form.
pub trait Json: Sized {
    /// Decodes a value; unknown fields are ignored.
    ///
    /// # Errors
    /// A field has another type, or a required one is missing.
    fn of_json(value: Value) -> Result<Self>;

    /// The value, with fields in the order of the type.
    fn to_json(&self) -> Value;
}

macro_rules! decoded_here {
    ($($type:ty,)*) => {$(
        impl Json for $type {
            fn of_json(value: Value) -> Result<Self> {
                serde_json::from_value(value)
            }

            fn to_json(&self) -> Value {
                // Plain data always has a JSON form.
                serde_json::to_value(self).unwrap_or_default()
            }
        }
    )*};
}

decoded_here! {
    (),
    core::v1::Binding,
    core::v1::Node,
    core::v1::NodeSelectorTerm,
    core::v1::NodeStatus,
    core::v1::PersistentVolume,
    core::v1::Pod,
    core::v1::PodSpec,
    core::v1::PodStatus,
    core::v1::PodTemplateSpec,
    core::v1::PreferredSchedulingTerm,
    core::v1::ReplicationControllerStatus,
    core::v1::Toleration,
    apps::v1::DaemonSetStatus,
    apps::v1::DeploymentStatus,
    apps::v1::ReplicaSetStatus,
    apps::v1::StatefulSetStatus,
    authentication::v1::UserInfo,
    autoscaling::v2::HorizontalPodAutoscalerStatus,
    batch::v1::CronJobStatus,
    batch::v1::Job,
    batch::v1::JobStatus,
    coordination::v1::Lease,
    events::v1::Event,
    events::v1::EventSeries,
    node::v1::RuntimeClass,
    policy::v1::Eviction,
    policy::v1::PodDisruptionBudgetStatus,
    scheduling::v1::PriorityClass,
    storage::v1::StorageClass,
    meta::Condition,
    meta::DeleteOptions,
    meta::LabelSelector,
    meta::ObjectMeta,
    meta::Time,
    ByteString,
    IntOrString,
    workloads::WorkloadStatus,
    v1beta1::WorkloadSpread,
    v1beta1::WorkloadSpreadStatus,
    ocm::ManagedCluster,
    ocm::Placement,
    ocm::PlacementStatus,
}

/// The elements, as a list.
pub fn list<T: Json>(elements: &[T]) -> Vec<Value> {
    elements.iter().map(Json::to_json).collect()
}
