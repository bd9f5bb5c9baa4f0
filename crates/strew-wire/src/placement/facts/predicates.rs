//! Parses cluster selectors. Source: spec/placement §2.3, §2.8.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use strew_model::{Interner, Selector};
use strew_placement::facts::placement::{CelSelector, ClusterPredicates, DecisionGroup};

use crate::facts::selector;
use crate::placement::cel::CelSelectors;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::ocm;
use strew_manifest::validation;

/// An error of a spec, for users and for the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The error with its field.
    pub(super) error: FieldError,
    /// The text for the condition.
    pub(super) text: Arc<str>,
}

impl Wrong {
    fn field(error: FieldError, text: &Arc<str>) -> Self {
        let text = Arc::clone(text);
        Self { error, text }
    }

    /// The text of the first error, which is the one that upstream reports.
    pub(super) fn first<T>(result: Result<T, Vec<Self>>) -> Result<T, Arc<str>> {
        result.map_err(|all| {
            all.first()
                .map_or_else(|| "".into(), |w| Arc::clone(&w.text))
        })
    }
}

/// Parses `predicates`; returns all errors in them.
pub(super) fn predicates(
    wire: &[ocm::ClusterPredicate],
    path: &FieldPath,
    names: &mut Interner,
    cel: &mut CelSelectors,
) -> Result<Box<[ClusterPredicates]>, Vec<Wrong>> {
    let mut wrong = Vec::new();
    let mut all = Vec::with_capacity(wire.len());
    for (i, predicate) in wire.iter().enumerate() {
        let path = path.index(i).child("requiredClusterSelector");
        let Some(required) = &predicate.required_cluster_selector else {
            all.push(ClusterPredicates::default());
            continue;
        };
        let claims = required.claim_selector.as_ref();
        all.push(ClusterPredicates {
            labels: labels(required.label_selector.as_ref(), &path, names, &mut wrong),
            claims: self::claims(claims, &path, names, &mut wrong),
            cel: expressions(
                required.cel_selector.as_ref(),
                &path,
                names,
                cel,
                &mut wrong,
            ),
        });
    }
    finish(all, wrong)
}

/// Parses `decisionGroups`; returns all errors in them.
pub(super) fn groups(
    wire: &[ocm::DecisionGroup],
    path: &FieldPath,
    names: &mut Interner,
) -> Result<Box<[DecisionGroup]>, Vec<Wrong>> {
    let mut wrong = Vec::new();
    let mut all = Vec::with_capacity(wire.len());
    for (i, group) in wire.iter().enumerate() {
        let path = path.index(i).child("groupClusterSelector");
        let selector = group.group_cluster_selector.as_ref();
        let label_selector = selector.and_then(|s| s.label_selector.as_ref());
        let claim_selector = selector.and_then(|s| s.claim_selector.as_ref());
        all.push(DecisionGroup {
            name: names.intern(&group.group_name),
            labels: labels(label_selector, &path, names, &mut wrong),
            claims: claims(claim_selector, &path, names, &mut wrong),
        });
    }
    finish(all, wrong)
}

/// The selectors of clusters in an annotation.
///
/// # Errors
/// The first thing that is wrong with them, with its place below `path`.
pub(super) fn selectors(
    label_selector: Option<&LabelSelector>,
    claim_selector: Option<&ocm::ClusterClaimSelector>,
    path: &FieldPath,
    names: &mut Interner,
) -> Result<(Selector, Selector), String> {
    let mut wrong = Vec::new();
    let labels = labels(label_selector, path, names, &mut wrong);
    let claims = claims(claim_selector, path, names, &mut wrong);
    match wrong.first() {
        Some(wrong) => Err(wrong.error.to_string()),
        None => Ok((labels, claims)),
    }
}

fn finish<T>(all: Vec<T>, wrong: Vec<Wrong>) -> Result<Box<[T]>, Vec<Wrong>> {
    match wrong.is_empty() {
        true => Ok(all.into()),
        false => Err(wrong),
    }
}

/// An absent selector equals `{}`, as in Go, where the field is no pointer.
fn labels(
    wire: Option<&LabelSelector>,
    path: &FieldPath,
    names: &mut Interner,
    wrong: &mut Vec<Wrong>,
) -> Selector {
    let Some(wire) = wire else {
        return Selector::all_of(Vec::new());
    };
    checked(wire, &path.child("labelSelector"), names, wrong)
}

