//! A second, simple statement of strategic merge patches, for tests: lists with a key become objects of their elements
//! by key, sets become objects of their values, and then a JSON merge patch (RFC 7386) applies. Orders are stated
//! separately.

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Map, Value, json};

use super::schema::ListRule;
use super::{Schema, merge_patch, strategic};

const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// A document or patch with all lists as objects.
fn view(schema: Schema, value: &Value) -> Value {
    let Value::Object(map) = value else {
        return value.clone();
    };
    if map.get("$patch") == Some(&json!("delete")) {
        return Value::Null;
    }
    let mut seen = Map::new();
    for (name, value) in map {
        if let Some(list) = name.strip_prefix(DELETE_FROM_LIST) {
            let values = value.as_array().into_iter().flatten();
            let doomed = values.map(|v| (v.to_string(), Value::Null));
            merge_into(&mut seen, list, doomed.collect());
            continue;
        }
        let field = schema.field(name);
        match (field.list, value) {
            (ListRule::ByKey(key), Value::Array(list)) => {
                let elements = list.iter();
                let elements = elements.map(|e| (e[key].to_string(), view(field.schema, e)));
                merge_into(&mut seen, name, elements.collect());
            }
            (ListRule::Set, Value::Array(list)) => {
                let values = list.iter().map(|v| (v.to_string(), json!(true)));
                merge_into(&mut seen, name, values.collect());
            }
            (_, value) => {
                seen.insert(name.clone(), view(field.schema, value));
            }
        }
    }
    Value::Object(seen)
}

fn merge_into(seen: &mut Map<String, Value>, name: &str, more: Map<String, Value>) {
    let at = seen.entry(name).or_insert_with(|| json!({}));
    if let Value::Object(at) = at {
        at.extend(more);
    }
}

/// Removes empty objects: a missing list and an empty one are equal here.
fn filled(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.into_iter().map(|(name, value)| (name, filled(value)));
            Value::Object(fields.filter(|(_, value)| *value != json!({})).collect())
        }
        other => other,
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn names() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(NAMES.to_vec(), 0..4).prop_shuffle()
}

fn document() -> impl Strategy<Value = Value> {
    (names(), names(), names(), any::<bool>()).prop_map(|(containers, env, finalizers, labels)| {
        let env: Vec<Value> = env.iter().map(|e| json!({"name": e, "value": e})).collect();
        let of = |name: &&str| json!({"name": name, "image": "old", "env": env, "args": [1, 2]});
        let containers: Vec<Value> = containers.iter().map(of).collect();
        let labels = if labels { json!({"a": "1", "b": "2"}) } else { json!({}) };
        json!({"metadata": {"finalizers": finalizers, "labels": labels}, "spec": {"containers": containers}})
    })
}

/// An element of a patch: makes the change for a name.
fn change() -> impl Strategy<Value = fn(&str) -> Value> {
    prop_oneof![
        Just((|name| json!({"name": name, "$patch": "delete"})) as fn(&str) -> Value),
        Just((|name| json!({"name": name, "image": "new"})) as fn(&str) -> Value),
        Just((|name| json!({"name": name, "image": null, "args": [3]})) as fn(&str) -> Value),
        Just(
            (|name| json!({"name": name, "args": null, "env": [{"name": "a", "value": "new"}, {"name": "e", "value": "more"}]}))
                as fn(&str) -> Value
        ),
        Just(
            (|name| json!({"name": name, "env": [{"name": "b", "$patch": "delete"}, {"name": "c", "value": null}]}))
                as fn(&str) -> Value
        ),
    ]
}

