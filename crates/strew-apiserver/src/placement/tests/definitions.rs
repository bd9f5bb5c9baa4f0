//! What the CustomResourceDefinitions fill in.

use serde_json::{Value, json};
use strew_manifest::ocm::{ManagedCluster, ManagedClusterSet, Placement};
use strew_wire::placement::crd;

use crate::admission::SetDefaults;

fn schema_of(kind: &str) -> Value {
    let mut all = crd::all().into_iter();
    let found = all.find(|definition| definition["spec"]["names"]["kind"] == kind);
    let mut definition = found.unwrap_or_else(|| panic!("there is no definition of {kind}"));
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
}

/// What the API server fills into an object by the defaults of a schema.
fn fill_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = field.get("default") {
                    map.entry(name).or_insert_with(|| default.clone());
                }
                if let Some(inner) = map.get_mut(name) {
                    fill_in(field, inner);
                }
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|inner| fill_in(&schema["items"], inner)),
        _ => {}
    }
}

/// What the API server fills in is what files are given.
fn expect_defaults<T>(kind: &str, object: Value)
where
    T: SetDefaults + serde::Serialize + for<'de> serde::Deserialize<'de>,
{
    let mut stored = object.clone();
    fill_in(&schema_of(kind), &mut stored);
    let mut read: T = serde_json::from_value(object).unwrap();
    read.set_defaults();
    let read = serde_json::to_value(&read).unwrap();
    assert_eq!(stored["spec"], read["spec"], "{kind}");
}

#[test]
fn the_schemas_fill_in_what_admission_does() {
    expect_defaults::<Placement>("Placement", json!({"metadata": {}, "spec": {}}));
    expect_defaults::<Placement>(
        "Placement",
        json!({"metadata": {}, "spec": {
            "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Steady"}}]},
            "spreadPolicy": {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label"}]},
            "tolerations": [{"key": "gpu"}],
            "decisionStrategy": {"groupStrategy": {}},
            "sortBy": "Score",
        }}),
    );
    let selector = json!({"clusterSelector": {"labelSelector": {}}});
    for spec in [Some(json!({})), Some(selector), None] {
        let mut set = json!({"metadata": {}});
        if let Some(spec) = spec {
            set["spec"] = spec;
        }
        expect_defaults::<ManagedClusterSet>("ManagedClusterSet", set);
    }
    expect_defaults::<ManagedCluster>(
        "ManagedCluster",
        json!({"metadata": {}, "spec": {"hubAcceptsClient": true}}),
    );
}
