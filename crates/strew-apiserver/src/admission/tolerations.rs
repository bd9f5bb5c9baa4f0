//! DefaultTolerationSeconds: pods tolerate a lost node for five minutes.
//!
//! Source: `plugin/pkg/admission/defaulttolerationseconds`, v1.36.

use k8s_openapi::api::core::v1::{PodSpec, Toleration};

use strew_wire::config::AdmissionOptions;

const NO_EXECUTE: &str = "NoExecute";

/// Adds the tolerations of `not-ready` and `unreachable`, each unless the pod has one for that taint: a toleration with
/// that key or none, and effect NoExecute or none.
pub fn add_defaults(spec: &mut PodSpec, options: &AdmissionOptions) {
    let defaults = [
        (
            "node.kubernetes.io/not-ready",
            options.not_ready_toleration_seconds,
        ),
        (
            "node.kubernetes.io/unreachable",
            options.unreachable_toleration_seconds,
        ),
    ];
    let given = spec.tolerations.clone().unwrap_or_default();
    for (key, seconds) in defaults {
        if !given.iter().any(|toleration| speaks_about(toleration, key)) {
            spec.tolerations.get_or_insert_default().push(Toleration {
                key: Some(key.to_string()),
                operator: Some("Exists".to_string()),
                effect: Some(NO_EXECUTE.to_string()),
                toleration_seconds: Some(seconds),
                value: None,
            });
        }
    }
}

fn speaks_about(toleration: &Toleration, key: &str) -> bool {
    let or_empty = |field: &Option<String>, wanted: &str| {
        let given = field.as_deref().unwrap_or_default();
        given.is_empty() || given == wanted
    };
    or_empty(&toleration.key, key) && or_empty(&toleration.effect, NO_EXECUTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(tolerations: serde_json::Value, expected: &[&str]) {
        let mut spec: PodSpec =
            serde_json::from_value(json!({"containers": [], "tolerations": tolerations})).unwrap();
        let n_given = spec.tolerations.as_ref().map_or(0, Vec::len);
        add_defaults(&mut spec, &AdmissionOptions::KUBERNETES_1_36);
        let added: Vec<String> = spec.tolerations.unwrap_or_default()[n_given..]
            .iter()
            .map(|t| {
                format!(
                    "{} {}",
                    t.key.as_deref().unwrap(),
                    t.toleration_seconds.unwrap()
                )
            })
            .collect();
        assert_eq!(added, expected);
    }

    #[test]
    fn are_added_unless_the_pod_has_its_own() {
        let not_ready = "node.kubernetes.io/not-ready 300";
        let unreachable = "node.kubernetes.io/unreachable 300";
        check(json!([]), &[not_ready, unreachable]);
        check(json!([{"operator": "Exists"}]), &[]);
        check(
            json!([{"operator": "Exists", "effect": "NoSchedule"}]),
            &[not_ready, unreachable],
        );
        check(
            json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
            &[unreachable],
        );
    }
}
