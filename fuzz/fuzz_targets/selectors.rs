//! Any selector over any labels: validation and the engine agree on which can be read, and on what they match, and
//! both agree with a plain re-reading.
//!
//! An input that begins with `{` is JSON, as in the seeds; any other is bytes to choose few words by.

#![no_main]

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use libfuzzer_sys::fuzz_target;
use strew_manifest::field::FieldPath;
use strew_manifest::validation;
use strew_model::Interner;
use strew_wire::facts;

/// Few, so that keys and values meet; the last ones are no label's.
const WORDS: [&str; 14] = [
    "app",
    "tier",
    "web",
    "db",
    "1",
    "9",
    "10",
    "-3",
    "+7",
    "x.io/y",
    "",
    "a b",
    "UPPER_",
    "metadata.name",
];

const OPERATORS: [&str; 9] = [
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Lt",
    "",
    "in",
    "Equals",
];

#[derive(Arbitrary, Debug)]
struct Input {
    labels: Vec<(Word, Word)>,
    node_name: Word,
    selector: Selector,
    terms: Vec<Term>,
}

#[derive(Arbitrary, Debug)]
struct Selector {
    labels: Option<Vec<(Word, Word)>>,
    expressions: Option<Vec<Requirement>>,
}

#[derive(Arbitrary, Debug)]
struct Term {
    expressions: Option<Vec<Requirement>>,
    fields: Option<Vec<Requirement>>,
}

#[derive(Arbitrary, Debug)]
struct Requirement {
    key: Word,
    operator: u8,
    values: Option<Vec<Word>>,
}

#[derive(Arbitrary, Debug)]
enum Word {
    Known(u8),
    Any(String),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Self::Known(i) => WORDS[usize::from(*i) % WORDS.len()].to_owned(),
            Self::Any(text) => text.clone(),
        }
    }
}

impl Requirement {
    fn operator(&self) -> String {
        OPERATORS[usize::from(self.operator) % OPERATORS.len()].to_owned()
    }

    fn values(&self) -> Option<Vec<String>> {
        Some(self.values.as_ref()?.iter().map(Word::text).collect())
    }
}

/// What is checked.
#[derive(Default)]
struct Case {
    labels: BTreeMap<String, String>,
    node_name: String,
    selector: LabelSelector,
    terms: Vec<core::NodeSelectorTerm>,
}

fuzz_target!(|bytes: &[u8]| {
    let case = match bytes.first() {
        Some(b'{') => of_json(bytes),
        _ => Input::arbitrary(&mut Unstructured::new(bytes))
            .ok()
            .map(|input| of_words(&input)),
    };
    if let Some(case) = case {
        check_label_selector(&case.selector, &case.labels);
        check_node_terms(&case.terms, &case.labels, &case.node_name);
    }
});

/// `{"labels": {…}, "nodeName": "…", "selector": {…}, "terms": […]}`, all of it optional.
fn of_json(bytes: &[u8]) -> Option<Case> {
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).ok()?;
    let mut field = |name: &str| fields.remove(name).filter(|v| !v.is_null());
    let mut case = Case::default();
    if let Some(labels) = field("labels") {
        case.labels = serde_json::from_value(labels).ok()?;
    }
    if let Some(name) = field("nodeName") {
        case.node_name = serde_json::from_value(name).ok()?;
    }
    if let Some(selector) = field("selector") {
        case.selector = serde_json::from_value(selector).ok()?;
    }
    if let Some(terms) = field("terms") {
        case.terms = serde_json::from_value(terms).ok()?;
    }
    Some(case)
}

fn of_words(input: &Input) -> Case {
    let label_requirement = |r: &Requirement| LabelSelectorRequirement {
        key: r.key.text(),
        operator: r.operator(),
        values: r.values(),
    };
    let node_requirement = |r: &Requirement| core::NodeSelectorRequirement {
        key: r.key.text(),
        operator: r.operator(),
        values: r.values(),
    };
    let list = |list: &Option<Vec<Requirement>>| {
        list.as_ref()
            .map(|list| list.iter().map(node_requirement).collect())
    };
    let term = |term: &Term| core::NodeSelectorTerm {
        match_expressions: list(&term.expressions),
        match_fields: list(&term.fields),
    };
    let expressions = input.selector.expressions.as_ref();
    Case {
        labels: map(&input.labels),
        node_name: input.node_name.text(),
        selector: LabelSelector {
            match_labels: input.selector.labels.as_deref().map(map),
            match_expressions: expressions.map(|e| e.iter().map(label_requirement).collect()),
        },
        terms: input.terms.iter().map(term).collect(),
    }
}

fn map(pairs: &[(Word, Word)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| (key.text(), value.text()))
        .collect()
}

fn check_label_selector(wire: &LabelSelector, labels: &BTreeMap<String, String>) {
    let mut names = Interner::new();
    let parsed = facts::selector(Some(wire), &mut names);
    let interned = facts::labels(Some(labels), &mut names);

    let mut errors = Vec::new();
    validation::selector::validate(Some(wire), &FieldPath::root(), &mut errors);
    assert!(
        parsed.is_ok() || !errors.is_empty(),
        "validation passes what cannot be read: {wire:?}"
    );
    let judged = validation::selector::matches(wire, Some(labels));
    assert_eq!(parsed.is_ok(), judged.is_some(), "{wire:?}");
    if let (Ok(parsed), Some(judged)) = (parsed, judged) {
        let plainly = plain_selector(wire, labels);
        assert_eq!(parsed.matches(&interned), plainly, "{wire:?} on {labels:?}");
        assert_eq!(judged, plainly, "{wire:?} on {labels:?}");
        assert_eq!(parsed.is_empty(), validation::selector::is_empty(wire));
    }
}

