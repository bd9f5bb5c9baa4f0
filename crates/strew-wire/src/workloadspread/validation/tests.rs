//! Every rule, at its path.

mod patches;

use serde_json::{Value, json};

use super::*;
use crate::workloadspread::facts::white_list::WhiteList;
use strew_manifest::field::FieldErrorKind;

fn object(spec: Value) -> WorkloadSpread {
    serde_json::from_value(json!({"metadata": {"name": "ws", "namespace": "shop"}, "spec": spec}))
        .unwrap()
}

fn target(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": "web"})
}

/// A spec of subsets for a Deployment.
fn subsets(subsets: Value) -> Value {
    json!({"targetRef": target("apps/v1", "Deployment"), "subsets": subsets})
}

/// Subsets of these limits.
fn limits(kind: &str, limits: Value) -> Value {
    let each = limits.as_array().unwrap().iter().enumerate();
    let each = each.map(|(i, limit)| {
        let mut subset = json!({"name": format!("s{i}")});
        if !limit.is_null() {
            subset["maxReplicas"] = limit.clone();
        }
        subset
    });
    let of = match kind {
        "Job" => target("batch/v1", kind),
        "CloneSet" => target("apps.kruise.io/v1alpha1", kind),
        kind => target("apps/v1", kind),
    };
    json!({"targetRef": of, "subsets": each.collect::<Vec<_>>()})
}

fn adaptive(mut spec: Value, strategy: Value) -> Value {
    spec["scheduleStrategy"] = strategy;
    spec
}

/// Path and kind of each error.
#[track_caller]
fn check(spec: Value, cx: &Context<'_>, expected: &[(&str, &str)]) {
    let found = validate(&object(spec.clone()), cx);
    let found: Vec<(String, &str)> = found
        .iter()
        .map(|e| (e.path.to_string(), kind(e)))
        .collect();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(path, kind)| (path.as_str(), *kind))
        .collect();
    assert_eq!(found, expected, "{spec}");
}

fn kind(error: &FieldError) -> &'static str {
    match error.kind {
        FieldErrorKind::Required => "Required",
        FieldErrorKind::Invalid { .. } => "Invalid",
        FieldErrorKind::Forbidden => "Forbidden",
        FieldErrorKind::Internal => "Internal",
        FieldErrorKind::TooMany { .. } => "Too many",
        _ => "other",
    }
}

#[test]
fn what_kruise_accepts_is_accepted() {
    let cx = Context::default();
    let half = json!([{"name": "a", "maxReplicas": 50}, {"name": "b"}]);
    for target in [
        target("apps.kruise.io/v1alpha1", "CloneSet"),
        target("apps/v1", "StatefulSet"),
        target("apps.kruise.io/v1beta1", "StatefulSet"),
        target("apps/v1", "ReplicaSet"),
        target("example.org/v1", "Game"),
    ] {
        check(json!({"targetRef": target, "subsets": half}), &cx, &[]);
    }
    check(limits("Job", json!(["50%", "50%"])), &cx, &[]);
    let strategy = json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}});
    check(
        adaptive(limits("Job", json!(["50%", "50%", null])), strategy.clone()),
        &cx,
        &[],
    );
    check(
        adaptive(limits("Deployment", json!([50, null])), strategy),
        &cx,
        &[],
    );
    check(
        adaptive(
            limits("Deployment", json!([0])),
            json!({"type": "Adaptive"}),
        ),
        &cx,
        &[],
    );
    check(limits("Deployment", json!([null])), &cx, &[]);
    check(limits("Deployment", json!([null, 3, null])), &cx, &[]);
}

