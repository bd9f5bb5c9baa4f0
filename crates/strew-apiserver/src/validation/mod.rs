//! The API server's own validation of objects that are created: reports all errors at once, in its order and with its
//! texts.
//!
//! Validation expects *defaulted* objects ([`crate::admission::SetDefaults`]). Source:
//! `k8s.io/kubernetes/pkg/apis/{core,apps,autoscaling,batch,policy,scheduling,storage}/validation` and
//! `k8s.io/apimachinery/pkg/util/validation`, v1.36.
//!
//! # What is not checked
//! Fields that no decision of strew reads. So a real API server may still refuse an object that is accepted here:
//! - metadata: owner references, finalizers, managed fields;
//! - pods: what volumes are made of beyond their kind, paths below mounts, labels and annotations that variables name,
//!   requests of hooks and probes beyond their ports, image text beyond being there, security contexts, readiness gates,
//!   resource claims, resize policies, restart rules, `os`, search paths and options of DNS, ephemeral containers' fields
//!   and host IPs;
//! - warnings other than those of spread constraints, fractions of bytes and negative grace periods;
//! - hugepages: page sizes;
//! - StatefulSets: claim templates, which are checked where pods of files are made of them; Jobs: the indexes of success
//!   policies, `managedBy`, and the bounds of many indexes;
//! - Nodes: addresses, CIDRs, conditions, provider; Services: addresses, families, traffic policies, load balancers;
//!   claims and StorageClasses: data sources, parameters, topologies; PersistentVolumes, and kinds of the cluster that
//!   are not named here;
//! - updates, which are in [`crate::admission::update`];
//! - gates: as in [`strew_wire::config::AdmissionOptions`], else 1.36's defaults.
//!
//! A missing selector cannot be distinguished from `{}` in Deployments, ReplicaSets, StatefulSets and DaemonSets: both
//! are reported as missing.

mod autoscaler;
mod cluster;
mod job;
mod job_policy;
pub(crate) mod kruise;
pub(crate) mod pod;
mod quota;
mod service;
pub mod storage;
mod workload;

use strew_manifest::field::FieldError;

/// Objects that the API server validates.
pub trait Validate {
    /// All errors.
    fn validate(&self) -> Vec<FieldError>;

    /// The API server's warnings about an accepted object.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
