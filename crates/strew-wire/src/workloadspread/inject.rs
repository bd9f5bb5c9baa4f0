//! Puts a subset into a pod's JSON.
//!
//! Source: spec/workloadspread §4.6.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};
use strew_workloadspread::admission::Injection;
use strew_workloadspread::{COST_ANNOTATION, GATE, MARKER_ANNOTATION};

use super::marker;
use super::subset_contents::Form;
use strew_manifest::json::Json;
use strew_manifest::patch::{PatchError, Schema, strategic};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Why a subset cannot be put into a pod.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The pod is no JSON object.
    #[error("the pod is no object")]
    NotAnObject,
    /// Its patch cannot be merged.
    #[error("merge the patch of the subset")]
    Patch(#[from] PatchError),
    /// The result is no pod.
    #[error("read the patched pod")]
    Decode(#[source] serde_json::Error),
}

/// Puts a subset into a pod: patch, selectors, tolerations, marker and deletion cost.
///
/// # Errors
/// The patch cannot be merged, or its result is no pod.
pub fn inject(pod: &Value, form: &Form, injection: &Injection) -> Result<Value, InjectError> {
    let patch = form.patch.as_ref().filter(|_| injection.is_patched);
    let mut pod = with_subset(pod, form, patch)?;
    // Terms and tolerations have the right form; a patch may not.
    if patch.is_some() {
        Pod::of_json(pod.clone()).map_err(InjectError::Decode)?;
    }
    let metadata = object_at(root(&mut pod)?, "metadata");
    let annotations = object_at(metadata, "annotations");
    let marker = marker::write(&injection.marker);
    annotations.insert(MARKER_ANNOTATION.to_owned(), marker.into());
    if let Some(cost) = injection.cost {
        annotations.insert(COST_ANNOTATION.to_owned(), cost.to_string().into());
    }
    Ok(pod)
}

/// The pod with a scheduling gate, which keeps it Pending until a subset has room.
pub fn gated(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Ok(root) = root(&mut pod) {
        let gate = json!({ "name": GATE });
        list_at(object_at(root, "spec"), "schedulingGates").push(gate);
    }
    pod
}

/// A pod with a subset in it, without strew's annotations: its requirements for nodes.
///
/// # Errors
/// The patch cannot be merged, or its result is no pod.
pub fn candidate(pod: &Value, form: &Form) -> Result<Pod, InjectError> {
    let pod = with_subset(pod, form, form.patch.as_ref())?;
    Pod::of_json(pod).map_err(InjectError::Decode)
}

fn with_subset(pod: &Value, form: &Form, patch: Option<&Value>) -> Result<Value, InjectError> {
    let mut pod = pod.clone();
    let spec = object_at(root(&mut pod)?, "spec");
    append(spec, "tolerations", &form.tolerations);
    node_affinity(spec, form);
    if let Some(patch) = patch {
        let class = |pod: &Value| pod.pointer("/spec/priorityClassName").cloned();
        let patched = strategic::patch(Schema::Pod, &pod, patch)?;
        // The API server recomputes the QoS class.
        let is_other_class = class(&patched) != class(&pod);
        pod = patched;
        if is_other_class && let Some(Value::Object(spec)) = pod.get_mut("spec") {
            spec.shift_remove("priority");
        }
    }
    Ok(pod)
}

/// Steps 2 to 4: `nodeAffinity` is always created; preferred terms are appended; required ones are combined with AND.
fn node_affinity(spec: &mut Map<String, Value>, form: &Form) {
    let affinity = object_at(object_at(spec, "affinity"), "nodeAffinity");
    append(affinity, PREFERRED, &form.preferred);
    let Some(subset) = &form.required else {
        return;
    };
    let selector = object_at(affinity, REQUIRED);
    let terms = list_at(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        terms.push(subset.clone());
        return;
    }
    for term in terms.iter_mut().filter_map(Value::as_object_mut) {
        for name in ["matchExpressions", "matchFields"] {
            if let Some(Value::Array(more)) = subset.get(name) {
                append(term, name, more);
            }
        }
    }
}

fn root(pod: &mut Value) -> Result<&mut Map<String, Value>, InjectError> {
    pod.as_object_mut().ok_or(InjectError::NotAnObject)
}

/// The object at a field; created if it does not exist.
fn object_at<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("it was made an object"),
    }
}

fn list_at<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let value = map.entry(name).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("it was made a list"),
    }
}

fn append(map: &mut Map<String, Value>, name: &str, more: &[Value]) {
    if !more.is_empty() {
        list_at(map, name).extend_from_slice(more);
    }
}
