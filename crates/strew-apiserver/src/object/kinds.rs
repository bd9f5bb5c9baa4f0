//! The kinds of objects, declared once.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::{apps, autoscaling, batch, core, policy};
use serde_json::Value;
use strew_manifest::json::Json;
use strew_manifest::kinds::{KINDS, KindRow};
use strew_manifest::kruise::{v1beta1 as spread, workloads as kruise};
use strew_manifest::read::KubeObject;

use super::Part;
use super::meta::{Meta, Name};
use super::pod::Pod;
use super::wire::OnWire;
use crate::tables::{Table, Tables};

/// An object with metadata, spec and status.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource<S, T> {
    /// Metadata.
    pub meta: Meta,
    /// The desired state.
    pub spec: Arc<S>,
    /// The observed state.
    pub status: T,
}

impl<S, T: Clone + Json> Resource<S, T> {
    fn status_to_json(&self) -> Value {
        self.status.to_json()
    }

    fn with_status(&self, status: Value) -> serde_json::Result<Self> {
        Ok(Self {
            meta: self.meta.clone(),
            spec: Arc::clone(&self.spec),
            status: T::of_json(status)?,
        })
    }
}

/// `v1` Node
pub type Node = Resource<core::v1::NodeSpec, core::v1::NodeStatus>;
/// `apps/v1` Deployment
pub type Deployment = Resource<apps::v1::DeploymentSpec, apps::v1::DeploymentStatus>;
/// `apps/v1` ReplicaSet
pub type ReplicaSet = Resource<apps::v1::ReplicaSetSpec, apps::v1::ReplicaSetStatus>;
/// `v1` ReplicationController
pub type ReplicationController =
    Resource<core::v1::ReplicationControllerSpec, core::v1::ReplicationControllerStatus>;
/// `apps/v1` StatefulSet
pub type StatefulSet = Resource<apps::v1::StatefulSetSpec, apps::v1::StatefulSetStatus>;
/// `apps/v1` DaemonSet
pub type DaemonSet = Resource<apps::v1::DaemonSetSpec, apps::v1::DaemonSetStatus>;
/// `apps/v1` ControllerRevision
pub type ControllerRevision = Resource<RevisionData, ()>;
/// `batch/v1` Job
pub type Job = Resource<batch::v1::JobSpec, batch::v1::JobStatus>;
/// `batch/v1` CronJob
pub type CronJob = Resource<batch::v1::CronJobSpec, batch::v1::CronJobStatus>;
/// `autoscaling/v2` HorizontalPodAutoscaler
pub type Autoscaler = Resource<
    autoscaling::v2::HorizontalPodAutoscalerSpec,
    autoscaling::v2::HorizontalPodAutoscalerStatus,
>;
/// `policy/v1` PodDisruptionBudget
pub type Budget =
    Resource<policy::v1::PodDisruptionBudgetSpec, policy::v1::PodDisruptionBudgetStatus>;
/// `apps.kruise.io/v1alpha1` CloneSet
pub type CloneSet = Resource<kruise::CloneSetSpec, kruise::WorkloadStatus>;
/// `apps.kruise.io/v1beta1` WorkloadSpread
pub type WorkloadSpread = Resource<spread::WorkloadSpreadSpec, spread::WorkloadSpreadStatus>;

/// The content of a ControllerRevision.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionData {
    /// The template, as JSON.
    pub data: Value,
    /// Its number; larger is newer.
    pub revision: i64,
}

/// An object that is stored as it was given.
#[derive(Debug, Clone)]
pub struct Plain {
    /// Metadata; the one in `object` is not read.
    pub meta: Meta,
    /// Its kind.
    pub kind: Kind,
    /// The object.
    pub object: KubeObject,
}

impl PartialEq for Plain {
    fn eq(&self, other: &Self) -> bool {
        self.meta == other.meta
            && self.kind == other.kind
            && (self.object == other.object || self.to_json() == other.to_json())
    }
}

impl Plain {
    /// This object with one part of another; `None` if the result cannot be decoded.
    fn with_part_of(&self, part: Part, new: &Self) -> Option<Self> {
        match part {
            Part::Main => Some(Self {
                meta: new.meta.with_server_fields_of(&self.meta),
                ..new.clone()
            }),
            Part::Status => self.with_status(new.object.to_json()["status"].take()).ok(),
        }
    }

    /// This object with another status, given as JSON.
    fn with_status(&self, status: Value) -> serde_json::Result<Self> {
        let mut json = self.object.to_json();
        if let Some(fields) = json.as_object_mut() {
            match status {
                Value::Null => drop(fields.shift_remove("status")),
                status => drop(fields.insert("status".to_owned(), status)),
            }
        }
        Ok(Self {
            object: KubeObject::of_json(json)?,
            ..self.clone()
        })
    }

    /// The JSON of everything beside metadata and status.
    fn content(&self) -> Value {
        let mut json = self.object.to_json();
        if let Some(fields) = json.as_object_mut() {
            fields.shift_remove("metadata");
            fields.shift_remove("status");
        }
        json
    }
}

