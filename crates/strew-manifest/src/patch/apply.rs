//! `kubectl apply`, client-side: removes what the user removed from the file, sets what the file contains, and keeps
//! fields that other clients set.
//!
//! The result equals that of the patch which kubectl would send: `CreateThreeWayMergePatch` of
//! `k8s.io/apimachinery/pkg/util/strategicpatch`, v1.36, for Kubernetes' own kinds, and `jsonmergepatch` for others
//! ([`Schema::Plain`]).

use serde_json::{Map, Value, json};

use super::lists::{identity, normalize};
use super::schema::{Field, ListRule, Schema};

/// The annotation with the last applied object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The last applied object; `None` if the annotation is missing or invalid.
pub fn last_applied(live: &Value) -> Option<Value> {
    let text = live
        .get("metadata")?
        .get("annotations")?
        .get(LAST_APPLIED)?;
    serde_json::from_str(text.as_str()?).ok()
}

/// The new object with the annotation that contains it, as kubectl sends it.
#[must_use]
pub fn annotated(new: &Value) -> Value {
    let mut bare = new.clone();
    let annotations = bare.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.shift_remove(LAST_APPLIED);
    }
    let text = format!("{bare}\n");
    super::merge_patch(
        &bare,
        &json!({"metadata": {"annotations": {LAST_APPLIED: text}}}),
    )
}

/// Applies the new object to the live one.
///
/// Deletes fields that the last applied object has and the new one does not have, sets the fields of the new one, and
/// keeps the rest. Without a last applied object nothing is deleted. Lists are merged as the schema says; elements of
/// such lists without their key are left out.
#[must_use]
pub fn apply(schema: Schema, last: Option<&Value>, live: &Value, new: &Value) -> Value {
    let field = Field {
        schema,
        list: ListRule::Replace,
        retain_keys: false,
    };
    value(field, last, Some(live), new)
}

fn value(field: Field, last: Option<&Value>, live: Option<&Value>, new: &Value) -> Value {
    match (live, new) {
        (Some(Value::Object(live)), Value::Object(new)) => {
            let last = last.and_then(Value::as_object);
            Value::Object(object(field, last, live, new))
        }
        (Some(Value::Array(live)), Value::Array(new)) => {
            let last = last.and_then(Value::as_array);
            Value::Array(list(field, last.map_or(&[], Vec::as_slice), live, new))
        }
        _ => without_nulls(new),
    }
}

fn object(
    field: Field,
    last: Option<&Map<String, Value>>,
    live: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let mut applied = live.clone();
    for (name, value_before) in last.into_iter().flatten() {
        // A null counts as absent.
        if !new.contains_key(name) && !value_before.is_null() {
            applied.shift_remove(name);
        }
    }
    for (name, wanted) in new {
        if wanted.is_null() {
            applied.shift_remove(name);
            continue;
        }
        let of_last = last.and_then(|last| last.get(name));
        let merged = value(field.schema.field(name), of_last, live.get(name), wanted);
        applied.insert(name.clone(), merged);
    }
    if field.retain_keys && applied != *live {
        applied.retain(|name, _| new.contains_key(name));
    }
    applied
}

fn list(field: Field, last: &[Value], live: &[Value], new: &[Value]) -> Vec<Value> {
    let key = match field.list {
        ListRule::Replace => return new.to_vec(),
        ListRule::Set => None,
        ListRule::ByKey(key) => Some(key),
    };
    let find = |list: &'_ [Value], wanted: &Value| {
        let is_it = |element: &&Value| identity(element, key) == Some(wanted);
        list.iter().find(is_it).cloned()
    };
    let element_field = Field {
        list: ListRule::Replace,
        ..field
    };
    let mut merged: Vec<Value> = Vec::new();
    for element in live {
        let Some(id) = identity(element, key) else {
            continue;
        };
        let is_taken_out = find(last, id).is_some() && find(new, id).is_none();
        if !is_taken_out && find(&merged, id).is_none() {
            merged.push(element.clone());
        }
    }
    for element in new {
        let Some(id) = identity(element, key) else {
            continue;
        };
        let before = find(last, id);
        let known = merged
            .iter_mut()
            .find(|other| identity(other, key) == Some(id));
        match known {
            Some(slot) => {
                let live = slot.take();
                *slot = value(element_field, before.as_ref(), Some(&live), element);
            }
            None => merged.push(without_nulls(element)),
        }
    }
    normalize(merged, new, live, key)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            let kept = kept.map(|(name, value)| (name.clone(), without_nulls(value)));
            Value::Object(kept.collect())
        }
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}
