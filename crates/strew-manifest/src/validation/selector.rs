//! Label selectors: validation and matching.
//!
//! Source: `k8s.io/apimachinery/pkg/apis/meta/v1/validation`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::{invalid_each, metadata, text};
use crate::field::{FieldError, FieldPath};

/// Checks keys, operators and values.
pub fn validate(selector: Option<&LabelSelector>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(selector) = selector else { return };
    metadata::labels(
        selector.match_labels.as_ref(),
        &path.child("matchLabels"),
        errors,
    );
    let path = path.child("matchExpressions");
    for (i, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        validate_requirement(requirement, &path.index(i), errors);
    }
}

fn validate_requirement(
    requirement: &LabelSelectorRequirement,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let values_path = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            values_path.clone(),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            values_path.clone(),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            path.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    metadata::label_name(&requirement.key, &path.child("key"), errors);
    for (i, value) in values.iter().enumerate() {
        invalid_each(
            text::label_value(value),
            value,
            &values_path.index(i),
            errors,
        );
    }
}

/// True if it has neither labels nor expressions.
pub fn is_empty(selector: &LabelSelector) -> bool {
    let labels = selector
        .match_labels
        .as_ref()
        .is_none_or(BTreeMap::is_empty);
    labels
        && selector
            .match_expressions
            .as_ref()
            .is_none_or(Vec::is_empty)
}

/// True if all requirements hold; false if the selector is invalid, which validation reports.
pub fn matches(
    selector: &LabelSelector,
    labels: Option<&BTreeMap<String, String>>,
) -> Option<bool> {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let mut all = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, wanted)| value(key) == Some(wanted));
    for requirement in selector.match_expressions.iter().flatten() {
        let values = requirement.values.as_deref().unwrap_or_default();
        let actual = value(&requirement.key);
        let listed = actual.is_some_and(|actual| values.contains(actual));
        all &= match requirement.operator.as_str() {
            "In" if !values.is_empty() => listed,
            "NotIn" if !values.is_empty() => !listed,
            "Exists" if values.is_empty() => actual.is_some(),
            "DoesNotExist" if values.is_empty() => actual.is_none(),
            _ => return None,
        };
    }
    Some(all)
}
