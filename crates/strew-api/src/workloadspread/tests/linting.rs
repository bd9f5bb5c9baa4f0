//! Warnings, each by what brings it about.

use super::*;
use crate::workloadspread::lint::{What, lint};

/// Codes and paths of the warnings of a WorkloadSpread among objects.
#[track_caller]
fn check(spread: Value, others: &[Value], expected: &[(&str, &str)]) {
    let all = std::iter::once(&spread).chain(others);
    let all: Vec<KubeObject> = all
        .map(|v| KubeObject::of_json(v.clone()).unwrap())
        .collect();
    let all: Vec<&KubeObject> = all.iter().collect();
    let found = lint(&all);
    let told: Vec<(&str, String)> = found
        .iter()
        .map(|finding| match &finding.what {
            What::Suspicious(warning) => (warning.code, warning.path.to_string()),
            What::Refused(error) => ("refused", error.path.to_string()),
        })
        .collect();
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|(code, path)| (*code, path.as_str()))
        .collect();
    assert_eq!(told, expected, "{spread}");
}

fn deployment(namespace: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 10, "selector": {}, "template": {"spec": {"containers": [{"name": "main", "image": "web"}]}}}});
    for (pointer, value) in more.as_object().unwrap() {
        object["metadata"][pointer] = value.clone();
    }
    object
}

fn nodes_of(pool: &str) -> Value {
    json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]})
}

fn two() -> Value {
    json!([{"name": "own", "maxReplicas": 8, "requiredNodeSelector": nodes_of("own")}, {"name": "elastic", "requiredNodeSelector": nodes_of("elastic")}])
}

#[test]
fn what_is_meant_brings_nothing() {
    check(web(two()), &[deployment("shop", json!({}))], &[]);
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": name}}});
    check(
        web(two()),
        &[deployment("shop", json!({})), node("own"), node("elastic")],
        &[],
    );
    let mut adaptive = web(
        json!([{"name": "own", "requiredNodeSelector": nodes_of("own")}, {"name": "elastic", "requiredNodeSelector": nodes_of("elastic")}]),
    );
    adaptive["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}});
    adaptive["metadata"]["annotations"] = json!({"strew.dev/unschedulable-window-seconds": "600", "strew.dev/min-replicas": "{\"own\":1}"});
    check(adaptive, &[deployment("shop", json!({}))], &[]);
}

#[test]
fn each_warning_has_its_cause() {
    let here = || deployment("shop", json!({}));
    let target = "spec.targetRef";
    check(web(two()), &[], &[("target-missing", target)]);
    check(
        web(two()),
        &[deployment("other", json!({}))],
        &[("target-missing", target)],
    );
    let going = deployment("shop", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    check(web(two()), &[going], &[("target-deleting", target)]);
    let mut custom = web(two());
    custom["spec"]["targetRef"] = json!({"apiVersion": "game.io/v1", "kind": "Set", "name": "web"});
    check(custom, &[], &[("unknown-target-kind", target)]);
    let own = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"pool": "own"}}});
    check(
        web(two()),
        &[here(), own],
        &[("no-node", "spec.subsets[1].requiredNodeSelector")],
    );
    let mut unlimited = two();
    unlimited[0]["maxReplicas"] = Value::Null;
    check(
        web(unlimited),
        &[here()],
        &[("unreachable-subset", "spec.subsets[1]")],
    );
    let mut tight = two();
    tight[1]["maxReplicas"] = 1.into();
    check(
        web(tight),
        &[here()],
        &[("no-room", "spec.subsets[1].maxReplicas")],
    );
    let mut fits = two();
    fits[1]["maxReplicas"] = 2.into();
    check(web(fits), &[here()], &[]);
    let mut same = two();
    same[1]["requiredNodeSelector"] = same[0]["requiredNodeSelector"].clone();
    check(web(same), &[here()], &[("same-nodes", "spec.subsets[1]")]);
    let mut filtered = web(two());
    filtered["spec"]["targetFilter"] = json!({"replicasPathList": ["spec.replicas"]});
    check(filtered, &[here()], &[("no-selector", "spec.targetFilter")]);
    let mut fixed = web(two());
    fixed["spec"]["scheduleStrategy"] = json!({"type": "Adaptive"});
    check(
        fixed,
        &[here()],
        &[("acts-as-fixed", "spec.scheduleStrategy.type")],
    );
    let mut idle = web(two());
    idle["metadata"]["annotations"] = json!({"strew.dev/unschedulable-window-seconds": "600"});
    check(
        idle,
        &[here()],
        &[(
            "no-effect",
            "metadata.annotations[strew.dev/unschedulable-window-seconds]",
        )],
    );
    let mut replaced = two();
    replaced[0]["patch"] = json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [nodes_of("x")]}}}}});
    check(
        web(replaced),
        &[here()],
        &[("patch-replaces", "spec.subsets[0].patch")],
    );
}

#[test]
fn the_second_for_one_target_is_refused() {
    let mut other = web(two());
    other["metadata"]["name"] = "other".into();
    check(
        web(two()),
        &[deployment("shop", json!({})), other.clone()],
        &[("refused", "spec.targetRef")],
    );
    other["metadata"]["namespace"] = "elsewhere".into();
    check(
        web(two()),
        &[
            deployment("shop", json!({})),
            deployment("elsewhere", json!({})),
            other,
        ],
        &[],
    );
}
