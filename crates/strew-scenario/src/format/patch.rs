//! Patches of an object: a JSON patch (RFC 6902) or a merge patch (RFC 7386). Reading reports each mistake at its
//! place; [`strew_manifest::patch`] applies them.

use serde_json::{Value, json};
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::KindRow;
use strew_manifest::patch::{self, OperationFailure, merge_patch};
use strew_manifest::read::check_partial;

use super::diagnostics;
use super::problems::Problems;
use super::value::At;
use super::vocabulary::{OPERATION, OPERATIONS};

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// Operations, applied in order; all or none.
    Json(Vec<Operation>),
    /// An object to merge; `null` removes a field.
    Merge(Value),
}

/// An operation of a JSON patch; its pointers are unescaped.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Inserts a value before an element of a list, or sets a field.
    Add(Pointer, Value),
    /// Removes the value.
    Remove(Pointer),
    /// Replaces the value, which must exist.
    Replace(Pointer, Value),
    /// Removes the value at the first place and adds it at the second.
    Move(Pointer, Pointer),
    /// Adds the value of the first place at the second.
    Copy(Pointer, Pointer),
    /// Fails unless the value is equal to this one.
    Test(Pointer, Value),
}

/// A place in a JSON value (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// An operation that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// The index of the operation, from 0.
    pub step: usize,
    /// The reason: one sentence, lower case.
    pub message: String,
}

impl Pointer {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let steps = text.strip_prefix('/')?.split('/');
        let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
        Some(Self(steps.map(unescaped).collect()))
    }

    /// An object with this value at the place, and nothing else. A number is taken for a place in a list.
    fn around(&self, value: Value) -> Value {
        let steps = self.0.iter().rev();
        steps.fold(value, |value, step| {
            let is_index = step == "-" || step.bytes().all(|byte| byte.is_ascii_digit());
            match is_index && !step.is_empty() {
                true => Value::Array(vec![value]),
                false => Value::Object(std::iter::once((step.clone(), value)).collect()),
            }
        })
    }

    fn text(&self) -> String {
        let escaped = self
            .0
            .iter()
            .map(|s| s.replace('~', "~0").replace('/', "~1"));
        escaped.map(|step| format!("/{step}")).collect()
    }
}

/// Reads a patch: a list is a JSON patch, an object a merge patch.
pub(super) fn read(at: &At<'_>, problems: &mut Problems) -> Option<Patch> {
    match at.value {
        Value::Object(_) => Some(Patch::Merge(at.value.clone())),
        Value::Array(_) => {
            let steps = at.one_or_many(problems);
            let n_steps = steps.len();
            let steps = steps.iter().filter_map(|step| operation(step, problems));
            let steps: Vec<Operation> = steps.collect();
            (steps.len() == n_steps).then_some(Patch::Json(steps))
        }
        other => {
            problems.add(&at.path, diagnostics::no_patch(other));
            None
        }
    }
}

fn operation(at: &At<'_>, problems: &mut Problems) -> Option<Operation> {
    let fields = at.fields(&OPERATION, problems)?;
    let pointer = |name, problems: &mut Problems| {
        let at = fields.required(name, problems)?;
        let pointer = Pointer::parse(at.text(problems)?);
        if pointer.is_none() {
            problems.add(&at.path, diagnostics::no_pointer(at.value));
        }
        pointer
    };
    let path = pointer("path", problems);
    let op = fields.required("op", problems)?;
    let op = OPERATIONS[op.choice(OPERATIONS, problems)?];
    // `value: null` is a value, not a missing field.
    let value = |problems: &mut Problems| {
        let value = fields.value().get("value");
        if value.is_none() {
            problems.add(fields.path(), diagnostics::missing("value"));
        }
        value.cloned()
    };
    Some(match op {
        "add" => {
            let value = value(problems)?;
            Operation::Add(path?, value)
        }
        "replace" => {
            let value = value(problems)?;
            Operation::Replace(path?, value)
        }
        "test" => {
            let value = value(problems)?;
            Operation::Test(path?, value)
        }
        "move" => {
            let from = pointer("from", problems)?;
            Operation::Move(from, path?)
        }
        "copy" => {
            let from = pointer("from", problems)?;
            Operation::Copy(from, path?)
        }
        _ => Operation::Remove(path?),
    })
}

/// Reports the fields of a patch that the kind does not have: the API server drops them, and the patch changes nothing.
pub(super) fn check_fields(at: &At<'_>, of: &KindRow, problems: &mut Problems) {
    let faults_of = |mut whole: Value| {
        if let Some(fields) = whole.as_object_mut() {
            fields.insert("apiVersion".to_owned(), of.api_version.into());
            fields.insert("kind".to_owned(), of.kind.into());
        }
        check_partial(&whole)
    };
    let Value::Array(steps) = at.value else {
        return problems.add_faults(&at.path, faults_of(at.value.clone()));
    };
    for (number, step) in steps.iter().enumerate() {
        let Some(pointer) = step["path"].as_str().and_then(Pointer::parse) else {
            continue;
        };
        let step_path = at.path.index(number);
        let faults = faults_of(pointer.around(step["value"].clone()));
        for mut fault in faults.into_iter().filter(|fault| fault.is_unknown) {
            match fault.path.steps().get(pointer.0.len()..) {
                // The value that the operation puts there.
                Some(below @ [_, ..]) => {
                    fault.path = FieldPath::from(below);
                    problems.add_faults(&step_path.child("value"), vec![fault]);
                }
                _ => problems.add(&step_path.child("path"), fault.diagnostic),
            }
        }
    }
}

