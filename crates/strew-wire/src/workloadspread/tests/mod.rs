//! The wire of WorkloadSpread, from texts to texts.

mod conversion;
mod definition;
mod effects;
mod facts;
mod injection;
mod lifecycle;
mod linting;
mod reading;

use serde_json::{Value, json};

use super::v1beta1::WorkloadSpread;
use strew_manifest::read::{KubeObject, Reading, Sources, read};

/// Objects of a text.
fn objects(text: &str) -> Vec<KubeObject> {
    let reading = reading(text);
    assert!(!reading.has_errors(), "{:?}", reading.diagnostics);
    reading.objects.into_iter().map(|o| o.object).collect()
}

fn reading(text: &str) -> Reading {
    let mut sources = Sources::new();
    sources.add("ws.yaml", text);
    read(&sources)
}

fn spread(value: Value) -> WorkloadSpread {
    serde_json::from_value(value).unwrap()
}

/// A WorkloadSpread of these subsets for Deployment `shop/web`.
fn web(subsets: Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "ws", "namespace": "shop", "uid": "ws-uid", "resourceVersion": "41", "generation": 3},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": subsets,
        },
    })
}

/// A pod of ReplicaSet `shop/web-7` as the API server shows it to a webhook.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-7-",
            "namespace": "shop",
            "labels": {"app": "web", "pod-template-hash": "7"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7", "uid": "rs", "controller": true}],
        },
        "spec": {"containers": [{"name": "main", "image": "web"}], "priority": 10, "priorityClassName": "high"},
    })
}
