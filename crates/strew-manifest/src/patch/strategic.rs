//! Strategic merge patch: lists are merged by the keys that the [`Schema`] knows, and directives say what JSON cannot.
//!
//! | directive | where | effect |
//! |---|---|---|
//! | `null` | value | deletes the field |
//! | `$patch: replace` | object | takes the place of the whole object |
//! | `$patch: replace` | element of a list | the other elements take the place of the whole list |
//! | `$patch: delete` | object | empties it |
//! | `$patch: delete` | element of a list | deletes the element with its key |
//! | `$retainKeys: [a, b]` | object | deletes the fields not named |
//! | `$setElementOrder/LIST: […]` | beside LIST | the order of the outcome |
//! | `$deleteFromPrimitiveList/LIST: […]` | beside LIST | deletes values |
//!
//! `$patch: merge` is refused, as upstream does, since merging is the default. New elements come *before* the existing
//! ones, unless `$setElementOrder` says otherwise.
//!
//! Source: `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`, v1.36 (`StrategicMergeMapPatch`). A deliberate
//! difference: nulls and directives inside added list elements are dropped like everywhere else.

use serde_json::{Map, Value};

use super::lists::{identity, normalize};
use super::schema::{ListRule, Schema};
use super::{PatchError, Problem};
use crate::field::FieldPath;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// Applies a strategic merge patch to an object.
///
/// # Errors
/// [`PatchError::Strategic`] with the place in the patch.
///
/// ```
/// use serde_json::json;
/// use strew_manifest::patch::{Schema, strategic};
/// let pod = json!({"spec": {"containers": [{"name": "web", "image": "a"}, {"name": "log", "image": "b"}]}});
/// let patch = json!({"spec": {"containers": [{"name": "log", "image": "c"}]}});
/// let patched = strategic::patch(Schema::Pod, &pod, &patch).unwrap();
/// assert_eq!(patched["spec"]["containers"][1]["image"], "c");
/// ```
pub fn patch(schema: Schema, document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let root = FieldPath::root();
    let (Value::Object(document), Value::Object(patch)) = (document, patch) else {
        return Err(problem(&root, Problem::NotAnObject));
    };
    merge_map(schema, document.clone(), patch, &root).map(Value::Object)
}

fn problem(path: &FieldPath, problem: Problem) -> PatchError {
    let path = path.clone();
    PatchError::Strategic { path, problem }
}

fn merge_map(
    schema: Schema,
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
    path: &FieldPath,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(without(patch, PATCH)),
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown(directive, path)),
        };
    }
    retain_keys(&mut original, patch, path)?;
    for (name, order) in patch {
        if let Some(list) = name.strip_prefix(SET_ELEMENT_ORDER) {
            ordered_list(schema, &mut original, patch, list, order, path)?;
        }
    }
    for (name, value) in patch {
        let path = path.child_owned(name.clone());
        if let Some(list) = name.strip_prefix(DELETE_FROM_LIST) {
            delete_values(&mut original, list, value, &path)?;
        } else if !is_directive(name) && !patch.contains_key(&format!("{SET_ELEMENT_ORDER}{name}"))
        {
            merge_field(schema, &mut original, name, value, &path)?;
        }
    }
    Ok(original)
}

fn without(map: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let mut map = map.clone();
    map.shift_remove(name);
    map
}

fn unknown(directive: &Value, path: &FieldPath) -> PatchError {
    let directive = directive.to_string();
    problem(path, Problem::UnknownDirective { directive })
}

fn is_directive(name: &str) -> bool {
    name == PATCH
        || name == RETAIN_KEYS
        || name.starts_with(SET_ELEMENT_ORDER)
        || name.starts_with(DELETE_FROM_LIST)
}

