//! The CustomResourceDefinitions.

use serde_json::{Value, json};

use crate::definition::testing::expect_structural;
use crate::placement::crd;

fn definition_of(kind: &str) -> Value {
    let mut all = crd::all().into_iter();
    let found = all.find(|definition| definition["spec"]["names"]["kind"] == kind);
    found.unwrap_or_else(|| panic!("there is no definition of {kind}"))
}

fn schema_of(kind: &str) -> Value {
    let mut definition = definition_of(kind);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
}

#[test]
fn the_definitions_are_ocms() {
    let told: Vec<Value> = crd::all()
        .iter()
        .map(|definition| {
            let spec = &definition["spec"];
            let versions = spec["versions"].as_array().unwrap();
            assert_eq!(versions.len(), 1);
            let version = &versions[0];
            assert_eq!(version["subresources"], json!({"status": {}}));
            assert_eq!(
                (&version["served"], &version["storage"]),
                (&json!(true), &json!(true))
            );
            let columns = version["additionalPrinterColumns"].as_array();
            let columns: Vec<&Value> = columns.into_iter().flatten().map(|c| &c["name"]).collect();
            let names = &spec["names"];
            json!([
                definition["metadata"]["name"],
                version["name"],
                spec["scope"],
                names["shortNames"],
                columns,
            ])
        })
        .collect();
    let full = |plural: &str| format!("{plural}.cluster.open-cluster-management.io");
    let none: [&str; 0] = [];
    assert_eq!(
        told,
        [
            json!([
                full("placements"),
                "v1beta1",
                "Namespaced",
                null,
                ["Succeeded", "Reason", "SelectedClusters"]
            ]),
            json!([
                full("placementdecisions"),
                "v1beta1",
                "Namespaced",
                null,
                none
            ]),
            json!([
                full("managedclusters"),
                "v1",
                "Cluster",
                ["mcl", "mcls"],
                [
                    "Hub Accepted",
                    "Managed Cluster URLs",
                    "Joined",
                    "Available",
                    "Age"
                ]
            ]),
            json!([
                full("managedclustersets"),
                "v1beta2",
                "Cluster",
                ["mclset", "mclsets"],
                ["Empty", "Age"]
            ]),
            json!([
                full("managedclustersetbindings"),
                "v1beta2",
                "Namespaced",
                ["mclsetbinding", "mclsetbindings"],
                none
            ]),
            json!([
                full("addonplacementscores"),
                "v1alpha1",
                "Namespaced",
                null,
                none
            ]),
        ]
    );
}

#[test]
fn the_schemas_are_structural() {
    let n_atomic: usize = crd::all().iter().map(expect_structural).sum();
    assert!(n_atomic >= 6, "{n_atomic}");
}

#[test]
fn the_limits_of_a_placement_are_in_its_schema() {
    let schema = schema_of("Placement");
    let spec = |path: &str| {
        schema
            .pointer(&format!("/properties/spec/properties/{path}"))
            .cloned()
    };
    let term = "spreadPolicy/properties/spreadConstraints";
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(spec(&format!("{term}/maxItems")), Some(json!(8)));
    assert_eq!(
        spec(&format!("{term}/items/required")),
        Some(json!(["topologyKey", "topologyKeyType"]))
    );
    let weights = format!("{term}/items/properties/topologyWeights");
    assert_eq!(
        spec(&format!("{weights}/x-kubernetes-list-map-keys")),
        Some(json!(["value"]))
    );
    for bound in ["minGroups", "maxGroups"] {
        let bound = spec(&format!("{term}/items/properties/{bound}/minimum"));
        assert_eq!(bound, Some(json!(1)));
    }
    let score = "prioritizerPolicy/properties/configurations/items/properties/weight";
    assert_eq!(spec(&format!("{score}/minimum")), Some(json!(-10)));
    // A negative number of clusters is the controller's to refuse, as with OCM.
    assert_eq!(spec("numberOfClusters/minimum"), None);
}

#[cfg(feature = "schemas")]
#[test]
fn texts_are_those_of_the_types() {
    assert_eq!(crd::all(), crd::made::all());
}
