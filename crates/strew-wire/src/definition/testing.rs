//! Helpers for tests of definitions.

use serde_json::{Map, Value, json};

/// Visits every object of a value, with its path.
fn walk(path: &str, value: &Value, see: &mut dyn FnMut(&str, &Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            see(path, map);
            for (key, value) in map {
                walk(&format!("{path}/{key}"), value, see);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| walk(path, value, see)),
        _ => {}
    }
}

/// Fails if a schema of the definition is not structural; returns the number of atomic lists.
pub(crate) fn expect_structural(definition: &Value) -> usize {
    let mut n_atomic = 0;
    for version in definition["spec"]["versions"].as_array().unwrap() {
        let schema = &version["schema"]["openAPIV3Schema"];
        walk("", schema, &mut |path, map| {
            expect_schema(path, map);
            n_atomic += usize::from(map.get("x-kubernetes-list-type") == Some(&json!("atomic")));
        });
    }
    n_atomic
}

fn expect_schema(path: &str, map: &Map<String, Value>) {
    let is_fields = path.ends_with("properties");
    let is_free = map.contains_key("x-kubernetes-preserve-unknown-fields")
        || map.contains_key("x-kubernetes-int-or-string");
    for word in ["$ref", "$defs", "$schema", "allOf", "oneOf", "title"] {
        assert!(is_fields || !map.contains_key(word), "{path}: {word}");
    }
    // A number or a string is the only choice that a structural schema can express.
    assert!(is_fields || is_free || !map.contains_key("anyOf"), "{path}");
    // A list with map semantics needs its key in every element.
    if map.get("x-kubernetes-list-type") == Some(&json!("map")) {
        let key = &map["x-kubernetes-list-map-keys"][0];
        let required = map["items"]["required"].as_array().unwrap();
        assert!(required.contains(key), "{path}");
    }
    let is_schema = map.contains_key("description") && !is_fields;
    assert!(
        !is_schema || is_free || map["type"].is_string(),
        "{path} has no type"
    );
}
