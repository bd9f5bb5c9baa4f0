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

    /// A body of another type, decoded; an empty body is the type's zero value. With unknown fields the body, too, to be
    /// refused.
    pub(super) fn of_type<T>(body: &Value) -> Result<(T, Option<Self>), Answer>
    where
        T: Json,
    {
        let value = match body {
            Value::Null => Value::Object(Map::new()),
            body => body.clone(),
        };
        let read = T::of_json(value).map_err(|error| {
            failure(
                400,
                "BadRequest",
                &format!("the object provided is unrecognized: {error}"),
            )
        })?;
        let mut unknown = Vec::new();
        find_lost(&mut Vec::new(), body, &read.to_json(), &mut unknown);
        // Types such as DeleteOptions do not have these fields.
        unknown.retain(|field| field != "apiVersion" && field != "kind");
        let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
        let refused = (!unknown.is_empty()).then(|| Self {
            value: body.clone(),
            kind: text("kind"),
            api_version: text("apiVersion"),
            unknown,
            mistyped: Vec::new(),
        });
        Ok((read, refused))
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

/// A step of a path.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// The paths of fields that were sent but not decoded. `at`: the path of the two values.
fn find_lost<'a>(at: &mut Vec<Step<'a>>, sent: &'a Value, kept: &Value, lost: &mut Vec<String>) {
    match (sent, kept) {
        (Value::Object(sent), kept) => {
            for (name, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
                at.push(Step::Field(name));
                match kept.get(name) {
                    Some(kept) => find_lost(at, value, kept, lost),
                    None => lost.push(path(at)),
                }
                at.pop();
            }
        }
        (Value::Array(sent), Value::Array(kept)) => {
            for (index, (sent, kept)) in sent.iter().zip(kept).enumerate() {
                at.push(Step::Item(index));
                find_lost(at, sent, kept, lost);
                at.pop();
            }
        }
        _ => {}
    }
}

fn path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        let dot = if path.is_empty() { "" } else { "." };
        path += &match step {
            Step::Field(name) => format!("{dot}{name}"),
            Step::Item(index) => format!("[{index}]"),
        };
    }
    path
}