impl Patch {
    /// Applies the patch to `value`, which stays as it was on an error.
    ///
    /// # Errors
    /// The first operation that cannot be applied. A merge patch always can.
    pub fn apply(&self, value: &mut Value) -> Result<(), PatchError> {
        match self {
            Self::Merge(patch) => merge(value, patch),
            Self::Json(steps) => {
                let operations = steps.iter().map(Operation::to_json).collect();
                let patched = patch::json_patch(value, &Value::Array(operations));
                *value = patched.map_err(|error| failed(steps, &error))?;
            }
        }
        Ok(())
    }
}

/// Merges a patch into a value.
pub fn merge(value: &mut Value, patch: &Value) {
    *value = merge_patch(value, patch);
}

impl Operation {
    fn to_json(&self) -> Value {
        match self {
            Self::Add(path, value) => json!({"op": "add", "path": path.text(), "value": value}),
            Self::Remove(path) => json!({"op": "remove", "path": path.text()}),
            Self::Replace(path, value) => {
                json!({"op": "replace", "path": path.text(), "value": value})
            }
            Self::Move(from, path) => {
                json!({"op": "move", "from": from.text(), "path": path.text()})
            }
            Self::Copy(from, path) => {
                json!({"op": "copy", "from": from.text(), "path": path.text()})
            }
            Self::Test(path, value) => json!({"op": "test", "path": path.text(), "value": value}),
        }
    }

    fn path(&self) -> &Pointer {
        match self {
            Self::Add(path, _)
            | Self::Remove(path)
            | Self::Replace(path, _)
            | Self::Move(_, path)
            | Self::Copy(_, path)
            | Self::Test(path, _) => path,
        }
    }

    fn source(&self) -> &Pointer {
        match self {
            Self::Move(from, _) | Self::Copy(from, _) => from,
            other => other.path(),
        }
    }
}

/// The failed operation, in strew's words.
fn failed(steps: &[Operation], error: &patch::PatchError) -> PatchError {
    let patch::PatchError::Operation { index, failure, .. } = error else {
        // The type `Operation` holds valid operations only.
        return PatchError {
            step: 0,
            message: error.to_string(),
        };
    };
    let at = |pointer: fn(&Operation) -> &Pointer| {
        steps
            .get(*index)
            .map(|step| pointer(step).text())
            .unwrap_or_default()
    };
    let message = match failure {
        OperationFailure::TestFailed => format!("another value is at {:?}", at(Operation::path)),
        OperationFailure::NoSource => format!("there is nothing at {:?}", at(Operation::source)),
        OperationFailure::NoTarget => {
            // An operation that adds needs a parent, but no value at its place.
            let adds = matches!(
                steps.get(*index),
                Some(Operation::Add(..) | Operation::Move(..) | Operation::Copy(..))
            );
            let what = if adds { "no place" } else { "nothing" };
            format!("there is {what} at {:?}", at(Operation::path))
        }
        OperationFailure::IntoItself => "a value can't be moved into itself".to_owned(),
    };
    PatchError {
        step: *index,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(patch: Value, before: Value, after: Result<Value, &str>) {
        let mut problems = Problems::default();
        let patch = read(&At::root(&patch), &mut problems).expect("a patch");
        let mut value = before.clone();
        match patch.apply(&mut value) {
            Ok(()) => assert_eq!(Ok(value), after),
            Err(error) => {
                assert_eq!(Err(error.message.as_str()), after);
                assert_eq!(value, before, "all or nothing");
            }
        }
    }

    #[test]
    fn patches_change_what_they_say() {
        let object = json!({"a": [1, 2], "b": {"c/d": 1}});
        let step = |op: Value| json!([op]);
        check(
            step(json!({"op": "add", "path": "/a/1", "value": 9})),
            object.clone(),
            Ok(json!({"a": [1, 9, 2], "b": {"c/d": 1}})),
        );
        check(
            step(json!({"op": "add", "path": "/a/-", "value": 9})),
            object.clone(),
            Ok(json!({"a": [1, 2, 9], "b": {"c/d": 1}})),
        );
        check(
            step(json!({"op": "remove", "path": "/b/c~1d"})),
            object.clone(),
            Ok(json!({"a": [1, 2], "b": {}})),
        );
        check(
            step(json!({"op": "replace", "path": "/a/0", "value": null})),
            object.clone(),
            Ok(json!({"a": [null, 2], "b": {"c/d": 1}})),
        );
        check(
            step(json!({"op": "move", "from": "/a", "path": "/b/a"})),
            object.clone(),
            Ok(json!({"b": {"c/d": 1, "a": [1, 2]}})),
        );
        check(
            step(json!({"op": "copy", "from": "/a/1", "path": "/a/0"})),
            object.clone(),
            Ok(json!({"a": [2, 1, 2], "b": {"c/d": 1}})),
        );
        check(
            step(json!({"op": "test", "path": "/a/1", "value": 2})),
            object.clone(),
            Ok(object.clone()),
        );
        check(
            step(json!({"op": "test", "path": "/a/1", "value": 3})),
            object.clone(),
            Err("another value is at \"/a/1\""),
        );
        check(
            step(json!({"op": "remove", "path": "/x"})),
            object.clone(),
            Err("there is nothing at \"/x\""),
        );
        check(
            step(json!({"op": "add", "path": "/x/y", "value": 1})),
            object.clone(),
            Err("there is no place at \"/x/y\""),
        );
        check(
            step(json!({"op": "move", "from": "/b", "path": "/b/c"})),
            object.clone(),
            Err("a value can't be moved into itself"),
        );
        check(
            json!([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}]),
            object.clone(),
            Err("there is nothing at \"/a\""),
        );
        check(
            json!({"a": null, "b": {"x": 1}}),
            object,
            Ok(json!({"b": {"c/d": 1, "x": 1}})),
        );
    }
}
