//! Expectations of scenarios.

use serde_json::{Value as Json, json};
use strew_cel::Environment::Scenario;
use strew_cel::{EvalErrorKind, POD_FIELDS, Program, Value, Variables};

use crate::{check, compile, scenario};

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Two pods of a workload with subsets, one of another workload without any labels of interest.
fn pods() -> Json {
    json!([
        {"name": "shop-1", "namespace": "default", "phase": "Running", "node": "n1", "ready": true,
         "labels": {"app": "shop", "subset": "ecs"}, "annotations": {COST: "200"},
         "domains": {"zone": "a"}},
        {"name": "shop-2", "namespace": "default", "phase": "Pending", "node": "", "ready": false,
         "labels": {"app": "shop", "subset": "eci"}, "annotations": {COST: "100"}, "domains": {}},
        {"name": "other", "namespace": "ops", "phase": "Running", "node": "n2", "ready": true,
         "labels": {}, "annotations": {}, "domains": {"zone": "b"}},
    ])
}

fn nodes() -> Json {
    json!([
        {"name": "n1", "labels": {"zone": "a"}, "ready": true, "unschedulable": false, "pods": 1},
        {"name": "n2", "labels": {"zone": "b"}, "ready": true, "unschedulable": false, "pods": 1},
    ])
}

#[test]
fn a_label_that_is_not_set_is_equal_to_nothing() {
    check(
        &scenario(&pods(), &nodes()),
        Scenario,
        &[
            ("size(nodes) == 2", "true"),
            (
                "pods.filter(p, p.labels.subset == 'ecs').size() <= 10",
                "true",
            ),
            (
                "pods.filter(p, p.labels.subset == 'ecs').size() == 1",
                "true",
            ),
            (
                "pods.filter(p, p.labels['subset'] == 'ecs').size() == 1",
                "true",
            ),
            // As a selector `subset!=ecs` does.
            (
                "pods.filter(p, p.labels.subset != 'ecs').size() == 2",
                "true",
            ),
            (
                "pods.filter(p, 'ecs' == p.labels.subset).size() == 1",
                "true",
            ),
            (
                "pods.filter(p, p.labels.subset in ['ecs', 'eci']).size() == 2",
                "true",
            ),
            (
                "pods.filter(p, !(p.labels.subset in ['ecs', 'eci'])).size() == 1",
                "true",
            ),
            ("pods.filter(p, has(p.labels.subset)).size() == 2", "true"),
            ("pods.filter(p, 'subset' in p.labels).size() == 2", "true"),
            (
                "pods.filter(p, p.labels.?subset.orValue('ecs') == 'ecs').size() == 2",
                "true",
            ),
            ("pods.filter(p, p.domains.zone == 'a').size() == 1", "true"),
            ("pods.exists(p, p.labels.subset == null)", "false"),
            ("pods.map(p, p.labels).exists(l, l.subset == 'ecs')", "true"),
            (
                "nodes.all(n, n.labels.zone == pods.filter(p, p.node == n.name)[0].domains.zone)",
                "true",
            ),
        ],
    );
}

#[test]
fn the_deletion_cost_of_every_pod_can_be_asked_for() {
    let text = format!(
        "pods.all(p, p.annotations['{COST}'] == (p.labels.subset == 'ecs' ? '200' : '100'))"
    );
    let program = compile(&text, Scenario);
    // The pod of the other workload has no such annotation, and so not the right one.
    assert_eq!(program.holds(&scenario(&pods(), &nodes())), Ok(false));
    let shop = Json::Array(pods().as_array().unwrap()[..2].to_vec());
    assert_eq!(program.holds(&scenario(&shop, &nodes())), Ok(true));
}

#[test]
fn where_no_answer_is_right_the_error_names_the_pod_and_the_key() {
    check(
        &scenario(&pods(), &nodes()),
        Scenario,
        &[
            (
                "pods.all(p, p.labels.subset.startsWith('ec'))",
                "no such key: 'subset' in p.labels, where p is ops/other",
            ),
            (
                "pods.all(p, p.labels.tier == p.labels['team'])",
                "no such key: 'tier' in p.labels, where p is default/shop-1",
            ),
            (
                "pods.map(p, p.labels.subset).size() == 3",
                "no such key: 'subset' in p.labels, where p is ops/other",
            ),
            (
                "pods.all(p, p.labels.subset < 'f')",
                "no such key: 'subset' in p.labels, where p is ops/other",
            ),
            (
                "nodes.all(n, pods.all(p, p.labels.zone + n.name == ''))",
                "no such key: 'zone' in p.labels, where p is default/shop-1 and n is n1",
            ),
            ("pods[7].name == 'x'", "no such key: 7 in pods"),
            ("pods", "the result is of type list, not bool"),
        ],
    );
}

