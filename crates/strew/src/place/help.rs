//! What to do about a Placement that gets no cluster: the labels, claims and expressions that no cluster has, with the
//! nearest ones, and the namespaces that sets are bound to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{ClusterSelector, ManagedCluster};
use strew_placement::facts::status::{ConditionReason, ConditionType};
use strew_scenario::expect::expression::{meant, there_are};
use strew_view::placement::PlacementView;
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::debug::DebugResult;

use super::fleet::Fleet;
use crate::text::count;

/// Values and names that a sentence lists.
const LISTED_MAX: usize = 8;

/// One sentence per cause; empty if the Placement has clusters, or if there is nothing to add to its condition. `cel` is
/// read where nothing matches.
pub(super) fn of(
    view: &PlacementView,
    fleet: &Fleet,
    cel: &impl Deref<Target = CelSelectors>,
) -> Vec<String> {
    use ConditionReason::{NoIntersection, NoManagedClusterMatched, NoManagedClusterSetBindings};
    let is = |reason: ConditionReason| {
        let condition = view.condition(ConditionType::Satisfied);
        condition.is_some_and(|condition| condition.reason == reason.name())
    };
    if is(NoManagedClusterMatched) {
        predicates(view, fleet, cel)
    } else if is(NoManagedClusterSetBindings) || is(NoIntersection) {
        bindings(&view.key().0, fleet)
    } else {
        Vec::new()
    }
}

/// True if fewer clusters were chosen than were asked for, and some were.
pub(super) fn is_short(view: &PlacementView) -> bool {
    let condition = view.condition(ConditionType::Satisfied);
    condition.is_some_and(|c| c.reason == ConditionReason::NotAllDecisionsScheduled.name())
}

/// How many clusters each filter leaves, where that is fewer than were asked for.
pub(super) fn shortage(result: &DebugResult) -> String {
    let mut left = result.candidates;
    let mut sentence = format!("{} in the bound sets", count(left, "cluster"));
    let words = [
        "match the predicates",
        "have no taint that is not tolerated",
    ];
    for (filter, words) in result.filtered_pipeline_results.iter().zip(words) {
        let n = filter.filtered_clusters.len();
        if n < left {
            sentence += &format!("; {n} of them {words}");
        }
        left = n;
    }
    sentence
}

/// Where sets are bound.
pub(super) fn bindings(namespace: &str, fleet: &Fleet) -> Vec<String> {
    let bound = fleet.bound();
    if let Some(sets) = bound.get(namespace) {
        let mut help = vec![format!(
            "namespace {namespace} has bindings of {}",
            listed(sets.iter().copied())
        )];
        let there = fleet.sets();
        let missing: Vec<&str> = sets.difference(&there).copied().collect();
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
fn predicates(view: &PlacementView, fleet: &Fleet, cel: &CelSelectors) -> Vec<String> {
    let spec = view.placement.spec.as_ref();
    let predicates = spec.and_then(|spec| spec.predicates.as_ref());
    let selectors = predicates.into_iter().flatten();
    let selectors = selectors.filter_map(|predicate| predicate.required_cluster_selector.as_ref());
    let clusters: Vec<&ManagedCluster> = fleet.clusters.values().collect();
    let unmet = selectors.flat_map(|selector| unmet(selector, &clusters, cel));
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
    let labels = by_key(clusters.iter().flat_map(|cluster| cluster.labels()));
    let claims = by_key(clusters.iter().flat_map(|cluster| cluster.claims()));
    let in_labels = There {
        noun: "label",
        values: &labels,
        otherwise: ("claim", &claims),
    };
    let in_claims = There {
        noun: "claim",
        values: &claims,
        otherwise: ("label", &labels),
    };
    if let Some(labels) = &selector.label_selector {
        let path = root.child("labelSelector");
        for (key, value) in labels.match_labels.iter().flatten() {
            let sentence = missing(&in_labels, key, &[value.as_str()]);
            found.extend(sentence.map(|said| (path.child("matchLabels").key(key), said)));
        }
        let requirements = labels.match_expressions.iter().flatten();
        found.extend(of_requirements(&in_labels, &path, requirements));
    }
    if let Some(claims) = &selector.claim_selector {
        let path = root.child("claimSelector");
        let requirements = claims.match_expressions.iter().flatten();
        found.extend(of_requirements(&in_claims, &path, requirements));
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

/// The keys and values among which a selector chooses, and those among which it does not.
struct There<'v, 'a> {
    noun: &'static str,
    values: &'v Values<'a>,
    otherwise: (&'static str, &'v Values<'a>),
}

fn by_key<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Values<'a> {
    let mut values = Values::new();
    for (key, value) in pairs {
        values.entry(key).or_default().insert(value);
    }
    values
}

/// Requirements of `In` or `Exists` that no cluster meets; others may be met by clusters without the key.
fn of_requirements<'a>(
    there: &There<'_, '_>,
    path: &FieldPath,
    requirements: impl Iterator<Item = &'a LabelSelectorRequirement>,
) -> Vec<(FieldPath, String)> {
    let path = path.child("matchExpressions");
    let unmet = requirements.enumerate().filter_map(|(i, requirement)| {
        let wanted = requirement.values.iter().flatten();
        let wanted: Vec<&str> = wanted.map(String::as_str).collect();
        let sentence = match requirement.operator.as_str() {
            "In" | "Exists" => missing(there, &requirement.key, &wanted),
            _ => None,
        };
        Some((path.index(i), sentence?))
    });
    unmet.collect()
}

/// Why no cluster has a key with one of these values, any value if there are none; `None` if one has it.
fn missing(there: &There<'_, '_>, key: &str, wanted: &[&str]) -> Option<String> {
    let noun = there.noun;
    let Some(values) = there.values.get(key) else {
        let keys = there.values.keys().copied();
        let message = format!("no cluster has the {noun} {key}");
        let (other, others) = there.otherwise;
        return Some(match meant(key, keys.clone()) {
            _ if others.contains_key(key) => format!("{message}; it is a {other} of clusters"),
            Some(meant) => format!("{message}; did you mean {meant}?"),
            None if there.values.is_empty() => format!("{message}; none has any {noun}"),
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
