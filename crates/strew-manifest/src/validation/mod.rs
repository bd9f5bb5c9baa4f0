//! The API server's validation of pods, templates, metadata, names and selectors: reports all errors at once, in its
//! order and with its texts.
//!
//! It is here and not in the embedded API server because configurations, WorkloadSpreads and Placements contain these
//! parts. It expects *defaulted* values ([`crate::defaults`]). `strew_apiserver::validation` lists what is not checked.
//! Source: `k8s.io/kubernetes/pkg/apis/core/validation` and `k8s.io/apimachinery/pkg/util/validation`, v1.36.

pub mod affinity;
pub mod container;
mod env;
pub mod metadata;
pub mod pod;
pub mod probe;
pub mod resources;
pub mod selector;
pub mod spread;
pub mod taint;
pub mod text;
mod volume;
pub mod warnings;

use serde::Serialize;

use crate::field::{FieldError, FieldPath};

/// Refuses a negative value. Source: `ValidateNonnegativeField`.
pub fn nonnegative(value: impl Into<i64>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let value = value.into();
    if value < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid_raw(path.clone(), value, detail));
    }
}

/// Refuses an unsupported value.
pub fn one_of(value: &str, supported: &[&str], path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path.clone(), value, supported));
    }
}

/// Adds each message as an error of `value`.
pub fn invalid_each(
    sentences: Vec<String>,
    value: &str,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let each = |detail| FieldError::invalid(path.clone(), value, detail);
    errors.extend(sentences.into_iter().map(each));
}

/// A whole value as the API server prints it.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_string())
}
