//! What to do about a Placement that gets no cluster: the labels, claims and expressions that no cluster has, with the
//! nearest ones, and the namespaces that sets are bound to.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{ClusterSelector, ManagedCluster};
use strew_model::Interner;
use strew_placement::facts::status::{ConditionReason, ConditionType};
use strew_placement::machine::Input;
use strew_scenario::expect::expression::{meant, there_are};
use strew_wire::placement::cel::CelSelectors;

use super::decide::Decided;
use super::fleet::Fleet;
use crate::text::count;

/// Values and names that a sentence lists.
const LISTED_MAX: usize = 8;

/// One sentence per cause; empty if the Placement has clusters, or if there is nothing to add to its condition.
pub(super) fn of(decided: &Decided, fleet: &Fleet, names: &Interner) -> Vec<String> {
    let condition = decided.condition(ConditionType::Satisfied);
    match condition.map(|condition| condition.reason) {
        Some(ConditionReason::NoManagedClusterMatched) => predicates(decided, fleet),
        Some(ConditionReason::NoManagedClusterSetBindings | ConditionReason::NoIntersection) => {
            bindings(decided, fleet, names)
        }
        _ => Vec::new(),
    }
}

/// Where sets are bound.
fn bindings(decided: &Decided, fleet: &Fleet, names: &Interner) -> Vec<String> {
    let mut bound: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for fact in &fleet.facts {
        if let Input::BindingSet { namespace, name } = fact {
            let sets = bound.entry(names.text(*namespace)).or_default();
            sets.insert(names.text(*name));
        }
    }
    let namespace = names.text(decided.fact.namespace);
    if let Some(sets) = bound.get(namespace) {
        let there = fleet.facts.iter().filter_map(|fact| match fact {
            Input::ClusterSetSet(set) => Some(names.text(set.name)),
            _ => None,
        });
        let there: BTreeSet<&str> = there.collect();
        let missing: Vec<&str> = sets.difference(&there).copied().collect();
        let mut help = vec![format!(
            "namespace {namespace} has bindings of {}",
            listed(sets.iter().copied())
        )];
        if !missing.is_empty() {
            let missing = listed(missing.into_iter());
            help.push(format!("there is no ManagedClusterSet {missing}"));
        }
        return help;
    }
    if bound.is_empty() {
        return vec!["no namespace has a ManagedClusterSetBinding".to_owned()];
    }
    let each: Vec<String> = bound
        .iter()
        .map(|(namespace, sets)| format!("{namespace} ({})", listed(sets.iter().copied())))
        .collect();
    let nearest = strew_manifest::read::nearest(namespace, bound.keys().copied());
    let nearest = nearest.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    vec![format!(
        "namespace {namespace} has no ManagedClusterSetBinding; bound are {}{nearest}",
        listed(each.iter().map(String::as_str))
    )]
}

/// What no cluster matches by itself.
fn predicates(decided: &Decided, fleet: &Fleet) -> Vec<String> {
    let key = (decided.fact.namespace, decided.fact.name);
    let spec = fleet
        .written
        .get(&key)
        .and_then(|written| written.spec.as_ref());
    let predicates = spec.and_then(|spec| spec.predicates.as_ref());
    let selectors = predicates.into_iter().flatten();
    let selectors = selectors.filter_map(|predicate| predicate.required_cluster_selector.as_ref());
    let clusters: Vec<&ManagedCluster> = fleet.clusters.values().collect();
    let unmet = selectors.flat_map(|selector| unmet(selector, &clusters, &fleet.cel));
    unmet.map(|(_, sentence)| sentence).collect()
}

