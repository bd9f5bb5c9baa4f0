//! `strew place`: bounds on the number of topologies, and divided replicas.

use crate::place::{annotated, held, on, small};
use crate::{json, stderr, stdout, strew};

/// `examples/placement/groups.yaml`: five of six clusters in two of three regions, ten replicas by allocatable CPU.
#[test]
fn topologies_are_bounded_and_replicas_divided() {
    let file = "examples/placement/groups.yaml";
    let run = strew(&format!("place {file}")).assert().code(0);
    let text = stdout(&run);
    for told in ["Placement default/groups: 5 of 5 clusters", "REPLICAS"] {
        assert!(text.contains(told), "{text}");
    }
    let run = strew(&format!("place {file} -o json")).assert().code(0);
    let list = json(&run);
    let annotation = &list["items"][0]["metadata"]["annotations"]["strew.dev/replicas"];
    assert_eq!(
        annotation,
        r#"{"eu-1":2,"eu-2":1,"us-1":4,"us-2":2,"us-3":1}"#
    );
    let run = strew(&format!("place {file} --explain -o json"))
        .assert()
        .code(0);
    let result = &json(&run)["items"][0];
    assert_eq!(
        result["groups"],
        serde_json::json!([{"topologyKey": "region", "used": 2, "minGroups": 2, "maxGroups": 2}])
    );
    let parts = result["replicas"].as_array().unwrap();
    let us_1 = parts
        .iter()
        .find(|part| part["clusterName"] == "us-1")
        .unwrap();
    assert_eq!(
        (&us_1["weight"], &us_1["replicas"]),
        (&32_000.into(), &4.into())
    );
    let reasons = result["notSelected"].as_array().unwrap();
    assert_eq!(reasons[0]["reason"], "MaxGroups");
    // With a region lost, only one is left of the two asked for: asia has one cluster.
    let run = strew(&format!(
        "place {file} --what-if lose=region/eu,region/asia"
    ))
    .assert()
    .code(1);
    let text = stdout(&run);
    assert!(
        text.contains("SpreadTooFewGroups: region has 1 group, minGroups 2"),
        "{text}"
    );
}

#[test]
fn fewer_topologies_than_asked_for_are_a_no() {
    let spec = |when: &str| {
        format!(
            "{{numberOfClusters: 3, spreadPolicy: {{spreadConstraints: [{{topologyKey: zone, topologyKeyType: Label, minGroups: 3, maxSkew: 5, whenUnsatisfiable: {when}}}]}}}}"
        )
    };
    for (when, told) in [
        ("ScheduleAnyway", "3 of 3 clusters"),
        ("DoNotSchedule", "2 of 3 clusters"),
    ] {
        let run = on(&small(&spec(when)), "--explain").assert().code(1);
        let text = stdout(&run);
        assert!(text.contains(told), "{text}");
        assert!(text.contains("zone has 2 groups, minGroups 3"), "{text}");
    }
    let run = on(&small("{spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, minGroups: 2, maxGroups: 1}]}}"), "")
        .assert()
        .code(2);
    let told = stderr(&run);
    assert!(
        told.contains("spec.spreadPolicy.spreadConstraints[0].minGroups"),
        "{told}"
    );
    assert!(told.contains("<stdin>:4:"), "{told}");
}

/// Parts compared with the stored ones.
#[test]
fn replicas_that_change_are_told() {
    let annotations = "{strew.dev/replicas: '6'}";
    let stored = held(&["a1", "a2", "b1"]).replace(
        "metadata: {name: p-decision-1,",
        r#"metadata: {name: p-decision-1, annotations: {strew.dev/replicas: '{"a1": 4, "a2": 1, "b1": 1}'},"#,
    );
    let run = on(&(annotated(annotations, "{}") + &stored), "")
        .assert()
        .code(0);
    let text = stdout(&run);
    for line in [
        "~ a1  4 → 2 replicas",
        "~ b1  1 → 2 replicas",
        "0 gone, 0 new, 3 stay",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let run = on(&(annotated(annotations, "{}") + &stored), "-o json")
        .assert()
        .code(0);
    let change = &json(&run)["changes"][0]["replicas"][0];
    assert_eq!(
        change,
        &serde_json::json!({"clusterName": "a1", "before": 4, "after": 2})
    );
}
