//! Taints and tolerations.
//!
//! Source: `ValidateTolerations`, `validateNodeTaints` of `pkg/apis/core/validation`, v1.36, with
//! gate TaintTolerationComparisonOperators off.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::json;

use super::{metadata, one_of, text};
use crate::field::{FieldError, FieldErrorKind, FieldPath};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks a pod's tolerations.
pub fn tolerations(tolerations: &[Toleration], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, toleration) in tolerations.iter().enumerate() {
        validate_toleration(toleration, &path.index(i), errors);
    }
}

fn validate_toleration(toleration: &Toleration, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let text_of = |field: &Option<String>| field.clone().unwrap_or_default();
    let key = text_of(&toleration.key);
    let operator = text_of(&toleration.operator);
    let value = text_of(&toleration.value);
    let effect = text_of(&toleration.effect);
    if !key.is_empty() {
        metadata::label_name(&key, &path.child("key"), errors);
    }
    if key.is_empty() && operator != "Exists" {
        errors.push(FieldError::invalid(
            path.child("operator"),
            &operator,
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ));
    }
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        errors.push(FieldError::invalid(
            path.child("effect"),
            &effect,
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ));
    }
    match operator.as_str() {
        "" | "Equal" => {
            let sentences = text::label_value(&value);
            if !sentences.is_empty() {
                let detail = sentences.join(";");
                errors.push(FieldError::invalid(path.child("operator"), &value, detail));
            }
        }
        "Exists" if value.is_empty() => {}
        // Upstream prints its internal type here, with Go's field names.
        "Exists" => errors.push(FieldError::invalid_raw(
            path.child("operator"),
            json!({"Key": key, "Operator": operator, "Value": value, "Effect": effect,
                "TolerationSeconds": toleration.toleration_seconds}),
            "value must be empty when `operator` is 'Exists'",
        )),
        other => one_of(other, &["Equal", "Exists"], &path.child("operator"), errors),
    }
    if !effect.is_empty() {
        one_of(&effect, &EFFECTS, &path.child("effect"), errors);
    }
}

/// Checks a node's taints.
pub fn taints(taints: &[Taint], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (i, taint) in taints.iter().enumerate() {
        let path = path.index(i);
        let value = taint.value.as_deref().unwrap_or_default();
        metadata::label_name(&taint.key, &path.child("key"), errors);
        let sentences = text::label_value(value);
        if !sentences.is_empty() {
            let detail = sentences.join(";");
            errors.push(FieldError::invalid(path.child("value"), value, detail));
        }
        if taint.effect.is_empty() {
            errors.push(FieldError::required(path.child("effect"), ""));
        } else {
            one_of(&taint.effect, &EFFECTS, &path.child("effect"), errors);
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            // Upstream prints its internal type here, with Go's field names.
            let printed = json!({"Key": taint.key, "Value": value, "Effect": taint.effect,
                "TimeAdded": taint.time_added});
            let value = printed.to_string();
            errors.push(FieldError::new(
                path,
                FieldErrorKind::Duplicate { value },
                "taints must be unique by key and effect pair",
            ));
        }
    }
}
