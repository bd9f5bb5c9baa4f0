//! The CustomResourceDefinition.

use super::*;
use crate::definition::testing::expect_structural;
use crate::workloadspread::crd;
use crate::workloadspread::registration::Reach;

#[test]
fn the_definition_is_kruises() {
    let definition = crd::workload_spread(&Reach::Service("strew-system".to_owned()));
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
    let definition = crd::workload_spread(&Reach::Service("strew-system".to_owned()));
    let n_atomic = expect_structural(&definition);
    assert!(n_atomic > 16, "{n_atomic}");
}

#[test]
fn the_webhook_that_converts_is_a_service_or_a_url() {
    let config = |reach: &Reach| {
        let definition = crd::workload_spread(reach);
        definition["spec"]["conversion"]["webhook"]["clientConfig"].clone()
    };
    assert_eq!(
        config(&Reach::Service("ours".to_owned())),
        json!({"service": {
            "namespace": "ours", "name": "strew-webhook", "path": "/convert/workloadspreads", "port": 443,
        }})
    );
    assert_eq!(
        config(&Reach::Url("https://127.0.0.1:9443".to_owned())),
        json!({"url": "https://127.0.0.1:9443/convert/workloadspreads"})
    );
}

#[cfg(feature = "schemas")]
#[test]
fn the_text_is_that_of_the_types() {
    let reaches = [
        Reach::Service("strew-system".to_owned()),
        Reach::Url("https://webhook.example".to_owned()),
    ];
    for reach in reaches {
        assert_eq!(
            crd::workload_spread(&reach),
            crd::made::workload_spread(&reach)
        );
    }
}
