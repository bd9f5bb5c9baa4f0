//! The API server's own validation of objects that are created: reports all errors at once, in its order and with its
//! texts.
//!
//! Validation expects *defaulted* objects ([`crate::admission::SetDefaults`]). Source:
//! `k8s.io/kubernetes/pkg/apis/{core,apps,autoscaling,batch,policy,scheduling}/validation` and
//! `k8s.io/apimachinery/pkg/util/validation`, v1.36.
//!
//! # What is not checked
//! Fields that no decision of strew reads. So a real API server may still refuse an object that is accepted here:
//! - metadata: owner references, finalizers, managed fields;
//! - pods: volumes and mounts, environment, probes, lifecycle hooks, commands, image text beyond
//!   being there, security contexts, DNS, host aliases, readiness gates, service accounts,
//!   resource claims, resize policies, restart rules, `os`, ephemeral containers' fields, host
//!   IPs, and that host ports equal container ports under `hostNetwork`;
//! - warnings other than those of spread constraints;
//! - hugepages: page sizes and that cpu or memory is requested beside them;
//! - StatefulSets: claim templates and retention; Jobs: failure and success policies, selectors,
//!   `managedBy`, limits per index; CronJobs: the schedule's and time zone's text;
//! - Nodes: addresses, CIDRs, conditions, provider; Services: everything but name and selector;
//! - updates, which are in [`crate::admission::update`];
//! - gates: as in [`strew_wire::config::AdmissionOptions`], else 1.36's defaults.
//!
//! A missing selector cannot be distinguished from `{}` in Deployments, ReplicaSets, StatefulSets and DaemonSets: both
//! are reported as missing.

mod autoscaler;
mod cluster;
mod job;
pub(crate) mod pod;
mod quota;
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
