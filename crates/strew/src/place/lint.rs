//! `strew lint` for Placements: errors, specifications that cannot be decided, and probable mistakes.

use std::collections::BTreeSet;

use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{
    ManagedCluster, Placement, REPLICA_DIVISION_ANNOTATION, SpreadConstraintsTerm,
    TOPOLOGY_GROUPS_ANNOTATION, TOPOLOGY_WEIGHTS_ANNOTATION,
};
use strew_manifest::read::{Diagnostic, KubeObject, Located, Reading, Sources};
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
            // A Placement without clusters: its clusters are elsewhere.
            if !clusters.is_empty() {
                let mut unmet = unmet(placement, &clusters);
                unmet.extend(too_few(placement, &clusters));
                unmet.extend(unweighed(placement, &clusters));
                unmet.extend(unmatched(placement, &clusters, &cel));
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
            unmet.push(Unmet {
                code: "unknown-topology-key",
                path: path.child("topologyKey"),
                message: format!("no cluster of the files has the {kind} {key}"),
                help: instead(key, keys(term)),
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
