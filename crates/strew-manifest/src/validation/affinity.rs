//! Node affinity, pod affinity and pod anti-affinity.
//!
//! Source: `validateAffinity` and what it calls, `pkg/apis/core/validation`, v1.36.

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodAffinityTerm, PreferredSchedulingTerm, WeightedPodAffinityTerm,
};

use super::{invalid_each, metadata, selector, spread, text};
use crate::field::{FieldError, FieldPath};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks all three.
pub fn validate(affinity: &Affinity, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(node) = &affinity.node_affinity {
        node_affinity(node, &path.child("nodeAffinity"), errors);
    }
    if let Some(with) = &affinity.pod_affinity {
        let required = &with.required_during_scheduling_ignored_during_execution;
        let preferred = &with.preferred_during_scheduling_ignored_during_execution;
        pod_terms(required, preferred, &path.child("podAffinity"), errors);
    }
    if let Some(against) = &affinity.pod_anti_affinity {
        let required = &against.required_during_scheduling_ignored_during_execution;
        let preferred = &against.preferred_during_scheduling_ignored_during_execution;
        pod_terms(required, preferred, &path.child("podAntiAffinity"), errors);
    }
}

/// Checks required and preferred node affinity.
pub fn node_affinity(affinity: &NodeAffinity, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        node_selector(required, &path.child(REQUIRED), errors);
    }
    let preferred = affinity
        .preferred_during_scheduling_ignored_during_execution
        .iter();
    for (i, term) in preferred.flatten().enumerate() {
        preferred_term(term, &path.child(PREFERRED).index(i), errors);
    }
}

/// Checks a preferred term of node affinity.
pub fn preferred_term(
    term: &PreferredSchedulingTerm,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    weight(term.weight, path, errors);
    node_selector_term(&term.preference, &path.child("preference"), errors);
}

/// Checks required node affinity.
pub fn node_selector(node: &NodeSelector, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let path = path.child("nodeSelectorTerms");
    if node.node_selector_terms.is_empty() {
        let detail = "must have at least one node selector term";
        errors.push(FieldError::required(path, detail));
        return;
    }
    for (i, term) in node.node_selector_terms.iter().enumerate() {
        node_selector_term(term, &path.index(i), errors);
    }
}

/// Checks a term of node affinity.
pub fn node_selector_term(term: &NodeSelectorTerm, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, requirement) in term.match_expressions.iter().flatten().enumerate() {
        expression(
            requirement,
            &path.child("matchExpressions").index(i),
            errors,
        );
    }
    for (i, requirement) in term.match_fields.iter().flatten().enumerate() {
        field(requirement, &path.child("matchFields").index(i), errors);
    }
}

fn expression(
    requirement: &NodeSelectorRequirement,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let at = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            at.clone(),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            at.clone(),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
            at.clone(),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(bad_operator(other, path)),
    }
    metadata::label_name(&requirement.key, &path.child("key"), errors);
    for (i, value) in values.iter().enumerate() {
        invalid_each(text::label_value(value), value, &at.index(i), errors);
    }
}

fn field(requirement: &NodeSelectorRequirement, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let at = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => errors.push(FieldError::required(
            at.clone(),
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )),
        "In" | "NotIn" => {}
        other => errors.push(bad_operator(other, path)),
    }
    if requirement.key != "metadata.name" {
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid(
            path.child("key"),
            &requirement.key,
            detail,
        ));
        return;
    }
    for (i, value) in values.iter().enumerate() {
        invalid_each(text::dns_subdomain(value), value, &at.index(i), errors);
    }
}

fn bad_operator(operator: &str, path: &FieldPath) -> FieldError {
    let detail = "not a valid selector operator";
    FieldError::invalid(path.child("operator"), operator, detail)
}

fn pod_terms(
    required: &Option<Vec<PodAffinityTerm>>,
    preferred: &Option<Vec<WeightedPodAffinityTerm>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    for (i, term) in required.iter().flatten().enumerate() {
        pod_term(term, &path.child(REQUIRED).index(i), errors);
    }
    for (i, term) in preferred.iter().flatten().enumerate() {
        let path = path.child(PREFERRED).index(i);
        weight(term.weight, &path, errors);
        pod_term(
            &term.pod_affinity_term,
            &path.child("podAffinityTerm"),
            errors,
        );
    }
}

fn weight(weight: i32, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !(1..=100).contains(&weight) {
        let path = path.child("weight");
        errors.push(FieldError::invalid_raw(
            path,
            weight,
            "must be in the range 1-100",
        ));
    }
}

fn pod_term(term: &PodAffinityTerm, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let of_labels = term.label_selector.as_ref();
    selector::validate(of_labels, &path.child("labelSelector"), errors);
    let of_namespaces = term.namespace_selector.as_ref();
    selector::validate(of_namespaces, &path.child("namespaceSelector"), errors);
    for (i, name) in term.namespaces.iter().flatten().enumerate() {
        let path = path.child("namespaces").index(i);
        invalid_each(text::dns_label(name), name, &path, errors);
    }
    label_keys(term, path, errors);
    let path = path.child("topologyKey");
    if term.topology_key.is_empty() {
        errors.push(FieldError::required(path.clone(), "can not be empty"));
    }
    metadata::label_name(&term.topology_key, &path, errors);
}

fn label_keys(term: &PodAffinityTerm, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let keys = term.match_label_keys.as_deref().unwrap_or_default();
    let mismatch = term.mismatch_label_keys.as_deref().unwrap_or_default();
    let selector = term.label_selector.as_ref();
    spread::label_keys(keys, selector, &path.child("matchLabelKeys"), errors);
    spread::label_keys(mismatch, selector, &path.child("mismatchLabelKeys"), errors);
    spread::twice_in_selector(keys, selector, path, errors);
    for (i, key) in mismatch
        .iter()
        .enumerate()
        .filter(|(_, key)| keys.contains(key))
    {
        errors.push(FieldError::invalid(
            path.child("mismatchLabelKeys").index(i),
            key,
            "exists in both matchLabelKeys and mismatchLabelKeys",
        ));
    }
}