fn claims(
    wire: Option<&ocm::ClusterClaimSelector>,
    path: &FieldPath,
    names: &mut Interner,
    wrong: &mut Vec<Wrong>,
) -> Selector {
    let selector = LabelSelector {
        match_labels: None,
        match_expressions: wire.and_then(|claims| claims.match_expressions.clone()),
    };
    checked(&selector, &path.child("claimSelector"), names, wrong)
}

fn checked(
    wire: &LabelSelector,
    path: &FieldPath,
    names: &mut Interner,
    wrong: &mut Vec<Wrong>,
) -> Selector {
    let mut errors = Vec::new();
    validation::selector::validate(Some(wire), path, &mut errors);
    let is_good = errors.is_empty();
    if !is_good {
        let first = || {
            errors
                .first()
                .map_or_else(String::new, FieldError::to_string)
        };
        let text = upstream(wire).unwrap_or_else(first).into();
        wrong.extend(errors.into_iter().map(|error| Wrong::field(error, &text)));
    }
    match selector(Some(wire), names) {
        Ok(selector) if is_good => selector,
        // Never evaluated: the whole list is invalid.
        _ => Selector::Nothing,
    }
}

/// Upstream's error for a selector: the first invalid requirement, with all its errors.
///
/// Source: `LabelSelectorAsSelector`, `labels.NewRequirement`, v1.36. Labels are checked by name, since Go has no
/// order.
fn upstream(wire: &LabelSelector) -> Option<String> {
    for (key, value) in wire.match_labels.iter().flatten() {
        let mut errors = key_errors(key);
        errors.extend(value_error(key, value, 0));
        if let Some(text) = aggregated(errors) {
            return Some(text);
        }
    }
    for requirement in wire.match_expressions.iter().flatten() {
        let values = requirement.values.as_deref().unwrap_or_default();
        // At this point upstream has replaced an empty list by nil.
        let written = match values.is_empty() {
            true => "null".to_owned(),
            false => serde_json::json!(values).to_string(),
        };
        let detail = match (requirement.operator.as_str(), values.is_empty()) {
            ("In" | "NotIn", true) => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            ("Exists" | "DoesNotExist", false) => {
                Some("values set must be empty for exists and does not exist")
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => None,
            (other, _) => return Some(format!("{other:?} is not a valid label selector operator")),
        };
        let mut errors = key_errors(&requirement.key);
        errors.extend(detail.map(|detail| format!("values: Invalid value: {written}: {detail}")));
        for (i, value) in values.iter().enumerate() {
            errors.extend(value_error(&requirement.key, value, i));
        }
        if let Some(text) = aggregated(errors) {
            return Some(text);
        }
    }
    None
}

fn key_errors(key: &str) -> Vec<String> {
    let wrong = validation::text::qualified_name(key);
    match wrong.is_empty() {
        true => Vec::new(),
        false => vec![format!("key: Invalid value: {key:?}: {}", wrong.join("; "))],
    }
}

fn value_error(key: &str, value: &str, i: usize) -> Option<String> {
    let wrong = validation::text::label_value(value);
    let text = || {
        format!(
            "values[{i}][{key}]: Invalid value: {value:?}: {}",
            wrong.join("; ")
        )
    };
    (!wrong.is_empty()).then(text)
}

/// Several errors become a list; equal ones are merged.
fn aggregated(mut errors: Vec<String>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("[{}]", all.join(", "))),
    }
}

fn expressions(
    wire: Option<&ocm::ClusterCelSelector>,
    path: &FieldPath,
    names: &mut Interner,
    cel: &mut CelSelectors,
    wrong: &mut Vec<Wrong>,
) -> Option<CelSelector> {
    let expressions = wire.and_then(|s| s.cel_expressions.as_deref())?;
    let bad = match cel.selector(expressions, names) {
        Ok(selector) => return selector,
        Err(bad) => bad,
    };
    let path = path.child("celSelector.celExpressions");
    wrong.extend(bad.into_iter().map(|bad| {
        let text = &expressions[bad.index];
        let detail = format!("compilation failed: {}", bad.error);
        Wrong {
            error: FieldError::invalid(path.index(bad.index), text, detail),
            text: bad.error.as_ocm(text).into(),
        }
    }));
    None
}
