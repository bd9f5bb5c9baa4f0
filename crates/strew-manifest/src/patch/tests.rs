//! Tables after the cases of the Go libraries, and properties.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::apply::{annotated, apply, last_applied};
use super::*;

#[track_caller]
fn check(document: Value, patch: Value, expected: Value) {
    let patched = strategic::patch(Schema::Pod, &document, &patch);
    // As text: the order of lists and of fields counts.
    assert_eq!(patched.unwrap().to_string(), expected.to_string());
}

/// `spec.containers[0]` of a pod.
#[track_caller]
fn check_container(document: Value, patch: Value, expected: Value) {
    let of = |mut container: Value| {
        container["name"] = json!("c");
        json!({"spec": {"containers": [container]}})
    };
    let patched = strategic::patch(Schema::Pod, &of(document), &of(patch)).unwrap();
    let mut expected = expected;
    expected["name"] = json!("c");
    assert_eq!(patched["spec"]["containers"][0], expected);
}

#[test]
fn maps_are_merged_and_nulls_delete() {
    check(
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "x": 1}),
        json!({"metadata": {"labels": {"b": null, "c": "3", "none": null}}, "y": {"z": null, "k": [1]}}),
        json!({"metadata": {"labels": {"a": "1", "c": "3"}}, "x": 1, "y": {"k": [1]}}),
    );
    check(
        json!({"a": [1]}),
        json!({"a": {"b": 1}}),
        json!({"a": {"b": 1}}),
    );
}

#[test]
fn lists_with_a_key_are_merged_and_the_rest_replaced() {
    check_container(
        json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x", "y"]}),
        json!({"env": [{"name": "B", "value": "3"}], "args": ["z"]}),
        json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}], "args": ["z"]}),
    );
    check_container(
        json!({"ports": [{"containerPort": 80, "name": "w"}], "volumeMounts": [{"mountPath": "/a", "name": "a"}]}),
        json!({"ports": [{"containerPort": 80, "protocol": "TCP"}], "volumeMounts": [{"mountPath": "/a", "name": "b"}]}),
        json!({"ports": [{"containerPort": 80, "name": "w", "protocol": "TCP"}], "volumeMounts": [{"mountPath": "/a", "name": "b"}]}),
    );
    let tolerations = |key: &str| json!({"spec": {"tolerations": [{"key": key}]}});
    check(tolerations("a"), tolerations("b"), tolerations("b"));
}

#[test]
fn new_elements_come_first_and_known_ones_keep_their_place() {
    let named = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": all}})
    };
    check(named(&["a", "b"]), named(&["c"]), named(&["c", "a", "b"]));
    check(
        named(&["a", "b", "c"]),
        named(&["b"]),
        named(&["a", "b", "c"]),
    );
    check(
        named(&["a", "b", "c"]),
        named(&["c", "a"]),
        named(&["b", "c", "a"]),
    );
    let mut ordered = named(&["c"]);
    ordered["spec"]["$setElementOrder/containers"] =
        json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
    check(named(&["a", "b"]), ordered, named(&["a", "b", "c"]));
    let order = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"$setElementOrder/containers": all}})
    };
    check(
        named(&["a", "s", "b"]),
        order(&["b", "a"]),
        named(&["s", "b", "a"]),
    );
}

