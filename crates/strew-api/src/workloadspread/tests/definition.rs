//! The CustomResourceDefinition.

use super::*;
use crate::workloadspread::crd;

/// Every object of a value, with its path.
fn walk(path: &str, value: &Value, see: &mut dyn FnMut(&str, &serde_json::Map<String, Value>)) {
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

#[test]
fn the_definition_is_kruises() {
    let definition = crd::workload_spread("strew-system", "strew-webhook");
    let spec = &definition["spec"];
    assert_eq!(
        definition["metadata"]["name"],
        "workloadspreads.apps.kruise.io"
    );
    assert_eq!(spec["names"]["shortNames"], json!(["ws"]));
    assert_eq!(spec["scope"], "Namespaced");
    let versions = spec["versions"].as_array().unwrap();
    let told: Vec<Value> = versions
        .iter()
        .map(|v| json!([v["name"], v["served"], v["storage"], v["subresources"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["v1alpha1", true, false, {"status": {}}]),
            json!(["v1beta1", true, true, {"status": {}}]),
        ]
    );
    for version in versions {
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        let columns: Vec<&Value> = columns.iter().map(|c| &c["name"]).collect();
        assert_eq!(columns, ["WorkloadName", "WorkloadKind", "Adaptive", "Age"]);
        let schema = &version["schema"]["openAPIV3Schema"];
        let at = |path: &str| schema.pointer(path).unwrap_or(&Value::Null);
        assert_eq!(at("/required"), &Value::Null);
        let spec = "/properties/spec";
        assert_eq!(
            at(&format!("{spec}/required")),
            &json!(["subsets", "targetRef"])
        );
        let target = format!("{spec}/properties/targetRef/required");
        assert_eq!(at(&target), &json!(["apiVersion", "kind", "name"]));
        let subset = format!("{spec}/properties/subsets/items");
        assert_eq!(at(&format!("{subset}/required")), &json!(["name"]));
        let patch = at(&format!("{subset}/properties/patch"));
        assert_eq!(patch["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(patch["type"], Value::Null);
        let limit = at(&format!("{subset}/properties/maxReplicas"));
        assert_eq!(limit["x-kubernetes-int-or-string"], true);
        let strategy = at(&format!(
            "{spec}/properties/scheduleStrategy/properties/type"
        ));
        assert_eq!(strategy["enum"], json!(["Adaptive", "Fixed", ""]));
        for rows in [
            "subsetStatuses/items",
            "versionedSubsetStatuses/additionalProperties/items",
        ] {
            let row = at(&format!("/properties/status/properties/{rows}"));
            assert_eq!(
                row["required"],
                json!(["missingReplicas", "name", "replicas"])
            );
            assert_eq!(
                row["properties"]["creatingPods"]["additionalProperties"]["format"],
                "date-time"
            );
        }
    }
    // The names of the two versions differ in two fields.
    let names = |i: usize| {
        versions[i]
            .pointer("/schema/openAPIV3Schema/properties/spec/properties/subsets/items/properties")
            .unwrap()
    };
    let has = |i: usize, name: &str| names(i).get(name).is_some();
    for (old, new) in [
        ("requiredNodeSelectorTerm", "requiredNodeSelector"),
        ("preferredNodeSelectorTerms", "preferredNodeSelector"),
    ] {
        assert_eq!(
            (has(0, old), has(1, new), has(0, new), has(1, old)),
            (true, true, false, false)
        );
    }
}

#[test]
fn the_schema_is_structural() {
    let definition = crd::workload_spread("strew-system", "strew-webhook");
    for version in definition["spec"]["versions"].as_array().unwrap() {
        let mut n_atomic = 0;
        let schema = &version["schema"]["openAPIV3Schema"];
        walk("", schema, &mut |path, map| {
            for word in [
                "$ref", "$defs", "$schema", "anyOf", "allOf", "oneOf", "title", "default",
                "nullable",
            ] {
                assert!(
                    !map.contains_key(word) || path.ends_with("properties"),
                    "{path}: {word}"
                );
            }
            n_atomic += usize::from(map.get("x-kubernetes-list-type") == Some(&json!("atomic")));
            // A list that is a map needs its keys in every element.
            if map.get("x-kubernetes-list-type") == Some(&json!("map")) {
                assert_eq!(map["x-kubernetes-list-map-keys"], json!(["type"]));
                let required = map["items"]["required"].as_array().unwrap();
                assert!(required.contains(&json!("type")), "{path}");
            }
            let is_schema = map.contains_key("description") && !path.ends_with("properties");
            let is_free = map.contains_key("x-kubernetes-preserve-unknown-fields")
                || map.contains_key("x-kubernetes-int-or-string");
            assert!(
                !is_schema || is_free || map["type"].is_string(),
                "{path} has no type"
            );
        });
        assert!(n_atomic > 8, "{n_atomic}");
    }
}
