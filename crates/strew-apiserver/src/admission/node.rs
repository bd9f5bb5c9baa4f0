//! TaintNodesByCondition: a new node is tainted until it is ready.
//!
//! Source: `plugin/pkg/admission/nodetaint`, v1.36; spec/controllers §7.2.

use k8s_openapi::api::core::v1::{Node, Taint};

/// The taint of a node that is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";

/// Adds the taint `node.kubernetes.io/not-ready:NoSchedule` to a new node. The node lifecycle controller removes it
/// when the node is ready.
pub fn taint_new(node: &mut Node) {
    let taints = node
        .spec
        .get_or_insert_default()
        .taints
        .get_or_insert_default();
    let has_it = |taint: &Taint| taint.key == NOT_READY && taint.effect == NO_SCHEDULE;
    if !taints.iter().any(has_it) {
        taints.push(Taint {
            key: NOT_READY.to_string(),
            effect: NO_SCHEDULE.to_string(),
            ..Taint::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_node_is_tainted_once() {
        let of_key = |key: &str, effect: &str| json!({"key": key, "effect": effect});
        let not_ready = of_key(NOT_READY, NO_SCHEDULE);
        let cases = [
            (json!({}), json!([not_ready])),
            (json!({"taints": [not_ready]}), json!([not_ready])),
            (
                json!({"taints": [of_key(NOT_READY, "NoExecute"), of_key("gpu", NO_SCHEDULE)]}),
                json!([
                    of_key(NOT_READY, "NoExecute"),
                    of_key("gpu", NO_SCHEDULE),
                    not_ready
                ]),
            ),
        ];
        for (spec, expected) in cases {
            let mut node: Node =
                serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": spec})).unwrap();
            taint_new(&mut node);
            let taints = serde_json::to_value(node.spec.unwrap().taints).unwrap();
            assert_eq!(taints, expected);
        }
    }
}
