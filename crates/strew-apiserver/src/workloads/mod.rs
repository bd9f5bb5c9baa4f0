//! Expands workloads to pods: what the controllers would create from the given objects at once.
//!
//! # Which pods are made
//! [`expand`] does what the controllers would do in a cluster with exactly these objects until they have no work left:
//! each workload gets the pods that it *lacks*, and no pod is deleted.
//! - A pod belongs to the workload its controller reference names: kind, namespace and name, and
//!   the uid where both sides have one. A pod of a ReplicaSet `web-HASH` that is not among the
//!   objects belongs to Deployment `web` if HASH is its label `pod-template-hash`.
//! - So a Deployment alone gets all its pods; a dump with its ReplicaSets and pods gets none; the
//!   same dump with `replicas` raised gets the difference.
//! - Finished and terminating pods are replaced as their controller would: a ReplicaSet's at once,
//!   a StatefulSet's (same name) and a DaemonSet's (same node) not while the old one is there.
//! - A Deployment that has ReplicaSets makes none. If `replicas` is above their sum, the one with
//!   its template, else the newest, grows. Rollouts belong to the simulator.
//! - Nothing is made for a workload that is being deleted, a suspended or finished Job, a CronJob,
//!   or a paused Deployment without ReplicaSets (a [`Note`] says so).
//! - Pods without an owner are not adopted.
//!
//! Time is left out: a StatefulSet's pods are made all together. The objects are taken as the API
//! server stores them ([`crate::admission::admit`]); the pods made are what controllers *send* and
//! go through [`crate::admission::admit_pod`] next.
//!
//! Source: `pkg/controller/{deployment,replicaset,statefulset,daemon,job}`, v1.36.

mod daemon_set;
mod deployment;
mod eligibility;
mod job;
mod names;
mod owners;
mod replica_set;
mod stateful_set;
mod template;

use std::fmt;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use daemon_set::{DaemonFit, DaemonTemplate, daemon_pod_node};
pub use eligibility::{Eligibility, NodeView};
pub use names::generated_name;
pub use stateful_set::set_stateful_identity;
use strew_manifest::field::FieldPath;
pub use strew_manifest::names::NameSource;
pub use template::{template_hash, template_hash_after};

use owners::Owners;
use template::PodMaker;

/// More pods than this are refused.
pub const N_PODS_MAX: usize = 1_000_000;

/// An object that makes pods.
#[derive(Debug, Clone, Copy)]
pub enum Workload<'a> {
    /// apps/v1
    Deployment(&'a Deployment),
    /// apps/v1
    ReplicaSet(&'a ReplicaSet),
    /// v1
    ReplicationController(&'a ReplicationController),
    /// apps/v1
    StatefulSet(&'a StatefulSet),
    /// apps/v1
    DaemonSet(&'a DaemonSet),
    /// batch/v1
    Job(&'a Job),
    /// batch/v1; creates Jobs later, and no pods now.
    CronJob(&'a CronJob),
}

impl<'a> Workload<'a> {
    /// Its metadata.
    pub fn metadata(self) -> &'a ObjectMeta {
        match self {
            Self::Deployment(object) => &object.metadata,
            Self::ReplicaSet(object) => &object.metadata,
            Self::ReplicationController(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
            Self::CronJob(object) => &object.metadata,
        }
    }

    /// Its kind.
    pub fn kind(self) -> WorkloadKind {
        match self {
            Self::Deployment(_) => WorkloadKind::Deployment,
            Self::ReplicaSet(_) => WorkloadKind::ReplicaSet,
            Self::ReplicationController(_) => WorkloadKind::ReplicationController,
            Self::StatefulSet(_) => WorkloadKind::StatefulSet,
            Self::DaemonSet(_) => WorkloadKind::DaemonSet,
            Self::Job(_) => WorkloadKind::Job,
            Self::CronJob(_) => WorkloadKind::CronJob,
        }
    }

    /// Its pod template, and the template's path in it.
    pub fn template(self) -> Option<(&'a PodTemplateSpec, FieldPath)> {
        let path = FieldPath::root().child(match self {
            Self::CronJob(_) => "spec.jobTemplate.spec.template",
            _ => "spec.template",
        });
        let template = match self {
            Self::Deployment(object) => object.spec.as_ref().map(|s| &s.template),
            Self::ReplicaSet(object) => object.spec.as_ref().and_then(|s| s.template.as_ref()),
            Self::ReplicationController(object) => {
                object.spec.as_ref().and_then(|s| s.template.as_ref())
            }
            Self::StatefulSet(object) => object.spec.as_ref().map(|s| &s.template),
            Self::DaemonSet(object) => object.spec.as_ref().map(|s| &s.template),
            Self::Job(object) => object.spec.as_ref().map(|s| &s.template),
            Self::CronJob(object) => {
                let job = object.spec.job_template.spec.as_ref();
                job.map(|s| &s.template)
            }
        };
        template.map(|template| (template, path))
    }

    /// True if it asks for no pods: errors of its template do not matter yet.
    pub fn makes_none(self) -> bool {
        let replicas = match self {
            Self::Deployment(object) => object.spec.as_ref().and_then(|s| s.replicas),
            Self::ReplicaSet(object) => object.spec.as_ref().and_then(|s| s.replicas),
            Self::ReplicationController(object) => object.spec.as_ref().and_then(|s| s.replicas),
            Self::StatefulSet(object) => object.spec.as_ref().and_then(|s| s.replicas),
            Self::DaemonSet(_) | Self::Job(_) => None,
            Self::CronJob(_) => Some(0),
        };
        replicas == Some(0)
    }

    /// Its name for messages and tables.
    pub fn reference(self) -> WorkloadRef {
        WorkloadRef {
            kind: self.kind(),
            namespace: namespace_of(self.metadata()).to_string(),
            name: name_of(self.metadata()).to_string(),
        }
    }
}

/// The kinds of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `Deployment`
    Deployment,
    /// `ReplicaSet`
    ReplicaSet,
    /// `ReplicationController`
    ReplicationController,
    /// `StatefulSet`
    StatefulSet,
    /// `DaemonSet`
    DaemonSet,
    /// `Job`
    Job,
    /// `CronJob`
    CronJob,
}

impl WorkloadKind {
    /// The kind as manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::ReplicationController => "ReplicationController",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
        }
    }

    /// The API group and version of manifests.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::ReplicationController => "v1",
            Self::Job | Self::CronJob => "batch/v1",
            _ => "apps/v1",
        }
    }
}

/// The name of a workload; `Display` is `Deployment default/web`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadRef {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for WorkloadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// The result of an expansion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expansion {
    /// New ReplicaSets of Deployments, in the order of the Deployments.
    pub replica_sets: Vec<ReplicaSet>,
    /// New pods in the order of the workloads; those of one workload in the order of creation.
    pub pods: Vec<PodOf>,
    /// Unexpected results.
    pub notes: Vec<Note>,
}

