//! Whether a pod's node affinity and tolerations allow a node, on wire objects.
//!
//! Source: spec/scheduler.md §0; `k8s.io/component-helpers/scheduling/corev1`, v1.36.

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// nodeSelector and required node affinity.
pub(super) fn required_affinity_matches(spec: &PodSpec, node: &Node) -> bool {
    let label = |key: &str| {
        node.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(key))
    };
    let mut pairs = spec.node_selector.iter().flatten();
    if !pairs.all(|(key, value)| label(key) == Some(value)) {
        return false;
    }
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    required.is_none_or(|required| {
        let mut terms = required.node_selector_terms.iter();
        terms.any(|term| term_matches(term, node))
    })
}

/// No taint with effect NoSchedule or NoExecute is left untolerated.
pub(super) fn tolerates_forbidding_taints(spec: &PodSpec, node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut forbidding = taints
        .into_iter()
        .flatten()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    forbidding.all(|taint| {
        tolerations
            .iter()
            .any(|toleration| tolerates(toleration, taint))
    })
}

/// A term without expressions and fields matches nothing.
fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label = |key: &str| {
        let labels = node.metadata.labels.as_ref()?;
        labels.get(key).map(String::as_str)
    };
    let name = |_: &str| node.metadata.name.as_deref();
    expressions
        .iter()
        .all(|wanted| holds(wanted, label(&wanted.key)))
        && fields.iter().all(|wanted| holds(wanted, name(&wanted.key)))
}

fn holds(wanted: &NodeSelectorRequirement, actual: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = |actual: &str| values.iter().any(|value| value == actual);
    let numbers = || {
        Some((
            actual?.parse::<i64>().ok()?,
            values.first()?.parse::<i64>().ok()?,
        ))
    };
    match wanted.operator.as_str() {
        "In" => actual.is_some_and(listed),
        "NotIn" => !actual.is_some_and(listed),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => numbers().is_some_and(|(actual, bound)| actual > bound),
        "Lt" => numbers().is_some_and(|(actual, bound)| actual < bound),
        _ => false,
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    let fits = |given: &str, actual: &str| given.is_empty() || given == actual;
    fits(&effect, &taint.effect)
        && fits(&key, &taint.key)
        && match text(&toleration.operator).as_str() {
            "" | "Equal" => text(&toleration.value) == text(&taint.value),
            "Exists" => true,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node() -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n1", "labels": {"os": "linux", "cpus": "8"}},
            "spec": {"taints": [
                {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                {"key": "busy", "effect": "PreferNoSchedule"},
            ]},
        }))
        .unwrap()
    }

    fn spec(fields: Value) -> PodSpec {
        serde_json::from_value(fields).unwrap()
    }

    #[track_caller]
    fn check_terms(terms: Value, expected: bool) {
        let spec = spec(json!({"containers": [], "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        }}}));
        assert_eq!(required_affinity_matches(&spec, &node()), expected);
    }

    #[test]
    fn operators() {
        let cases = [
            ("os", "In", json!(["linux"]), true),
            ("os", "In", json!(["windows"]), false),
            ("zone", "In", json!(["a"]), false),
            ("os", "NotIn", json!(["linux"]), false),
            ("zone", "NotIn", json!(["a"]), true),
            ("os", "Exists", json!([]), true),
            ("zone", "DoesNotExist", json!([]), true),
            ("cpus", "Gt", json!(["7"]), true),
            ("cpus", "Gt", json!(["8"]), false),
            ("cpus", "Lt", json!(["9"]), true),
            ("os", "Lt", json!(["9"]), false),
            ("os", "Near", json!(["9"]), false),
        ];
        for (key, operator, values, expected) in cases {
            let expression = json!({"key": key, "operator": operator, "values": values});
            check_terms(json!([{"matchExpressions": [expression]}]), expected);
        }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_matches_nothing() {
        let named = |name: &str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
        check_terms(json!([named("n1")]), true);
        check_terms(json!([named("n2"), named("n1")]), true);
        check_terms(json!([{}]), false);
        check_terms(json!([]), false);
    }

    #[test]
    fn node_selector_is_asked_too() {
        let matches = |labels: Value| {
            let spec = spec(json!({"containers": [], "nodeSelector": labels}));
            required_affinity_matches(&spec, &node())
        };
        assert!(matches(json!({"os": "linux"})));
        assert!(!matches(json!({"os": "linux", "zone": "a"})));
    }

    #[test]
    fn only_forbidding_taints_need_a_toleration() {
        let cases = [
            (json!([]), false),
            (json!([{"operator": "Exists"}]), true),
            (json!([{"key": "gpu", "operator": "Exists"}]), true),
            (json!([{"key": "gpu", "value": "yes"}]), true),
            (json!([{"key": "gpu", "value": "no"}]), false),
            (
                json!([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]),
                false,
            ),
            (
                json!([{"key": "gpu", "operator": "Gt", "value": "yes"}]),
                false,
            ),
        ];
        for (tolerations, expected) in cases {
            let spec = spec(json!({"containers": [], "tolerations": tolerations}));
            assert_eq!(
                tolerates_forbidding_taints(&spec, &node()),
                expected,
                "{tolerations}"
            );
        }
    }
}
