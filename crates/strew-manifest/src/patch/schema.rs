//! Which lists are merged, and by which key.
//!
//! Source: the tags `patchStrategy` and `patchMergeKey` in `k8s.io/api/*/types.go` and
//! `k8s.io/apimachinery/pkg/apis/meta/v1/types.go`, v1.36.

use crate::kinds::KINDS;

/// The type of a value, as far as patches distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// A pod.
    Pod,
    /// A pod template.
    Template,
    /// The spec of a pod.
    PodSpec,
    /// A container of any kind.
    Container,
    /// An object with `spec.template`: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and others.
    Workload,
    /// The spec of one.
    WorkloadSpec,
    /// A Deployment, whose strategy is replaced when its type changes.
    Deployment,
    /// Its spec.
    DeploymentSpec,
    /// A CronJob.
    CronJob,
    /// Its spec.
    CronJobSpec,
    /// A Service.
    Service,
    /// Its spec.
    ServiceSpec,
    /// A node.
    Node,
    /// Its spec.
    NodeSpec,
    /// Any other object of Kubernetes' own.
    Object,
    /// Metadata.
    Metadata,
    /// A pod's status.
    PodStatus,
    /// A node's status.
    NodeStatus,
    /// Another object's status.
    Status,
    /// Any other value: maps are merged, lists are replaced.
    Plain,
}

/// How a list is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListRule {
    /// The new list replaces the old one.
    Replace,
    /// Objects with equal keys are merged.
    ByKey(&'static str),
    /// Missing values are added.
    Set,
}

/// The patch rules of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The schema of its value, or of the elements of its list.
    pub schema: Schema,
    /// The rule, if it is a list.
    pub list: ListRule,
    /// True if `kubectl apply` removes fields that the new object does not have, when it changes anything in the value:
    /// the fields of such an object exclude each other.
    pub retain_keys: bool,
}

impl Schema {
    /// The schema of one of Kubernetes' own kinds; `None` for others, which the API server does not merge
    /// strategically.
    pub fn of_kind(kind: &str) -> Option<Self> {
        KINDS.iter().find(|row| row.kind == kind)?.patch
    }

    /// The patch rules of a field of an object with this schema.
    pub fn field(self, name: &str) -> Field {
        let plain = |schema| Field {
            schema,
            list: ListRule::Replace,
            retain_keys: false,
        };
        let by_key = |schema, key| Field {
            list: ListRule::ByKey(key),
            ..plain(schema)
        };
        let retaining = |field| Field {
            retain_keys: true,
            ..field
        };
        let set = Field {
            list: ListRule::Set,
            ..plain(Self::Plain)
        };
        match (self, name) {
            (_, "metadata") if self.has_metadata() => plain(Self::Metadata),
            (Self::Metadata, "ownerReferences") => by_key(Self::Plain, "uid"),
            (Self::Metadata, "finalizers") => set,

            (Self::Pod | Self::Template, "spec") => plain(Self::PodSpec),
            (Self::Deployment, "spec") => plain(Self::DeploymentSpec),
            (Self::Workload, "spec") => plain(Self::WorkloadSpec),
            (Self::CronJob, "spec") => plain(Self::CronJobSpec),
            (Self::Service, "spec") => plain(Self::ServiceSpec),
            (Self::Node, "spec") => plain(Self::NodeSpec),
            (Self::WorkloadSpec | Self::DeploymentSpec, "template") => plain(Self::Template),
            (Self::DeploymentSpec, "strategy") => retaining(plain(Self::Plain)),
            (Self::CronJobSpec, "jobTemplate") => plain(Self::Workload),
            (Self::ServiceSpec, "ports") => by_key(Self::Plain, "port"),
            (Self::NodeSpec, "podCIDRs") => set,

            (Self::PodSpec, "containers" | "initContainers" | "ephemeralContainers") => {
                by_key(Self::Container, "name")
            }
            (Self::PodSpec, "volumes" | "resourceClaims") => retaining(by_key(Self::Plain, "name")),
            (Self::PodSpec, "imagePullSecrets" | "schedulingGates") => by_key(Self::Plain, "name"),
            (Self::PodSpec, "hostAliases") => by_key(Self::Plain, "ip"),
            (Self::PodSpec, "topologySpreadConstraints") => by_key(Self::Plain, "topologyKey"),
            (Self::Container, "env") => by_key(Self::Plain, "name"),
            (Self::Container, "ports") => by_key(Self::Plain, "containerPort"),
            (Self::Container, "volumeMounts") => by_key(Self::Plain, "mountPath"),
            (Self::Container, "volumeDevices") => by_key(Self::Plain, "devicePath"),

            (Self::Pod, "status") => plain(Self::PodStatus),
            (Self::Node, "status") => plain(Self::NodeStatus),
            (_, "status") if self.has_metadata() => plain(Self::Status),
            (Self::PodStatus | Self::NodeStatus | Self::Status, "conditions") => {
                by_key(Self::Plain, "type")
            }
            (Self::PodStatus, "podIPs" | "hostIPs") => by_key(Self::Plain, "ip"),
            (Self::PodStatus, "resourceClaimStatuses") => retaining(by_key(Self::Plain, "name")),
            (Self::NodeStatus, "addresses") => by_key(Self::Plain, "type"),
            _ => plain(Self::Plain),
        }
    }

    fn has_metadata(self) -> bool {
        matches!(
            self,
            Self::Pod
                | Self::Template
                | Self::Workload
                | Self::Deployment
                | Self::CronJob
                | Self::Service
                | Self::Node
                | Self::Object
        )
    }
}