/// A new pod with the workload that a user wrote: for a Deployment's pods, the Deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct PodOf {
    /// The pod as its controller sends it to the API server, with its name.
    pub pod: Pod,
    /// Its workload.
    pub workload: WorkloadRef,
}

/// Why a workload has fewer or other pods than its fields say; lower case, no full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The workload.
    pub workload: WorkloadRef,
    /// The text.
    pub text: String,
}

/// Why an expansion fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// Owner references form a cycle.
    #[error("owner references form a cycle: {}", .0.join(" -> "))]
    OwnerCycle(
        /// `Kind namespace/name` of each object in the cycle, the first one repeated at the end.
        Vec<String>,
    ),
    /// More pods than [`N_PODS_MAX`].
    #[error("{workload} asks for {n_pods} pods, which makes more than {N_PODS_MAX} in all")]
    TooManyPods {
        /// The workload that exceeds the limit.
        workload: WorkloadRef,
        /// The number of pods that it asks for.
        n_pods: usize,
    },
}

/// Creates the missing pods of all `workloads`, given the existing `pods`.
///
/// # Errors
/// [`ExpandError`]: owner references in a cycle, or too many pods.
///
/// ```
/// use k8s_openapi::api::apps::v1::ReplicaSet;
/// use strew_apiserver::workloads::{NameSource, Workload, expand};
/// let set: ReplicaSet = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web"},
///     "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "web"}}}},
/// }))
/// .unwrap();
/// let made = expand(&[Workload::ReplicaSet(&set)], &[], &[], &mut NameSource::new(0)).unwrap();
/// assert_eq!(made.pods.len(), 3);
/// assert_eq!(made.pods[0].workload.to_string(), "ReplicaSet default/web");
/// ```
///
/// # Cost
/// Time and space are linear in the given and created pods; for a DaemonSet, in the nodes.
pub fn expand(
    workloads: &[Workload<'_>],
    pods: &[Pod],
    nodes: &[Node],
    names: &mut NameSource,
) -> Result<Expansion, ExpandError> {
    let owners = Owners::new(workloads, pods)?;
    let mut maker = PodMaker::new(pods, names);
    for &workload in workloads {
        if workload.metadata().deletion_timestamp.is_some() {
            continue;
        }
        match workload {
            Workload::Deployment(object) => deployment::expand(object, &owners, &mut maker)?,
            Workload::ReplicaSet(object) => {
                // ReplicaSets of a Deployment are handled with it.
                if owners.deployment_of(object).is_none() {
                    replica_set::expand(object, &owners, &mut maker)?;
                }
            }
            Workload::ReplicationController(object) => {
                replica_set::expand_controller(object, &owners, &mut maker)?;
            }
            Workload::StatefulSet(object) => stateful_set::expand(object, &mut maker)?,
            Workload::DaemonSet(object) => {
                daemon_set::expand(object, nodes, &owners, &mut maker)?;
            }
            Workload::Job(object) => job::expand(object, &owners, &mut maker)?,
            Workload::CronJob(_) => {}
        }
    }
    Ok(maker.finish())
}

fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

fn namespace_of(metadata: &ObjectMeta) -> &str {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    if namespace.is_empty() {
        "default"
    } else {
        namespace
    }
}

/// True if a pod has not finished and does not terminate.
fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && pod.metadata.deletion_timestamp.is_none()
}

fn is_finished(pod: &Pod) -> bool {
    matches!(phase_of(pod), Some("Succeeded" | "Failed"))
}

fn phase_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn count(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
