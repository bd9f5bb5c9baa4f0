//! The fields of each kind, from k8s-openapi's JSON schemas, reduced to what the check needs.

use std::collections::HashMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The shapes of a kind, each stored once, so that recursive types are finite.
#[derive(Debug)]
pub(super) struct Schema {
    shapes: Vec<Shape>,
    root: ShapeId,
    /// True if a list may not contain `null` instead of an object: custom resources are checked before they are
    /// decoded.
    refuses_null: bool,
}

/// Index of a shape in its [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeId(usize);

/// The form of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// Any value.
    Any,
    Boolean,
    String,
    /// A string in RFC 3339.
    Timestamp,
    Int32,
    Int64,
    Number,
    /// A number or a string, as `cpu: 1` and `cpu: 500m`.
    Quantity,
    IntOrString,
    List(ShapeId),
    Map(ShapeId),
    Object(Fields),
}

/// The fields of an object.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// In the order of their names.
    by_name: Vec<(String, ShapeId)>,
    /// Required times: k8s-openapi has no zero value for times.
    required_times: Vec<String>,
    is_resource: bool,
}

impl Fields {
    /// The field, with the schema's copy of its name.
    pub(super) fn get(&self, name: &str) -> Option<(&str, ShapeId)> {
        let at = self
            .by_name
            .binary_search_by(|(known, _)| known.as_str().cmp(name));
        let (known, id) = &self.by_name[at.ok()?];
        Some((known, *id))
    }

    /// True for a whole Kubernetes object, as in `volumeClaimTemplates`.
    pub(super) fn is_resource(&self) -> bool {
        self.is_resource
    }

    pub(super) fn required_times(&self) -> &[String] {
        &self.required_times
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.iter().map(|(name, _)| name.as_str())
    }
}

impl Schema {
    /// The schema of `T`.
    ///
    /// Cost: builds and parses the JSON schema once, a few milliseconds for a pod.
    pub(super) fn of<T: JsonSchema>() -> Self {
        let json = SchemaGenerator::default().into_root_schema_for::<T>();
        let json = json.as_value();
        let mut builder = Builder {
            definitions: &json["$defs"],
            shapes: Vec::new(),
            by_name: HashMap::new(),
        };
        let root = builder.shape(json);
        Self {
            shapes: builder.shapes,
            root,
            refuses_null: false,
        }
    }

    /// Adapts the schema to an API group: in lists of custom resources, `null` is no object.
    pub(super) fn in_group(self, group: &str) -> Self {
        Self {
            refuses_null: group == crate::ocm::GROUP,
            ..self
        }
    }

    pub(super) fn refuses_null(&self) -> bool {
        self.refuses_null
    }

    pub(super) fn root(&self) -> ShapeId {
        self.root
    }

    pub(super) fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0]
    }

    /// The path of a field `name` in the nearest object below the root that has one: where a misplaced field belongs.
    /// `None` if no object has it, or several equally near ones. A status is not written by hand, so it is ignored.
    pub(super) fn home_of(&self, name: &str) -> Option<String> {
        let mut seen = vec![false; self.shapes.len()];
        let mut level = vec![(self.root, String::new())];
        while !level.is_empty() {
            let mut homes = Vec::new();
            let mut below = Vec::new();
            for (id, path) in &level {
                match self.shape(*id) {
                    Shape::Object(fields) => {
                        if fields.get(name).is_some() {
                            homes.push(format!("{path}{name}"));
                        }
                        let children = fields.by_name.iter().filter(|(name, _)| name != "status");
                        below.extend(children.map(|(name, id)| (*id, format!("{path}{name}."))));
                    }
                    Shape::List(element) => {
                        let path = path.strip_suffix('.').unwrap_or(path);
                        below.push((*element, format!("{path}[].")));
                    }
                    _ => {}
                }
            }
            match homes.len() {
                0 => {}
                1 => return homes.pop(),
                _ => return None,
            }
            // Only now: a shape that occurs twice on one level makes the answer ambiguous.
            for (id, _) in &level {
                seen[id.0] = true;
            }
            below.retain(|(id, _)| !seen[id.0]);
            level = below;
        }
        None
    }
}