#[test]
fn targets_are_of_their_group() {
    let list = WhiteList::read(r#"{"workloads":[{"Group":"game.io","Version":"v1","Kind":"Set","subResources":[{"Group":"game.io","Version":"v1","Kind":"Server"}]}]}"#).unwrap();
    let with = |target: Value| json!({"targetRef": target, "subsets": [{"name": "a"}]});
    let listed = Context {
        white_list: Some(Ok(&list)),
        ..Context::default()
    };
    let at = "spec.targetRef";
    check(
        json!({"subsets": [{"name": "a"}]}),
        &listed,
        &[(at, "Required")],
    );
    for (api_version, kind, expected) in [
        ("", "Deployment", Some("Invalid")),
        ("apps/v1", "", Some("Invalid")),
        ("a/b/c", "Deployment", Some("Invalid")),
        ("v1", "Deployment", Some("Invalid")),
        ("apps.kruise.io/v1", "Deployment", Some("Invalid")),
        ("apps/v1", "CloneSet", Some("Invalid")),
        ("apps/v1", "Job", Some("Invalid")),
        ("apps.kruise.io/v1", "ReplicaSet", Some("Invalid")),
        ("batch/v1", "StatefulSet", Some("Invalid")),
        ("apps/v9", "Deployment", None),
        ("game.io/v7", "Set", None),
        ("game.io/v1", "Server", Some("Invalid")),
        ("other.io/v1", "Set", Some("Invalid")),
    ] {
        let expected: Vec<_> = expected.map(|kind| (at, kind)).into_iter().collect();
        check(with(target(api_version, kind)), &listed, &expected);
    }
    let unreadable = Context {
        white_list: Some(Err("no ConfigMap")),
        ..Context::default()
    };
    check(
        with(target("game.io/v1", "Set")),
        &unreadable,
        &[(at, "Internal")],
    );
    check(with(target("apps/v1", "Deployment")), &unreadable, &[]);
}

#[test]
fn subsets_have_names_nodes_and_tolerations_that_kubernetes_takes() {
    let cx = Context::default();
    check(subsets(json!([])), &cx, &[("spec.subsets", "Required")]);
    let many = |n: u32| {
        let all = (0..n).map(|i| json!({"name": format!("s{i}"), "maxReplicas": 1}));
        subsets(all.collect())
    };
    check(many(128), &cx, &[]);
    check(many(129), &cx, &[("spec.subsets", "Too many")]);
    check(
        subsets(json!([{"name": ""}, {"name": "a"}, {"name": "a"}])),
        &cx,
        &[
            ("spec.subsets[0].name", "Invalid"),
            ("spec.subsets[2].name", "Invalid"),
        ],
    );
    let exists = json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]});
    let label = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]});
    let field =
        json!({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]});
    check(
        subsets(json!([
            {"name": "a", "requiredNodeSelector": exists},
            {"name": "b", "requiredNodeSelector": label},
            {"name": "c", "requiredNodeSelector": field},
            {"name": "d", "preferredNodeSelector": [{"weight": 0, "preference": exists}, {"weight": 101, "preference": {}}]},
            {"name": "e", "tolerations": [{"key": "a"}, {"operator": "Equal"}]},
        ])),
        &cx,
        &[
            (
                "spec.subsets[0].requiredNodeSelector.matchExpressions[0].values",
                "Forbidden",
            ),
            (
                "spec.subsets[1].requiredNodeSelector.matchExpressions[0].values[0]",
                "Invalid",
            ),
            (
                "spec.subsets[2].requiredNodeSelector.matchFields[0].key",
                "Invalid",
            ),
            ("spec.subsets[3].preferredNodeSelector[0].weight", "Invalid"),
            (
                "spec.subsets[3].preferredNodeSelector[0].preference.matchExpressions[0].values",
                "Forbidden",
            ),
            ("spec.subsets[3].preferredNodeSelector[1].weight", "Invalid"),
            ("spec.subsets[4].tolerations[1].operator", "Invalid"),
        ],
    );
}

#[test]
fn limits_are_of_one_type_and_add_up() {
    let at = |i: usize| format!("spec.subsets[{i}].maxReplicas");
    for (kind, given, expected) in [
        ("CloneSet", json!([50, "50%", -1]), Some(1)),
        ("CloneSet", json!([null, 5, "50%"]), Some(2)),
        ("StatefulSet", json!(["50%", null]), Some(0)),
        ("StatefulSet", json!([5, null]), None),
        ("CloneSet", json!(["0.2%", null]), Some(0)),
        ("CloneSet", json!(["50.2%", null]), Some(0)),
        ("CloneSet", json!([-100, null]), Some(0)),
        ("CloneSet", json!(["-1%", null]), Some(0)),
        ("CloneSet", json!(["50", null]), Some(0)),
        ("CloneSet", json!(["%", null]), Some(0)),
        ("CloneSet", json!(["101%", null]), Some(0)),
        ("CloneSet", json!(["40%", "70%", null]), Some(1)),
        ("CloneSet", json!(["40%", "20%", "20%"]), Some(0)),
        ("CloneSet", json!(["40%", "20%", "40%"]), None),
        ("CloneSet", json!(["40%", "20%", null]), None),
        ("CloneSet", json!(["0%", "100%"]), None),
    ] {
        let expected = expected.map(at);
        let expected: Vec<_> = expected.iter().map(|at| (at.as_str(), "Invalid")).collect();
        check(limits(kind, given), &Context::default(), &expected);
    }
}

