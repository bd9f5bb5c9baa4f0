//! Reduces a recorded object to its intent: the fields that the simulated cluster does not write by itself.

use serde_json::{Map, Value};

/// Metadata that the API server writes.
const OF_THE_SERVER: [&str; 10] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    // No component of the simulation would remove a finalizer.
    "finalizers",
];

/// Annotations that controllers and kubectl maintain.
const KEPT_BY_OTHERS: [&str; 9] = [
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
    "control-plane.alpha.kubernetes.io/",
    "node.alpha.kubernetes.io/ttl",
    "volumes.kubernetes.io/controller-managed-attach-detach",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "batch.kubernetes.io/job-tracking",
];

/// The prefix of the taints of the node lifecycle controller.
const OF_THE_NODE_LIFECYCLE: &str = "node.kubernetes.io/";

/// Labels that the API server adds to the template of a Job, together with its selector.
const OF_JOBS: [&str; 4] = [
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];

/// The object without `null`s and bookkeeping.
pub(super) fn intent(kind: &str, whole: &Value) -> Value {
    let mut meant = whole.clone();
    if let Some(metadata) = meant.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !OF_THE_SERVER.contains(&name.as_str()));
        let is_kept = |name: &str| KEPT_BY_OTHERS.iter().any(|kept| name.starts_with(kept));
        retain(metadata, "annotations", |name| !is_kept(name));
    }
    if let Some(fields) = meant.as_object_mut() {
        let status = fields.shift_remove("status");
        if kind == "Node"
            && let Some(sizes) = status.and_then(sizes)
        {
            fields.insert("status".to_owned(), sizes);
        }
        if kind == "Namespace" {
            fields.shift_remove("spec");
        }
    }
    if let Some(spec) = meant.get_mut("spec").and_then(Value::as_object_mut) {
        match kind {
            "Pod" => {
                // The scheduler sets the node; admission resolves the class.
                spec.shift_remove("nodeName");
                spec.shift_remove("priority");
            }
            "Node" => {
                let taints = spec.get_mut("taints").and_then(Value::as_array_mut);
                if let Some(taints) = taints {
                    taints.retain(|taint| !is_of_lifecycle(taint));
                    if taints.is_empty() {
                        spec.shift_remove("taints");
                    }
                }
            }
            "Job" if spec.get("manualSelector") != Some(&Value::Bool(true)) => {
                spec.shift_remove("selector");
                let metadata = spec.get_mut("template").and_then(|t| t.get_mut("metadata"));
                if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
                    retain(metadata, "labels", |name| !OF_JOBS.contains(&name));
                }
            }
            _ => {}
        }
    }
    meant
}

/// A new object; a pod that was made for a node keeps the node.
pub(super) fn as_made(kind: &str, whole: &Value) -> Value {
    let mut made = intent(kind, whole);
    let node = &whole["spec"]["nodeName"];
    if kind == "Pod" && node.is_string() {
        made["spec"]["nodeName"] = node.clone();
    }
    made
}

/// The JSON merge patch that turns `before` into `after`: objects are merged, `null` deletes, other values replace.
pub(super) fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(was) if was == value => {}
            Some(was) => {
                patch.insert(name.clone(), difference(was, value));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

/// The size of a node, which its kubelet writes into the status.
fn sizes(mut status: Value) -> Option<Value> {
    let fields = status.as_object_mut()?;
    fields.retain(|name, _| name == "allocatable" || name == "capacity");
    (!fields.is_empty()).then_some(status)
}

fn is_of_lifecycle(taint: &Value) -> bool {
    let key = taint["key"].as_str().unwrap_or_default();
    key.starts_with(OF_THE_NODE_LIFECYCLE)
}

/// Keeps the entries of a map that `is_kept` selects; removes the map if it becomes empty.
fn retain(fields: &mut Map<String, Value>, name: &str, is_kept: impl Fn(&str) -> bool) {
    let Some(map) = fields.get_mut(name).and_then(Value::as_object_mut) else {
        return;
    };
    map.retain(|name, _| is_kept(name));
    if map.is_empty() {
        fields.shift_remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_cluster_writes_by_itself_is_no_intent() {
        let cases = [
            (
                "Deployment",
                json!({"metadata": {"name": "a", "uid": "u", "annotations": {"deployment.kubernetes.io/revision": "2"}}, "status": {"replicas": 1}}),
                json!({"metadata": {"name": "a"}}),
            ),
            (
                "Node",
                json!({"metadata": {}, "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}, "status": {"capacity": {"cpu": "1"}, "conditions": []}}),
                json!({"metadata": {}, "spec": {}, "status": {"capacity": {"cpu": "1"}}}),
            ),
            (
                "Node",
                json!({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}, {"key": "db"}]}, "status": {"conditions": []}}),
                json!({"spec": {"taints": [{"key": "db"}]}}),
            ),
            (
                "Pod",
                json!({"spec": {"nodeName": "n", "priority": 0, "containers": []}}),
                json!({"spec": {"containers": []}}),
            ),
            (
                "Job",
                json!({"spec": {"selector": {}, "template": {"metadata": {"labels": {"job-name": "j"}}}}}),
                json!({"spec": {"template": {"metadata": {}}}}),
            ),
            (
                "Namespace",
                json!({"spec": {"finalizers": ["kubernetes"]}}),
                json!({}),
            ),
        ];
        for (kind, whole, meant) in cases {
            assert_eq!(intent(kind, &whole), meant, "{kind} {whole}");
        }
    }

    #[test]
    fn a_difference_makes_the_one_of_the_other() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1, "b": {"c": 2}})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 3}})),
            (json!({"a": [1, 2]}), json!({"a": [2]})),
            (json!({"a": {"b": 1}}), json!({"a": "text"})),
            (json!({"a": 1}), json!({})),
        ];
        for (before, after) in cases {
            let patch = difference(&before, &after);
            let patched = strew_manifest::patch::merge_patch(&before, &patch);
            assert_eq!(patched, after, "{patch}");
        }
    }
}
