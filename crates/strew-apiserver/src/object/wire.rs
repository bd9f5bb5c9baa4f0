//! Converts objects between the wire and the store.

use std::sync::Arc;

use k8s_openapi::api::{apps, autoscaling, batch, core, policy};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_manifest::kruise::{v1beta1 as spread, workloads as kruise};
use strew_manifest::read::KubeObject;

use super::kinds::{Kind, Object, Plain, Resource, RevisionData};
use super::meta::Meta;
use super::pod::Pod;

macro_rules! of_wire {
    ($wire:expr, $variant:ident, $is_namespaced:expr) => {{
        let wire = *$wire;
        Object::$variant(Arc::new(Resource {
            meta: Meta::of_wire(wire.metadata, $is_namespaced),
            spec: Arc::new(wire.spec.unwrap_or_default()),
            status: wire.status.unwrap_or_default(),
        }))
    }};
}

macro_rules! to_wire {
    ($object:expr, $type:path) => {{
        let object = $object;
        $type {
            metadata: object.meta.to_wire(),
            spec: Some((*object.spec).clone()),
            status: Some(object.status.clone()),
        }
    }};
}

impl Object {
    /// Reads an object of the wire.
    pub fn of_wire(wire: KubeObject) -> Self {
        match wire {
            KubeObject::Pod(pod) => Self::Pod(Arc::new(Pod::of_wire(*pod))),
            KubeObject::Node(node) => of_wire!(node, Node, false),
            KubeObject::Deployment(object) => of_wire!(object, Deployment, true),
            KubeObject::ReplicaSet(object) => of_wire!(object, ReplicaSet, true),
            KubeObject::ReplicationController(object) => {
                of_wire!(object, ReplicationController, true)
            }
            KubeObject::StatefulSet(object) => of_wire!(object, StatefulSet, true),
            KubeObject::DaemonSet(object) => of_wire!(object, DaemonSet, true),
            KubeObject::ControllerRevision(object) => {
                let apps::v1::ControllerRevision {
                    metadata,
                    data,
                    revision,
                } = *object;
                let data = data.map(|RawExtension(data)| data).unwrap_or_default();
                Self::revision(Meta::of_wire(metadata, true), data, revision)
            }
            KubeObject::Job(object) => of_wire!(object, Job, true),
            KubeObject::CronJob(object) => {
                let batch::v1::CronJob {
                    metadata,
                    spec,
                    status,
                } = *object;
                Self::CronJob(Arc::new(Resource {
                    meta: Meta::of_wire(metadata, true),
                    spec: Arc::new(spec),
                    status: status.unwrap_or_default(),
                }))
            }
            KubeObject::PodDisruptionBudget(object) => of_wire!(object, Budget, true),
            KubeObject::CloneSet(object) => of_wire!(object, CloneSet, true),
            KubeObject::WorkloadSpread(object) => of_wire!(object, WorkloadSpread, true),
            KubeObject::HorizontalPodAutoscaler(object) => {
                let autoscaling::v2::HorizontalPodAutoscaler {
                    metadata,
                    spec,
                    status,
                } = *object;
                Self::Autoscaler(Arc::new(Resource {
                    meta: Meta::of_wire(metadata, true),
                    spec: Arc::new(spec),
                    status: status.unwrap_or_default(),
                }))
            }
            object => {
                let is_namespaced = object.namespace().is_some();
                let mut metadata = object.metadata().cloned().unwrap_or_default();
                if let KubeObject::Other(other) = &object {
                    metadata.namespace.clone_from(&other.namespace);
                    metadata.name = Some(other.name.clone());
                }
                let kind = Kind::of_group(object.api_version(), object.kind());
                Self::Plain(Arc::new(Plain {
                    meta: Meta::of_wire(metadata, is_namespaced),
                    kind,
                    object,
                }))
            }
        }
    }

    /// The object in its wire form.
    pub fn to_kube(&self) -> KubeObject {
        match self {
            Self::Pod(pod) => pod.to_wire().into(),
            Self::Node(object) => to_wire!(object, core::v1::Node).into(),
            Self::Deployment(object) => to_wire!(object, apps::v1::Deployment).into(),
            Self::ReplicaSet(object) => to_wire!(object, apps::v1::ReplicaSet).into(),
            Self::ReplicationController(object) => {
                to_wire!(object, core::v1::ReplicationController).into()
            }
            Self::StatefulSet(object) => to_wire!(object, apps::v1::StatefulSet).into(),
            Self::DaemonSet(object) => to_wire!(object, apps::v1::DaemonSet).into(),
            Self::Job(object) => to_wire!(object, batch::v1::Job).into(),
            Self::CronJob(object) => batch::v1::CronJob {
                metadata: object.meta.to_wire(),
                spec: (*object.spec).clone(),
                status: Some(object.status.clone()),
            }
            .into(),
            Self::Budget(object) => to_wire!(object, policy::v1::PodDisruptionBudget).into(),
            Self::CloneSet(object) => to_wire!(object, kruise::CloneSet).into(),
            Self::WorkloadSpread(object) => to_wire!(object, spread::WorkloadSpread).into(),
            Self::Autoscaler(object) => autoscaling::v2::HorizontalPodAutoscaler {
                metadata: object.meta.to_wire(),
                spec: (*object.spec).clone(),
                status: Some(object.status.clone()),
            }
            .into(),
            // With the server's metadata, since an update is compared with it.
            Self::Plain(object) => {
                KubeObject::of_json(object.to_json()).unwrap_or_else(|_| object.object.clone())
            }
            Self::ControllerRevision(object) => apps::v1::ControllerRevision {
                metadata: object.meta.to_wire(),
                data: Some(RawExtension(object.spec.data.clone())),
                revision: object.spec.revision,
            }
            .into(),
        }
    }

    /// The object as JSON of the wire, with `apiVersion` and `kind`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Plain(object) => object.to_json(),
            object => object.to_kube().to_json(),
        }
    }

    /// A ControllerRevision.
    pub fn revision(meta: Meta, data: Value, revision: i64) -> Self {
        Self::ControllerRevision(Arc::new(Resource {
            meta,
            spec: Arc::new(RevisionData { data, revision }),
            status: (),
        }))
    }
}

impl Plain {
    pub(super) fn to_json(&self) -> Value {
        let mut value = self.object.to_json();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("metadata".to_owned(), self.meta.to_wire().to_json());
        }
        value
    }
}
