//! Objects as people write them.

mod definitions;
mod validation;

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
fn placement(spec: &str) -> strew_manifest::ocm::Placement {
    annotated("{}", spec)
}

/// The same with annotations.
#[track_caller]
fn annotated(annotations: &str, spec: &str) -> strew_manifest::ocm::Placement {
    let text = format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
         metadata: {{namespace: shop, name: web, uid: u1, resourceVersion: '7', annotations: {annotations}}}\nspec: {spec}"
    );
    match object(&text) {
        KubeObject::Placement(placement) => *placement,
        other => panic!("{other:?}"),
    }
}
