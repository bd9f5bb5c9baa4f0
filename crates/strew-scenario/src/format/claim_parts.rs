//! Parts of claims from their fields: counts, ranges, texts, selectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::json::Json;
use strew_manifest::read::RawSchema;
use strew_manifest::validation::selector;

use super::claim_vocabulary::COUNT_RANGE;
use super::diagnostics;
use super::expectation::{CountRange, Counts};
use super::problems::Problems;
use super::value::{At, Fields};

/// A list gives counts in any order; an object gives the count of each domain.
pub(super) fn counts(at: &At<'_>, problems: &mut Problems) -> Option<Counts> {
    match at.value {
        Value::Object(_) => {
            let entries = at.entries(problems);
            let n_entries = entries.len();
            let numbers = entries
                .into_iter()
                .filter_map(|(domain, at)| Some((domain.to_owned(), at.count(problems)?)));
            let numbers: BTreeMap<String, u32> = numbers.collect();
            (numbers.len() == n_entries).then_some(Counts::Exact(numbers))
        }
        Value::Array(_) => {
            let elements = at.list(problems);
            let numbers = elements.iter().filter_map(|at| at.count(problems));
            let mut numbers: Vec<u32> = numbers.collect();
            numbers.sort_unstable();
            (numbers.len() == elements.len()).then_some(Counts::Multiset(numbers))
        }
        other => {
            problems.add(&at.path, diagnostics::no_counts(other));
            None
        }
    }
}

pub(super) fn count_range(fields: &Fields<'_>, problems: &mut Problems) -> Option<CountRange> {
    match fields.get("count") {
        Some(at) => range(&at, problems),
        None => Some(CountRange::AT_LEAST_ONE),
    }
}

pub(super) fn range(at: &At<'_>, problems: &mut Problems) -> Option<CountRange> {
    if !at.value.is_object() {
        let count = at.count(problems)?;
        return Some(CountRange {
            min: count,
            max: count,
        });
    }
    let fields = at.fields(&COUNT_RANGE, problems)?;
    let bound = |name, default, problems: &mut Problems| match fields.get(name) {
        Some(at) => at.count(problems),
        None => Some(default),
    };
    let min = bound("min", 0, problems);
    let max = bound("max", u32::MAX, problems);
    let (min, max) = (min?, max?);
    if min > max {
        let error = diagnostics::reversed(&min, &max);
        problems.add_pair(
            &at.path.child("min"),
            error,
            &at.path.child("max"),
            "no more than this",
        );
        return None;
    }
    Some(CountRange { min, max })
}

pub(super) fn texts(at: &At<'_>, problems: &mut Problems) -> BTreeMap<String, String> {
    let entries = at.entries(problems).into_iter();
    let texts = entries.filter_map(|(key, at)| {
        let text = at.text(problems)?;
        Some((key.to_owned(), text.to_owned()))
    });
    texts.collect()
}

pub(super) fn label_selector(at: &At<'_>, problems: &mut Problems) -> Option<LabelSelector> {
    let mut value = at.value.clone();
    let faults = RawSchema::of("LabelSelector").check(&mut value);
    if !faults.is_empty() {
        let is_bare = faults.iter().all(|fault| fault.is_unknown);
        problems.add_faults(&at.path, faults);
        if is_bare {
            problems.add(&at.path, diagnostics::bare_selector());
        }
        return None;
    }
    let wire = LabelSelector::of_json(value).ok()?;
    let mut errors = Vec::new();
    selector::validate(Some(&wire), &FieldPath::root(), &mut errors);
    for error in &errors {
        problems.add(
            &at.path.join(&error.path),
            diagnostics::invalid_field(error),
        );
    }
    errors.is_empty().then_some(wire)
}
