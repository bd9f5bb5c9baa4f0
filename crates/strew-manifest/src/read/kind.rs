//! The kinds that strew knows, and an object of any kind.

use std::borrow::Cow;
use std::sync::OnceLock;

use k8s_openapi::api::{
    apps, autoscaling, batch, coordination, core, node, policy, scheduling, storage,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, Resource};
use serde_json::{Map, Value};

use super::earlier;
use super::event::EventRecord;
use super::head::Head;
use super::meaning::{Meaning, meaning};
use super::pods;
use super::scale::ScaleTarget;
use super::schema::Schema;
use super::source::floor_char_boundary;
use crate::kinds::{KindRow, Pods, Rollout, Scope};
use crate::kruise::{conversion, v1alpha1, v1beta1, workloads as kruise};
use crate::ocm;
use crate::patch::Schema as Merge;

/// Declares the modelled kinds once: their objects, the data needed to read them, and their rows in the table. Objects
/// of earlier versions that the API server still accepts are read as objects of the current one.
macro_rules! kinds {
    (
        $($kind:ident: $type:ty { $($column:ident: $value:expr),* },)*;
        $($earlier:ident: $old:ty => $now:ident by $convert:path,)*;
        $($unread:ty { $($unread_column:ident: $unread_value:expr),* },)*
    ) => {
        /// Every kind that strew knows, in the version that it stores.
        pub const KINDS: &[KindRow] = &[
            $(KindRow { $($column: $value,)* ..KindRow::of::<$type>() },)*
            $(KindRow { $($unread_column: $unread_value,)* ..KindRow::of::<$unread>() },)*
        ];

        /// Kinds in earlier versions that strew reads.
        pub(crate) const EARLIER: &[KindRow] = &[$(KindRow::of::<$old>(),)*];

        /// An object as its file contains it.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the Kubernetes kind of its name")]
        pub enum KubeObject {
            $($kind(Box<$type>),)*
            /// A kind that strew does not know; nothing in it was checked.
            Other(Box<OtherObject>),
        }

        /// A kind that strew knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Kind {
            $($kind,)*
            $($earlier,)*
        }

        impl Kind {
            /// All of them.
            pub(super) const ALL: &[Self] = &[$(Self::$kind,)* $(Self::$earlier,)*];

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => <$type as Resource>::KIND,)*
                    $(Self::$earlier => <$old as Resource>::KIND,)*
                }
            }

            pub(super) fn api_version(self) -> &'static str {
                match self {
                    $(Self::$kind => <$type as Resource>::API_VERSION,)*
                    $(Self::$earlier => <$old as Resource>::API_VERSION,)*
                }
            }

            pub(super) fn is_namespaced(self) -> bool {
                match self {
                    $(Self::$kind => <<$type as Resource>::Scope as Scope>::IS_NAMESPACED,)*
                    $(Self::$earlier => <<$old as Resource>::Scope as Scope>::IS_NAMESPACED,)*
                }
            }

            pub(super) fn decode(self, value: Value) -> Result<KubeObject, serde_json::Error> {
                Ok(match self {
                    $(Self::$kind => KubeObject::$kind(serde_json::from_value(value)?),)*
                    $(Self::$earlier => {
                        let old: $old = serde_json::from_value(value)?;
                        KubeObject::$now(Box::new($convert(old)))
                    })*
                })
            }
        }

        /// The table of the fields of all kinds, as `fields.txt` has it.
        #[cfg(feature = "schemas")]
        pub fn field_table() -> String {
            use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
            let mut writer = super::field_writer::FieldWriter::default();
            $(writer.add::<$type>(&Kind::$kind.table_name());)*
            $(writer.add::<$old>(&Kind::$earlier.table_name());)*
            writer.add::<LabelSelector>("LabelSelector");
            writer.finish()
        }

        impl KubeObject {
            fn known(&self) -> Result<(Kind, &ObjectMeta), &OtherObject> {
                match self {
                    $(Self::$kind(object) => Ok((Kind::$kind, object.metadata())),)*
                    Self::Other(other) => Err(other),
                }
            }
        }

        impl KubeObject {
            /// The object as JSON, with `apiVersion` and `kind`; for an unknown kind, only its name.
            pub fn to_json(&self) -> Value {
                match self {
                    $(Self::$kind(object) => serde_json::to_value(object).unwrap_or_default(),)*
                    Self::Other(other) => serde_json::json!({
                        "apiVersion": other.api_version,
                        "kind": other.kind,
                        "metadata": {"namespace": other.namespace, "name": other.name},
                    }),
                }
            }
        }

        impl KubeObject {
            /// An object from JSON that was read before; unknown fields are ignored.
            ///
            /// # Errors
            /// The kind is unknown, or a field has another type.
            pub fn of_json(value: Value) -> Result<Self, serde_json::Error> {
                use serde::de::Error;
                let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
                let (api_version, kind) = (text("apiVersion"), text("kind"));
                match meaning(&api_version, &kind) {
                    Meaning::Known(kind) => kind.decode(value),
                    _ => Err(serde_json::Error::custom(format!("no kind {kind} in {api_version} is known"))),
                }
            }
        }

        $(impl From<$type> for KubeObject {
            fn from(object: $type) -> Self {
                Self::$kind(Box::new(object))
            }
        })*
    };
}

