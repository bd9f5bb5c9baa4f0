//! `matchLabelKeys`: adds the values of a created pod's labels to its selectors.
//!
//! Source: `pkg/registry/core/pod/strategy.go` (`mutateTopologySpreadConstraints`,
//! `mutatePodAffinity`), v1.36; KEP-3243. Only pods are merged, never templates.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Pod, PodAffinityTerm, WeightedPodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

type Labels = BTreeMap<String, String>;

/// Appends `key In (value)` to the selector of each spread constraint (if `merge_spread`) and
/// `In` / `NotIn` to that of each affinity term, for the keys that the pod has a label for.
/// A missing selector stays missing: it matches nothing anyway.
pub fn merge(pod: &mut Pod, merge_spread: bool) {
    let labels = pod.metadata.labels.clone().unwrap_or_default();
    let Some(spec) = &mut pod.spec else { return };
    if let Some(affinity) = &mut spec.affinity {
        for term in terms(affinity) {
            append(
                &mut term.label_selector,
                &term.match_label_keys,
                "In",
                &labels,
            );
            append(
                &mut term.label_selector,
                &term.mismatch_label_keys,
                "NotIn",
                &labels,
            );
        }
    }
    if merge_spread {
        for constraint in spec.topology_spread_constraints.iter_mut().flatten() {
            append(
                &mut constraint.label_selector,
                &constraint.match_label_keys,
                "In",
                &labels,
            );
        }
    }
}

fn terms(affinity: &mut Affinity) -> impl Iterator<Item = &mut PodAffinityTerm> {
    let with = affinity.pod_affinity.iter_mut().flat_map(|affinity| {
        required_and_preferred(
            &mut affinity.required_during_scheduling_ignored_during_execution,
            &mut affinity.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let against = affinity.pod_anti_affinity.iter_mut().flat_map(|affinity| {
        required_and_preferred(
            &mut affinity.required_during_scheduling_ignored_during_execution,
            &mut affinity.preferred_during_scheduling_ignored_during_execution,
        )
    });
    with.chain(against)
}

fn required_and_preferred<'a>(
    required: &'a mut Option<Vec<PodAffinityTerm>>,
    preferred: &'a mut Option<Vec<WeightedPodAffinityTerm>>,
) -> impl Iterator<Item = &'a mut PodAffinityTerm> {
    let preferred = preferred
        .iter_mut()
        .flatten()
        .map(|term| &mut term.pod_affinity_term);
    required.iter_mut().flatten().chain(preferred)
}

fn append(
    selector: &mut Option<LabelSelector>,
    keys: &Option<Vec<String>>,
    operator: &str,
    labels: &Labels,
) {
    let Some(selector) = selector else { return };
    for key in keys.iter().flatten() {
        if let Some(value) = labels.get(key) {
            selector
                .match_expressions
                .get_or_insert_default()
                .push(LabelSelectorRequirement {
                    key: key.clone(),
                    operator: operator.to_string(),
                    values: Some(vec![value.clone()]),
                });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(spec: serde_json::Value) -> serde_json::Value {
        let mut pod: Pod = serde_json::from_value(
            json!({"metadata": {"labels": {"app": "sample", "rev": "1"}}, "spec": spec}),
        )
        .unwrap();
        merge(&mut pod, true);
        serde_json::to_value(pod.spec.unwrap()).unwrap()
    }

    /// KEP-3243, "the LabelSelector is modified like the following".
    #[test]
    fn spread_constraints_get_the_pods_values() {
        let spec = merged(json!({"containers": [], "topologySpreadConstraints": [
            {"labelSelector": {}, "matchLabelKeys": ["app", "absent"]},
            {"matchLabelKeys": ["app"]},
        ]}));
        let constraints = &spec["topologySpreadConstraints"];
        assert_eq!(
            constraints[0]["labelSelector"],
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["sample"]}]})
        );
        assert_eq!(constraints[0]["matchLabelKeys"], json!(["app", "absent"]));
        assert_eq!(constraints[1].get("labelSelector"), None);
    }

    #[test]
    fn affinity_terms_get_in_and_not_in() {
        let term = json!({"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["rev"]});
        let spec = merged(json!({"containers": [], "affinity": {"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
        }}}));
        let term = &spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
            [0];
        assert_eq!(
            term["podAffinityTerm"]["labelSelector"]["matchExpressions"],
            json!([
                {"key": "app", "operator": "In", "values": ["sample"]},
                {"key": "rev", "operator": "NotIn", "values": ["1"]},
            ])
        );
    }
}