#[test]
fn directives() {
    let containers = |list: Value| json!({"spec": {"containers": list}});
    check(
        containers(json!([{"name": "a"}, {"name": "b"}])),
        containers(json!([{"name": "a", "$patch": "delete"}])),
        containers(json!([{"name": "b"}])),
    );
    check(
        containers(json!([{"name": "a"}, {"name": "b"}])),
        containers(json!([{"name": "x"}, {"$patch": "replace"}])),
        containers(json!([{"name": "x"}])),
    );
    check(
        json!({"spec": {"nodeSelector": {"a": "1"}, "affinity": {"podAffinity": {"x": 1}}}}),
        json!({"spec": {"nodeSelector": {"b": "2", "$patch": "replace"}, "affinity": {"$patch": "delete"}}}),
        json!({"spec": {"nodeSelector": {"b": "2"}, "affinity": {}}}),
    );
    let volume = |volume: Value| json!({"spec": {"volumes": [volume]}});
    check(
        volume(json!({"name": "v", "emptyDir": {}})),
        volume(
            json!({"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}),
        ),
        volume(json!({"name": "v", "hostPath": {"path": "/"}})),
    );
    check(
        json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}}),
        json!({"metadata": {"finalizers": ["d", "a", "c"]}}),
    );
    check(
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        json!({"metadata": {"$setElementOrder/finalizers": ["c", "b"], "$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}),
        json!({"metadata": {"finalizers": ["c", "b"]}}),
    );
    // Of what is not there, directives leave nothing behind.
    check(
        json!({}),
        json!({"spec": {"$retainKeys": ["volumes"], "volumes": [{"name": "a", "$patch": "delete"}, {"name": "b", "x": null}]}}),
        json!({"spec": {"volumes": [{"name": "b"}]}}),
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let cases = [
        (json!([]), "the patch: expected an object"),
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "spec.containers[0]: does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": [{"$patch": "delete"}]}}),
            "spec.containers[0]: does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": ["x"]}}),
            "spec.containers[0]: expected elements of one type",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}),
            "spec.containers[0]: unknown patch type: \"merge\"",
        ),
        (
            json!({"metadata": {"$patch": 1}}),
            "metadata: unknown patch type: 1",
        ),
        (
            json!({"spec": {"$retainKeys": ["b"], "a": 1}}),
            "spec: invalid patch format of retainKeys",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
            "metadata.$deleteFromPrimitiveList/finalizers: invalid patch format of primitive list",
        ),
        (
            json!({"spec": {"$setElementOrder/containers": {}}}),
            "spec.$setElementOrder/containers: invalid patch format of setElementOrder list",
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}}),
            "spec.containers[0]: the order in patch list doesn't match $setElementOrder list",
        ),
    ];
    let document = json!({"metadata": {"finalizers": []}, "spec": {"containers": [{"name": "a"}]}});
    for (patch, expected) in cases {
        let error = strategic::patch(Schema::Pod, &document, &patch).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn schemas_follow_the_kind() {
    let cases = [
        (
            "Deployment",
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}),
        ),
        (
            "CronJob",
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}}}),
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 80, "name": "a"}]}}),
        ),
        (
            "Node",
            json!({"status": {"conditions": [{"type": "Ready", "name": "a"}]}}),
        ),
        (
            "Lease",
            json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}}),
        ),
    ];
    for (kind, document) in cases {
        let patch = json!(
            document
                .to_string()
                .replace("\"name\":\"a\"", "\"name\":\"a\",\"more\":1")
        );
        let patch: Value = serde_json::from_str(patch.as_str().unwrap()).unwrap();
        let schema = Schema::of_kind(kind).unwrap();
        let patched = strategic::patch(schema, &document, &patch).unwrap();
        assert_eq!(patched, patch, "{kind}");
        // The same list in a kind without that key is replaced.
        let emptied = document.to_string().replace('[', "[{},");
        let other = serde_json::from_str(&emptied).unwrap();
        assert_eq!(
            strategic::patch(Schema::Plain, &other, &patch).unwrap(),
            patch
        );
    }
    assert_eq!(Schema::of_kind("WorkloadSpread"), None);
}

