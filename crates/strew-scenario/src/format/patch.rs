//! Changes of an object as JSON: a JSON patch (RFC 6902) or a merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::diagnostics;
use super::problems::Problems;
use super::value::At;
use super::vocabulary::{OPERATION, OPERATIONS};

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// Steps, done in order; all or none.
    Json(Vec<Operation>),
    /// An object to merge; `null` takes a field away.
    Merge(Value),
}

/// A step of a JSON patch; places are pointers without their escapes.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Puts a value in, before an element of a list, or in place of a field.
    Add(Pointer, Value),
    /// Takes away what is there.
    Remove(Pointer),
    /// Puts a value in place of what is there.
    Replace(Pointer, Value),
    /// Takes away from the first place and adds at the second.
    Move(Pointer, Pointer),
    /// Adds at the second place what is at the first.
    Copy(Pointer, Pointer),
    /// Is refused unless this value is there.
    Test(Pointer, Value),
}

/// A place in a JSON value (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// A step that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// Which step, from 0.
    pub step: usize,
    /// Why: one sentence, lower case.
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

    fn text(&self) -> String {
        let escaped = self
            .0
            .iter()
            .map(|s| s.replace('~', "~0").replace('/', "~1"));
        escaped.map(|step| format!("/{step}")).collect()
    }

    fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.pointer(&self.text())
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
    // `value: null` is a value here.
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

impl Patch {
    /// Changes `value`; left as it was on an error.
    ///
    /// # Errors
    /// The first step that can't be done. A merge patch always can.
    pub fn apply(&self, value: &mut Value) -> Result<(), PatchError> {
        match self {
            Self::Merge(patch) => {
                merge(value, patch);
                Ok(())
            }
            Self::Json(steps) => {
                let mut changed = value.clone();
                for (i, step) in steps.iter().enumerate() {
                    let done = step.apply(&mut changed);
                    done.map_err(|message| PatchError { step: i, message })?;
                }
                *value = changed;
                Ok(())
            }
        }
    }
}

/// Merges a patch into a value. Source: RFC 7386, section 2.
pub fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(fields) = value.as_object_mut() else {
        return;
    };
    for (name, change) in patch {
        if change.is_null() {
            fields.shift_remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

impl Operation {
    fn apply(&self, root: &mut Value) -> Result<(), String> {
        let absent = |pointer: &Pointer| format!("there is nothing at {:?}", pointer.text());
        match self {
            Self::Add(path, value) => add(root, path, value.clone()),
            Self::Remove(path) => take(root, path).map(drop),
            Self::Replace(path, value) => {
                let found = root.pointer_mut(&path.text()).ok_or_else(|| absent(path))?;
                *found = value.clone();
                Ok(())
            }
            Self::Move(from, _) if from.0.is_empty() => Err("the whole can't be moved".to_owned()),
            Self::Move(from, path) => {
                if path.0.len() > from.0.len() && path.0.starts_with(&from.0) {
                    return Err("a value can't be moved into itself".to_owned());
                }
                let value = take(root, from)?;
                add(root, path, value)
            }
            Self::Copy(from, path) => {
                let value = from.find(root).ok_or_else(|| absent(from))?.clone();
                add(root, path, value)
            }
            Self::Test(path, value) => match path.find(root) {
                Some(found) if found == value => Ok(()),
                Some(_) => Err(format!("another value is at {:?}", path.text())),
                None => Err(absent(path)),
            },
        }
    }
}

/// The holder of what the pointer's last step names.
fn holder<'v, 'p>(
    root: &'v mut Value,
    pointer: &'p Pointer,
) -> Result<(&'v mut Value, &'p str), String> {
    let Some((last, way)) = pointer.0.split_last() else {
        return Err("the whole can't be taken away".to_owned());
    };
    let way = Pointer(way.to_vec()).text();
    let holder = root.pointer_mut(&way);
    let holder = holder.ok_or_else(|| format!("there is nothing at {way:?}"))?;
    Ok((holder, last))
}

fn take(root: &mut Value, pointer: &Pointer) -> Result<Value, String> {
    let absent = || format!("there is nothing at {:?}", pointer.text());
    let (holder, last) = holder(root, pointer)?;
    match holder {
        Value::Object(fields) => fields.shift_remove(last).ok_or_else(absent),
        Value::Array(elements) => match index(last) {
            Some(index) if index < elements.len() => Ok(elements.remove(index)),
            _ => Err(absent()),
        },
        _ => Err(absent()),
    }
}

fn add(root: &mut Value, pointer: &Pointer, value: Value) -> Result<(), String> {
    if pointer.0.is_empty() {
        *root = value;
        return Ok(());
    }
    let (holder, last) = holder(root, pointer)?;
    match holder {
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
            Ok(())
        }
        Value::Array(elements) => {
            let at = match last {
                "-" => Some(elements.len()),
                last => index(last),
            };
            match at.filter(|at| *at <= elements.len()) {
                Some(at) => {
                    elements.insert(at, value);
                    Ok(())
                }
                None => Err(format!(
                    "{:?} is beyond the end of its list",
                    pointer.text()
                )),
            }
        }
        _ => Err(format!("{:?} is in no object and no list", pointer.text())),
    }
}

/// An index of a list: no sign, no leading zeros.
fn index(text: &str) -> Option<usize> {
    let is_plain =
        text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    is_plain.then(|| text.parse().ok()).flatten()
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
            Err("there is nothing at \"/x\""),
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
