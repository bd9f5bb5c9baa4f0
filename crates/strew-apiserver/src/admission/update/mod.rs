//! Admission of an update: keeps the system's fields, sets defaults, validates, and compares immutable fields.
//!
//! This applies to the object itself, not to its `status`, `scale` or other subresources: the old object's status
//! stays. Quantities are compared as written, while upstream takes `1` and `1000m` as equal.
//!
//! Source: `PrepareForUpdate` and `ValidateUpdate` of the strategies in `pkg/registry`, `ValidateObjectMetaUpdate` of
//! `k8s.io/apimachinery/pkg/api/validation`, v1.36.

mod cluster;
mod pod;
mod storage;
mod workload;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::{SetDefaults, tolerations};
use crate::validation::Validate;
use k8s_openapi::api::core::v1::Pod;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::json;
use strew_wire::config::AdmissionOptions;

/// Objects that can be updated.
pub trait Update: SetDefaults + Validate + Metadata<Ty = ObjectMeta> + PartialEq {
    /// Copies the fields that only the system may write from the stored object: its status.
    fn keep(&mut self, old: &Self);

    /// Reports forbidden changes.
    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>);

    /// True if `metadata.generation` increases.
    fn is_new_generation(&self, old: &Self) -> bool;
}

/// An update as the API server would store it.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated<T> {
    /// The object, defaulted.
    pub object: T,
    /// True if the desired state changed: then `metadata.generation` has increased by 1.
    pub is_new_generation: bool,
    /// True if anything changed; if not, the API server writes nothing.
    pub is_changed: bool,
    /// The API server's `Warning` headers.
    pub warnings: Vec<String>,
}

/// Admits an update of a pod: plug-ins, then as [`admit_update`].
///
/// # Errors
/// All errors, in the API server's order.
pub fn admit_pod_update(
    mut new: Pod,
    old: &Pod,
    options: &AdmissionOptions,
) -> Result<Updated<Pod>, Vec<FieldError>> {
    new.set_defaults();
    if let (Some(spec), Some(stored)) = (&mut new.spec, &old.spec) {
        // An update without a priority keeps the old one.
        spec.priority = spec.priority.or(stored.priority);
        if spec.preemption_policy.is_none() {
            spec.preemption_policy = stored.preemption_policy.clone();
        }
        tolerations::add_defaults(spec, options);
    }
    admit_update(new, old)
}

/// Admits an update of any other object.
///
/// # Errors
/// All errors, in the API server's order.
pub fn admit_update<T: Update>(mut new: T, old: &T) -> Result<Updated<T>, Vec<FieldError>> {
    keep_metadata(new.metadata_mut(), old.metadata());
    new.keep(old);
    new.set_defaults();
    let is_new_generation = new.is_new_generation(old);
    if is_new_generation {
        let generation = old.metadata().generation.unwrap_or(0);
        new.metadata_mut().generation = Some(generation.saturating_add(1));
    }
    let mut errors = Vec::new();
    immutable_metadata(new.metadata(), old.metadata(), &mut errors);
    errors.extend(new.validate());
    new.forbidden(old, &mut errors);
    if errors.is_empty() {
        return Ok(Updated {
            is_changed: new != *old,
            is_new_generation,
            warnings: new.warnings(),
            object: new,
        });
    }
    let mut said = BTreeSet::new();
    let is_new = |error: &FieldError| said.insert(error.to_string());
    Err(errors.into_iter().filter(is_new).collect())
}

/// Copies metadata that a client need not send, or cannot set.
fn keep_metadata(new: &mut ObjectMeta, old: &ObjectMeta) {
    let keep = |field: &mut Option<String>, stored: &Option<String>| {
        if field.as_deref().unwrap_or_default().is_empty() {
            field.clone_from(stored);
        }
    };
    keep(&mut new.uid, &old.uid);
    keep(&mut new.namespace, &old.namespace);
    keep(&mut new.resource_version, &old.resource_version);
    keep(&mut new.generate_name, &old.generate_name);
    new.self_link.clone_from(&old.self_link);
    new.generation = old.generation;
    if new.creation_timestamp.is_none() {
        new.creation_timestamp.clone_from(&old.creation_timestamp);
    }
    if new.deletion_timestamp.is_none() {
        new.deletion_timestamp.clone_from(&old.deletion_timestamp);
    }
    if new.deletion_grace_period_seconds.is_none() {
        new.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    }
}

fn immutable_metadata(new: &ObjectMeta, old: &ObjectMeta, errors: &mut Vec<FieldError>) {
    let path = FieldPath::root().child("metadata");
    // In upstream's order.
    immutable(&new.name, &old.name, &path.child("name"), errors);
    let at = path.child("namespace");
    immutable(&new.namespace, &old.namespace, &at, errors);
    immutable(&new.uid, &old.uid, &path.child("uid"), errors);
    immutable(
        &new.creation_timestamp,
        &old.creation_timestamp,
        &path.child("creationTimestamp"),
        errors,
    );
    immutable(
        &new.deletion_timestamp,
        &old.deletion_timestamp,
        &path.child("deletionTimestamp"),
        errors,
    );
    immutable(
        &new.deletion_grace_period_seconds,
        &old.deletion_grace_period_seconds,
        &path.child("deletionGracePeriodSeconds"),
        errors,
    );
}

/// Source: `ValidateImmutableField`.
fn immutable<T: PartialEq + Serialize>(
    new: &T,
    old: &T,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if new != old {
        let detail = "field is immutable";
        errors.push(FieldError::invalid_raw(path.clone(), json(new), detail));
    }
}
