//! The JSON schema of the format, for `--schema`, made from the reader's vocabulary.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::vocabulary::{DOCUMENT, Form, Shape};

/// The schema of a Scenario document, in draft 2020-12.
pub fn schema() -> Value {
    let mut definitions = BTreeMap::new();
    let reference = reference(&DOCUMENT, &mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "strew scenario",
        "$ref": reference["$ref"],
        "$defs": definitions,
    })
}

fn reference(shape: &'static Shape, definitions: &mut BTreeMap<&'static str, Value>) -> Value {
    if !definitions.contains_key(shape.name) {
        // The name is inserted first, because a shape may contain itself.
        definitions.insert(shape.name, Value::Null);
        let object = object(shape, definitions);
        definitions.insert(shape.name, object);
    }
    json!({"$ref": format!("#/$defs/{}", shape.name)})
}

fn object(shape: &Shape, definitions: &mut BTreeMap<&'static str, Value>) -> Value {
    let mut properties = serde_json::Map::new();
    for field in shape.fields {
        let mut value = form(field.form, definitions);
        value["description"] = field.doc.into();
        properties.insert(field.name.to_owned(), value);
    }
    let required = shape.fields.iter().filter(|field| field.is_required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    // An absent field may be null, as everywhere in Kubernetes.
    json!({
        "description": shape.doc,
        "type": ["object", "null"],
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The pattern of a text that stands for a parameter's value.
const PARAMETER: &str = r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$";

fn form(form_: &'static Form, definitions: &mut BTreeMap<&'static str, Value>) -> Value {
    let or_parameter =
        |number: Value| json!({"anyOf": [number, {"type": "string", "pattern": PARAMETER}]});
    match form_ {
        // A text may be written as a number only where it is read as something else than text.
        Form::Object => json!({}),
        Form::Text => json!({"type": "string"}),
        Form::Boolean => json!({"type": "boolean"}),
        Form::Count => or_parameter(json!({"type": "integer", "minimum": 0})),
        Form::Number => json!({"type": "number"}),
        Form::Span => json!({
            "anyOf": [
                {"type": "string", "pattern": r"^(0|([0-9]*\.?[0-9]+(h|m|s|ms|us|µs|ns))+|.*\$\{.*)$"},
                {"const": 0},
            ],
            "examples": ["90s", "1h30m"],
        }),
        Form::Ratio => or_parameter(json!({"type": "number", "minimum": 0, "maximum": 1})),
        Form::Choice(names) => json!({"enum": names}),
        Form::List(element) => {
            json!({"type": "array", "items": form(element, definitions)})
        }
        Form::OneOrMany(element) => {
            let element = form(element, definitions);
            json!({"anyOf": [element, {"type": "array", "items": element}]})
        }
        Form::Map(element) => {
            json!({"type": "object", "additionalProperties": form(element, definitions)})
        }
        Form::Shape(shape) => reference(shape, definitions),
        Form::Either(forms) => {
            let forms: Vec<Value> = forms.iter().map(|f| form(f, definitions)).collect();
            json!({"anyOf": forms})
        }
    }
}
