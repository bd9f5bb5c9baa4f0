//! Decodes the body of a request into its type, and finds unknown fields.

use serde_json::{Map, Value};
use strew_manifest::json::Json;
use strew_manifest::read::{KubeObject, check_partial};
use strew_wire::request::{Answer, Verb};

use super::answer::{failure, invalid};
use super::resource::Served;

/// A body, or the result of a patch on a stored object.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) value: Value,
    kind: String,
    api_version: String,
    unknown: Vec<String>,
    /// Errors of values that cannot be decoded.
    mistyped: Vec<String>,
}

impl Body {
    /// A whole object of a resource; a missing type is that of the resource.
    pub(super) fn of_object(row: &Served, value: Value) -> Result<Self, Answer> {
        let mut body = Self::of_part(row, value);
        for (field, wanted) in [("apiVersion", row.api_version.as_str()), ("kind", row.kind)] {
            match body.value[field].as_str() {
                Some(given) if given != wanted => {
                    let message = format!(
                        "the {field} in the data ({given}) does not match the expected {field} ({wanted})"
                    );
                    return Err(failure(400, "BadRequest", &message));
                }
                Some(_) => {}
                None => body.value[field] = wanted.into(),
            }
        }
        Ok(body)
    }

    /// A part of an object of a resource.
    pub(super) fn of_part(row: &Served, mut value: Value) -> Self {
        if !value.is_object() {
            value = Value::Object(Map::new());
        }
        let (mut unknown, mut mistyped) = (Vec::new(), Vec::new());
        let mut typed = value.clone();
        typed["apiVersion"] = row.api_version.as_str().into();
        typed["kind"] = row.kind.into();
        for fault in check_partial(&typed) {
            match fault.is_unknown {
                true => unknown.push(fault.path.to_string()),
                false => mistyped.push(format!("{}: {}", fault.path, fault.diagnostic.message)),
            }
        }
        Self {
            value,
            kind: row.kind.to_owned(),
            api_version: row.api_version.clone(),
            unknown,
            mistyped,
        }
    }

    /// A body of another type, decoded; an empty body is the type's zero value.
    pub(super) fn of_type<T>(body: &Value) -> Result<(Self, T), Answer>
    where
        T: Json,
    {
        let value = match body {
            Value::Null => Value::Object(Map::new()),
            body => body.clone(),
        };
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let read = T::of_json(value.clone()).map_err(|error| {
            failure(
                400,
                "BadRequest",
                &format!("the object provided is unrecognized: {error}"),
            )
        })?;
        let mut unknown = Vec::new();
        let kept = read.to_json();
        find_lost("", &value, &kept, &mut unknown);
        // Types such as DeleteOptions do not have these fields.
        unknown.retain(|field| field != "apiVersion" && field != "kind");
        let body = Self {
            value,
            kind,
            api_version,
            unknown,
            mistyped: Vec::new(),
        };
        Ok((body, read))
    }

    /// Sets the namespace of a created object to that of its request.
    pub(super) fn put_into_namespace(&mut self, namespace: &str) -> Result<(), Answer> {
        let given = self.value["metadata"]["namespace"].as_str();
        match given {
            Some(given) if !given.is_empty() && given != namespace => Err(failure(
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            )),
            _ => {
                self.value["metadata"]["namespace"] = namespace.into();
                Ok(())
            }
        }
    }

    /// The unknown fields.
    pub(super) fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// The object.
    pub(super) fn decode(self) -> Result<KubeObject, Answer> {
        let Self {
            value,
            kind,
            api_version,
            ..
        } = self;
        KubeObject::of_json(value).map_err(|error| {
            let message =
                format!("{kind} in version {api_version:?} cannot be handled as a {kind}: {error}");
            failure(400, "BadRequest", &message)
        })
    }

    /// A real server's answer to an error in the body; `None` if there is none. An error in the result of a patch is an
    /// invalid object, in any other body a bad request.
    pub(super) fn refusal(&self, verb: Verb) -> Option<Answer> {
        let unknown: Vec<String> = self
            .unknown
            .iter()
            .map(|field| format!("unknown field {field:?}"))
            .collect();
        let text = match (self.mistyped.as_slice(), unknown.as_slice()) {
            ([], []) => return None,
            ([], unknown) => format!("strict decoding error: {}", unknown.join(", ")),
            (mistyped, _) => mistyped.join(", "),
        };
        Some(match verb {
            Verb::Patch | Verb::MergePatch | Verb::JsonPatch => {
                let message = format!(
                    " \"\" is invalid: patch: Invalid value: {}: {text}",
                    self.value
                );
                invalid("patch", &message)
            }
            _ => {
                let (kind, version) = (&self.kind, &self.api_version);
                let message =
                    format!("{kind} in version {version:?} cannot be handled as a {kind}: {text}");
                failure(400, "BadRequest", &message)
            }
        })
    }
}

/// The paths of fields that were sent but not decoded.
fn find_lost(path: &str, sent: &Value, kept: &Value, lost: &mut Vec<String>) {
    let at = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match (sent, kept) {
        (Value::Object(sent), kept) => {
            for (name, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
                match kept.get(name) {
                    Some(kept) => find_lost(&at(name), value, kept, lost),
                    None => lost.push(at(name)),
                }
            }
        }
        (Value::Array(sent), Value::Array(kept)) => {
            for (index, (sent, kept)) in sent.iter().zip(kept).enumerate() {
                find_lost(&format!("{path}[{index}]"), sent, kept, lost);
            }
        }
        _ => {}
    }
}
