//! Bounds of a pod's cost in simulated scheduling.
//!
//! A valid pod of 0.9 MB can have 9,000 affinity terms, and each is compared with all pods of the cluster. That takes
//! seconds, in which no other pod is admitted. Beyond these bounds simulated scheduling answers "unknown" for a new
//! pod, and reads only the resource requests of a stored pod.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{
    NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The most terms of affinity and spread constraints of a pod.
pub const TERMS_MAX: usize = 64;

/// The most labels, expressions, values, namespaces and tolerations of a pod.
pub const ENTRIES_MAX: usize = 2_048;

/// True if the pod is within the bounds.
pub fn is_simulated(pod: &Pod) -> bool {
    let labels = pod
        .metadata
        .labels
        .as_ref()
        .map_or(0, |labels| labels.len());
    let asked = pod.spec.as_ref().map(asked).unwrap_or_default();
    asked.terms <= TERMS_MAX && asked.entries + labels <= ENTRIES_MAX
}

/// A stored pod for simulated scheduling: without its constraints if it is beyond the bounds.
pub fn stored(pod: &Pod) -> Cow<'_, Pod> {
    if is_simulated(pod) {
        return Cow::Borrowed(pod);
    }
    let mut bare = pod.clone();
    if bare
        .metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.len() > ENTRIES_MAX)
    {
        bare.metadata.labels = None;
    }
    if let Some(spec) = &mut bare.spec {
        spec.affinity = None;
        spec.topology_spread_constraints = None;
        spec.tolerations = None;
        spec.node_selector = None;
    }
    Cow::Owned(bare)
}

#[derive(Default, Clone, Copy)]
struct Asked {
    terms: usize,
    entries: usize,
}

fn asked(spec: &PodSpec) -> Asked {
    let mut asked = Asked::default();
    let affinity = spec.affinity.as_ref();
    if let Some(node) = affinity.and_then(|affinity| affinity.node_affinity.as_ref()) {
        let required = node
            .required_during_scheduling_ignored_during_execution
            .as_ref();
        let required = required
            .into_iter()
            .flat_map(|all| &all.node_selector_terms);
        let preferred = node
            .preferred_during_scheduling_ignored_during_execution
            .iter();
        let preferred = preferred.flatten().map(|term| &term.preference);
        required.chain(preferred).for_each(|term| asked.node(term));
    }
    if let Some(pods) = affinity.and_then(|affinity| affinity.pod_affinity.as_ref()) {
        asked.pods(
            pods.required_during_scheduling_ignored_during_execution
                .as_deref(),
            pods.preferred_during_scheduling_ignored_during_execution
                .as_deref(),
        );
    }
    if let Some(pods) = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()) {
        asked.pods(
            pods.required_during_scheduling_ignored_during_execution
                .as_deref(),
            pods.preferred_during_scheduling_ignored_during_execution
                .as_deref(),
        );
    }
    for constraint in spec.topology_spread_constraints.iter().flatten() {
        asked.terms += 1;
        asked.selector(constraint.label_selector.as_ref());
        asked.entries += constraint.match_label_keys.as_ref().map_or(0, Vec::len);
    }
    asked.entries += spec.tolerations.as_ref().map_or(0, Vec::len);
    asked.entries += spec.node_selector.as_ref().map_or(0, |labels| labels.len());
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    for container in containers {
        let requests = container
            .resources
            .as_ref()
            .and_then(|r| r.requests.as_ref());
        asked.entries += requests.map_or(0, |requests| requests.len());
        asked.entries += container.ports.as_ref().map_or(0, Vec::len);
    }
    asked
}

impl Asked {
    fn node(&mut self, term: &NodeSelectorTerm) {
        self.terms += 1;
        let expressions = term.match_expressions.iter().chain(&term.match_fields);
        for expression in expressions.flatten() {
            self.entries += 1 + expression.values.as_ref().map_or(0, Vec::len);
        }
    }

    fn pods(
        &mut self,
        required: Option<&[PodAffinityTerm]>,
        preferred: Option<&[WeightedPodAffinityTerm]>,
    ) {
        let required = required.into_iter().flatten();
        let preferred = preferred.into_iter().flatten();
        let preferred = preferred.map(|term| &term.pod_affinity_term);
        required.chain(preferred).for_each(|term| self.pod(term));
    }

