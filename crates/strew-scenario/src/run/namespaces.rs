//! Namespaces that a dump does not have, though it has pods in them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Affinity, PodAffinityTerm, WeightedPodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use strew_manifest::read::{KubeObject, Located};

/// A note about missing namespaces, if a term of pod affinity reads the labels of namespaces: the answers may be others
/// with them.
pub(super) fn missing(stream: &[Located]) -> Option<String> {
    let mut objects = stream.iter().map(|located| &located.object);
    if !objects.any(selects_namespaces) {
        return None;
    }
    let namespaces = stream.iter().map(|located| &located.object);
    let namespaces = namespaces.filter(|object| matches!(object, KubeObject::Namespace(_)));
    let known: BTreeSet<&str> = namespaces.map(KubeObject::name).collect();
    let pods = stream.iter().filter(|located| located.from_dump);
    let pods = pods.filter(|located| matches!(located.object, KubeObject::Pod(_)));
    let missing = pods.filter_map(|pod| pod.object.namespace());
    let missing: BTreeSet<&str> = missing.filter(|of| !known.contains(of)).collect();
    let first = missing.first()?;
    let which = match missing.len() {
        1 => format!("namespace {first} is not in the dump"),
        n => format!("{n} namespaces are not in the dump, {first} is one"),
    };
    Some(format!(
        "{which}: a namespaceSelector of pod affinity takes pods there as of a namespace without labels"
    ))
}

/// True if a term of the object's pods selects namespaces by their labels.
fn selects_namespaces(object: &KubeObject) -> bool {
    let spec = match object {
        KubeObject::Pod(pod) => pod.spec.as_ref(),
        object => { object.pod_template() }.and_then(|(template, _)| template.spec.as_ref()),
    };
    let affinity = spec.and_then(|spec| spec.affinity.as_ref());
    let selectors = affinity.into_iter().flat_map(terms);
    let mut selectors = selectors.filter_map(|term| term.namespace_selector.as_ref());
    // The empty one selects all.
    selectors.any(|selector| *selector != LabelSelector::default())
}

fn terms(affinity: &Affinity) -> impl Iterator<Item = &PodAffinityTerm> {
    let with = affinity.pod_affinity.iter().flat_map(|all| {
        of_lists(
            &all.required_during_scheduling_ignored_during_execution,
            &all.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let apart = affinity.pod_anti_affinity.iter().flat_map(|all| {
        of_lists(
            &all.required_during_scheduling_ignored_during_execution,
            &all.preferred_during_scheduling_ignored_during_execution,
        )
    });
    with.chain(apart)
}

fn of_lists<'a>(
    required: &'a Option<Vec<PodAffinityTerm>>,
    preferred: &'a Option<Vec<WeightedPodAffinityTerm>>,
) -> impl Iterator<Item = &'a PodAffinityTerm> {
    let preferred = preferred.iter().flatten();
    let preferred = preferred.map(|weighted| &weighted.pod_affinity_term);
    required.iter().flatten().chain(preferred)
}
