//! Converts objects between the wire and the store.

use std::sync::Arc;

use k8s_openapi::api::{apps, autoscaling, batch, core, policy};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_manifest::kinds::KindRow;
use strew_manifest::kruise::{v1beta1, workloads as kruise};
use strew_manifest::read::KubeObject;

use super::kinds::{
    Autoscaler, Budget, CloneSet, ControllerRevision, CronJob, DaemonSet, Deployment, Job, Kind,
    Node, Object, Plain, ReplicaSet, ReplicationController, Resource, RevisionData, StatefulSet,
    WorkloadSpread,
};
use super::meta::Meta;
use super::pod::Pod;

/// A stored type with its type of the wire.
pub(super) trait OnWire {
    /// The type of the wire.
    type Wire: Into<KubeObject>;
    /// Reads an object of the wire.
    fn of_wire(wire: Self::Wire) -> Self;
    /// The object in its wire form.
    fn to_wire(&self) -> Self::Wire;
}

/// A field of a wire type, which is optional in most.
trait Field<T> {
    fn value(self) -> T;
    fn of(value: T) -> Self;
}

impl<T> Field<T> for T {
    fn value(self) -> T {
        self
    }

    fn of(value: T) -> Self {
        value
    }
}

impl<T: Default> Field<T> for Option<T> {
    fn value(self) -> T {
        self.unwrap_or_default()
    }

    fn of(value: T) -> Self {
        Some(value)
    }
}

macro_rules! on_wire {
    ($($type:ty: $wire:path;)*) => {
        $(impl OnWire for $type {
            type Wire = $wire;

            fn of_wire(wire: $wire) -> Self {
                Resource {
                    meta: Meta::of_wire(wire.metadata, KindRow::of::<$wire>().is_namespaced),
                    spec: Arc::new(wire.spec.value()),
                    status: wire.status.value(),
                }
            }

            fn to_wire(&self) -> $wire {
                $wire {
                    metadata: self.meta.to_wire(),
                    spec: Field::of((*self.spec).clone()),
                    status: Field::of(self.status.clone()),
                }
            }
        })*
    };
}

on_wire! {
    Node: core::v1::Node;
    Deployment: apps::v1::Deployment;
    ReplicaSet: apps::v1::ReplicaSet;
    ReplicationController: core::v1::ReplicationController;
    StatefulSet: apps::v1::StatefulSet;
    DaemonSet: apps::v1::DaemonSet;
    Job: batch::v1::Job;
    CronJob: batch::v1::CronJob;
    Autoscaler: autoscaling::v2::HorizontalPodAutoscaler;
    Budget: policy::v1::PodDisruptionBudget;
    CloneSet: kruise::CloneSet;
    WorkloadSpread: v1beta1::WorkloadSpread;
}

impl OnWire for Pod {
    type Wire = core::v1::Pod;

    fn of_wire(wire: core::v1::Pod) -> Self {
        Self::of_wire(wire)
    }

    fn to_wire(&self) -> core::v1::Pod {
        self.to_wire()
    }
}

impl OnWire for ControllerRevision {
    type Wire = apps::v1::ControllerRevision;

    fn of_wire(wire: apps::v1::ControllerRevision) -> Self {
        let data = wire.data.map(|RawExtension(data)| data);
        Self::new(
            Meta::of_wire(wire.metadata, true),
            data.unwrap_or_default(),
            wire.revision,
        )
    }

    fn to_wire(&self) -> apps::v1::ControllerRevision {
        apps::v1::ControllerRevision {
            metadata: self.meta.to_wire(),
            data: Some(RawExtension(self.spec.data.clone())),
            revision: self.spec.revision,
        }
    }
}

impl ControllerRevision {
    fn new(meta: Meta, data: Value, revision: i64) -> Self {
        Self {
            meta,
            spec: Arc::new(RevisionData { data, revision }),
            status: (),
        }
    }
}

impl Object {
    /// The object as JSON of the wire, with `apiVersion` and `kind`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Plain(object) => object.to_json(),
            object => object.to_kube().to_json(),
        }
    }

    /// A ControllerRevision.
    pub fn revision(meta: Meta, data: Value, revision: i64) -> Self {
        ControllerRevision::new(meta, data, revision).into()
    }
}

impl Plain {
    pub(super) fn of_wire(object: KubeObject) -> Self {
        let is_namespaced = object.namespace().is_some();
        let mut metadata = object.metadata().cloned().unwrap_or_default();
        if let KubeObject::Other(other) = &object {
            metadata.namespace.clone_from(&other.namespace);
            metadata.name = Some(other.name.clone());
        }
        Self {
            meta: Meta::of_wire(metadata, is_namespaced),
            kind: Kind::of_group(object.api_version(), object.kind()),
            object,
        }
    }

    /// With the server's metadata, since an update is compared with it.
    pub(super) fn to_kube(&self) -> KubeObject {
        KubeObject::of_json(self.to_json()).unwrap_or_else(|_| self.object.clone())
    }

    pub(super) fn to_json(&self) -> Value {
        let mut value = self.object.to_json();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("metadata".to_owned(), self.meta.to_wire().to_json());
        }
        value
    }
}