kinds! {
    // Before Pod: a name that is similar to both means a node.
    Node: core::v1::Node { short: Some("no"), patch: Some(Merge::Node) },
    Pod: core::v1::Pod { short: Some("po"), patch: Some(Merge::Pod), pods: Pods::Are },
    Deployment: apps::v1::Deployment { short: Some("deploy"), patch: Some(Merge::Deployment), pods: Pods::Make, scales: true, rollout: Rollout::Kubectl },
    ReplicaSet: apps::v1::ReplicaSet { short: Some("rs"), patch: Some(Merge::Workload), pods: Pods::Make, scales: true },
    StatefulSet: apps::v1::StatefulSet { short: Some("sts"), patch: Some(Merge::Workload), pods: Pods::Make, scales: true, rollout: Rollout::Kubectl },
    DaemonSet: apps::v1::DaemonSet { short: Some("ds"), patch: Some(Merge::Workload), pods: Pods::Make, rollout: Rollout::Kubectl },
    ReplicationController: core::v1::ReplicationController { short: Some("rc"), patch: Some(Merge::Workload), pods: Pods::Make, scales: true },
    ControllerRevision: apps::v1::ControllerRevision { patch: Some(Merge::Object) },
    Job: batch::v1::Job { short: Some("job"), patch: Some(Merge::Workload), pods: Pods::Make },
    CronJob: batch::v1::CronJob { short: Some("cj"), patch: Some(Merge::CronJob), pods: Pods::Make },
    Namespace: core::v1::Namespace { short: Some("ns"), patch: Some(Merge::Object) },
    Service: core::v1::Service { short: Some("svc"), patch: Some(Merge::Service) },
    LimitRange: core::v1::LimitRange { short: Some("limits"), patch: Some(Merge::Object) },
    ResourceQuota: core::v1::ResourceQuota { short: Some("quota"), patch: Some(Merge::Object) },
    PersistentVolumeClaim: core::v1::PersistentVolumeClaim { short: Some("pvc"), patch: Some(Merge::Object) },
    PersistentVolume: core::v1::PersistentVolume { short: Some("pv"), patch: Some(Merge::Object) },
    PriorityClass: scheduling::v1::PriorityClass { short: Some("pc"), patch: Some(Merge::Object) },
    StorageClass: storage::v1::StorageClass { short: Some("sc"), patch: Some(Merge::Object) },
    CSINode: storage::v1::CSINode {},
    RuntimeClass: node::v1::RuntimeClass { short: Some("runtimeclass"), patch: Some(Merge::Object) },
    PodDisruptionBudget: policy::v1::PodDisruptionBudget { short: Some("pdb"), patch: Some(Merge::Object) },
    HorizontalPodAutoscaler: autoscaling::v2::HorizontalPodAutoscaler { short: Some("hpa"), patch: Some(Merge::Object) },
    CloneSet: kruise::CloneSet { short: Some("clone"), pods: Pods::Make, scales: true, rollout: Rollout::Own },
    AdvancedStatefulSet: kruise::AdvancedStatefulSet {},
    WorkloadSpread: v1beta1::WorkloadSpread { short: Some("ws") },
    Placement: ocm::Placement { short: Some("placement") },
    PlacementDecision: ocm::PlacementDecision { short: Some("placementdecision") },
    ManagedCluster: ocm::ManagedCluster { short: Some("mcl") },
    ManagedClusterSet: ocm::ManagedClusterSet { short: Some("mclset") },
    ManagedClusterSetBinding: ocm::ManagedClusterSetBinding { short: Some("mclsetbinding") },
    AddOnPlacementScore: ocm::AddOnPlacementScore { short: Some("addonplacementscore") },
    ;
    HorizontalPodAutoscalerV1: autoscaling::v1::HorizontalPodAutoscaler
        => HorizontalPodAutoscaler by earlier::autoscaler,
    WorkloadSpreadV1alpha1: v1alpha1::WorkloadSpread => WorkloadSpread by conversion::up,
    CloneSetV1beta1: kruise::CloneSetV1beta1 => CloneSet by earlier::clone_set,
    AdvancedStatefulSetV1alpha1: kruise::AdvancedStatefulSetV1alpha1
        => AdvancedStatefulSet by earlier::stateful_set,
    ;
    // Not read from files.
    coordination::v1::Lease { short: Some("lease"), patch: Some(Merge::Object) },
    core::v1::ConfigMap { patch: Some(Merge::Object) },
    core::v1::PodTemplate { patch: Some(Merge::Object) },
}

impl Kind {
    /// Its name in the table of fields.
    fn table_name(self) -> String {
        format!("{} {}", self.api_version(), self.name())
    }

