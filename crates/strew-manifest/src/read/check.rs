//! Checks a value against the schema of its kind and finds all errors.
//!
//! It does not check for missing fields: Kubernetes' decoder and k8s-openapi's use the zero value, and the API server's
//! validation then reports required fields in its own words.

use serde_json::{Map, Value};

use super::diagnostic::Diagnostic;
use super::nearest::nearest;
use super::schema::{Fields, Schema, Shape, ShapeId};
use crate::field::FieldPath;

/// A field that cannot be read as its kind defines it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) path: FieldPath,
    pub(super) kind: FaultKind,
}

#[derive(Debug)]
pub(super) enum FaultKind {
    /// An object of this shape has no such field.
    Unknown { name: String, parent: ShapeId },
    /// A value of another type.
    Mistyped {
        expected: &'static str,
        found: String,
        help: Option<&'static str>,
    },
    /// A number too large for its type.
    OutOfRange { found: String, bits: u32 },
}

/// The code of a field that its kind does not have.
pub(super) const UNKNOWN_FIELD: &str = "unknown-field";

/// The most faults of one object. A dump may have hundreds of unknown fields, which are only warnings, and the check
/// must visit all of it, or the decoder would meet unchecked fields.
const FAULTS_MAX: usize = 100_000;

/// Go's zero time.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Checks `value`. Replaces `null` in a list or map, and a missing required time, by the zero value, as Kubernetes'
/// decoder does. Removes values of another type, so that decoding succeeds after faults too and the rest can be
/// checked.
pub(super) fn check(schema: Schema, value: &mut Value) -> Vec<Fault> {
    let mut checker = Checker {
        schema,
        path: Vec::new(),
        faults: Vec::new(),
    };
    checker.value(schema.root(), value);
    checker.faults
}

struct Checker<'a> {
    schema: Schema,
    /// The path of the current value; keys are copied only for a fault.
    path: Vec<PathStep<'a>>,
    faults: Vec<Fault>,
}

#[derive(Clone)]
enum PathStep<'a> {
    Name(&'a str),
    Key(String),
    Index(usize),
}

impl<'a> Checker<'a> {
    fn value(&mut self, id: ShapeId, value: &mut Value) {
        if self.faults.len() >= FAULTS_MAX {
            return;
        }
        let schema = self.schema;
        let is_readable = match (schema.shape(id), &mut *value) {
            // `null` means absence wherever a field may be.
            (Shape::Any, _) | (_, Value::Null) => true,
            (Shape::Object(fields), Value::Object(object)) => {
                self.object(id, fields, object);
                true
            }
            (Shape::Map(values), Value::Object(object)) => {
                self.map(*values, object);
                true
            }
            (Shape::List(element), Value::Array(elements)) => {
                self.list(*element, elements);
                true
            }
            (Shape::Boolean, Value::Bool(_))
            | (Shape::String | Shape::IntOrString | Shape::Quantity, Value::String(_))
            | (Shape::Number | Shape::Quantity, Value::Number(_)) => true,
            (Shape::Timestamp, Value::String(text)) if text.parse::<jiff::Timestamp>().is_ok() => {
                true
            }
            (Shape::Int32 | Shape::IntOrString, Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
                self.integer(fits, number, 32)
            }
            (Shape::Int64, Value::Number(number)) => self.integer(number.is_i64(), number, 64),
            (shape, value) => {
                self.mistyped(expectation(shape), value);
                false
            }
        };
        if !is_readable {
            *value = match schema.shape(id) {
                // Some fields of a time are required.
                Shape::Timestamp => ZERO_TIME.into(),
                _ => Value::Null,
            };
        }
    }

    fn object(
        &mut self,
        parent: ShapeId,
        fields: &'static Fields,
        object: &mut Map<String, Value>,
    ) {
        for name in fields.required_times() {
            if object.get(*name).is_none_or(Value::is_null) {
                object.insert((*name).to_owned(), ZERO_TIME.into());
            }
        }
        for (name, value) in &mut *object {
            let Some((known, id)) = fields.get(name) else {
                let path = self.path().child_owned(name.clone());
                let name = name.clone();
                let kind = FaultKind::Unknown { name, parent };
                self.faults.push(Fault { path, kind });
                continue;
            };
            self.path.push(PathStep::Name(known));
            self.value(id, value);
            self.path.pop();
        }
        if !self.path.is_empty() && fields.is_resource() {
            // Kubernetes checks only their types here; k8s-openapi requires the values.
            object.shift_remove("apiVersion");
            object.shift_remove("kind");
        }
    }

