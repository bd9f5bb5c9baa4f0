//! All texts of an object with what its schema says of each: names, or words of the format.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::fields::KINDS;
use super::schema::{Shape, ShapeId};

/// What a text of an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text<'a> {
    /// The value of the field with this name, an element of its list, or a value of its map.
    Field(&'a str),
    /// A key of a map, as of labels.
    Key,
    /// A key of a map of quantities: a resource.
    Resource,
}

/// Calls `visit` for each text of `object` that it may replace, in the order of the fields.
///
/// Names of fields, times, quantities and numbers are not among them. Where the schema says nothing (an unknown kind, a
/// field that may be anything), a field that some other kind has is read as it is there, and the key of an object that
/// is no field of any kind is a [`Text::Key`].
pub fn visit_texts(object: &mut Value, visit: &mut dyn FnMut(Text<'_>, &mut String)) {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let root = KINDS.root(&format!("{} {}", text("apiVersion"), text("kind")));
    value("", root, object, visit);
}

fn value(
    name: &str,
    shape: Option<ShapeId>,
    at: &mut Value,
    visit: &mut dyn FnMut(Text<'_>, &mut String),
) {
    let known = shape.map(|id| &KINDS.shapes()[id.0]);
    match (at, known) {
        (
            Value::String(_),
            Some(Shape::Timestamp | Shape::Quantity | Shape::IntOrString | Shape::Number),
        ) => {}
        (Value::String(text), _) => visit(Text::Field(name), text),
        (Value::Array(items), known) => {
            let element = match known {
                Some(Shape::List(element)) => Some(*element),
                _ => None,
            };
            for item in items {
                value(name, element, item, visit);
            }
        }
        (Value::Object(map), known) => fields(name, known, map, visit),
        _ => {}
    }
}

fn fields(
    name: &str,
    known: Option<&Shape>,
    map: &mut Map<String, Value>,
    visit: &mut dyn FnMut(Text<'_>, &mut String),
) {
    let visited = std::mem::take(map).into_iter().map(|(mut key, mut at)| {
        match known {
            Some(Shape::Map(element)) => {
                let is_resource = matches!(KINDS.shapes()[element.0], Shape::Quantity);
                value(name, Some(*element), &mut at, visit);
                visit(
                    match is_resource {
                        true => Text::Resource,
                        false => Text::Key,
                    },
                    &mut key,
                );
            }
            Some(Shape::Object(fields)) if fields.get(&key).is_some() => {
                let shape = fields.get(&key).map(|(_, shape)| shape);
                value(&key, shape, &mut at, visit);
            }
            _ => {
                let elsewhere = Elsewhere::get();
                let shape = elsewhere.shape(&key, &at);
                value(&key, shape, &mut at, visit);
                if !elsewhere.names.contains(key.as_str()) {
                    visit(Text::Key, &mut key);
                }
            }
        }
        (key, at)
    });
    *map = visited.collect();
}

/// The fields of all kinds.
#[derive(Default)]
struct Elsewhere {
    names: HashSet<&'static str>,
    /// What a field with this name is for a value of this form; `None`: different things.
    shapes: HashMap<(&'static str, Form), Option<ShapeId>>,
}

/// What a value or a shape is in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    Object,
    List,
    Plain,
}

impl Elsewhere {
    fn get() -> &'static Self {
        static ALL: OnceLock<Elsewhere> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut all = Self::default();
            for shape in KINDS.shapes() {
                if let Shape::Object(object) = shape {
                    object
                        .by_name
                        .iter()
                        .for_each(|(name, id)| all.add(name, *id));
                }
            }
            all
        })
    }

    fn add(&mut self, name: &'static str, id: ShapeId) {
        self.names.insert(name);
        let form = match KINDS.shapes()[id.0] {
            Shape::Any => return,
            Shape::Map(_) | Shape::Object(_) => Form::Object,
            Shape::List(_) => Form::List,
            _ => Form::Plain,
        };
        let shape = self.shapes.entry((name, form)).or_insert(Some(id));
        if shape.is_some_and(|first| !is_same(first, id)) {
            *shape = None;
        }
    }

    fn shape(&self, name: &str, value: &Value) -> Option<ShapeId> {
        let form = match value {
            Value::Object(_) => Form::Object,
            Value::Array(_) => Form::List,
            _ => Form::Plain,
        };
        let name = self.names.get(name)?;
        *self.shapes.get(&(*name, form))?
    }
}

fn is_same(one: ShapeId, other: ShapeId) -> bool {
    let shapes = KINDS.shapes();
    match (&shapes[one.0], &shapes[other.0]) {
        (Shape::Map(one), Shape::Map(other)) | (Shape::List(one), Shape::List(other)) => {
            is_same(*one, *other)
        }
        (Shape::Object(_), Shape::Object(_)) => one == other,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(mut object: Value) -> Vec<String> {
        let mut found = Vec::new();
        visit_texts(&mut object, &mut |of, text| {
            found.push(format!("{of:?} {text}"));
        });
        found
    }

    #[test]
    fn names_are_told_from_numbers_times_and_fields() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"name": "b"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        });
        let wanted = [
            "Field(\"apiVersion\") v1",
            "Field(\"kind\") Pod",
            "Field(\"name\") a",
            "Field(\"labels\") b",
            "Key name",
            "Field(\"name\") c",
            "Resource cpu",
        ];
        assert_eq!(texts(pod), wanted);
    }

    #[test]
    fn where_anything_may_stand_fields_mean_what_they_mean_elsewhere() {
        let revision = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "data": {"spec": {"template": {
                "metadata": {"labels": {"name": "b"}},
                "spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]},
            }}, "of another": "c"},
        });
        let wanted = [
            "Field(\"apiVersion\") apps/v1",
            "Field(\"kind\") ControllerRevision",
            "Field(\"labels\") b",
            "Key name",
            "Resource cpu",
            "Field(\"of another\") c",
            "Key of another",
        ];
        assert_eq!(texts(revision), wanted);
    }
}