fn plain_selector(wire: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    for (key, value) in wire.match_labels.iter().flatten() {
        if labels.get(key) != Some(value) {
            return false;
        }
    }
    for r in wire.match_expressions.iter().flatten() {
        if plain_label(&r.key, &r.operator, r.values.as_deref(), labels) != Some(true) {
            return false;
        }
    }
    true
}

/// Whether a label meets a requirement; `None` where the requirement is none.
fn plain_label(
    key: &str,
    operator: &str,
    values: Option<&[String]>,
    labels: &BTreeMap<String, String>,
) -> Option<bool> {
    let values = values.unwrap_or_default();
    let listed = labels
        .get(key)
        .is_some_and(|v| values.iter().any(|w| w == v));
    match operator {
        "In" if !values.is_empty() => Some(listed),
        "NotIn" if !values.is_empty() => Some(!listed),
        "Exists" if values.is_empty() => Some(labels.contains_key(key)),
        "DoesNotExist" if values.is_empty() => Some(!labels.contains_key(key)),
        _ => None,
    }
}

fn check_node_terms(
    terms: &[core::NodeSelectorTerm],
    labels: &BTreeMap<String, String>,
    node_name: &str,
) {
    let wire = core::NodeSelector {
        node_selector_terms: terms.to_vec(),
    };
    let mut names = Interner::new();
    let fact = facts::pod(&pod_with(wire.clone()), &mut names);
    let fact = fact
        .expect("it has no quantity")
        .expect("it has not finished");
    let parsed = fact.spec.node_affinity.terms.expect("terms stay terms");
    assert_eq!(parsed.len(), terms.len());

    let mut errors = Vec::new();
    validation::affinity::node_selector(&wire, &FieldPath::root(), &mut errors);
    let interned = facts::labels(Some(labels), &mut names);
    let name = names.intern(node_name);
    for (parsed, wire) in parsed.iter().zip(&wire.node_selector_terms) {
        let matched = parsed.matches(name, &interned, &names);
        let plainly = plain_term(wire, labels, node_name);
        assert_eq!(
            matched,
            plainly == Some(true),
            "{wire:?} on {node_name} {labels:?}"
        );
        // Validation leaves the number of Gt and Lt to the scheduler, and so an unreadable one passes.
        let unreadable = plainly.is_none() && !has_bad_bound(wire) && !is_empty(wire);
        assert!(
            !unreadable || !errors.is_empty(),
            "validation passes what cannot be read: {wire:?}"
        );
    }
}

fn pod_with(required: core::NodeSelector) -> core::Pod {
    let affinity = core::Affinity {
        node_affinity: Some(core::NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(required),
            ..core::NodeAffinity::default()
        }),
        ..core::Affinity::default()
    };
    core::Pod {
        spec: Some(core::PodSpec {
            affinity: Some(affinity),
            ..core::PodSpec::default()
        }),
        ..core::Pod::default()
    }
}

fn is_empty(term: &core::NodeSelectorTerm) -> bool {
    let none = |list: &Option<Vec<_>>| list.as_ref().is_none_or(Vec::is_empty);
    none(&term.match_expressions) && none(&term.match_fields)
}

fn has_bad_bound(term: &core::NodeSelectorTerm) -> bool {
    let is_bad = |r: &core::NodeSelectorRequirement| {
        matches!(r.operator.as_str(), "Gt" | "Lt") && bound(r).is_none()
    };
    term.match_expressions.iter().flatten().any(is_bad)
}

fn bound(r: &core::NodeSelectorRequirement) -> Option<i64> {
    match r.values.as_deref() {
        Some([one]) => one.parse().ok(),
        _ => None,
    }
}

/// Whether a node meets a term; `None` where the term cannot be read. An empty one matches no node.
fn plain_term(
    term: &core::NodeSelectorTerm,
    labels: &BTreeMap<String, String>,
    node_name: &str,
) -> Option<bool> {
    let mut all = !is_empty(term);
    for r in term.match_expressions.iter().flatten() {
        let number = || labels.get(&r.key).and_then(|v| v.parse::<i64>().ok());
        all &= match r.operator.as_str() {
            "Gt" => {
                let bound = bound(r)?;
                number().is_some_and(|n| n > bound)
            }
            "Lt" => {
                let bound = bound(r)?;
                number().is_some_and(|n| n < bound)
            }
            _ => plain_label(&r.key, &r.operator, r.values.as_deref(), labels)?,
        };
    }
    for r in term.match_fields.iter().flatten() {
        let name = match r.values.as_deref() {
            Some([name]) if r.key == "metadata.name" => name,
            _ => return None,
        };
        all &= match r.operator.as_str() {
            "In" => name == node_name,
            "NotIn" => name != node_name,
            _ => return None,
        };
    }
    Some(all)
}