    /// The schema of its objects.
    pub(super) fn schema(self) -> Schema {
        static SCHEMAS: OnceLock<Vec<Schema>> = OnceLock::new();
        let schemas = SCHEMAS.get_or_init(|| {
            let schemas = Self::ALL.iter();
            schemas.map(|kind| Schema::of(&kind.table_name())).collect()
        });
        schemas[self as usize]
    }

    /// The project that defines it, and the version that strew knows.
    pub(super) fn whose(self) -> &'static str {
        match group_of(self.api_version()) {
            ocm::GROUP => "Open Cluster Management",
            _ => "Kubernetes 1.36",
        }
    }
}

/// Whether objects of a kind live in namespaces; `None` if strew does not know the kind in this version.
pub fn is_namespaced(api_version: &str, kind: &str) -> Option<bool> {
    let is_it = |known: &&Kind| known.name() == kind && known.api_version() == api_version;
    Kind::ALL
        .iter()
        .find(is_it)
        .map(|known| known.is_namespaced())
}

/// An object of a kind that strew does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherObject {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if given; whether the kind is namespaced is not known.
    pub namespace: Option<String>,
    /// Its name; empty for configuration files.
    pub name: String,
    /// True if a controller makes pods of it.
    pub makes_pods: bool,
    /// What it says, if it is an Event.
    pub event: Option<Box<EventRecord>>,
    /// What it scales.
    pub scales: Option<Box<ScaleTarget>>,
}

impl OtherObject {
    pub(super) fn of(head: Head, fields: &Map<String, Value>) -> Self {
        Self {
            makes_pods: pods::makes_pods(group_of(&head.api_version), &head.kind, fields),
            event: EventRecord::of(&head.kind, fields),
            scales: ScaleTarget::of(group_of(&head.api_version), &head.kind, fields).map(Box::new),
            api_version: head.api_version,
            kind: head.kind,
            namespace: head.namespace,
            name: head.name,
        }
    }
}

/// The namespace of an object without one.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

impl KubeObject {
    /// Group and version, as written: `apps/v1`.
    pub fn api_version(&self) -> &str {
        match self.known() {
            Ok((kind, _)) => kind.api_version(),
            Err(other) => &other.api_version,
        }
    }

    /// The kind: `Deployment`.
    pub fn kind(&self) -> &str {
        match self.known() {
            Ok((kind, _)) => kind.name(),
            Err(other) => &other.kind,
        }
    }

    /// The namespace: `default` if none is given, `None` for cluster-scoped kinds.
    pub fn namespace(&self) -> Option<&str> {
        match self.known() {
            Ok((kind, metadata)) => {
                let named = metadata
                    .namespace
                    .as_deref()
                    .filter(|name| !name.is_empty());
                kind.is_namespaced()
                    .then(|| named.unwrap_or(DEFAULT_NAMESPACE))
            }
            Err(other) => other.namespace.as_deref(),
        }
    }

    /// The name; empty for objects of unknown kinds without a name.
    pub fn name(&self) -> &str {
        match self.known() {
            Ok((_, metadata)) => metadata.name.as_deref().unwrap_or_default(),
            Err(other) => &other.name,
        }
    }

    /// What it says, if it is an Event.
    pub fn event(&self) -> Option<&EventRecord> {
        match self {
            Self::Other(other) => other.event.as_deref(),
            _ => None,
        }
    }

    /// The metadata, if the kind is known.
    pub fn metadata(&self) -> Option<&ObjectMeta> {
        self.known().ok().map(|(_, metadata)| metadata)
    }

    /// The kind, with its group where the name alone would be taken for another kind: `Job (batch.volcano.sh)`.
    pub fn kind_in_group(&self) -> Cow<'_, str> {
        match self {
            Self::Other(_) | Self::AdvancedStatefulSet(_) => {
                kind_in_group(self.api_version(), self.kind()).into()
            }
            _ => self.kind().into(),
        }
    }

    /// Its name in diagnostics: `Deployment shop/web`.
    pub fn label(&self) -> String {
        label(&self.kind_in_group(), self.namespace(), self.name())
    }
}

/// `Job (batch.volcano.sh)`; a kind of the core has no group.
pub(super) fn kind_in_group(api_version: &str, kind: &str) -> String {
    let kind = clipped(kind);
    match group_of(api_version) {
        "" => kind.to_owned(),
        group => format!("{kind} ({})", clipped(group)),
    }
}

/// `Deployment shop/web`, `Node a1`, or just the kind of an object without a name.
pub(super) fn label(kind: &str, namespace: Option<&str>, name: &str) -> String {
    let (kind, name) = (clipped(kind), clipped(name));
    match namespace.map(clipped) {
        _ if name.is_empty() => kind.to_owned(),
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// The longest name of an object in Kubernetes, in bytes. A name in a file may have megabytes, which no message should
/// repeat.
const NAME_LENGTH_MAX: usize = 253;

fn clipped(name: &str) -> &str {
    &name[..floor_char_boundary(name, NAME_LENGTH_MAX)]
}

/// `apps` for `apps/v1`, an empty text for `v1`.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