/// Deletes the fields that `$retainKeys` does not name; it must name the fields of the patch.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    path: &FieldPath,
) -> Result<(), PatchError> {
    let Some(kept) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let refused = || problem(path, Problem::RetainKeys);
    let kept = kept.as_array().ok_or_else(refused)?;
    let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
    let all_named = patch
        .iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name))
        .all(|(name, _)| is_kept(name));
    if !all_named {
        return Err(refused());
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

fn merge_field(
    schema: Schema,
    original: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    path: &FieldPath,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.shift_remove(name);
        return Ok(());
    }
    let field = schema.field(name);
    let merged = match (original.get_mut(name).map(Value::take), value) {
        (Some(Value::Object(old)), Value::Object(patch)) => {
            Value::Object(merge_map(field.schema, old, patch, path)?)
        }
        (Some(Value::Array(old)), Value::Array(patch)) => {
            Value::Array(merge_list(field.schema, field.list, old, patch, path)?)
        }
        _ => bare(value, path)?,
    };
    original.insert(name.to_string(), merged);
    Ok(())
}

/// A value without nulls, with its directives applied to nothing.
fn bare(value: &Value, path: &FieldPath) -> Result<Value, PatchError> {
    Ok(match value {
        Value::Object(map) => match map
            .get(PATCH)
            .map(|directive| (directive, directive.as_str()))
        {
            Some((_, Some("delete"))) => Value::Object(Map::new()),
            Some((directive, other)) if other != Some("replace") => {
                return Err(unknown(directive, path));
            }
            _ => {
                let mut kept = Map::new();
                for (name, value) in map {
                    if !value.is_null() && !is_directive(name) {
                        let path = path.child_owned(name.clone());
                        kept.insert(name.clone(), bare(value, &path)?);
                    }
                }
                Value::Object(kept)
            }
        },
        Value::Array(list) => {
            let mut kept = Vec::new();
            for (i, element) in list.iter().enumerate() {
                // An element with a directive refers to the list, which does not exist.
                if element.get(PATCH).is_none() {
                    kept.push(bare(element, &path.index(i))?);
                }
            }
            Value::Array(kept)
        }
        scalar => scalar.clone(),
    })
}

fn merge_list(
    schema: Schema,
    rule: ListRule,
    old: Vec<Value>,
    patch: &[Value],
    path: &FieldPath,
) -> Result<Vec<Value>, PatchError> {
    match rule {
        ListRule::Replace => Ok(patch.to_vec()),
        ListRule::Set => {
            let is_plain = |value: &Value| !value.is_object() && !value.is_array();
            if !old.iter().chain(patch).all(is_plain) {
                return Err(problem(path, Problem::MixedList));
            }
            let mut merged = Vec::new();
            for value in old.iter().chain(patch) {
                if !merged.contains(value) {
                    merged.push(value.clone());
                }
            }
            Ok(normalize(merged, patch, &old, None))
        }
        ListRule::ByKey(key) => merge_objects(schema, key, old, patch, path),
    }
}

fn merge_objects(
    schema: Schema,
    key: &'static str,
    mut old: Vec<Value>,
    patch: &[Value],
    path: &FieldPath,
) -> Result<Vec<Value>, PatchError> {
    let mut plain: Vec<(usize, &Map<String, Value>)> = Vec::new();
    let mut replaces = false;
    if !old.iter().all(Value::is_object) {
        return Err(problem(path, Problem::MixedList));
    }
    for (i, element) in patch.iter().enumerate() {
        let path = path.index(i);
        let Value::Object(map) = element else {
            return Err(problem(&path, Problem::MixedList));
        };
        match map.get(PATCH) {
            None => plain.push((i, map)),
            Some(directive) => match directive.as_str() {
                Some("replace") => replaces = true,
                Some("delete") => {
                    let doomed = key_of(map, key, &path)?;
                    old.retain(|element| element.get(key) != Some(doomed));
                }
                _ => return Err(unknown(directive, &path)),
            },
        }
    }
    if replaces {
        let elements = plain.into_iter();
        return Ok(elements
            .map(|(_, map)| Value::Object(map.clone()))
            .collect());
    }
    let server_order: Vec<Value> = old.clone();
    let mut patch_order = Vec::with_capacity(plain.len());
    for (i, map) in plain {
        let path = path.index(i);
        let wanted = key_of(map, key, &path)?;
        let found = old
            .iter_mut()
            .find(|element| element.get(key) == Some(wanted));
        match found {
            Some(element) => {
                if let Value::Object(original) = element.take() {
                    *element = Value::Object(merge_map(schema, original, map, &path)?);
                }
            }
            None => old.push(bare(&patch[i], &path)?),
        }
        patch_order.push(patch[i].clone());
    }
    Ok(normalize(old, &patch_order, &server_order, Some(key)))
}

