//! Objects as people write them.

mod cel;
mod debug;
mod definitions;
mod facts;
mod read;
mod request;

use serde_json::Value;

use strew_manifest::read::{KubeObject, Sources, read};

/// The only object of a text, which is good.
#[track_caller]
fn object(text: &str) -> KubeObject {
    let mut sources = Sources::new();
    sources.add("test.yaml", text);
    let mut reading = read(&sources);
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    reading.objects.pop().expect("it holds an object").object
}

/// A Placement `shop/web` with this `spec`, in YAML's flow style.
#[track_caller]
fn placement(spec: &str) -> super::wire::Placement {
    annotated("{}", spec)
}

/// The same with annotations.
#[track_caller]
fn annotated(annotations: &str, spec: &str) -> super::wire::Placement {
    let text = format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
         metadata: {{namespace: shop, name: web, uid: u1, resourceVersion: '7', annotations: {annotations}}}\nspec: {spec}"
    );
    match object(&text) {
        KubeObject::Placement(placement) => *placement,
        other => panic!("{other:?}"),
    }
}

/// JSON, to be compared.
fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}
