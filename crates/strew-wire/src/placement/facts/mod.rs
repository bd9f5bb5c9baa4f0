//! Converts OCM's objects to facts; `strew place`, the simulation and a real hub share this code.
//!
//! Reading order: [`placement`], [`spec`], `predicates`, `weights`, [`groups`], [`replicas`], [`mod@cluster`],
//! [`status`]. Conversion also finds what is wrong with a spec; [`spec::misconfigured`] returns all of it with its fields.

pub mod cluster;
pub mod groups;
pub mod inputs;
mod predicates;
pub mod replicas;
pub mod spec;
pub mod status;
mod weights;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use strew_model::{Instant, Interner, Symbol};
use strew_placement::facts::placement::PlacementFact;

use super::cel::CelSelectors;
use super::wire::{DISABLE_ANNOTATION, Placement};

pub use cluster::{binding, cluster, cluster_set, decision, scores};
pub use inputs::{gone, inputs};
pub use spec::misconfigured;
pub use weights::weights_by_key;

/// A Placement as a fact. Errors in its spec are kept in it, for the rules that report them.
pub fn placement(wire: &Placement, names: &mut Interner, cel: &mut CelSelectors) -> PlacementFact {
    let metadata = &wire.metadata;
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key));
    let disabled = annotation(DISABLE_ANNOTATION).is_some_and(|value| value == "true");
    let status = wire.status.clone().unwrap_or_default();
    PlacementFact {
        namespace: namespace(metadata, names),
        name: name(metadata, names),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        spec: spec::spec(wire, names, cel),
        status: status::status(&status, names),
        ignored: disabled || metadata.deletion_timestamp.is_some(),
        revision: revision(metadata),
    }
}

fn name(metadata: &ObjectMeta, names: &mut Interner) -> Symbol {
    names.intern(metadata.name.as_deref().unwrap_or_default())
}

fn namespace(metadata: &ObjectMeta, names: &mut Interner) -> Symbol {
    match metadata.namespace.as_deref() {
        None | Some("") => names.intern("default"),
        Some(namespace) => names.intern(namespace),
    }
}

/// The resourceVersion as a number; 0 for objects of files, which have none.
fn revision(metadata: &ObjectMeta) -> u64 {
    let version = metadata.resource_version.as_deref();
    version.and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// A time; `None` before 1970, which includes Go's zero time.
fn instant(time: &Time) -> Option<Instant> {
    u64::try_from(time.0.as_nanosecond()).ok().map(Instant)
}
