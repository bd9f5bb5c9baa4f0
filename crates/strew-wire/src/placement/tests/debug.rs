//! The debug answer: upstream's fields as upstream has them, and ours.

use serde_json::{Value, json};
use strew_model::{Instant, Interner};
use strew_placement::machine::{Input, Limits, PlacementMachine};

use super::object;
use crate::placement::cel::CelSelectors;
use crate::placement::debug::DebugResult;
use crate::placement::facts::inputs;
use strew_manifest::read::KubeObject;

const NOW: Instant = Instant::from_secs(1_800_000_000);

const FLEET: [&str; 6] = [
    "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: global}\n\
     spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}",
    "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
     metadata: {name: global, namespace: shop}\nspec: {clusterSet: global}",
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: a1, labels: {zone: a}}",
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: a2, labels: {zone: a}}",
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: b1, labels: {zone: b}}\n\
     spec: {taints: [{key: storm, value: big, effect: NoSelect}]}",
    "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c1}",
];

/// The answer for a Placement with this spec over the fleet and what is `more`, as JSON.
#[track_caller]
fn answer(spec: &str, more: &[&str]) -> Value {
    let placement = super::placement(spec);
    let mut cel = CelSelectors::new();
    let mut names = Interner::new();
    let asked = KubeObject::from(placement.clone());
    let objects = FLEET.iter().chain(more).map(|text| object(text));
    let inputs: Vec<Input> = objects
        .chain([asked])
        .filter_map(|object| inputs(&object, &mut names, &mut cel))
        .collect();
    let limits = Limits::production();
    let (namespace, name) = (names.intern("shop"), names.intern("web"));
    let mut machine = PlacementMachine::new(names, limits, NOW);
    inputs
        .into_iter()
        .for_each(|input| machine.handle(NOW, input));
    let explained = machine.explain(namespace, name, &cel);
    let explained = explained.expect("it is there");
    let result = DebugResult::of(&placement, &explained, &machine.hub().names);
    let written = serde_json::to_value(&result).expect("it is JSON");
    let read: DebugResult = serde_json::from_value(written.clone()).expect("it is an answer");
    assert_eq!(read, result, "what is written is read");
    written
}

/// The parts of an answer that have these names.
fn parts(answer: &Value, names: &[&str]) -> Value {
    let part = |&name: &&str| answer.get(name).map(|v| (name.to_owned(), v.clone()));
    Value::Object(names.iter().filter_map(part).collect())
}

const UPSTREAM: [&str; 4] = [
    "filteredPipelineResults",
    "prioritizeResults",
    "aggregatedScores",
    "error",
];

#[test]
fn without_spread_constraints_it_is_upstreams_answer_and_what_became_of_each_candidate() {
    let spec = "{numberOfClusters: 1, predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: \
                [{key: zone, operator: Exists}]}}}], prioritizerPolicy: {mode: Exact, configurations: \
                [{scoreCoordinate: {type: BuiltIn, builtIn: Balance}, weight: 3}]}}";
    let answer = answer(spec, &[]);
    assert_eq!(
        parts(&answer, &UPSTREAM),
        json!({
            "filteredPipelineResults": [
                {"name": "Predicate", "filteredClusters": ["a1", "a2", "b1"]},
                {"name": "Predicate,TaintToleration", "filteredClusters": ["a1", "a2"]},
            ],
            "prioritizeResults": [{"name": "Balance", "weight": 3, "scores": {"a1": 100, "a2": 100}}],
            "aggregatedScores": [{"clusterName": "a1", "score": 300}, {"clusterName": "a2", "score": 300}],
        })
    );
    let ours = [
        "clusterSets",
        "candidates",
        "runs",
        "selectorResults",
        "selectedClusters",
        "notSelected",
        "topologies",
    ];
    assert_eq!(
        parts(&answer, &ours),
        json!({
            "clusterSets": ["global"],
            "candidates": 4,
            "runs": 1,
            "selectedClusters": ["a1"],
            "notSelected": [
                {"reason": "NoPredicate", "message": "no predicate matches", "count": 1, "clusters": ["c1"]},
                {"reason": "Taint", "message": "taint storm=big:NoSelect is not tolerated", "count": 1, "clusters": ["b1"]},
                {"reason": "OthersBetter", "message": "others were better, and enough", "count": 1, "clusters": ["a2"]},
            ],
        })
    );
    // Neither uid nor version, nor a status.
    assert_eq!(
        answer["placement"]["metadata"],
        json!({"name": "web", "namespace": "shop", "annotations": {}})
    );
    assert_eq!(answer["placement"]["spec"]["numberOfClusters"], 1);
    assert_eq!(answer["placement"]["status"], Value::Null);
}

