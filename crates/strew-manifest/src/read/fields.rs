//! Tables of fields: which fields a kind has, and the form of each.
//!
//! A table is a text that `cargo xtask gen` makes from the types and that is part of the program, so that reading a
//! file builds no JSON schema. Each line without indentation begins a schema or an object, each indented line is a field
//! of the object above it:
//!
//! ```text
//! = apps/v1 Deployment: api.apps.v1.Deployment
//! LabelSelector
//!  matchExpressions []LabelSelectorRequirement
//!  matchLabels {}string
//! ```
//!
//! `[]` is a list, `{}` a map, `time!` a time that the decoder requires; the other words are those of [`plain`], or the
//! name of an object.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::schema::{Fields, Shape, ShapeId};

/// All kinds that are read from files, and parts of them.
pub(super) static KINDS: FieldTable = FieldTable::new(include_str!("fields.txt"));

/// The fields of several schemas.
#[derive(Debug)]
pub struct FieldTable {
    text: &'static str,
    parsed: OnceLock<Parsed>,
}

#[derive(Debug)]
struct Parsed {
    shapes: Vec<Shape>,
    roots: HashMap<&'static str, ShapeId>,
}

impl FieldTable {
    /// The table that `text` has; it is parsed on first use, in less than a millisecond.
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            parsed: OnceLock::new(),
        }
    }

    pub(super) fn shapes(&self) -> &[Shape] {
        &self.parsed().shapes
    }

    pub(super) fn root(&self, name: &str) -> Option<ShapeId> {
        self.parsed().roots.get(name).copied()
    }

    fn parsed(&self) -> &Parsed {
        self.parsed.get_or_init(|| parse(self.text))
    }
}

/// The shape of a word that names no object.
fn plain(word: &str) -> Option<Shape> {
    Some(match word {
        "any" => Shape::Any,
        "boolean" => Shape::Boolean,
        "string" => Shape::String,
        "time" => Shape::Timestamp,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "number" => Shape::Number,
        "quantity" => Shape::Quantity,
        "int-or-string" => Shape::IntOrString,
        _ => return None,
    })
}

fn parse(text: &'static str) -> Parsed {
    let mut parser = Parser::default();
    let mut roots = HashMap::new();
    let mut object: Option<(ShapeId, Fields)> = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix(' ') {
            let Some(((_, fields), (name, form))) = object.as_mut().zip(field.split_once(' '))
            else {
                continue;
            };
            let form = match form.strip_suffix('!') {
                Some(time) => {
                    fields.required_times.push(name);
                    time
                }
                None => form,
            };
            let id = parser.form(form);
            fields.by_name.push((name, id));
            continue;
        }
        parser.close(object.take());
        match line
            .strip_prefix("= ")
            .and_then(|root| root.split_once(": "))
        {
            Some((name, form)) => {
                roots.insert(name, parser.form(form));
            }
            None => object = Some((parser.named(line), Fields::default())),
        }
    }
    parser.close(object);
    Parsed {
        shapes: parser.shapes,
        roots,
    }
}

#[derive(Default)]
struct Parser {
    shapes: Vec<Shape>,
    /// Objects, by name; one may be named before its own line.
    by_name: HashMap<&'static str, ShapeId>,
}

impl Parser {
    fn add(&mut self, shape: Shape) -> ShapeId {
        self.shapes.push(shape);
        ShapeId(self.shapes.len() - 1)
    }

    fn named(&mut self, name: &'static str) -> ShapeId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = self.add(Shape::Any);
        self.by_name.insert(name, id);
        id
    }

    fn form(&mut self, form: &'static str) -> ShapeId {
        if let Some(element) = form.strip_prefix("[]") {
            let element = self.form(element);
            return self.add(Shape::List(element));
        }
        if let Some(values) = form.strip_prefix("{}") {
            let values = self.form(values);
            return self.add(Shape::Map(values));
        }
        match plain(form) {
            Some(shape) => self.add(shape),
            None => self.named(form),
        }
    }

    fn close(&mut self, object: Option<(ShapeId, Fields)>) {
        if let Some((id, mut fields)) = object {
            fields.is_resource = ["apiVersion", "kind", "metadata"]
                .iter()
                .all(|name| fields.get(name).is_some());
            self.shapes[id.0] = Shape::Object(fields);
        }
    }
}