/// A field is no label: a slip in its name must not pass, also where no pod is there to try it on.
#[test]
fn a_field_that_pods_or_nodes_do_not_have_is_no_expression() {
    let none = Json::Array(Vec::new());
    check(
        &scenario(&none, &none),
        Scenario,
        &[
            (
                "pods.all(p, p.phaze == 'Running')",
                "ERROR: <input>:1:14: a pod has no field 'phaze'",
            ),
            (
                "pods.filter(p, p.ready).exists(q, has(q.nodeName))",
                "ERROR: <input>:1:40: a pod has no field 'nodeName'",
            ),
            (
                "pods.size() > 0 && pods[0].zone == 'a'",
                "ERROR: <input>:1:27: a pod has no field 'zone'",
            ),
            (
                "nodes.all(n, pods.exists(p, p.node == n.hostname))",
                "ERROR: <input>:1:40: a node has no field 'hostname'",
            ),
            (
                "nodes.all(n, n['taints'].size() == 0)",
                "ERROR: <input>:1:1: a node has no field 'taints'",
            ),
            (
                "nodes.all(n, n.?taints.orValue([]).size() == 0)",
                "ERROR: <input>:1:16: a node has no field 'taints'",
            ),
            // What is not known to be a pod is looked at when it is there.
            ("pods.map(p, p.labels).all(l, l.zone == 'a')", "true"),
            ("objects.all(o, o.zone == 'a')", "true"),
            ("pods.all(p, nodes.exists(p, p.unschedulable))", "true"),
        ],
    );
    let error = Program::compile("pods.all(p, p.phaze == '')", Scenario).unwrap_err();
    let unknown = error.unknown.unwrap();
    assert_eq!(unknown.known, POD_FIELDS);
}

#[test]
fn a_missing_key_comes_with_the_keys_that_there_are() {
    let objects = Value::from_json(&json!([{"kind": "Pod", "spec": {"replicas": 3}}]));
    let none = Value::list([]);
    let variables = Variables::scenario(none.clone(), none, objects, Value::duration(0));
    let program = compile("objects.all(o, o.spec.replica == 3)", Scenario);
    let unknown = program.holds(&variables).unwrap_err().unknown.unwrap();
    assert_eq!((&*unknown.of, &*unknown.name), ("o.spec", "replica"));
    assert_eq!(unknown.known, ["replicas"]);
}

#[test]
fn maps_without_labels_keep_the_rule_of_the_language() {
    let objects = Value::from_json(&json!([
        {"kind": "Deployment", "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
         "spec": {"replicas": 3}},
    ]));
    let none = Value::list([]);
    let variables = Variables::scenario(none.clone(), none, objects, Value::duration(0));
    check(
        &variables,
        Scenario,
        &[
            ("objects.all(o, o.spec.replicas == 3)", "true"),
            ("objects.all(o, o.metadata.labels.tier == 'db')", "false"),
            (
                "objects.all(o, o.status.replicas == 3)",
                "no such key: 'status' in o, where o is default/web",
            ),
            (
                "{'labels': {}}.labels.x == 1",
                "no such key: 'x' in ….labels",
            ),
        ],
    );
}

#[test]
fn a_list_of_pods_is_made_once_for_many_expressions() {
    let pods = Value::from_json(&pods());
    let twice = [pods.clone(), pods.clone()];
    let none = Value::list([]);
    let of = |pods| Variables::scenario(pods, none.clone(), none.clone(), Value::duration(0));
    let program = compile("pods.size() == 3", Scenario);
    for pods in twice {
        assert_eq!(program.holds(&of(pods)), Ok(true));
    }
}

#[test]
fn time_is_what_the_caller_says() {
    let none = Value::list([]);
    let at = |now| Variables::scenario(none.clone(), none.clone(), none.clone(), now);
    let is = |now, text: &str| compile(text, Scenario).holds(&at(now));
    let moment = Value::timestamp("2026-01-02T03:04:05Z").unwrap();
    assert_eq!(is(moment, "now.getHours() == 3"), Ok(true));
    assert!(Value::timestamp("yesterday").is_none());
    for (ns, text) in [
        (0, "now == duration('0s')"),
        (1, "now == duration('1ns')"),
        (-1_500_000_000, "now == duration('-1.5s')"),
        (i64::MAX, "now > duration('2562047h')"),
        (
            4_611_686_018_427_387_905,
            "now != duration('4611686018427387904ns')",
        ),
    ] {
        assert_eq!(is(Value::duration(ns), text), Ok(true), "{text}");
    }
}

#[test]
fn variables_of_another_environment_are_refused() {
    let program = compile("size(nodes) == 1", Scenario);
    let error = program.holds(&crate::cluster(&json!({}), &[])).unwrap_err();
    assert_eq!(error.kind, EvalErrorKind::NoSuchVariable);
}