    fn map(&mut self, values: ShapeId, object: &mut Map<String, Value>) {
        for (key, value) in object {
            let is_plain = matches!(
                (self.schema.shape(values), &*value),
                (Shape::String | Shape::Quantity, Value::String(_))
            );
            if is_plain {
                // Nearly always labels or requests, which need no path.
                continue;
            }
            self.path.push(PathStep::Key(key.clone()));
            self.element(values, value);
            self.path.pop();
        }
    }

    fn list(&mut self, element: ShapeId, elements: &mut [Value]) {
        for (index, value) in elements.iter_mut().enumerate() {
            self.path.push(PathStep::Index(index));
            self.element(element, value);
            self.path.pop();
        }
    }

    fn element(&mut self, id: ShapeId, value: &mut Value) {
        if value.is_null() {
            let shape = self.schema.shape(id);
            if self.schema.refuses_null() && matches!(shape, Shape::Object(_)) {
                self.mistyped(expectation(shape), value);
            }
            *value = zero(shape);
        }
        self.value(id, value);
        if value.is_null() {
            // The value was removed.
            *value = zero(self.schema.shape(id));
            self.value(id, value);
        }
    }

    /// Returns true if the number fits its type; otherwise reports it.
    fn integer(&mut self, fits: bool, number: &serde_json::Number, bits: u32) -> bool {
        if fits {
            return true;
        }
        let is_whole = number.as_f64().is_some_and(|n| n.fract() == 0.0);
        let is_written_whole = number.is_i64() || number.is_u64();
        let is_huge = is_whole && number.as_f64().is_some_and(|n| n.abs() >= HUGE);
        if is_written_whole || is_huge {
            let found = number.to_string();
            self.fault(FaultKind::OutOfRange { found, bits });
        } else {
            self.mistyped("an integer", &Value::Number(number.clone()));
        }
        false
    }

    fn mistyped(&mut self, expected: &'static str, found: &Value) {
        let help = match (expected, found) {
            ("a string", Value::Bool(_)) => Some(
                "put it in quotes: without them YAML's yes, no, on, off, true and false are booleans",
            ),
            ("a string", Value::Number(_)) => Some("put it in quotes"),
            (_, Value::String(text)) if text.contains("${") || text.contains("{{") => Some(
                "it is a variable or a template that was not filled in: render the file first, for example with envsubst or helm template",
            ),
            ("an integer" | "a boolean", Value::String(_)) => Some("leave the quotes out"),
            _ => None,
        };
        let found = describe(found);
        self.fault(FaultKind::Mistyped {
            expected,
            found,
            help,
        });
    }

    fn fault(&mut self, kind: FaultKind) {
        let path = self.path();
        self.faults.push(Fault { path, kind });
    }

    fn path(&self) -> FieldPath {
        let steps = self.path.iter();
        steps.fold(FieldPath::root(), |path, step| match step {
            PathStep::Name(name) => path.child_owned((*name).to_owned()),
            PathStep::Key(key) => path.key(key.clone()),
            PathStep::Index(index) => path.index(*index),
        })
    }
}

/// 2^63: from here on a whole number is too large, however it was written.
const HUGE: f64 = 9_223_372_036_854_775_808.0;

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::String => Value::from(""),
        Shape::Quantity | Shape::IntOrString | Shape::Int32 | Shape::Int64 | Shape::Number => {
            Value::from(0)
        }
        Shape::Boolean => Value::from(false),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Map(_) | Shape::Object(_) => Value::Object(Map::new()),
        Shape::Timestamp => ZERO_TIME.into(),
        Shape::Any => Value::Null,
    }
}

fn expectation(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "anything",
        Shape::Boolean => "a boolean",
        Shape::String => "a string",
        Shape::Timestamp => "a time like \"2006-01-02T15:04:05Z\"",
        Shape::Int32 | Shape::Int64 => "an integer",
        Shape::Number => "a number",
        Shape::Quantity => "a quantity like 2, 500m or \"1Gi\"",
        Shape::IntOrString => "an integer or a string",
        Shape::List(_) => "a list",
        Shape::Map(_) | Shape::Object(_) => "an object",
    }
}

