//! Parses cluster selectors. Source: spec/placement §2.3, §2.8.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use strew_model::{Interner, Selector};
use strew_placement::facts::placement::{CelSelector, ClusterPredicates, DecisionGroup};

use crate::facts::selector;
use crate::field::{FieldError, FieldPath};
use crate::placement::cel::CelSelectors;
use crate::placement::wire;
use crate::validation;

/// What is wrong with a specification, for a person and for the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// With the field.
    pub(super) error: FieldError,
    /// As the condition has it.
    pub(super) text: Arc<str>,
}

impl Wrong {
    fn field(error: FieldError) -> Self {
        let text = error.to_string().into();
        Self { error, text }
    }

    /// The text of the first, which is the one that upstream tells.
    pub(super) fn first<T>(result: Result<T, Vec<Self>>) -> Result<T, Arc<str>> {
        result.map_err(|all| {
            all.first()
                .map_or_else(|| "".into(), |w| Arc::clone(&w.text))
        })
    }
}

/// `predicates`; all that is wrong with any of them.
pub(super) fn predicates(
    wire: &[wire::ClusterPredicate],
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

/// `decisionGroups`; all that is wrong with any of them.
pub(super) fn groups(
    wire: &[wire::DecisionGroup],
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

fn finish<T>(all: Vec<T>, wrong: Vec<Wrong>) -> Result<Box<[T]>, Vec<Wrong>> {
    match wrong.is_empty() {
        true => Ok(all.into()),
        false => Err(wrong),
    }
}

/// An absent selector is `{}`, as in Go, where it is no pointer.
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
    wire: Option<&wire::ClusterClaimSelector>,
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
    wrong.extend(errors.into_iter().map(Wrong::field));
    match selector(Some(wire), names) {
        Ok(selector) if is_good => selector,
        // Never evaluated: the whole list is invalid.
        _ => Selector::Nothing,
    }
}

fn expressions(
    wire: Option<&wire::ClusterCelSelector>,
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
