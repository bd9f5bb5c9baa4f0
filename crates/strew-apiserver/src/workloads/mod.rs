//! What controllers of workloads and their tools compute from a template: its hash, the nodes of daemon pods, the identity
//! of a StatefulSet's pods, names with a random suffix.
//!
//! Source: `pkg/controller/{daemon,statefulset}`, `pkg/util/hash`, v1.36.

mod daemon_set;
mod eligibility;
mod names;
mod stateful_set;
mod template;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use daemon_set::{DaemonFit, DaemonTemplate, daemon_pod_node};
pub use eligibility::{Eligibility, NodeView};
pub use names::generated_name;
pub use stateful_set::{set_claim_volumes, set_stateful_identity};
pub use strew_manifest::names::NameSource;
pub use template::{template_hash, template_hash_after};

fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
