//! The JSON schema says what the reader says.

use serde_json::{Value, json};
use strew_manifest::read::{KubeObject, Sources, document_with_letters, read};
use strew_scenario::format::{schema, starter};

use crate::{ELASTIC, MIN_DOMAINS, ROLLOUT, loaded, with_spec};

/// The scenario in a stream, as JSON.
fn document(text: &str) -> Value {
    let mut sources = Sources::new();
    sources.add("in.yaml", text);
    let reading = read(&sources);
    let is_scenario = |object: &KubeObject| object.kind() == "Scenario";
    let mut objects = reading.objects.iter();
    let located = objects
        .find(|located| is_scenario(&located.object))
        .unwrap();
    document_with_letters(&sources, &located.origin)
        .unwrap()
        .value
}

/// Whether `value` is valid, by the words of JSON schema that ours is made of (patterns roughly).
fn is_valid(schema: &Value, value: &Value, root: &Value) -> bool {
    let Some(words) = schema.as_object() else {
        return schema == &Value::Bool(true);
    };
    words.iter().all(|(word, rule)| match word.as_str() {
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#").unwrap();
            is_valid(root.pointer(name).expect("a definition"), value, root)
        }
        "type" => {
            let types = rule
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec![rule.clone()]);
            types
                .iter()
                .any(|name| is_type(name.as_str().unwrap(), value))
        }
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
        "anyOf" => rule
            .as_array()
            .unwrap()
            .iter()
            .any(|s| is_valid(s, value, root)),
        "items" => value
            .as_array()
            .is_none_or(|v| v.iter().all(|v| is_valid(rule, v, root))),
        "properties" => rule
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, rule)| value.get(name).is_none_or(|v| is_valid(rule, v, root))),
        "required" => rule
            .as_array()
            .unwrap()
            .iter()
            .all(|name| !value.is_object() || value.get(name.as_str().unwrap()).is_some()),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            fields
                .iter()
                .all(|(name, value)| match &schema["properties"][name] {
                    Value::Null => is_valid(rule, value, root),
                    _ => true,
                })
        }),
        "description" | "title" | "$schema" | "$defs" | "examples" => true,
        // Of the two patterns as much as is needed here.
        "pattern" => value.as_str().is_none_or(|text| {
            let is_span = text.starts_with(|c: char| c.is_ascii_digit());
            text.contains("${") || (is_span && rule.as_str().unwrap().contains("ms|"))
        }),
        other => panic!("the test does not know {other}"),
    })
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("no type {other}"),
    }
}

#[test]
fn the_examples_and_the_starter_are_valid() {
    let schema = schema();
    for text in [MIN_DOMAINS, ROLLOUT, ELASTIC, starter()] {
        let document = document(text);
        assert!(is_valid(&schema, &document, &schema), "{document}");
    }
}

#[test]
fn what_the_schema_refuses_the_reader_refuses() {
    let schema = schema();
    for spec in [
        "{sedes: 3}",
        "{seeds: x}",
        "{timeline: [{at: 1s, scael: {deployment/web: 1}}]}",
        "{timeline: [{at: 1s, scale: {deployment/web: -1}}]}",
        "{timeline: [{at: 1s, crash: shceduler}]}",
        "{timeline: [{at: 1s, fault: {watch: {delay: 1s}}}]}",
        "{timeline: [{at: 1s, fault: {conflict: {rate: 2, for: 1s}}}]}",
        "{timeline: [{at: 1s, expect: [{spread: {of: deployment/web, counts: [1]}}]}]}",
        "{timeline: [{at: 1s, expect: {cel: x}}]}",
        "{always: [{pods: {phase: Ready}}]}",
        "{timing: {podStart: 3s}}",
        "{variants: [{set: {}}]}",
        "{autoscaler: {expander: cheapest}, nodeGroups: []}",
    ] {
        let text = with_spec(spec);
        assert!(
            !is_valid(&schema, &document(&text), &schema),
            "schema: {spec}"
        );
        assert!(loaded(&text).1.has_errors(), "reader: {spec}");
    }
}

/// A field of every object in the schema is known to the reader: an unknown one beside it is the only complaint of
/// that kind, and names that it has are none.
#[test]
fn every_field_of_the_schema_is_known_to_the_reader() {
    let schema = schema();
    let definitions = schema["$defs"].as_object().unwrap();
    let mut n_fields = 0;
    let steps = definitions["Step"]["properties"].as_object().unwrap();
    for name in steps.keys() {
        let text = with_spec(&json!({"timeline": [{"at": "1s", name.as_str(): 5}]}).to_string());
        let unknown = loaded(&text)
            .1
            .diagnostics
            .into_iter()
            .filter(|d| d.code.starts_with("unknown-verb"));
        assert_eq!(unknown.count(), 0, "{name}");
        n_fields += 1;
    }
    for (around, shape) in [
        ("spread", "Spread"),
        ("pods", "Pods"),
        ("events", "Events"),
        ("removed", "Removed"),
        ("placement", "PlacementClaim"),
        ("rolledOut", "Workloads"),
    ] {
        for name in definitions[shape]["properties"].as_object().unwrap().keys() {
            let claim = json!({around: {name.as_str(): 5}});
            let text = with_spec(&json!({"always": [claim]}).to_string());
            let unknown = loaded(&text)
                .1
                .diagnostics
                .into_iter()
                .filter(|d| d.code == "unknown-field");
            assert_eq!(unknown.count(), 0, "{around}.{name}");
            n_fields += 1;
        }
    }
    assert!(n_fields > 45, "{n_fields}");
}