#[test]
fn each_pick_has_its_counts_its_exclusions_and_its_scores() {
    let spec = "{tolerations: [{operator: Exists}], spreadPolicy: {spreadConstraints: \
                [{topologyKey: zone, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}}";
    let third = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: a3, labels: {zone: a}}";
    let answer = answer(spec, &[third]);
    // The first run with this result is reported: Balance gives 100 to each, and no cluster is held yet.
    let picks = answer["selectorResults"].as_array().expect("it is there");
    assert_eq!(picks.len(), 3);
    assert_eq!(
        picks[1],
        json!({
            "counts": [{"topology": ["a"], "selected": 1}, {"topology": ["b"], "selected": 0}],
            "excluded": {"a2": "zone", "a3": "zone"},
            "limits": {
                "a2": {"there": 1, "minimum": 0, "skew": 2, "maxSkew": 1,
                    "sum": "1 there + 1 this cluster - 0 in the emptiest topology = 2 > maxSkew 1"},
                "a3": {"there": 1, "minimum": 0, "skew": 2, "maxSkew": 1,
                    "sum": "1 there + 1 this cluster - 0 in the emptiest topology = 2 > maxSkew 1"},
            },
            "scores": {"b1": [63]},
            "combined": {"b1": 63},
            "normalized": {"b1": 0},
            "final": {"b1": 100},
            "picked": "b1",
        })
    );
    let reasons = answer["notSelected"].as_array().expect("it is there");
    let reasons: Vec<_> = reasons
        .iter()
        .map(|r| (&r["reason"], &r["clusters"]))
        .collect();
    assert_eq!(
        reasons,
        [
            (&json!("MissingTopologyKey"), &json!(["c1"])),
            (&json!("MaxSkew"), &json!(["a3"])),
        ]
    );
    assert_eq!(
        answer["topologies"],
        json!([
            {"topology": ["a"], "selected": 2, "clusters": 3},
            {"topology": ["b"], "selected": 1, "clusters": 1},
        ])
    );
    let last = &answer["filteredPipelineResults"][1]["filteredClusters"];
    assert_eq!(*last, json!(["a1", "b1", "a2", "a3", "c1"]), "picks first");
}

/// Source: spec/placement §2.11, §5.2 ("Schedule": the misconfigured toleration).
#[test]
fn what_is_wrong_is_said_and_what_was_found_before_is_kept() {
    let misconfigured = answer("{tolerations: [{key: a, operator: Exists, value: b}]}", &[]);
    assert_eq!(
        parts(&misconfigured, &UPSTREAM),
        json!({
            "filteredPipelineResults": [{"name": "Predicate", "filteredClusters": ["a1", "a2", "b1", "c1"]}],
            "error": "TaintToleration:If the operator is Exists, the value should be empty.",
        })
    );
    assert_eq!(misconfigured["notSelected"][0]["reason"], "Misconfigured");
    assert_eq!(misconfigured["selectedClusters"], json!([]));

    let expired = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\n\
                   metadata: {name: demo, namespace: a1}\n\
                   status: {validUntil: '2026-01-01T00:00:00Z', scores: [{name: demo, value: 9}]}";
    let spec = "{prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: AddOn, \
                addOn: {resourceName: demo, scoreName: demo}}}]}}";
    let warned = answer(spec, &[expired]);
    assert_eq!(
        warned["error"],
        "AddOn/demo/demo:AddOnPlacementScores a1/demo expired"
    );
    assert_eq!(warned["selectedClusters"], json!(["a1", "a2", "c1"]));

    let odd = [
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: odd}\n\
         spec: {clusterSelector: {selectorType: Magic}}",
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
         metadata: {name: odd, namespace: shop}\nspec: {clusterSet: odd}",
    ];
    let broken = answer("{}", &odd);
    assert_eq!(
        broken["error"],
        "ManagedClusterSet odd: selectorType Magic is not known"
    );
    assert_eq!(parts(&broken, &UPSTREAM[..3]), json!({}));
    assert_eq!(broken["clusterSets"], json!(["global", "odd"]));
}
