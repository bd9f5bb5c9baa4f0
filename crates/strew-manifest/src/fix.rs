//! A change of an object that takes a finding away: as values, as a change of the text, and as a patch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::field::{FieldPath, PathSegment};

/// A change of the object of a finding that takes the finding away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fix {
    /// The change in words: `minDomains: 2`.
    pub change: String,
    /// The fields to set, in this order.
    pub edits: Vec<Edit>,
    /// What was found with the changed object; `None` if it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
}

/// A field of an object to set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edit {
    /// The field, as a JSON pointer (RFC 6901). Objects that are missing on the way are made.
    pub path: String,
    /// Its value.
    pub value: Value,
    /// The name of a field beside it that goes, since the API server allows one of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

impl Fix {
    /// A fix of one field that was not tried yet.
    pub fn set(path: &FieldPath, value: impl Into<Value>) -> Self {
        let value = value.into();
        let name = match path.steps().last() {
            Some(PathSegment::Name(name)) => name.to_string(),
            Some(PathSegment::Key(name)) => name.clone(),
            Some(PathSegment::Index(_)) | None => String::new(),
        };
        Self {
            change: format!("{name}: {}", flow(&value)),
            edits: vec![Edit {
                path: pointer(path),
                value,
                replaces: None,
            }],
            verified: None,
        }
    }

    /// The same fix, which takes the place of a field beside the first edit's.
    #[must_use]
    pub fn instead_of(mut self, name: &str) -> Self {
        if let Some(edit) = self.edits.first_mut() {
            edit.replaces = Some(name.to_owned());
        }
        self
    }

    /// Makes the change in an object. Returns `false`, with the object as it was or partly changed, if a field on the
    /// way is no object.
    pub fn apply(&self, object: &mut Value) -> bool {
        self.edits.iter().all(|edit| edit.apply(object))
    }
}

impl Edit {
    /// The steps to the field.
    pub fn steps(&self) -> Vec<PathSegment> {
        let tokens = self.path.split('/').skip(1);
        let tokens = tokens.map(|token| token.replace("~1", "/").replace("~0", "~"));
        tokens
            .map(|token| match token.parse() {
                Ok(index) => PathSegment::Index(index),
                Err(_) => PathSegment::Name(token.into()),
            })
            .collect()
    }

    /// True if another change sets this field, or one that is a part of the other, to something else.
    pub fn contradicts(&self, other: &Self) -> bool {
        let is_within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let meet = is_within(&self.path, &other.path) || is_within(&other.path, &self.path);
        meet && self != other
    }

    /// Makes the change in an object, as [`Fix::apply`].
    pub fn apply(&self, object: &mut Value) -> bool {
        let steps = self.steps();
        let Some((PathSegment::Name(name), above)) = steps.split_last() else {
            return false;
        };
        let mut parent = object;
        for step in above {
            let next = match (step, parent) {
                (PathSegment::Index(index), Value::Array(list)) => list.get_mut(*index),
                (PathSegment::Name(name), Value::Object(fields)) => {
                    let field = fields.entry(name.to_string()).or_insert(Value::Null);
                    if field.is_null() {
                        *field = Value::Object(Map::new());
                    }
                    Some(field)
                }
                _ => None,
            };
            match next {
                Some(next) => parent = next,
                None => return false,
            }
        }
        let Value::Object(fields) = parent else {
            return false;
        };
        if let Some(replaced) = &self.replaces {
            fields.shift_remove(replaced);
        }
        fields.insert(name.to_string(), self.value.clone());
        true
    }
}

/// The path as a JSON pointer (RFC 6901).
pub fn pointer(path: &FieldPath) -> String {
    let steps = path.steps().iter();
    let tokens = steps.map(|step| match step {
        PathSegment::Name(name) => escaped(name),
        PathSegment::Key(name) => escaped(name),
        PathSegment::Index(index) => index.to_string(),
    });
    tokens.map(|token| format!("/{token}")).collect()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The value in YAML's flow style: `{a: 1, b: [c]}`.
pub fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let each = fields.iter();
            let each = each.map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => {
            let each: Vec<String> = list.iter().map(flow).collect();
            format!("[{}]", each.join(", "))
        }
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A text as a plain scalar where that can be read as nothing else, otherwise in quotes.
fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_word);
    let reserved = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    match is_plain && !reserved.contains(&text.to_lowercase().as_str()) {
        true => text.to_owned(),
        false => Value::String(text.to_owned()).to_string(),
    }
}
