//! Fields of gates that are off. They are dropped when a pod is created, and when a workload is created, or changed
//! while its stored template has no such field.
//!
//! Source: `DropDisabledPodFields` and `DropDisabledTemplateFields` of `pkg/api/pod`, v1.36, which the strategies of
//! `pkg/registry` call; spec/scheduler §1.3. A stored object keeps them. (KEP-3243's prose has the API server reject
//! them; v1.36.3 drops them.)

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec, TopologySpreadConstraint};
use strew_manifest::kruise;
use strew_manifest::read::KubeObject;

use strew_wire::config::AdmissionOptions;

/// Drops the fields of gates that are off, unless a constraint of the `old` spec has them.
pub fn drop_disabled(spec: &mut PodSpec, old: Option<&PodSpec>, options: &AdmissionOptions) {
    let is_used = |uses: fn(&TopologySpreadConstraint) -> bool| {
        let old = old.and_then(|old| old.topology_spread_constraints.as_ref());
        old.into_iter().flatten().any(uses)
    };
    let min_domains = options.spread_min_domains || is_used(|c| c.min_domains.is_some());
    let policies = options.spread_node_inclusion_policy
        || is_used(|c| c.node_affinity_policy.is_some() || c.node_taints_policy.is_some());
    let keys = options.spread_match_label_keys || is_used(|c| c.match_label_keys.is_some());
    for constraint in spec.topology_spread_constraints.iter_mut().flatten() {
        if !min_domains {
            constraint.min_domains = None;
        }
        if !policies {
            constraint.node_affinity_policy = None;
            constraint.node_taints_policy = None;
        }
        if !keys {
            constraint.match_label_keys = None;
        }
    }
}

/// As [`drop_disabled`], for the template of an object that makes pods.
pub fn drop_of_template(
    object: &mut KubeObject,
    old: Option<&mut KubeObject>,
    options: &AdmissionOptions,
) {
    let old = old.and_then(template).and_then(|old| old.spec.as_ref());
    if let Some(spec) = template(object).and_then(|template| template.spec.as_mut()) {
        drop_disabled(spec, old, options);
    }
}

/// The pod template of a built-in kind: in custom resources the API server knows no templates.
fn template(object: &mut KubeObject) -> Option<&mut PodTemplateSpec> {
    let is_custom = object.api_version().starts_with(kruise::GROUP);
    object.pod_template_mut().filter(|_| !is_custom)
}

#[cfg(test)]
mod tests {
    use crate::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, admit_pod};
    use serde_json::{Value, json};
    use strew_wire::config::AdmissionOptions;

    fn admitted(options: &AdmissionOptions, uid: Option<&str>) -> Result<Value, Vec<String>> {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "labels": {"app": "web", "rev": "1"}, "uid": uid},
            "spec": {"containers": [{"name": "web", "image": "web"}], "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "minDomains": 2, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["rev"],
            }]},
        }))
        .unwrap();
        let context = AdmissionContext {
            priority_classes: &PriorityClasses::new([]),
            runtime_classes: &RuntimeClasses::default(),
            options,
        };
        match admit_pod(pod, &context) {
            Ok(admitted) => {
                let spec = serde_json::to_value(admitted.object.spec).unwrap();
                Ok(spec["topologySpreadConstraints"][0].clone())
            }
            Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
        }
    }

    const ON: AdmissionOptions = AdmissionOptions::KUBERNETES_1_36;

    #[test]
    fn each_gate_drops_its_fields() {
        let merged = json!([{"key": "rev", "operator": "In", "values": ["1"]}]);
        let all = admitted(&ON, None).unwrap();
        assert_eq!(all["labelSelector"]["matchExpressions"], merged);
        let cases: [(AdmissionOptions, &[&str]); 3] = [
            (
                AdmissionOptions {
                    spread_min_domains: false,
                    ..ON
                },
                &["minDomains"],
            ),
            (
                AdmissionOptions {
                    spread_node_inclusion_policy: false,
                    ..ON
                },
                &["nodeAffinityPolicy", "nodeTaintsPolicy"],
            ),
            (
                AdmissionOptions {
                    spread_match_label_keys: false,
                    ..ON
                },
                &["matchLabelKeys"],
            ),
        ];
        for (options, dropped) in cases {
            let mut expected = all.clone();
            let fields = expected.as_object_mut().unwrap();
            for name in dropped {
                fields.shift_remove(*name);
            }
            if !options.spread_match_label_keys {
                // The merge is without effect alone.
                fields["labelSelector"] = json!({"matchLabels": {"app": "web"}});
            }
            assert_eq!(admitted(&options, None).unwrap(), expected, "{dropped:?}");
        }
    }

    #[test]
    fn what_is_stored_keeps_them() {
        let off = AdmissionOptions {
            spread_min_domains: false,
            spread_node_inclusion_policy: false,
            spread_match_label_keys: false,
            merge_spread_match_label_keys: false,
            ..ON
        };
        let stored = admitted(&off, Some("6f5e")).unwrap();
        assert_eq!(stored["minDomains"], 2);
        assert_eq!(stored["nodeTaintsPolicy"], "Honor");
        assert_eq!(stored["matchLabelKeys"], json!(["rev"]));
    }

    #[test]
    fn without_the_merge_the_legacy_rule_holds() {
        let off = AdmissionOptions {
            merge_spread_match_label_keys: false,
            ..ON
        };
        let stored = admitted(&off, None).unwrap();
        assert_eq!(
            stored["labelSelector"],
            json!({"matchLabels": {"app": "web"}})
        );
        assert_eq!(stored["matchLabelKeys"], json!(["rev"]));
    }
}
