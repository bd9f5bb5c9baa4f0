//! Rules that the API server does not check and without which no decision is possible, each with its field. The
//! messages are those of the condition. Source: spec/placement §2.3, §2.5, §2.8, §2.13, §3.1, §3.8, §3.10, §3.11.

use std::collections::BTreeSet;

use strew_model::Interner;
use strew_placement::facts::placement::GroupSize;

use super::facts::groups::{bounds_of, groups_by_key, of_term};
use super::facts::replicas::division;
use super::facts::spec::{group_size as read_size, strategy, terms};
use super::wire::{
    Placement, PlacementSpec, ScoreCoordinate, SpreadConstraintsTerm, TOPOLOGY_GROUPS_ANNOTATION,
    TOPOLOGY_WEIGHTS_ANNOTATION,
};
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};

/// The largest weight of a topology.
const WEIGHT_MAX: i64 = 1000;

const BUILT_IN: [&str; 5] = [
    "Balance",
    "Steady",
    "ResourceAllocatableCPU",
    "ResourceAllocatableMemory",
    "Spread",
];

fn at(path: &'static str) -> FieldPath {
    FieldPath::root().child(path)
}

/// Checks `numberOfClusters`.
pub(super) fn number(spec: &PlacementSpec) -> Vec<FieldError> {
    let negative = spec.number_of_clusters.filter(|&n| n < 0);
    let error = |n| FieldError::invalid_raw(at("spec.numberOfClusters"), n, "must not be negative");
    negative.map(error).into_iter().collect()
}

/// Checks `tolerations`.
pub(super) fn tolerations(spec: &PlacementSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, toleration) in spec.tolerations.iter().flatten().enumerate() {
        let path = at("spec.tolerations").index(i);
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let operator = text(&toleration.operator);
        if text(&toleration.key).is_empty() && operator != "Exists" {
            let detail = "If the key is empty, operator must be Exists.";
            errors.push(FieldError::invalid(
                path.child("operator"),
                &operator,
                detail,
            ));
        }
        let value = text(&toleration.value);
        if operator == "Exists" && !value.is_empty() {
            let detail = "If the operator is Exists, the value should be empty.";
            errors.push(FieldError::invalid(path.child("value"), &value, detail));
        }
    }
    errors
}

/// Checks `prioritizerPolicy`.
pub(super) fn prioritizers(spec: &PlacementSpec) -> Vec<FieldError> {
    let Some(policy) = &spec.prioritizer_policy else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mode = policy.mode.as_deref().unwrap_or_default();
    if !["", "Additive", "Exact"].contains(&mode) {
        let detail = format!("incorrect prioritizer policy mode: {mode}");
        errors.push(FieldError::invalid(
            at("spec.prioritizerPolicy.mode"),
            mode,
            detail,
        ));
    }
    let all = policy.configurations.as_deref().unwrap_or_default();
    for (i, configuration) in all.iter().enumerate() {
        let Some(coordinate) = &configuration.score_coordinate else {
            continue;
        };
        // Of equal entries the last counts. If its weight is 0, the name does not matter.
        let same = |c: &&super::wire::PrioritizerConfig| {
            let other = c.score_coordinate.as_ref();
            other.is_some_and(|other| subject(other) == subject(coordinate))
        };
        let last = all[i..].iter().rfind(same);
        if last.is_some_and(|last| last.weight == Some(0)) {
            continue;
        }
        let path = at("spec.prioritizerPolicy.configurations").index(i);
        errors.extend(score(coordinate, &path.child("scoreCoordinate")));
    }
    errors
}

/// The identity of a score coordinate, to find repeated ones.
fn subject(coordinate: &ScoreCoordinate) -> (bool, Option<&str>) {
    let is_add_on = coordinate.type_.as_deref() == Some("AddOn");
    let name = match is_add_on {
        true => coordinate.add_on.as_ref().map(|a| a.resource_name.as_str()),
        false => Some(coordinate.built_in.as_deref().unwrap_or_default()),
    };
    (is_add_on, name)
}

fn score(coordinate: &ScoreCoordinate, path: &FieldPath) -> Option<FieldError> {
    if coordinate.type_.as_deref() == Some("AddOn") {
        let missing = coordinate.add_on.is_none();
        let error = || FieldError::required(path.child("addOn"), "addOn should not be empty");
        return missing.then(error);
    }
    let name = coordinate.built_in.as_deref().unwrap_or_default();
    if BUILT_IN.contains(&name) {
        return None;
    }
    let detail = format!("incorrect builtin prioritizer: {name}");
    let error = FieldError::invalid(path.child("builtIn"), name, detail);
    let help = format!("there are {}", BUILT_IN.join(", "));
    Some(error.with_help(help))
}

