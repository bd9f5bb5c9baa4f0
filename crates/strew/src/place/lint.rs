//! `strew lint` for Placements: errors, specifications that cannot be decided, and probable mistakes.

use std::collections::{BTreeMap, BTreeSet};

use strew_apiserver::server::registration::DEFAULT_SETS;
use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{
    ANNOTATIONS, ClusterSelector, ManagedCluster, Placement, REPLICA_DIVISION_ANNOTATION,
    SpreadConstraintsTerm, TOPOLOGY_GROUPS_ANNOTATION, TOPOLOGY_WEIGHTS_ANNOTATION,
};
use strew_manifest::read::{Diagnostic, KubeObject, Located, Reading, Sources, nearest};
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::facts::groups::{bounds_of, groups_by_key};
use strew_wire::placement::facts::replicas::read_division;
use strew_wire::placement::facts::spec::terms;
use strew_wire::placement::facts::weights_by_key;

use super::fleet::{Fleet, Loader, is_looked_at};
use super::help;
use crate::parts::instead;

/// The findings about the Placements of files and the objects that they read.
pub(crate) fn lint(reading: &Reading, sources: &Sources) -> Vec<Diagnostic> {
    // A dump may be large, and most of it is not about Placements.
    let about = reading.objects.iter();
    let about = about.filter(|located| is_looked_at(&located.object));
    let reading = Reading {
        objects: about.cloned().collect(),
        broken: reading.broken.clone(),
        ..Reading::default()
    };
    let mut loader = Loader::new(sources, reading);
    loader.misconfigured();
    let mut fleet = Fleet::default();
    for located in &loader.objects {
        fleet.put(located.object.clone());
    }
    let clusters: Vec<&ManagedCluster> = fleet.clusters.values().collect();
    let cel = fleet.selectors();
    let mut found = Vec::new();
    for located in &loader.objects {
        if let KubeObject::Placement(placement) = &located.object {
            let unread = unread(placement)
                .into_iter()
                .chain(unbound(placement, &fleet));
            found.extend(unread.map(|unmet| (located.clone(), unmet)));
            // A Placement without clusters: its clusters are elsewhere.
            if !clusters.is_empty() {
                let mut unmet = unmet(placement, &clusters);
                unmet.extend(too_few(placement, &clusters));
                unmet.extend(unweighed(placement, &clusters));
                unmet.extend(unmatched(placement, &clusters, &cel));
                unmet.extend(empty_groups(placement, &clusters, &cel));
                unmet.extend(unscored(placement, &fleet));
                found.extend(unmet.into_iter().map(|unmet| (located.clone(), unmet)));
            }
        }
    }
    for (located, unmet) in found {
        let diagnostic = diagnostic(&located, unmet, &mut loader);
        loader.diagnostics.push(diagnostic);
    }
    loader.diagnostics
}

/// Keys and values of a Placement that no cluster has.
struct Unmet {
    code: &'static str,
    path: FieldPath,
    message: String,
    /// The existing ones.
    help: String,
    /// True if it may be meant so.
    is_note: bool,
}

fn diagnostic(located: &Located, unmet: Unmet, loader: &mut Loader<'_>) -> Diagnostic {
    let place = loader.locator.place(&located.origin, &unmet.path);
    let make = match unmet.is_note {
        true => Diagnostic::note,
        false => Diagnostic::warning,
    };
    make(unmet.code, unmet.message)
        .about(located.object.label())
        .at(place)
        .in_field(unmet.path)
        .with_help(unmet.help)
}