#[test]
fn strategies_leave_time_to_try_every_subset() {
    let cx = Context::default();
    let of = |n: usize, strategy: Value| {
        let all: Vec<Value> = (0..n).map(|_| Value::Null).collect();
        adaptive(limits("Deployment", json!(all)), strategy)
    };
    let kind = "spec.scheduleStrategy.type";
    check(of(2, json!({"type": "Fixed"})), &cx, &[]);
    check(of(2, json!({"type": ""})), &cx, &[]);
    check(of(2, json!({"type": "Quick"})), &cx, &[(kind, "Invalid")]);
    check(
        of(2, json!({"type": "Fixed", "adaptive": {}})),
        &cx,
        &[(kind, "Invalid")],
    );
    check(of(2, json!({"adaptive": {}})), &cx, &[(kind, "Invalid")]);
    check(
        adaptive(
            limits("Deployment", json!([1, 1])),
            json!({"type": "Adaptive", "adaptive": {}}),
        ),
        &cx,
        &[("spec.scheduleStrategy.adaptive", "Invalid")],
    );
    let path = "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds";
    for (n, seconds, is_fine) in [
        (1, 1_000_000, true),
        (1, -1, false),
        (2, 295, true),
        (2, 296, false),
        (3, 147, true),
        (3, 148, false),
        (4, 98, true),
        (4, 99, false),
        (2, 0, true),
        (2, -20, false),
    ] {
        let strategy =
            json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}});
        let expected: &[_] = if is_fine { &[] } else { &[(path, "Invalid")] };
        check(of(n, strategy), &cx, expected);
    }
    // A longer window leaves more time.
    let strategy = json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 595}});
    let mut ws = object(of(2, strategy));
    assert_eq!(validate(&ws, &cx).len(), 1);
    ws.metadata.annotations = Some([(WINDOW_SECONDS.to_owned(), "600".to_owned())].into());
    assert_eq!(validate(&ws, &cx), []);
}

#[test]
fn filters_others_and_updates() {
    let cx = Context::default();
    let mut spec = subsets(json!([{"name": "a"}]));
    spec["targetFilter"] =
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}});
    check(spec, &cx, &[("spec.targetFilter", "Invalid")]);
    let given = subsets(json!([{"name": "a"}]));
    let mut other = object(given.clone());
    let others_of = |other: &WorkloadSpread, expected: &[(&str, &str)]| {
        let others = [other];
        let cx = Context {
            others: Some(Ok(&others)),
            ..Context::default()
        };
        check(given.clone(), &cx, expected);
    };
    others_of(&other, &[]);
    other.metadata.name = Some("other".to_owned());
    others_of(&other, &[("spec.targetRef", "Invalid")]);
    for (field, value) in [
        ("apiVersion", "apps/v7"),
        ("apiVersion", "x/v1"),
        ("kind", "ReplicaSet"),
        ("name", "api"),
    ] {
        let mut spec = given.clone();
        spec["targetRef"][field] = value.into();
        let mut changed = object(spec);
        let expected: &[_] = match value {
            "apps/v7" => &[("spec.targetRef", "Invalid")],
            _ => &[],
        };
        changed.metadata.name = Some("other".to_owned());
        others_of(&changed, expected);
        // An update may change the version of the target, and nothing else of it.
        changed.metadata.name = Some("ws".to_owned());
        let cx = Context {
            before: Some(&changed),
            ..Context::default()
        };
        let expected: &[_] = match value {
            "apps/v7" => &[],
            _ => &[("spec.targetRef", "Invalid")],
        };
        check(given.clone(), &cx, expected);
    }
    let cx = Context {
        others: Some(Err("the cache is not filled")),
        ..Context::default()
    };
    check(given.clone(), &cx, &[("", "Internal")]);
    let mut renamed = object(given.clone());
    renamed.metadata.namespace = Some("other".to_owned());
    let cx = Context {
        before: Some(&renamed),
        ..Context::default()
    };
    check(given, &cx, &[("metadata.namespace", "Invalid")]);
}

/// A WorkloadSpread of a Deployment and one of its ReplicaSet would have the same pods.
#[test]
fn a_workload_and_what_it_owns_have_one_workload_spread() {
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-5d", "namespace": "shop", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true}]},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let set = KubeObject::of_json(set).expect("a ReplicaSet");
    let of_deployment = subsets(json!([{"name": "a"}]));
    let mut of_set = of_deployment.clone();
    of_set["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d"});
    let mut of_stranger = of_set.clone();
    of_stranger["targetRef"]["name"] = "web-7".into();
    for (given, there, target, expected) in [
        (
            &of_set,
            &of_deployment,
            Some(&set),
            "WorkloadSpread \"other\" has the pods of this target: it names its owner, Deployment \"web\"",
        ),
        (
            &of_deployment,
            &of_set,
            None,
            "WorkloadSpread \"other\" has pods of this target: it names ReplicaSet \"web-5d\", which this one owns",
        ),
        (&of_deployment, &of_stranger, None, ""),
        (&of_stranger, &of_deployment, None, ""),
    ] {
        let mut other = object(there.clone());
        other.metadata.name = Some("other".to_owned());
        let cx = Context {
            target,
            others: Some(Ok(&[&other])),
            workloads: &[&set],
            ..Context::default()
        };
        let found = validate(&object(given.clone()), &cx);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        match expected {
            "" => assert_eq!(texts, [""; 0]),
            _ => assert!(
                texts.len() == 1 && texts[0].ends_with(expected),
                "{texts:?}"
            ),
        }
    }
}