#[test]
fn json_patches_are_done_whole_or_not_at_all() {
    let document = json!({"a": [1, 2], "b": {"c": 3}});
    let patched = json_patch(
        &document,
        &json!([
            {"op": "test", "path": "/b/c", "value": 3},
            {"op": "add", "path": "/a/-", "value": 4},
            {"op": "move", "from": "/b/c", "path": "/d~1e"},
            {"op": "remove", "path": "/a/0"},
        ]),
    );
    assert_eq!(patched.unwrap(), json!({"a": [2, 4], "b": {}, "d/e": 3}));
    let cases = [
        (json!({}), "not a list of JSON patch operations: "),
        (
            json!([{"op": "hop", "path": "/a"}]),
            "not a list of JSON patch operations: ",
        ),
        (
            json!([{"op": "remove", "path": "/a"}, {"op": "test", "path": "/b/c", "value": 4}]),
            "operation 1 at \"/b/c\": the value is another than the one tested for",
        ),
        (
            json!([{"op": "remove", "path": "/x"}]),
            "operation 0 at \"/x\": there is nothing at `path`",
        ),
        (
            json!([{"op": "copy", "from": "/x", "path": "/y"}]),
            "operation 0 at \"/y\": there is nothing at `from`",
        ),
    ];
    for (patch, expected) in cases {
        let error = json_patch(&document, &patch).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// The examples of RFC 7386, appendix A.
#[test]
fn merge_patches() {
    let cases = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (json!(["a", "b"]), json!(["c"]), json!(["c"])),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!([1, 2]),
            json!({"a": "b", "c": null}),
            json!({"a": "b"}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ];
    for (document, patch, expected) in cases {
        assert_eq!(merge_patch(&document, &patch), expected, "{patch}");
    }
}

#[test]
fn apply_sets_what_is_new_deletes_what_went_and_leaves_the_rest() {
    let last = json!({"metadata": {"labels": {"gone": "1", "same": "1"}}, "spec": {"replicas": 2,
        "template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "gone"}]}}}});
    let live = json!({"metadata": {"labels": {"gone": "1", "same": "1", "other": "1"}, "uid": "u"}, "spec": {"replicas": 7,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {"spec": {"containers": [{"name": "a", "image": "1", "pull": "Always"}, {"name": "gone"}, {"name": "injected"}]}}}});
    let new = json!({"metadata": {"labels": {"same": "1", "new": "1"}}, "spec": {
        "strategy": {"type": "Recreate"},
        "template": {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "b"}]}}}});
    let expected = json!({"metadata": {"labels": {"same": "1", "other": "1", "new": "1"}, "uid": "u"}, "spec": {
        "strategy": {"type": "Recreate"},
        "template": {"spec": {"containers": [{"name": "a", "image": "2", "pull": "Always"}, {"name": "b"}, {"name": "injected"}]}}}});
    let applied = apply(Schema::Deployment, Some(&last), &live, &new);
    assert_eq!(applied, expected);
    // Without a last applied object, `replicas` belongs to another client.
    let applied = apply(Schema::Deployment, None, &live, &new);
    assert_eq!(applied["spec"]["replicas"], 7);
    assert_eq!(
        applied["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn the_annotation_tells_what_was_applied() {
    let new = json!({"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"k": null}});
    let sent = annotated(&new);
    assert_eq!(last_applied(&sent), Some(new.clone()));
    assert_eq!(annotated(&sent), sent);
    assert_eq!(last_applied(&json!({})), None);
    assert_eq!(
        last_applied(
            &json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{"}}})
        ),
        None
    );
}

/// Values with the fields and directives that the code looks at.
fn json_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        prop_oneof!["a", "b", "replace", "delete"].prop_map(Value::from),
    ];
    let name = prop_oneof![
        "metadata",
        "spec",
        "containers",
        "env",
        "volumes",
        "name",
        "a",
        "finalizers",
        "\\$patch",
        "\\$retainKeys",
        "\\$setElementOrder/containers",
        "\\$deleteFromPrimitiveList/finalizers",
    ];
    scalar.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().collect::<Map<String, Value>>())
            }),
        ]
    })
}

/// A pod-like object without nulls and directives, whose keys are unique.
fn pod_like() -> impl Strategy<Value = Value> {
    let names = || proptest::sample::subsequence(vec!["a", "b", "c", "d"], 0..4).prop_shuffle();
    (names(), names(), names()).prop_map(|(containers, env, finalizers)| {
        let env: Vec<Value> = env.iter().map(|e| json!({"name": e, "value": e})).collect();
        let container = |name: &&str| json!({"name": name, "env": env, "args": [1, 2]});
        let containers: Vec<Value> = containers.iter().map(container).collect();
        json!({"metadata": {"finalizers": finalizers}, "spec": {"containers": containers, "tolerations": [{"key": "k"}]}})
    })
}

proptest! {
    #[test]
    fn nothing_panics(a in json_value(), b in json_value(), c in json_value()) {
        for schema in [Schema::Pod, Schema::PodSpec, Schema::Plain] {
            if let Ok(patched) = strategic::patch(schema, &a, &b) {
                prop_assert!(patched.is_object());
            }
            let _ = apply(schema, Some(&c), &a, &b);
        }
        let _ = merge_patch(&a, &b);
        prop_assert_eq!(json_patch(&a, &json_diff(&a, &b)).unwrap(), b);
    }

    #[test]
    fn a_patch_of_itself_changes_nothing(pod in pod_like()) {
        prop_assert_eq!(&strategic::patch(Schema::Pod, &pod, &pod).unwrap(), &pod);
        prop_assert_eq!(&strategic::patch(Schema::Pod, &pod, &json!({})).unwrap(), &pod);
        prop_assert_eq!(&strategic::patch(Schema::Pod, &json!({}), &pod).unwrap(), &pod);
        prop_assert_eq!(&apply(Schema::Pod, Some(&pod), &pod, &pod), &pod);
        prop_assert_eq!(&merge_patch(&pod, &pod), &pod);
    }

    #[test]
    fn patching_twice_is_patching_once(pod in pod_like(), patch in pod_like()) {
        let once = strategic::patch(Schema::Pod, &pod, &patch).unwrap();
        let twice = strategic::patch(Schema::Pod, &once, &patch).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn what_is_applied_over_the_last_one_is_the_new_one(last in pod_like(), new in pod_like()) {
        let applied = apply(Schema::Pod, Some(&last), &last, &new);
        prop_assert_eq!(&applied, &new);
        prop_assert_eq!(&apply(Schema::Pod, Some(&new), &applied, &new), &new);
    }
}