/// What no cluster matches by itself: the field below the selector, and a sentence.
pub(super) fn unmet(
    selector: &ClusterSelector,
    clusters: &[&ManagedCluster],
    cel: &CelSelectors,
) -> Vec<(FieldPath, String)> {
    let mut found = Vec::new();
    let root = FieldPath::root();
    if let Some(labels) = &selector.label_selector {
        let path = root.child("labelSelector");
        let values = by_key(clusters.iter().flat_map(|cluster| {
            let labels = cluster.metadata.labels.iter().flatten();
            labels.map(|(key, value)| (key.as_str(), value.as_str()))
        }));
        for (key, value) in labels.match_labels.iter().flatten() {
            let sentence = missing("label", key, &[value.as_str()], &values);
            found.extend(sentence.map(|said| (path.child("matchLabels").key(key), said)));
        }
        let path = path.child("matchExpressions");
        let requirements = labels.match_expressions.iter().flatten().enumerate();
        found.extend(requirements.filter_map(|(i, requirement)| {
            let sentence = of_requirement("label", requirement, &values)?;
            Some((path.index(i), sentence))
        }));
    }
    if let Some(claims) = &selector.claim_selector {
        let values = by_key(clusters.iter().flat_map(|cluster| {
            let status = cluster.status.iter();
            let claims = status.flat_map(|status| status.cluster_claims.iter().flatten());
            claims.map(|claim| (claim.name.as_str(), claim.value.as_str()))
        }));
        let path = root.child("claimSelector.matchExpressions");
        let requirements = claims.match_expressions.iter().flatten().enumerate();
        found.extend(requirements.filter_map(|(i, requirement)| {
            let sentence = of_requirement("claim", requirement, &values)?;
            Some((path.index(i), sentence))
        }));
    }
    let expressions = selector.cel_selector.as_ref();
    let expressions = expressions.and_then(|cel| cel.cel_expressions.as_ref());
    let path = root.child("celSelector.celExpressions");
    for (i, expression) in expressions.into_iter().flatten().enumerate() {
        let sentence = of_expression(expression, cel);
        found.extend(sentence.map(|said| (path.index(i), said)));
    }
    found
}

type Values<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn by_key<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Values<'a> {
    let mut values = Values::new();
    for (key, value) in pairs {
        values.entry(key).or_default().insert(value);
    }
    values
}

/// A requirement of `In` or `Exists` that no cluster meets; others may be met by clusters without the key.
fn of_requirement(
    noun: &str,
    requirement: &LabelSelectorRequirement,
    there: &Values<'_>,
) -> Option<String> {
    let wanted = requirement.values.iter().flatten();
    let wanted: Vec<&str> = wanted.map(String::as_str).collect();
    match requirement.operator.as_str() {
        "In" | "Exists" => missing(noun, &requirement.key, &wanted, there),
        _ => None,
    }
}

/// Why no cluster has a key with one of these values, any value if there are none; `None` if one has it.
fn missing(noun: &str, key: &str, wanted: &[&str], there: &Values<'_>) -> Option<String> {
    let Some(values) = there.get(key) else {
        let keys = there.keys().copied();
        let message = format!("no cluster has the {noun} {key}");
        return Some(match meant(key, there.keys().copied()) {
            Some(meant) => format!("{message}; did you mean {meant}?"),
            None => format!("{message}; there are {}", listed(keys)),
        });
    };
    if wanted.is_empty() || wanted.iter().any(|value| values.contains(value)) {
        return None;
    }
    let pairs = wanted.iter().map(|value| format!("{key}={value}"));
    let message = format!(
        "no cluster has the {noun} {}",
        pairs.collect::<Vec<_>>().join(" or ")
    );
    let meant = wanted
        .iter()
        .find_map(|value| meant(value, values.iter().copied()));
    let values = listed(values.iter().copied());
    Some(match meant {
        Some(meant) => format!("{message}; did you mean {meant}? There are {values}"),
        None => format!("{message}; there are {values}"),
    })
}

/// An expression that holds for no cluster.
fn of_expression(expression: &str, cel: &CelSelectors) -> Option<String> {
    let trial = cel.tried(expression)?;
    if trial.n_true > 0 {
        return None;
    }
    let all = count(trial.n_clusters, "cluster");
    Some(match &trial.error {
        None => format!("CEL `{expression}` is false for all {all}"),
        Some((n, error)) => {
            let there = error.unknown.as_deref().map(there_are);
            let there = there.map_or_else(String::new, |there| format!("; {there}"));
            format!(
                "CEL `{expression}` failed on {n} of {all}: {}{there}",
                error.message
            )
        }
    })
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    super::text::folded(&names, LISTED_MAX)
}