fn patch() -> impl Strategy<Value = Value> {
    let containers = names().prop_flat_map(|names| {
        let changes = proptest::collection::vec(change(), names.len());
        changes.prop_map(move |changes| {
            let both = names.iter().zip(changes);
            both.map(|(name, change)| change(name))
                .collect::<Vec<Value>>()
        })
    });
    let labels = prop_oneof![
        Just(json!({"a": null, "c": "3"})),
        Just(json!({"b": "9"})),
        Just(Value::Null),
        Just(json!({}))
    ];
    // A patch does not delete what it adds.
    let finalizers = prop_oneof![
        Just(json!({"finalizers": ["d", "e"]})),
        Just(json!({"$deleteFromPrimitiveList/finalizers": ["a", "b"]})),
        Just(json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["e"]})),
        Just(json!({})),
    ];
    (containers, labels, finalizers).prop_map(|(containers, labels, mut metadata)| {
        metadata["labels"] = labels;
        json!({"metadata": metadata, "spec": {"containers": containers}})
    })
}

/// The names of the containers, in order.
fn order(pod: &Value) -> Vec<String> {
    let list = pod["spec"]["containers"].as_array().into_iter().flatten();
    list.map(|c| c["name"].as_str().unwrap().to_owned())
        .collect()
}

fn is_deleted(element: &Value) -> bool {
    element.get("$patch").is_some()
}

proptest! {
    #[test]
    fn a_strategic_patch_is_a_merge_patch_of_the_views(document in document(), patch in patch()) {
        let patched = strategic::patch(Schema::Pod, &document, &patch).unwrap();
        let plain = merge_patch(&view(Schema::Pod, &document), &view(Schema::Pod, &patch));
        prop_assert_eq!(filled(view(Schema::Pod, &patched)), filled(plain));
    }

    #[test]
    fn named_elements_stand_in_the_order_of_the_patch_and_the_others_in_their_own(document in document(), patch in patch()) {
        let patched = strategic::patch(Schema::Pod, &document, &patch).unwrap();
        let given = patch["spec"]["containers"].as_array().unwrap();
        let kept: Vec<String> = given
            .iter()
            .filter(|element| !is_deleted(element))
            .map(|element| element["name"].as_str().unwrap().to_owned())
            .collect();
        let after = order(&patched);
        let named: Vec<&String> = after.iter().filter(|name| kept.contains(name)).collect();
        prop_assert_eq!(named, kept.iter().collect::<Vec<_>>());
        let mentioned = |name: &&String| given.iter().any(|element| element["name"] == **name);
        let before = order(&document);
        let rest: Vec<&String> = after.iter().filter(|name| !mentioned(name)).collect();
        let own: Vec<&String> = before.iter().filter(|name| !mentioned(name)).collect();
        prop_assert_eq!(rest, own);
    }

    #[test]
    fn retained_keys_are_all_that_is_left(document in document(), kept in names()) {
        // Labels stand for any object with exclusive fields.
        let keys: Vec<&str> = kept.clone();
        let patch = json!({"metadata": {"labels": {"$retainKeys": keys}}});
        let patched = strategic::patch(Schema::Pod, &document, &patch).unwrap();
        let before = document["metadata"]["labels"].as_object().unwrap();
        let expected: Map<String, Value> = before
            .iter()
            .filter(|(name, _)| kept.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        prop_assert_eq!(&patched["metadata"]["labels"], &Value::Object(expected));
    }

    #[test]
    fn an_order_list_alone_orders(document in document(), wanted in names()) {
        let given: Vec<Value> = wanted.iter().map(|name| json!({"name": name})).collect();
        let patch = json!({"spec": {"$setElementOrder/containers": given}});
        let patched = strategic::patch(Schema::Pod, &document, &patch).unwrap();
        let (before, after) = (order(&document), order(&patched));
        let mut sorted = [before.clone(), after.clone()];
        sorted.iter_mut().for_each(|names| names.sort());
        prop_assert_eq!(&sorted[0], &sorted[1], "nothing comes or goes");
        let there = |name: &&&str| before.iter().any(|b| b == **name);
        let expected: Vec<&str> = wanted.iter().filter(there).copied().collect();
        let named: Vec<&str> = after.iter().map(String::as_str).filter(|n| wanted.contains(n)).collect();
        prop_assert_eq!(named, expected);
    }
}