/// Checks `spreadPolicy` and the weights of topologies, which count only for its terms.
pub(super) fn spread(wire: &Placement, spec: &PlacementSpec) -> Vec<FieldError> {
    let terms = terms(spec);
    if terms.is_empty() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, term) in terms.iter().enumerate() {
        let path = at("spec.spreadPolicy.spreadConstraints").index(i);
        let (key, kind) = (&*term.topology_key, &*term.topology_key_type);
        if !seen.insert((key, kind)) {
            let detail = format!("duplicate topologyKey {key} of type {kind}");
            let value = format!("{key:?}");
            let kind = FieldErrorKind::Duplicate { value };
            errors.push(FieldError::new(path.child("topologyKey"), kind, detail));
        }
        errors.extend(term_weights(term, &path.child("topologyWeights")));
    }
    let annotations = wire.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations.and_then(|all| all.get(key));
    if let Some(text) = annotation(TOPOLOGY_WEIGHTS_ANNOTATION) {
        let path = at("metadata.annotations").key(TOPOLOGY_WEIGHTS_ANNOTATION);
        errors.extend(annotated_weights(text, terms, &path));
    }
    errors.extend(bounds(
        spec,
        annotation(TOPOLOGY_GROUPS_ANNOTATION).map(String::as_str),
    ));
    errors
}

/// Bounds on how many topologies are used: each error stands at the term's field, or at the annotation.
fn bounds(spec: &PlacementSpec, annotation: Option<&str>) -> Vec<FieldError> {
    let annotated = at("metadata.annotations").key(TOPOLOGY_GROUPS_ANNOTATION);
    let text = annotation.unwrap_or_default();
    let by_key = match annotation.map(groups_by_key).transpose() {
        Ok(by_key) => by_key.unwrap_or_default(),
        Err(detail) => return vec![FieldError::invalid(annotated, text, detail)],
    };
    let mut errors = Vec::new();
    for (i, term) in terms(spec).iter().enumerate() {
        let Err(wrong) = bounds_of(term, &by_key).check(spec.number_of_clusters) else {
            continue;
        };
        let own = of_term(term);
        let (field, value) = match wrong.is_max {
            true => ("maxGroups", own.max),
            false => ("minGroups", own.min),
        };
        errors.push(match value {
            Some(value) => {
                let path = at("spec.spreadPolicy.spreadConstraints").index(i);
                FieldError::invalid_raw(path.child(field), value, wrong.message)
            }
            None => FieldError::invalid(annotated.clone(), text, wrong.message),
        });
    }
    errors
}

/// Replicas, and what they are divided by.
pub(super) fn replicas(wire: &Placement, names: &mut Interner) -> Vec<FieldError> {
    let Err(wrong) = division(wire, names) else {
        return Vec::new();
    };
    let annotations = wire.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(wrong.key));
    let text = text.map_or("", String::as_str);
    let path = at("metadata.annotations").key(wrong.key);
    vec![FieldError::invalid(path, text, wrong.message)]
}

fn term_weights(term: &SpreadConstraintsTerm, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, entry) in term.topology_weights.iter().flatten().enumerate() {
        if let Some(detail) = out_of_range(&term.topology_key, &entry.value, entry.weight) {
            let path = path.index(i).child("weight");
            errors.push(FieldError::invalid_raw(path, entry.weight, detail));
        }
    }
    errors
}

fn annotated_weights(
    text: &str,
    terms: &[SpreadConstraintsTerm],
    path: &FieldPath,
) -> Vec<FieldError> {
    let read = match super::facts::weights_by_key(text) {
        Ok(read) => read,
        Err(detail) => return vec![FieldError::invalid(path.clone(), text, detail)],
    };
    let mut errors = Vec::new();
    for (key, values) in &read {
        // A term's own field overrides the annotation, and keys without a term are not checked.
        let counts = |term: &SpreadConstraintsTerm| {
            term.topology_key == *key && term.topology_weights.is_none()
        };
        if !terms.iter().any(counts) {
            continue;
        }
        for (value, &weight) in values {
            if let Some(detail) = out_of_range(key, value, weight) {
                errors.push(FieldError::invalid(path.clone(), text, detail));
            }
        }
    }
    errors
}

fn out_of_range(key: &str, value: &str, weight: i64) -> Option<String> {
    let is_good = (0..=WEIGHT_MAX).contains(&weight);
    (!is_good).then(|| format!("topology weight of {key}={value} is {weight}, not 0..{WEIGHT_MAX}"))
}

/// Checks `clustersPerDecisionGroup`.
pub(super) fn group_size(spec: &PlacementSpec) -> Vec<FieldError> {
    let size = strategy(spec).and_then(|s| s.clusters_per_decision_group.as_ref());
    match size.map(read_size) {
        Some(GroupSize::NotAPercentage(text)) => {
            let path = at("spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup");
            let detail = format!("{text} invalid type: string is not a percentage");
            vec![FieldError::invalid(path, &text, detail)]
        }
        _ => Vec::new(),
    }
}