fn unmet(placement: &Placement, clusters: &[&ManagedCluster]) -> Vec<Unmet> {
    let Some(spec) = &placement.spec else {
        return Vec::new();
    };
    let annotations = placement.metadata.annotations.as_ref();
    let annotation = annotations.and_then(|all| all.get(TOPOLOGY_WEIGHTS_ANNOTATION));
    let annotated = annotation.and_then(|text| weights_by_key(text).ok());
    let keys = |term: &SpreadConstraintsTerm| -> BTreeSet<&str> {
        let pairs = clusters.iter().flat_map(|cluster| term.pairs(cluster));
        pairs.map(|(key, _)| key).collect()
    };
    let mut unmet = Vec::new();
    for (i, term) in terms(spec).iter().enumerate() {
        let path = FieldPath::root()
            .child("spec.spreadPolicy.spreadConstraints")
            .index(i);
        let values = clusters.iter().filter_map(|cluster| term.value(cluster));
        let values: BTreeSet<&str> = values.collect();
        let (key, kind) = (&term.topology_key, term.topology_key_type.to_lowercase());
        if values.is_empty() {
            let (other, noun) = match kind.as_str() {
                "claim" => ("Label", "label"),
                _ => ("Claim", "claim"),
            };
            let otherwise = SpreadConstraintsTerm {
                topology_key_type: other.to_owned(),
                ..SpreadConstraintsTerm::clone(term)
            };
            let there = keys(term);
            let is_other = keys(&otherwise).contains(key.as_str());
            unmet.push(Unmet {
                code: "unknown-topology-key",
                path: path.child("topologyKey"),
                message: format!("no cluster of the files has the {kind} {key}"),
                help: match (is_other, there.is_empty()) {
                    (true, _) => {
                        format!("they have it as a {noun}: topologyKeyType: {other}")
                    }
                    (false, true) => format!("no cluster of the files has a {kind}"),
                    (false, false) => instead(key, there),
                },
                is_note: false,
            });
            continue;
        }
        let mut value = |value: &str, weight: i64, path: FieldPath| {
            if value != "*" && !values.contains(value) {
                unmet.push(Unmet {
                    code: "unknown-topology",
                    path,
                    message: format!(
                        "no cluster of the files has {key}={value}, which has weight {weight}"
                    ),
                    help: instead(value, values.clone()),
                    is_note: false,
                });
            }
        };
        match &term.topology_weights {
            Some(weights) => {
                for (j, weight) in weights.iter().enumerate() {
                    let path = path.child("topologyWeights").index(j).child("value");
                    value(&weight.value, weight.weight, path);
                }
            }
            None => {
                let of_key = annotated.iter().flatten().find(|(named, _)| *named == key);
                for (named, weight) in of_key.iter().flat_map(|(_, values)| values.iter()) {
                    let path = FieldPath::root().child("metadata.annotations");
                    value(named, *weight, path.key(TOPOLOGY_WEIGHTS_ANNOTATION));
                }
            }
        }
    }
    unmet
}

/// Terms that ask for more topologies than there are.
fn too_few<'c>(placement: &Placement, clusters: &[&'c ManagedCluster]) -> Vec<Unmet> {
    let terms = placement.spec.as_ref().map(terms).unwrap_or_default();
    let annotations = placement.metadata.annotations.as_ref();
    let annotation = annotations.and_then(|all| all.get(TOPOLOGY_GROUPS_ANNOTATION));
    let annotated = annotation.and_then(|text| groups_by_key(text).ok());
    let annotated = annotated.unwrap_or_default();
    let mut found = Vec::new();
    for (i, term) in terms.iter().enumerate() {
        let min = bounds_of(term, &annotated).min.unwrap_or(0);
        // A cluster without one of the values is in no topology.
        let tuple = |cluster: &&'c ManagedCluster| {
            let values = terms[..=i].iter().map(|term| term.value(cluster));
            values.collect::<Option<Vec<&str>>>()
        };
        let tuples = clusters.iter().filter_map(tuple);
        let there: BTreeSet<Vec<&str>> = tuples.collect();
        // A key that no cluster has is reported already.
        if there.is_empty() || min <= i64::try_from(there.len()).unwrap_or(i64::MAX) {
            continue;
        }
        let path = match term.min_groups {
            Some(_) => FieldPath::root()
                .child("spec.spreadPolicy.spreadConstraints")
                .index(i)
                .child("minGroups"),
            None => FieldPath::root()
                .child("metadata.annotations")
                .key(TOPOLOGY_GROUPS_ANNOTATION),
        };
        let (key, n) = (&term.topology_key, there.len());
        let names: Vec<String> = there.iter().take(10).map(|tuple| tuple.join("/")).collect();
        found.push(Unmet {
            code: "too-few-topologies",
            path,
            message: format!("the clusters of the files are in {n} {key}, minGroups is {min}"),
            help: format!("there are {}", names.join(", ")),
            is_note: false,
        });
    }
    found
}