fn key_of<'a>(
    map: &'a Map<String, Value>,
    key: &'static str,
    path: &FieldPath,
) -> Result<&'a Value, PatchError> {
    let value = map.get(key).filter(|value| !value.is_null());
    value.ok_or_else(|| problem(path, Problem::NoMergeKey { key }))
}

/// Merges a list with `$setElementOrder`, and puts it in that order.
fn ordered_list(
    schema: Schema,
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    order: &Value,
    path: &FieldPath,
) -> Result<(), PatchError> {
    let at = path.child_owned(format!("{SET_ELEMENT_ORDER}{name}"));
    let order = order
        .as_array()
        .ok_or_else(|| problem(&at, Problem::ElementOrderList))?;
    let path = path.child_owned(name.to_string());
    let field = schema.field(name);
    let key = match field.list {
        ListRule::ByKey(key) => Some(key),
        ListRule::Set | ListRule::Replace => None,
    };
    let given = match patch.get(name) {
        Some(Value::Null) => {
            original.shift_remove(name);
            return Ok(());
        }
        Some(Value::Array(list)) => Some(list),
        Some(_) => return Err(problem(&path, Problem::NotAList)),
        None => None,
    };
    if let Some(given) = given {
        check_order(given, order, key, &path)?;
    }
    let old = match original.get(name) {
        Some(Value::Array(old)) => Some(old.clone()),
        Some(_) => return Err(problem(&path, Problem::NotAList)),
        None => None,
    };
    let merged = match (&old, given) {
        (None, None) => return Ok(()),
        (Some(old), None) => old.clone(),
        (None, Some(given)) => match bare(&Value::Array(given.clone()), &path)? {
            Value::Array(list) => list,
            _ => Vec::new(),
        },
        (Some(old), Some(given)) => {
            merge_list(field.schema, field.list, old.clone(), given, &path)?
        }
    };
    let server_order = old.unwrap_or_default();
    let sorted = normalize(merged, order, &server_order, key);
    original.insert(name.to_string(), Value::Array(sorted));
    Ok(())
}

/// The elements of the patch must occur in the order list, in the same order.
fn check_order(
    given: &[Value],
    order: &[Value],
    key: Option<&'static str>,
    path: &FieldPath,
) -> Result<(), PatchError> {
    let mut rest = order.iter();
    for (i, element) in given.iter().enumerate() {
        if element.get(PATCH).is_some() {
            continue;
        }
        let path = path.index(i);
        let wanted = identity(element, key).ok_or_else(|| {
            problem(
                &path,
                Problem::NoMergeKey {
                    key: key.unwrap_or_default(),
                },
            )
        })?;
        if !rest.any(|other| identity(other, key) == Some(wanted)) {
            return Err(problem(&path, Problem::ElementOrder));
        }
    }
    Ok(())
}

fn delete_values(
    original: &mut Map<String, Value>,
    name: &str,
    doomed: &Value,
    path: &FieldPath,
) -> Result<(), PatchError> {
    let doomed = doomed
        .as_array()
        .ok_or_else(|| problem(path, Problem::PrimitiveList))?;
    match original.get_mut(name) {
        Some(Value::Array(list)) => list.retain(|value| !doomed.contains(value)),
        Some(_) => return Err(problem(path, Problem::NotAList)),
        None => {}
    }
    Ok(())
}
