//! Writes a [table of fields](super::fields) from the JSON schemas of types.

use std::collections::{BTreeMap, HashMap};

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Collects schemas for one table.
#[derive(Debug, Default)]
pub struct FieldWriter {
    generator: SchemaGenerator,
    roots: Vec<(String, Value)>,
}

impl FieldWriter {
    /// Adds the schema of `T` by the name that the program asks for.
    pub fn add<T: JsonSchema>(&mut self, name: &str) {
        let schema = self.generator.subschema_for::<T>().to_value();
        self.roots.push((name.to_owned(), schema));
    }

    /// The text of the table.
    pub fn finish(mut self) -> String {
        let definitions = Value::Object(self.generator.take_definitions(true));
        let mut objects = Objects {
            definitions: &definitions,
            short: short_names(&definitions),
            written: BTreeMap::new(),
        };
        let mut text = "# Made from the types by `cargo xtask gen`.\n".to_owned();
        for (name, schema) in &self.roots {
            text += &format!("= {name}: {}\n", objects.form(schema, name));
        }
        for (name, fields) in objects.written {
            text += &format!("{name}\n{fields}");
        }
        text
    }
}

const REFERENCE_PREFIX: &str = "#/$defs/";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The last part of each definition's name, or all of it where two would be equal.
fn short_names(definitions: &Value) -> HashMap<&str, &str> {
    let names = definitions.as_object().into_iter().flatten();
    let parts = names.map(|(name, _)| {
        let short = name.rsplit('.').next().unwrap_or(name);
        (name.as_str(), short)
    });
    let parts: Vec<(&str, &str)> = parts.collect();
    let n_of = |wanted: &str| parts.iter().filter(|(_, short)| *short == wanted).count();
    let chosen = parts.iter().map(|&(name, short)| match n_of(short) {
        1 => (name, short),
        _ => (name, name.strip_prefix("io.k8s.").unwrap_or(name)),
    });
    chosen.collect()
}

struct Objects<'a> {
    definitions: &'a Value,
    short: HashMap<&'a str, &'a str>,
    /// The lines of the fields of each object.
    written: BTreeMap<String, String>,
}

impl<'a> Objects<'a> {
    /// The form of a value; `place` names an object that has no name of its own.
    fn form(&mut self, json: &'a Value, place: &str) -> String {
        let Some(name) = reference(json) else {
            return self.inline(json, place);
        };
        if name == QUANTITY {
            return "quantity".to_owned();
        }
        let definition = &self.definitions[name];
        let short = self.short.get(name).map_or(name, |short| *short);
        self.inline(definition, short)
    }

    fn inline(&mut self, json: &'a Value, name: &str) -> String {
        if json["x-kubernetes-int-or-string"] == true {
            return "int-or-string".to_owned();
        }
        let word = match (type_of(json), json["format"].as_str()) {
            (Some("boolean"), _) => "boolean",
            (Some("string"), Some("date-time")) => "time",
            (Some("string"), _) => "string",
            (Some("integer"), Some("int32")) => "int32",
            (Some("integer"), _) => "int64",
            (Some("number"), _) => "number",
            (Some("array"), _) => return format!("[]{}", self.form(&json["items"], name)),
            (Some("object"), _) => return self.object(json, name),
            _ => "any",
        };
        word.to_owned()
    }

    fn object(&mut self, json: &'a Value, name: &str) -> String {
        let Some(properties) = json["properties"].as_object() else {
            return match &json["additionalProperties"] {
                values @ Value::Object(_) => format!("{{}}{}", self.form(values, name)),
                _ => "any".to_owned(),
            };
        };
        if !self.written.contains_key(name) {
            // Before its fields: one of them may contain it again.
            self.written.insert(name.to_owned(), String::new());
            let required = json["required"].as_array();
            let required =
                |field: &str| required.is_some_and(|all| all.iter().any(|one| one == field));
            let fields: BTreeMap<&str, &Value> =
                properties.iter().map(|(n, v)| (n.as_str(), v)).collect();
            let lines = fields.into_iter().map(|(field, json)| {
                let form = self.form(json, &format!("{name}.{field}"));
                let mark = if form == "time" && required(field) {
                    "!"
                } else {
                    ""
                };
                format!(" {field} {form}{mark}\n")
            });
            let lines: String = lines.collect();
            self.written.insert(name.to_owned(), lines);
        }
        name.to_owned()
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