/// Predicates of which no cluster matches a part. They are notes where another predicate matches: one is enough.
fn unmatched(
    placement: &Placement,
    clusters: &[&ManagedCluster],
    cel: &CelSelectors,
) -> Vec<Unmet> {
    let predicates = placement
        .spec
        .as_ref()
        .and_then(|s| s.predicates.as_deref());
    let predicates = predicates.unwrap_or_default();
    let mut found = Vec::new();
    let mut n_unmet = 0;
    for (i, predicate) in predicates.iter().enumerate() {
        let Some(selector) = &predicate.required_cluster_selector else {
            continue;
        };
        let path = FieldPath::root().child("spec.predicates").index(i);
        let path = path.child("requiredClusterSelector");
        let unmet = help::unmet(selector, clusters, cel);
        n_unmet += usize::from(!unmet.is_empty());
        found.extend(unmet.into_iter().map(|(field, sentence)| {
            let (message, help) = match sentence.split_once("; ") {
                Some((message, help)) => (message.to_owned(), help.to_owned()),
                None => (
                    sentence,
                    "compare it with the labels and claims of the clusters".to_owned(),
                ),
            };
            Unmet {
                code: "unmatched-predicate",
                path: path.join(&field),
                message: format!("the predicate matches no cluster of the files: {message}"),
                help,
                is_note: false,
            }
        }));
    }
    let has_others = n_unmet < predicates.len();
    found
        .iter_mut()
        .for_each(|unmet| unmet.is_note = has_others);
    found
}

/// Annotations of strew's prefix that nothing looks at.
fn unread(placement: &Placement) -> Vec<Unmet> {
    let keys = placement.metadata.annotations.iter().flatten();
    let keys = keys.map(|(key, _)| key.as_str());
    let unread = keys.filter(|key| key.starts_with("strew.dev/") && !ANNOTATIONS.contains(key));
    let unmet = unread.map(|key| Unmet {
        code: "no-effect",
        path: FieldPath::root().child("metadata.annotations").key(key),
        message: "nothing looks at this annotation".to_owned(),
        help: match nearest(key, ANNOTATIONS) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("there are {}", ANNOTATIONS.join(", ")),
        },
        is_note: false,
    });
    unmet.collect()
}

/// A Placement whose namespace is bound to none of the sets that it may choose from. Without a set and a binding in the
/// files, they are elsewhere.
fn unbound(placement: &Placement, fleet: &Fleet) -> Option<Unmet> {
    let (bound, mut there) = (fleet.bound(), fleet.sets());
    if bound.is_empty() && there.is_empty() {
        return None;
    }
    // A hub has these without a file.
    there.extend(DEFAULT_SETS.iter().map(|(name, _)| *name));
    let namespace = placement.metadata.namespace.as_deref().unwrap_or("default");
    let spec = placement.spec.as_ref()?;
    let asked = spec.cluster_sets.as_deref().unwrap_or_default();
    let mut own = bound.get(namespace).into_iter().flatten();
    let is_met = own.any(|set| {
        there.contains(set) && (asked.is_empty() || asked.iter().any(|asked| asked == set))
    });
    (!is_met).then(|| Unmet {
        code: "unbound-placement",
        path: match asked.is_empty() {
            true => FieldPath::root().child("metadata.name"),
            false => FieldPath::root().child("spec.clusterSets"),
        },
        message: match asked.is_empty() {
            true => format!(
                "no cluster can be chosen: no ManagedClusterSet that is there is bound to namespace {namespace}"
            ),
            false => format!(
                "no cluster can be chosen: none of the sets {} is there and bound to namespace {namespace}",
                asked.join(", ")
            ),
        },
        help: help::bindings(namespace, fleet).join("; "),
        is_note: false,
    })
}

