//! Names, namespaces, labels, annotations.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{invalid_each, text};
use crate::field::{FieldError, FieldErrorKind, FieldPath};

const N_ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Whether a kind is namespaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// Checks `metadata`; `name_rule` is that of the kind.
pub fn validate(
    metadata: &ObjectMeta,
    scope: Scope,
    name_rule: fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    let path = FieldPath::root().child("metadata");
    let mut errors = Vec::new();
    let or_empty = |field: &Option<String>| field.clone().unwrap_or_default();
    let generate_name = or_empty(&metadata.generate_name);
    if !generate_name.is_empty() {
        let sentences = name_rule(&mask_trailing_dash(&generate_name));
        let path = path.child("generateName");
        invalid_each(sentences, &generate_name, &path, &mut errors);
    }
    let name = or_empty(&metadata.name);
    // The server generates the name before validation if there is only a generateName.
    if name.is_empty() && generate_name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(path.child("name"), detail));
    } else if !name.is_empty() {
        invalid_each(name_rule(&name), &name, &path.child("name"), &mut errors);
    }
    let namespace = or_empty(&metadata.namespace);
    let at = path.child("namespace");
    match scope {
        Scope::Namespaced if namespace.is_empty() => errors.push(FieldError::required(at, "")),
        Scope::Namespaced => {
            invalid_each(text::dns_label(&namespace), &namespace, &at, &mut errors);
        }
        Scope::Cluster if namespace.is_empty() => {}
        Scope::Cluster => errors.push(FieldError::forbidden(at, "not allowed on this type")),
    }
    labels(metadata.labels.as_ref(), &path.child("labels"), &mut errors);
    annotations(
        metadata.annotations.as_ref(),
        &path.child("annotations"),
        &mut errors,
    );
    errors
}

/// Checks keys and values; upstream's errors name the map, not the entry.
pub fn labels(
    labels: Option<&BTreeMap<String, String>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    for (key, value) in labels.into_iter().flatten() {
        label_name(key, path, errors);
        invalid_each(text::label_value(value), value, path, errors);
    }
}

/// Checks the keys, in any case, and the total size.
pub fn annotations(
    annotations: Option<&BTreeMap<String, String>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let mut n_bytes = 0;
    for (key, value) in annotations.into_iter().flatten() {
        invalid_each(text::qualified_name(&key.to_lowercase()), key, path, errors);
        n_bytes += key.len() + value.len();
    }
    if n_bytes > N_ANNOTATION_BYTES_MAX {
        let detail = format!("may not be more than {N_ANNOTATION_BYTES_MAX} bytes");
        errors.push(FieldError::new(
            path.clone(),
            FieldErrorKind::TooLong,
            detail,
        ));
    }
}

/// The key of a label.
pub fn label_name(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    invalid_each(text::qualified_name(name), name, path, errors);
}

/// A generated name continues after its prefix, which may therefore end with a dash.
fn mask_trailing_dash(base: &str) -> String {
    match base.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => base.to_string(),
    }
}