impl Kind {
    /// The kind of this name in the group of an API version. If another group has a kind of the same name that the
    /// simulation knows, the name includes the group: `StatefulSet.apps.kruise.io`.
    pub fn of_group(api_version: &str, name: &str) -> Self {
        let group = |text: &str| {
            text.split_once('/')
                .map_or("", |(group, _)| group)
                .to_owned()
        };
        let (kind, given) = (Self::of(name), group(api_version));
        match &kind {
            Self::Other(_) => kind,
            known if api_version.is_empty() || group(known.api_version()) == given => kind,
            _ => Self::Other(format!("{name}.{given}").into()),
        }
    }

    /// Its row in the table of kinds; `None` if the simulation has no table for its objects.
    pub fn row(&self) -> Option<&'static KindRow> {
        match self {
            Self::Other(_) => None,
            known => KINDS.iter().find(|row| row.kind == known.name()),
        }
    }

    /// Group and version; empty if the simulation does not know the kind.
    pub fn api_version(&self) -> &'static str {
        self.row().map_or("", |row| row.api_version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kind with a table of its own.
pub trait Stored: Clone + PartialEq + fmt::Debug + Sized + 'static {
    /// Its kind.
    const KIND: Kind;
    /// Its metadata.
    fn meta(&self) -> &Meta;
    /// Its metadata, mutably.
    fn meta_mut(&mut self) -> &mut Meta;
    /// Its table.
    fn table(tables: &Tables) -> &Table<Self>;
    /// As an object of any kind.
    fn into_object(this: Arc<Self>) -> Object;
    /// The object, if it is of this kind.
    fn of_object(object: &Object) -> Option<&Arc<Self>>;
}