    fn pod(&mut self, term: &PodAffinityTerm) {
        self.terms += 1;
        self.selector(term.label_selector.as_ref());
        self.selector(term.namespace_selector.as_ref());
        let lists = [
            &term.namespaces,
            &term.match_label_keys,
            &term.mismatch_label_keys,
        ];
        self.entries += lists
            .iter()
            .map(|list| list.as_ref().map_or(0, Vec::len))
            .sum::<usize>();
    }

    fn selector(&mut self, selector: Option<&LabelSelector>) {
        let Some(selector) = selector else {
            return;
        };
        self.entries += selector
            .match_labels
            .as_ref()
            .map_or(0, |labels| labels.len());
        for requirement in selector.match_expressions.iter().flatten() {
            self.entries += 1 + requirement.values.as_ref().map_or(0, Vec::len);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        let labels = json!({"app": "web"});
        serde_json::from_value(json!({"metadata": {"labels": labels}, "spec": spec})).unwrap()
    }

    fn many<T>(n: usize, of: impl Fn(usize) -> T) -> Vec<T> {
        (0..n).map(of).collect()
    }

    #[test]
    fn every_way_to_ask_for_much_is_counted() {
        let selector = |n: usize| json!({"matchLabels": {"app": format!("a{n}")}});
        let term = |n: usize| json!({"topologyKey": "zone", "labelSelector": selector(n)});
        let preferred = |n: usize| json!({"weight": 1, "podAffinityTerm": term(n)});
        let constraint = |n: usize| json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector(n)});
        let node = |n: usize| json!({"matchExpressions": [{"key": format!("k{n}"), "operator": "Exists"}]});
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let wanted = "preferredDuringSchedulingIgnoredDuringExecution";
        let ways: [&dyn Fn(usize) -> Value; 7] = [
            &|n| json!({"affinity": {"podAntiAffinity": {required: many(n, term)}}}),
            &|n| json!({"affinity": {"podAntiAffinity": {wanted: many(n, preferred)}}}),
            &|n| json!({"affinity": {"podAffinity": {required: many(n, term)}}}),
            &|n| json!({"affinity": {"podAffinity": {wanted: many(n, preferred)}}}),
            &|n| json!({"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": many(n, node)}}}}),
            &|n| json!({"affinity": {"nodeAffinity": {wanted: many(n, |n| json!({"weight": 1, "preference": node(n)}))}}}),
            &|n| json!({"topologySpreadConstraints": many(n, constraint)}),
        ];
        for (place, way) in ways.iter().enumerate() {
            assert!(is_simulated(&pod(way(TERMS_MAX))), "way {place}");
            assert!(!is_simulated(&pod(way(TERMS_MAX + 1))), "way {place}");
        }
        let entries: [&dyn Fn(usize) -> Value; 4] = [
            &|n| json!({"tolerations": many(n, |n| json!({"key": format!("k{n}")}))}),
            &|n| json!({"nodeSelector": many(n, |n| (format!("k{n}"), "v")).into_iter().collect::<std::collections::BTreeMap<_, _>>()}),
            &|n| json!({"affinity": {"podAffinity": {required: [{"topologyKey": "zone", "namespaces": many(n, |n| format!("n{n}"))}]}}}),
            &|n| {
                json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": many(n - 1, |n| format!("v{n}"))}]}}]})
            },
        ];
        for (place, way) in entries.iter().enumerate() {
            assert!(is_simulated(&pod(way(ENTRIES_MAX - 1))), "entries {place}");
            assert!(!is_simulated(&pod(way(ENTRIES_MAX))), "entries {place}");
        }
    }

    #[test]
    fn a_stored_pod_beyond_the_bounds_keeps_its_room_alone() {
        let containers = json!([{"name": "c", "resources": {"requests": {"cpu": "1"}}}]);
        let tolerations = many(ENTRIES_MAX, |n| json!({"key": format!("k{n}")}));
        let large =
            pod(json!({"containers": containers, "tolerations": tolerations, "nodeName": "n1"}));
        let seen = stored(&large).into_owned();
        assert_eq!(
            seen,
            pod(json!({"containers": containers, "nodeName": "n1"}))
        );
        let small = pod(json!({"containers": containers, "tolerations": [{"key": "k"}]}));
        assert_eq!(*stored(&small), small);
    }
}