/// The most characters of a value in a message; the source line shows the rest.
const SHOWN_MAX: usize = 40;

/// `the string "3"`, `an object`.
pub fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", shortened(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The text in quotes, shortened if it is long.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

impl FaultKind {
    /// The field that an unknown one probably means.
    pub(super) fn meant(&self, schema: Schema) -> Option<&'static str> {
        match self {
            Self::Unknown { name, parent } => match schema.shape(*parent) {
                Shape::Object(fields) => nearest(name, fields.names()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The diagnostic, with what was probably meant. This is looked up here, since in a dump the same unknown field may
    /// occur ten thousand times and is reported once.
    pub(super) fn diagnostic(&self, schema: Schema) -> Diagnostic {
        match self {
            Self::Unknown { name, .. } => {
                let meant = self.meant(schema);
                let error = unknown_field(name, meant);
                match schema.home_of(name).filter(|_| meant.is_none()) {
                    Some(home) => error.with_help(format!("{} belongs at {home}", shortened(name))),
                    None => error,
                }
            }
            Self::Mistyped {
                expected,
                found,
                help,
            } => {
                let message = format!("expected {expected}, found {found}");
                let error = Diagnostic::error("wrong-type", message);
                match help {
                    Some(help) => error.with_help(*help),
                    None => error,
                }
            }
            Self::OutOfRange { found, bits } => {
                let message = format!("{found} is out of the range of a {bits}-bit integer");
                Diagnostic::error("out-of-range", message)
            }
        }
    }
}

/// A field that its object does not have, and the one that was probably meant.
pub(super) fn unknown_field(name: &str, meant: Option<&str>) -> Diagnostic {
    let name = shortened(name);
    let message = match meant {
        Some(meant) => format!("unknown field {name}, did you mean {meant:?}?"),
        None => format!("unknown field {name}"),
    };
    Diagnostic::error(UNKNOWN_FIELD, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kind::Kind;
    use super::*;

    /// Each field of each kind with values of all types.
    #[test]
    fn what_was_checked_can_be_decoded() {
        let samples = [
            json!(null),
            json!(true),
            json!(3),
            json!(-1),
            json!(1i64 << 40),
            json!(u64::MAX),
            json!(1.5),
            json!("x"),
            json!("2026-01-02T03:04:05Z"),
            json!("2026-01-02"),
            json!([]),
            json!([null]),
            json!(["x"]),
            json!([[1]]),
            json!({}),
            json!({"a": null}),
            json!({"a": "x"}),
            json!({"a": {"b": 1}}),
        ];
        let mut n_passed = 0;
        for kind in Kind::ALL {
            let schema = kind.schema();
            for path in all_paths(schema) {
                for sample in &samples {
                    let mut value = nested(&path, sample.clone());
                    // The reader itself sees to the object and its type.
                    let is_passed_over = match path.first() {
                        Some(step) => step == "apiVersion" || step == "kind",
                        None => !sample.is_object(),
                    };
                    if is_passed_over {
                        continue;
                    }
                    n_passed += usize::from(check(schema, &mut value).is_empty());
                    let decoded = kind.decode(value);
                    assert!(decoded.is_ok(), "{kind:?} {path:?} {sample}: {decoded:?}");
                }
            }
        }
        assert!(n_passed > 10_000, "{n_passed}");
    }

    /// The ways to all fields, `[]` for a list's element and `{}` for a map's, each shape once.
    fn all_paths(schema: Schema) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        let mut seen = Vec::new();
        let mut open = vec![(schema.root(), Vec::new())];
        while let Some((id, path)) = open.pop() {
            paths.push(path.clone());
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let below = |step: &str| [path.clone(), vec![step.to_owned()]].concat();
            match schema.shape(id) {
                Shape::Object(fields) => {
                    for name in fields.names() {
                        let (_, child) = fields.get(name).unwrap();
                        open.push((child, below(name)));
                    }
                }
                Shape::List(element) => open.push((*element, below("[]"))),
                Shape::Map(values) => open.push((*values, below("{}"))),
                _ => {}
            }
        }
        paths
    }

    fn nested(path: &[String], leaf: Value) -> Value {
        path.iter()
            .rev()
            .fold(leaf, |value, step| match step.as_str() {
                "[]" => json!([value]),
                "{}" => json!({"key": value}),
                name => json!({name: value}),
            })
    }
}