macro_rules! stored {
    ($($variant:ident: $type:ty, $kind:ident, $table:ident;)*) => {
        /// A kind of objects.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the Kubernetes kind of its name")]
        pub enum Kind {
            $($kind,)*
            /// Any other kind, by its name.
            Other(Arc<str>),
        }

        impl Kind {
            /// Its name: `Deployment`.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                    Self::Other(name) => name,
                }
            }

            /// The kind of this name.
            pub fn of(name: &str) -> Self {
                match name {
                    $(stringify!($kind) => Self::$kind,)*
                    other => Self::Other(other.into()),
                }
            }
        }

        /// The objects of the kinds that have a table of their own.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct Typed {
            $($table: Table<$type>,)*
        }

        /// An object of any kind; clones share it.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the kind of its name")]
        pub enum Object {
            $($variant(Arc<$type>),)*
            /// An object that is stored as it was given.
            Plain(Arc<Plain>),
        }

        impl Object {
            /// Its metadata.
            pub fn meta(&self) -> &Meta {
                match self {
                    $(Self::$variant(object) => &object.meta,)*
                    Self::Plain(object) => &object.meta,
                }
            }

            /// Its metadata, mutably; a shared object is copied.
            pub fn meta_mut(&mut self) -> &mut Meta {
                match self {
                    $(Self::$variant(object) => &mut Arc::make_mut(object).meta,)*
                    Self::Plain(object) => &mut Arc::make_mut(object).meta,
                }
            }

            /// Reads an object of the wire.
            pub fn of_wire(wire: KubeObject) -> Self {
                match wire {
                    $(KubeObject::$kind(wire) => <$type as OnWire>::of_wire(*wire).into(),)*
                    wire => Self::Plain(Arc::new(Plain::of_wire(wire))),
                }
            }

            /// The object in its wire form.
            pub fn to_kube(&self) -> KubeObject {
                match self {
                    $(Self::$variant(object) => OnWire::to_wire(&**object).into(),)*
                    Self::Plain(object) => object.to_kube(),
                }
            }

            /// Stores it in its table; returns the previous object.
            pub(crate) fn put(self, tables: &mut Tables) -> Option<Object> {
                match self {
                    $(Self::$variant(object) => {
                        tables.typed.$table.set(object).map(Self::$variant)
                    })*
                    Self::Plain(object) => tables.set_plain(object).map(Self::Plain),
                }
            }

            /// Removes an object from its table.
            pub(crate) fn take(key: &Key, tables: &mut Tables) -> Option<Object> {
                match &key.kind {
                    $(Kind::$kind => tables.typed.$table.remove(&key.name).map(Self::$variant),)*
                    Kind::Other(_) => tables.remove_plain(key).map(Self::Plain),
                }
            }

            /// The object in its table.
            pub(crate) fn find(key: &Key, tables: &Tables) -> Option<Object> {
                match &key.kind {
                    $(Kind::$kind => tables.typed.$table.get(&key.name).cloned().map(Self::$variant),)*
                    Kind::Other(_) => tables.plain(key).cloned().map(Self::Plain),
                }
            }

            /// Every object, kind by kind, in the order of names.
            pub(crate) fn all(tables: &Tables) -> Vec<Object> {
                let mut all = Vec::new();
                $(all.extend(tables.typed.$table.iter().cloned().map(Self::$variant));)*
                all.extend(tables.all_plain().cloned().map(Self::Plain));
                all
            }

            /// Every object of a kind, in the order of names.
            pub(crate) fn all_of(kind: &Kind, tables: &Tables) -> Vec<Object> {
                match kind {
                    $(Kind::$kind => tables.typed.$table.iter().cloned().map(Self::$variant).collect(),)*
                    Kind::Other(_) => {
                        let plain = tables.all_plain().filter(|plain| plain.kind == *kind);
                        plain.cloned().map(Self::Plain).collect()
                    }
                }
            }

            /// This object with one part of another; `None` if the kinds differ.
            pub(crate) fn with_part_of(&self, part: Part, new: Self) -> Option<Self> {
                match self {
                    $(Self::$variant(stored) => {
                        let new = <$type>::of_object(&new)?;
                        let mut merged = <$type>::clone(stored);
                        match part {
                            Part::Main => {
                                merged.meta = new.meta.with_server_fields_of(&stored.meta);
                                if merged.spec != new.spec {
                                    merged.spec = Arc::clone(&new.spec);
                                }
                            }
                            Part::Status => merged.status = new.status.clone(),
                        }
                        Some(Self::$variant(Arc::new(merged)))
                    })*
                    Self::Plain(stored) => match new {
                        Self::Plain(new) => stored.with_part_of(part, &new).map(|merged| {
                            Self::Plain(Arc::new(merged))
                        }),
                        _ => None,
                    },
                }
            }

            /// True if this and the other object of its kind have the same spec.
            pub(crate) fn has_spec_of(&self, other: &Self) -> bool {
                match self {
                    $(Self::$variant(object) => <$type>::of_object(other).is_some_and(|other| {
                        Arc::ptr_eq(&object.spec, &other.spec) || object.spec == other.spec
                    }),)*
                    Self::Plain(object) => match other {
                        Self::Plain(other) => object.content() == other.content(),
                        _ => false,
                    },
                }
            }

            /// The status as JSON; null if it has none.
            pub(crate) fn status_to_json(&self) -> Value {
                match self {
                    $(Self::$variant(object) => object.status_to_json(),)*
                    Self::Plain(object) => object.object.to_json()["status"].take(),
                }
            }

            /// This object with another status, given as JSON.
            ///
            /// # Errors
            /// A field has another type than the kind's.
            pub(crate) fn with_status(&self, status: Value) -> serde_json::Result<Self> {
                Ok(match self {
                    $(Self::$variant(object) => {
                        let status = match status {
                            Value::Null => Value::Object(serde_json::Map::new()),
                            status => status,
                        };
                        Self::$variant(Arc::new(object.with_status(status)?))
                    })*
                    Self::Plain(object) => Self::Plain(Arc::new(object.with_status(status)?)),
                })
            }

            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$variant(_) => Kind::$kind,)*
                    Self::Plain(object) => object.kind.clone(),
                }
            }
        }

        $(impl Stored for $type {
            const KIND: Kind = Kind::$kind;

            fn meta(&self) -> &Meta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut Meta {
                &mut self.meta
            }

            fn table(tables: &Tables) -> &Table<Self> {
                &tables.typed.$table
            }

            fn into_object(this: Arc<Self>) -> Object {
                Object::$variant(this)
            }

            fn of_object(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$variant(object) => Some(object),
                    _ => None,
                }
            }
        }

        impl From<$type> for Object {
            fn from(object: $type) -> Self {
                Self::$variant(Arc::new(object))
            }
        })*
    };
}

stored! {
    Pod: Pod, Pod, pods;
    Node: Node, Node, nodes;
    Deployment: Deployment, Deployment, deployments;
    ReplicaSet: ReplicaSet, ReplicaSet, replica_sets;
    ReplicationController: ReplicationController, ReplicationController, replication_controllers;
    StatefulSet: StatefulSet, StatefulSet, stateful_sets;
    DaemonSet: DaemonSet, DaemonSet, daemon_sets;
    ControllerRevision: ControllerRevision, ControllerRevision, controller_revisions;
    Job: Job, Job, jobs;
    CronJob: CronJob, CronJob, cron_jobs;
    Autoscaler: Autoscaler, HorizontalPodAutoscaler, autoscalers;
    Budget: Budget, PodDisruptionBudget, budgets;
    CloneSet: CloneSet, CloneSet, clone_sets;
    WorkloadSpread: WorkloadSpread, WorkloadSpread, workload_spreads;
}

/// The identity of an object: its kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The kind.
    pub kind: Kind,
    /// Namespace and name.
    pub name: Name,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Object {
    /// Its identity.
    pub fn key(&self) -> Key {
        Key {
            kind: self.kind(),
            name: self.meta().name.clone(),
        }
    }
}