struct Builder<'a> {
    definitions: &'a Value,
    shapes: Vec<Shape>,
    by_name: HashMap<&'a str, ShapeId>,
}

const REFERENCE_PREFIX: &str = "#/$defs/";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

impl<'a> Builder<'a> {
    fn shape(&mut self, json: &'a Value) -> ShapeId {
        match reference(json) {
            Some(name) => self.named(name),
            None => {
                let id = self.reserve();
                self.shapes[id.0] = self.inline(json);
                id
            }
        }
    }

    fn named(&mut self, name: &'a str) -> ShapeId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = self.reserve();
        self.by_name.insert(name, id);
        self.shapes[id.0] = match name {
            QUANTITY => Shape::Quantity,
            _ => self.inline(&self.definitions[name]),
        };
        id
    }

    fn reserve(&mut self) -> ShapeId {
        self.shapes.push(Shape::Any);
        ShapeId(self.shapes.len() - 1)
    }

    fn inline(&mut self, json: &'a Value) -> Shape {
        if json["x-kubernetes-int-or-string"] == true {
            return Shape::IntOrString;
        }
        match (type_of(json), json["format"].as_str()) {
            (Some("boolean"), _) => Shape::Boolean,
            (Some("string"), Some("date-time")) => Shape::Timestamp,
            (Some("string"), _) => Shape::String,
            (Some("integer"), Some("int32")) => Shape::Int32,
            (Some("integer"), _) => Shape::Int64,
            (Some("number"), _) => Shape::Number,
            (Some("array"), _) => Shape::List(self.shape(&json["items"])),
            (Some("object"), _) => self.object(json),
            _ => Shape::Any,
        }
    }

    fn required_times(&self, json: &Value, fields: &[(String, ShapeId)]) -> Vec<String> {
        let required = json["required"].as_array().into_iter().flatten();
        let required: Vec<_> = required.filter_map(Value::as_str).collect();
        let times = fields.iter().filter(|(name, id)| {
            let is_time = matches!(self.shapes[id.0], Shape::Timestamp);
            is_time && required.contains(&name.as_str())
        });
        times.map(|(name, _)| name.clone()).collect()
    }

    fn object(&mut self, json: &'a Value) -> Shape {
        if let Some(properties) = json["properties"].as_object() {
            let fields = properties.iter();
            let mut fields: Vec<_> = fields
                .map(|(name, json)| (name.clone(), self.shape(json)))
                .collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            return Shape::Object(Fields {
                required_times: self.required_times(json, &fields),
                is_resource: ["apiVersion", "kind", "metadata"]
                    .iter()
                    .all(|name| properties.contains_key(*name)),
                by_name: fields,
            });
        }
        match &json["additionalProperties"] {
            values @ Value::Object(_) => Shape::Map(self.shape(values)),
            _ => Shape::Any,
        }
    }
}

/// The type of a value. If there are two, the second is `null`, which means absence.
fn type_of(json: &Value) -> Option<&str> {
    let only = json["type"].as_str();
    only.or_else(|| json["type"][0].as_str())
}

/// The definition that a schema refers to, directly, as the only member of `allOf`, or beside `null`.
fn reference(json: &Value) -> Option<&str> {
    let ways = [
        &json["$ref"],
        &json["allOf"][0]["$ref"],
        &json["anyOf"][0]["$ref"],
    ];
    let reference = ways.iter().find_map(|way| way.as_str())?;
    reference.strip_prefix(REFERENCE_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;

    #[test]
    fn knows_where_a_field_belongs() {
        let schema = Schema::of::<Deployment>();
        let cases = [
            (
                "topologySpreadConstraints",
                Some("spec.template.spec.topologySpreadConstraints"),
            ),
            (
                "maxSkew",
                Some("spec.template.spec.topologySpreadConstraints[].maxSkew"),
            ),
            ("replicas", Some("spec.replicas")),
            ("image", None),
            ("nonsense", None),
        ];
        for (name, home) in cases {
            assert_eq!(schema.home_of(name).as_deref(), home, "{name}");
        }
    }
}
