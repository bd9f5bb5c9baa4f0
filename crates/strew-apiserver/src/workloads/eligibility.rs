//! Whether a pod's node affinity and tolerations allow a node: the scheduler's own rules, applied to wire objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PodSpec, Taint};
use strew_cluster::NodeAffinity;
use strew_model::{Effect, Interner, Toleration, tolerates_all};

use super::name_of;
use strew_wire::facts;

/// The fields of a node that eligibility depends on.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// Its taints.
    pub taints: &'a [Taint],
}

impl<'a> NodeView<'a> {
    /// The view of a wire node.
    pub fn of(node: &'a Node) -> Self {
        let spec = node.spec.as_ref();
        Self {
            name: name_of(&node.metadata),
            labels: node.metadata.labels.as_ref(),
            taints: spec
                .and_then(|spec| spec.taints.as_deref())
                .unwrap_or_default(),
        }
    }
}

/// The requirements of a pod spec for nodes.
#[derive(Debug)]
pub struct Eligibility {
    names: Interner,
    affinity: NodeAffinity,
    tolerations: Box<[Toleration]>,
}

impl Eligibility {
    /// Of a pod spec.
    pub fn of(spec: &PodSpec) -> Self {
        let mut names = Interner::new();
        let affinity = facts::required_node_affinity(spec, &mut names);
        let tolerations = facts::tolerations(spec, &mut names);
        Self {
            names,
            affinity,
            tolerations,
        }
    }

    /// True if nodeSelector and required node affinity match.
    pub fn affinity_matches(&mut self, node: NodeView<'_>) -> bool {
        let name = self.names.intern(node.name);
        let labels = facts::labels(node.labels, &mut self.names);
        self.affinity.matches(name, &labels, &self.names)
    }

    /// True if all taints with effect NoSchedule or NoExecute are tolerated.
    pub fn tolerates(&mut self, node: NodeView<'_>) -> bool {
        tolerates_all(
            &self.tolerations,
            &facts::taints(node.taints, &mut self.names),
        )
    }

    /// True if all taints with effect NoExecute are tolerated.
    pub(super) fn tolerates_staying(&mut self, node: NodeView<'_>) -> bool {
        let taints = facts::taints(node.taints, &mut self.names);
        let mut expelling = taints.iter().filter(|t| t.effect == Effect::NoExecute);
        expelling.all(|taint| self.tolerations.iter().any(|t| t.tolerates(taint)))
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
        assert_eq!(
            Eligibility::of(&spec).affinity_matches(NodeView::of(&node())),
            expected
        );
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
            Eligibility::of(&spec).affinity_matches(NodeView::of(&node()))
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
                Eligibility::of(&spec).tolerates(NodeView::of(&node())),
                expected,
                "{tolerations}"
            );
        }
    }
}
