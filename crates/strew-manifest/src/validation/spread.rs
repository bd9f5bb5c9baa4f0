//! Topology spread constraints.
//!
//! Source: spec/scheduler.md §1.2; `validateTopologySpreadConstraints`, v1.36.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{metadata, one_of, selector};
use crate::field::{FieldError, FieldPath};

const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const POLICIES: [&str; 2] = ["Honor", "Ignore"];

const IN_BOTH: &str = "exists in both matchLabelKeys and labelSelector";

/// Labels that were renamed, with the release. Source: `pkg/api/node/util.go`.
const DEPRECATED_KEYS: [(&str, &str); 2] = [
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
];

/// How `matchLabelKeys` and `labelSelector` may share keys, depending on the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKeys {
    /// After the API server's merge, no key occurs twice in the selector.
    Merged,
    /// No key of matchLabelKeys is in the selector: the gate MatchLabelKeysInPodTopologySpreadSelectorMerge is off.
    Legacy,
}

/// Checks all constraints of a pod or template.
pub fn validate(
    constraints: &[TopologySpreadConstraint],
    shared: SharedKeys,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    for (i, constraint) in constraints.iter().enumerate() {
        validate_one(
            constraint,
            &constraints[i + 1..],
            shared,
            &path.index(i),
            errors,
        );
    }
}

fn validate_one(
    constraint: &TopologySpreadConstraint,
    later: &[TopologySpreadConstraint],
    shared: SharedKeys,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let action = constraint.when_unsatisfiable.as_str();
    if constraint.max_skew <= 0 {
        errors.push(not_positive(constraint.max_skew, path.child("maxSkew")));
    }
    if constraint.topology_key.is_empty() {
        errors.push(FieldError::required(
            path.child("topologyKey"),
            "can not be empty",
        ));
    }
    one_of(action, &ACTIONS, &path.child("whenUnsatisfiable"), errors);
    // Reported once, at the earlier of the two.
    let same_pair = |other: &TopologySpreadConstraint| {
        other.topology_key == constraint.topology_key && other.when_unsatisfiable == action
    };
    if later.iter().any(same_pair) {
        errors.push(FieldError::duplicate(
            path.child("{topologyKey, whenUnsatisfiable}"),
            &format!("{{{}, {action}}}", constraint.topology_key),
        ));
    }
    if let Some(min_domains) = constraint.min_domains {
        let path = path.child("minDomains");
        if min_domains <= 0 {
            errors.push(not_positive(min_domains, path.clone()));
        }
        if action != "DoNotSchedule" {
            errors.push(FieldError::invalid_raw(
                path,
                min_domains,
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"),
            ));
        }
    }
    if let Some(policy) = &constraint.node_affinity_policy {
        one_of(policy, &POLICIES, &path.child("nodeAffinityPolicy"), errors);
    }
    if let Some(policy) = &constraint.node_taints_policy {
        one_of(policy, &POLICIES, &path.child("nodeTaintsPolicy"), errors);
    }
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    let given = constraint.label_selector.as_ref();
    label_keys(keys, given, &path.child("matchLabelKeys"), errors);
    match shared {
        SharedKeys::Merged => twice_in_selector(keys, given, path, errors),
        SharedKeys::Legacy => in_selector(keys, given, &path.child("matchLabelKeys"), errors),
    }
    selector::validate(given, &path.child("labelSelector"), errors);
}

fn not_positive(number: i32, path: FieldPath) -> FieldError {
    FieldError::invalid_raw(path, number, "must be greater than zero")
}

/// Checks the names in `matchLabelKeys` or `mismatchLabelKeys`. Source: `validateLabelKeys`.
pub(super) fn label_keys(
    keys: &[String],
    selector: Option<&LabelSelector>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if !keys.is_empty() && selector.is_none() {
        let detail = "must not be specified when labelSelector is not set";
        errors.push(FieldError::forbidden(path.clone(), detail));
        return;
    }
    for (i, key) in keys.iter().enumerate() {
        metadata::label_name(key, &path.index(i), errors);
    }
}

/// A key of `keys` that occurs in two expressions: then one of them was merged. Upstream's path lacks `.matchLabelKeys`
/// too.
pub(super) fn twice_in_selector(
    keys: &[String],
    selector: Option<&LabelSelector>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(selector) = selector else { return };
    // If a key is given twice, its last index counts.
    let places: BTreeMap<&str, usize> = keys
        .iter()
        .enumerate()
        .map(|(i, key)| (key.as_str(), i))
        .collect();
    let labels = selector.match_labels.iter().flatten();
    let mut seen: BTreeSet<&str> = labels.map(|(key, _)| key.as_str()).collect();
    for expression in selector.match_expressions.iter().flatten() {
        let key = expression.key.as_str();
        let is_new = seen.insert(key);
        if let Some(&place) = places.get(key).filter(|_| !is_new) {
            errors.push(FieldError::invalid(path.index(place), key, IN_BOTH));
        }
    }
}

fn in_selector(
    keys: &[String],
    selector: Option<&LabelSelector>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(selector) = selector else { return };
    let in_labels = |key| {
        selector
            .match_labels
            .as_ref()
            .is_some_and(|all| all.contains_key(key))
    };
    let in_expressions = |key: &String| {
        selector
            .match_expressions
            .iter()
            .flatten()
            .any(|e| e.key == *key)
    };
    for (i, key) in keys.iter().enumerate() {
        if in_labels(key) || in_expressions(key) {
            errors.push(FieldError::invalid(path.index(i), key, IN_BOTH));
        }
    }
}

/// The API server's warnings.
pub fn warnings(constraints: &[TopologySpreadConstraint], path: &FieldPath) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, constraint) in constraints.iter().enumerate() {
        let path = path.index(i);
        let key = constraint.topology_key.as_str();
        if let Some((_, new)) = DEPRECATED_KEYS.iter().find(|(old, _)| *old == key) {
            warnings.push(format!(
                "{}: {key} is deprecated since v1.17; use \"{new}\" instead",
                path.child("topologyKey")
            ));
        }
        if constraint.label_selector.is_none() {
            warnings.push(format!(
                "{}: a null labelSelector results in matching no pod",
                path.child("labelSelector")
            ));
        }
    }
    warnings
}