#[test]
fn a_patch_must_leave_a_pod() {
    let deployment = |kind: &str, more: Value| {
        let mut object = json!({"apiVersion": if kind == "CloneSet" {"apps.kruise.io/v1alpha1"} else {"apps/v1"}, "kind": kind, "metadata": {"name": "web"},
            "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "main", "image": "web"}]}}}});
        for (key, value) in more.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        KubeObject::of_json(object).unwrap()
    };
    let plain = deployment("Deployment", json!({}));
    let at = "spec.subsets[0].patch";
    for (patch, expected) in [
        (
            json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": 2}}}]}}),
            None,
        ),
        (json!({"metadata": {"labels": {"a": "b"}}}), None),
        (json!({}), None),
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            Some(at.to_owned()),
        ),
        (json!({"spec": {"containers": "x"}}), Some(at.to_owned())),
        (json!({"spec": {"$patch": "sideways"}}), Some(at.to_owned())),
        (json!([]), Some(at.to_owned())),
        (json!(7), Some(at.to_owned())),
        (
            json!({"spec": {"restartPolicy": "Sometimes"}}),
            Some(format!("{at}.restartPolicy")),
        ),
        (
            json!({"spec": {"containers": [{"name": "Side Car", "image": "x"}]}}),
            Some(format!("{at}.containers[0].name")),
        ),
        (
            json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "two"}}}]}}),
            Some(format!("{at}.containers[0].resources.limits[cpu]")),
        ),
        (
            json!({"spec": {"containers": null}}),
            Some(format!("{at}.containers")),
        ),
    ] {
        let spec = subsets(json!([{"name": "a", "patch": patch}]));
        let cx = Context {
            target: Some(&plain),
            ..Context::default()
        };
        let found = validate(&object(spec.clone()), &cx);
        let path = found.first().map(|error| error.path.to_string());
        assert_eq!(path, expected, "{patch}: {found:?}");
        // Without a target, nothing is known of its pods.
        check(spec, &Context::default(), &[]);
    }
}

#[test]
fn a_kind_need_not_be_listed_where_an_annotation_says_so() {
    let list = WhiteList::default();
    let cx = Context {
        white_list: Some(Ok(&list)),
        ..Context::default()
    };
    for (value, n_errors) in [("true", 0), ("false", 1), ("yes", 1)] {
        let ws = json!({
            "metadata": {"name": "ws", "annotations": {"strew.dev/any-kind": value}},
            "spec": {"targetRef": target("game.io/v1", "Set"), "subsets": [{"name": "a"}]},
        });
        let ws: WorkloadSpread = serde_json::from_value(ws).unwrap();
        assert_eq!(validate(&ws, &cx).len(), n_errors, "{value}");
    }
}

#[test]
fn what_does_not_go_with_further_workloads_is_refused() {
    let check = |selector: &str, kind: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut ws = json!({
            "metadata": {"name": "ws", "annotations": {"strew.dev/target-selector": selector}},
            "spec": {"targetRef": target("apps/v1", kind), "subsets": [{"name": "a"}]},
        });
        change(&mut ws);
        let ws: WorkloadSpread = serde_json::from_value(ws).unwrap();
        let errors = validate(&ws, &Context::default());
        let at = errors.iter().map(|error| error.path.to_string());
        at.collect::<Vec<_>>()
    };
    let selector = ["metadata.annotations[strew.dev/target-selector]"];
    let none: [&str; 0] = [];
    assert_eq!(check("app=shop,tier in (web)", "Deployment", &|_| {}), none);
    for bad in ["", "app=web,", "app in"] {
        assert_eq!(check(bad, "Deployment", &|_| {}), selector, "{bad:?}");
    }
    assert_eq!(check("app=shop", "StatefulSet", &|_| {}), selector);
    let filtered =
        |ws: &mut serde_json::Value| ws["spec"]["targetFilter"] = json!({"selector": {}});
    assert_eq!(check("app=shop", "Deployment", &filtered), selector);
    for (annotation, value) in [
        ("strew.dev/limit-scope", "revision"),
        ("strew.dev/move-back-seconds", "60"),
    ] {
        let annotated = |ws: &mut serde_json::Value| {
            ws["metadata"]["annotations"][annotation] = value.into();
        };
        assert_eq!(check("app=shop", "Deployment", &annotated), selector);
    }
}