/// Decision groups that are chosen by hand and match no cluster.
fn empty_groups(
    placement: &Placement,
    clusters: &[&ManagedCluster],
    cel: &CelSelectors,
) -> Vec<Unmet> {
    let spec = placement.spec.as_ref();
    let strategy = spec.and_then(|s| s.decision_strategy.as_ref());
    let groups = strategy.and_then(|s| s.group_strategy.as_ref()?.decision_groups.as_deref());
    let path = FieldPath::root().child("spec.decisionStrategy.groupStrategy.decisionGroups");
    let mut found = Vec::new();
    for (i, group) in groups.unwrap_or_default().iter().enumerate() {
        let Some(selector) = &group.group_cluster_selector else {
            continue;
        };
        let selector = ClusterSelector {
            label_selector: selector.label_selector.clone(),
            claim_selector: selector.claim_selector.clone(),
            ..ClusterSelector::default()
        };
        let path = path.index(i).child("groupClusterSelector");
        for (field, sentence) in help::unmet(&selector, clusters, cel) {
            let (message, help) = sentence.split_once("; ").unwrap_or((sentence.as_str(), ""));
            found.push(Unmet {
                code: "empty-decision-group",
                path: path.join(&field),
                message: format!(
                    "the decision group {} has no cluster of the files: {message}",
                    group.group_name
                ),
                help: match help {
                    "" => "compare it with the labels and claims of the clusters".to_owned(),
                    help => help.to_owned(),
                },
                is_note: false,
            });
        }
    }
    found
}

/// Scores of add-ons that no cluster has. Without any in the files, they are on the hub.
fn unscored(placement: &Placement, fleet: &Fleet) -> Vec<Unmet> {
    let mut there: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for object in &fleet.others {
        if let KubeObject::AddOnPlacementScore(scores) = object {
            let items = scores
                .status
                .as_ref()
                .and_then(|status| status.scores.as_ref());
            let names = items.into_iter().flatten().map(|item| item.name.as_str());
            there.entry(object.name()).or_default().extend(names);
        }
    }
    let policy = placement
        .spec
        .as_ref()
        .and_then(|s| s.prioritizer_policy.as_ref());
    let configurations = policy.and_then(|policy| policy.configurations.as_deref());
    let path = FieldPath::root().child("spec.prioritizerPolicy.configurations");
    let mut found = Vec::new();
    for (i, configuration) in configurations.unwrap_or_default().iter().enumerate() {
        let coordinate = configuration.score_coordinate.as_ref();
        let Some(score) = coordinate.and_then(|coordinate| coordinate.add_on.as_ref()) else {
            continue;
        };
        let path = path.index(i).child("scoreCoordinate.addOn");
        let (resource, name) = (score.resource_name.as_str(), score.score_name.as_str());
        let (path, message, help) = match there.get(resource) {
            _ if there.is_empty() => continue,
            Some(names) if names.contains(name) => continue,
            Some(names) => (
                path.child("scoreName"),
                format!("no AddOnPlacementScore {resource} of the files has the score {name}"),
                instead(name, names.clone()),
            ),
            None => (
                path.child("resourceName"),
                format!("no cluster of the files has an AddOnPlacementScore {resource}"),
                instead(resource, there.keys().copied().collect()),
            ),
        };
        found.push(Unmet {
            code: "unknown-score",
            path,
            message: format!("{message}: it adds nothing"),
            help,
            is_note: false,
        });
    }
    found
}

/// Weights of replicas that match no cluster.
fn unweighed(placement: &Placement, clusters: &[&ManagedCluster]) -> Vec<Unmet> {
    let annotations = placement.metadata.annotations.as_ref();
    let annotation = annotations.and_then(|all| all.get(REPLICA_DIVISION_ANNOTATION));
    let division = annotation.and_then(|text| read_division(text).ok());
    let weights = division.and_then(|division| division.weights);
    let weights = weights.unwrap_or_default().into_iter().enumerate();
    let unmatched = weights.filter(|(_, entry)| !clusters.iter().any(|c| entry.matches(c)));
    let unmet = unmatched.map(|(i, entry)| Unmet {
        code: "unmatched-weight",
        path: FieldPath::root()
            .child("metadata.annotations")
            .key(REPLICA_DIVISION_ANNOTATION),
        message: format!(
            "no cluster of the files matches weights[{i}], which has weight {}",
            entry.weight
        ),
        help: "the selectors are over labels and claims of ManagedClusters".to_owned(),
        is_note: false,
    });
    unmet.collect()
}
