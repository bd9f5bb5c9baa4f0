//! Tells whether a pod is made from a template.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use serde_json::Value;
use strew_apiserver::object::Pod;
use strew_manifest::json::Json;
use strew_manifest::snapshot::DIGEST;

/// The annotation of a pod in a subset of a WorkloadSpread.
const IN_SUBSET: &str = "apps.kruise.io/matched-workloadspread";

/// Fields of a pod that its controller sets, whatever the template says.
const BY_CONTROLLER: [&str; 2] = ["hostname", "subdomain"];

/// Fields that nothing adds to a pod beside its template.
const AS_GIVEN: [&str; 3] = ["affinity", "nodeSelector", "topologySpreadConstraints"];

/// Lists to which admission, webhooks or the controller may add.
const MAY_GROW: [&str; 8] = [
    "containers",
    "env",
    "imagePullSecrets",
    "initContainers",
    // By matchLabelKeys.
    "matchExpressions",
    "tolerations",
    "volumeMounts",
    "volumes",
];

/// True if the pod has all that the template says.
pub(super) fn is_made_from(pod: &Pod, template: &PodTemplateSpec) -> bool {
    let meta = template.metadata.as_ref();
    let has_all = |given: Option<&BTreeMap<String, String>>, made: &BTreeMap<String, String>| {
        let mut given = given.into_iter().flatten();
        given.all(|(key, value)| made.get(key) == Some(value))
    };
    if !has_all(meta.and_then(|m| m.labels.as_ref()), &pod.meta.labels)
        || !has_all(
            meta.and_then(|m| m.annotations.as_ref()),
            &pod.meta.annotations,
        )
    {
        return false;
    }
    let json = |spec: Option<&PodSpec>| spec.map_or(Value::Null, Json::to_json);
    let mut given = json(template.spec.as_ref());
    let mut made = json(pod.to_wire().spec.as_ref());
    if let Some(given) = given.as_object_mut() {
        given.retain(|field, _| !BY_CONTROLLER.contains(&field.as_str()));
    }
    let controller = pod.meta.controller();
    let is_daemon = controller.is_some_and(|owner| *owner.kind == *"DaemonSet");
    if is_daemon || pod.meta.annotation(IN_SUBSET).is_some() {
        without_node_affinity(&mut given);
        without_node_affinity(&mut made);
    }
    AS_GIVEN
        .iter()
        .all(|field| given.get(field).is_some() || made.get(field).is_none())
        && is_within("spec", &given, &made)
}

/// A DaemonSet replaces the node affinity of its template by the pod's node; the subset of a WorkloadSpread adds its own.
fn without_node_affinity(spec: &mut Value) {
    let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) else {
        return;
    };
    affinity.shift_remove("nodeAffinity");
    if affinity.is_empty()
        && let Some(spec) = spec.as_object_mut()
    {
        spec.shift_remove("affinity");
    }
}

/// True if `made` has all that `given` has. Lists that may not grow are equally long.
fn is_within(field: &str, given: &Value, made: &Value) -> bool {
    let list = made.as_array().map_or(&[][..], Vec::as_slice);
    match given {
        Value::Null => true,
        Value::Object(given) => given.iter().all(|(field, given)| {
            let made = made.get(field).unwrap_or(&Value::Null);
            is_within(field, given, made)
        }),
        Value::Array(given) if MAY_GROW.contains(&field) => given.iter().all(|given| {
            // A snapshot's number for what it left out: of a pod that is more than of its template.
            given["name"] == DIGEST || list.iter().any(|made| is_within("", given, made))
        }),
        Value::Array(given) => {
            let mut pairs = given.iter().zip(list);
            given.len() == list.len() && pairs.all(|(given, made)| is_within("", given, made))
        }
        given => given == made,
    }
}
