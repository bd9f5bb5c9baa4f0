//! Decides which pods a quota applies to.
//!
//! Source: `podMatchesScopeFunc` of `pkg/quota/v1/evaluator/core`, v1.36.

use k8s_openapi::api::core::v1::{
    Affinity, Pod, PodAffinityTerm, PodSpec, ResourceQuota, ScopedResourceSelectorRequirement,
    WeightedPodAffinityTerm,
};

use crate::admission::pod_amounts::Half;

/// True if a pod is in all scopes of a quota.
pub(super) fn has(quota: &ResourceQuota, pod: &Pod) -> bool {
    let Some(spec) = &quota.spec else { return true };
    let empty = PodSpec::default();
    let pod = pod.spec.as_ref().unwrap_or(&empty);
    let selected = spec.scope_selector.as_ref();
    let terms = selected.and_then(|selector| selector.match_expressions.as_deref());
    let mut scopes = spec.scopes.iter().flatten();
    scopes.all(|scope| is_in(pod, scope, "Exists", &[]))
        && terms.unwrap_or_default().iter().all(|term| {
            let ScopedResourceSelectorRequirement {
                operator,
                scope_name,
                values,
            } = term;
            let values = values.as_deref().unwrap_or_default();
            is_in(pod, scope_name, operator, values)
        })
}

fn is_in(pod: &PodSpec, scope: &str, operator: &str, values: &[String]) -> bool {
    match scope {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = pod.priority_class_name.as_deref();
            let class = class.filter(|class| !class.is_empty());
            let listed = class.is_some_and(|class| values.iter().any(|value| value == class));
            match operator {
                "Exists" => class.is_some(),
                "DoesNotExist" => class.is_none(),
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod.affinity.as_ref()),
        _ => false,
    }
}

fn is_terminating(pod: &PodSpec) -> bool {
    pod.active_deadline_seconds
        .is_some_and(|seconds| seconds >= 0)
}

/// True if no container has requests or limits of cpu or memory. Source: `ComputePodQOS`.
fn is_best_effort(pod: &PodSpec) -> bool {
    let init = pod.init_containers.iter().flatten();
    let of_containers = pod.containers.iter().chain(init).map(|c| &c.resources);
    let mut all = of_containers.chain([&pod.resources]);
    all.all(|resources| {
        [Half::Requests, Half::Limits].iter().all(|half| {
            let amounts = half.of(resources.as_ref());
            let is_nothing = |name| amounts.get(name).is_none_or(|amount| amount.signum() <= 0);
            is_nothing("cpu") && is_nothing("memory")
        })
    })
}

fn crosses_namespaces(affinity: Option<&Affinity>) -> bool {
    let Some(affinity) = affinity else {
        return false;
    };
    let towards = affinity.pod_affinity.as_ref();
    let away = affinity.pod_anti_affinity.as_ref();
    let required = [
        towards.map(|a| &a.required_during_scheduling_ignored_during_execution),
        away.map(|a| &a.required_during_scheduling_ignored_during_execution),
    ];
    let preferred = [
        towards.map(|a| &a.preferred_during_scheduling_ignored_during_execution),
        away.map(|a| &a.preferred_during_scheduling_ignored_during_execution),
    ];
    let required = required.into_iter().flatten().flatten().flatten();
    let preferred = preferred.into_iter().flatten().flatten().flatten();
    let term_of = |weighted: &'_ WeightedPodAffinityTerm| crosses(&weighted.pod_affinity_term);
    required.into_iter().any(crosses) || preferred.into_iter().any(term_of)
}

fn crosses(term: &PodAffinityTerm) -> bool {
    term.namespaces
        .as_ref()
        .is_some_and(|names| !names.is_empty())
        || term.namespace_selector.is_some()
}
