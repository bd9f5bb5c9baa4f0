//! The ownership of CustomResourceDefinitions.

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::until;

use super::{bind_all, cluster, placement, until_selected};
use crate::e2e::stage::{PAUSE, SOON, Stage};

/// A controller that starts before its kinds exist; and kinds that belong to OCM, which stay unchanged.
pub(crate) fn definitions(stage: &mut Stage) -> anyhow::Result<()> {
    // Other cases may have left the definitions.
    let printed = stage.printed(&["placement", "--crds=always"])?;
    let definitions: Vec<Value> = printed["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .cloned()
        .collect();
    ensure!(definitions.len() == 6, "{} definitions", definitions.len());
    for definition in &definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        stage
            .kubectl()
            .run(&["delete", "crd", name, "--ignore-not-found"])?;
    }
    stage.install(&["placement", "--crds=never"])?;
    let mut controller = stage.placement_controller(&[])?;
    until("it says what is not there", SOON, PAUSE, || {
        controller.expect_running()?;
        let waits = "waits for its CustomResourceDefinitions";
        Ok(controller.output().contains(waits).then_some(()))
    })
    .with_context(|| controller.output())?;

    // A kind that exists, but not in the version that the controller knows.
    let of_placements = |object: &&Value| object["spec"]["names"]["kind"] == "Placement";
    let mut older = definitions.iter().find(of_placements).cloned();
    let older = older.as_mut().context("a definition of Placement")?;
    older["spec"]["versions"][0]["name"] = json!("v1alpha1");
    let create = ["create", "--filename=-"];
    stage.kubectl().run_with(&create, older)?;
    let unfit = "is served as v1alpha1, and strew knows v1beta1";
    until("it says what is served", SOON, PAUSE, || {
        controller.expect_running()?;
        Ok(controller.output().contains(unfit).then_some(()))
    })
    .with_context(|| controller.output())?;
    let name = older["metadata"]["name"].as_str().unwrap_or_default();
    stage.kubectl().run(&["delete", "crd", name])?;

    // As OCM makes them: without strew's label, and without what only strew's schema has.
    let mut theirs = definitions;
    for definition in &mut theirs {
        definition["metadata"]["labels"] = json!({"installer.example.com": "ocm"});
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let terms = "/properties/spec/properties/spreadPolicy/properties/spreadConstraints/items/properties";
        if let Some(Value::Object(term)) = schema.pointer_mut(terms) {
            term.shift_remove("topologyWeights");
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": theirs});
    stage.kubectl().run_with(&create, &list)?;
    for definition in &theirs {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let name = format!("crd/{name}");
        stage.kubectl().run(&[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            &name,
        ])?;
    }
    stage.is_hub = true;
    bind_all(stage)?;
    for (name, zone) in [("c1", "a"), ("c2", "a"), ("c3", "b")] {
        stage.apply_all(vec![cluster(name, json!({"zone": zone}), json!([]))])?;
    }
    let spec = json!({
        "numberOfClusters": 2,
        "spreadPolicy": {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label"}]},
    });
    stage.apply_all(vec![placement("later", spec)])?;
    let got = until_selected(stage, "later", |got| got.len() == 2)?;
    ensure!(got.contains("c3"), "{got:?}");

    // The cluster says to whom the definitions belong.
    let printed = stage.printed(&["placement"])?;
    let mut again = printed["items"].as_array().into_iter().flatten();
    if let Some(one) = again.find(|object| object["kind"] == "CustomResourceDefinition") {
        bail!("{} is OCM's, and printed", one["metadata"]["name"]);
    }
    for definition in &theirs {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        stage
            .kubectl()
            .run(&["delete", "crd", name, "--wait=false"])?;
    }
    stage.is_hub = false;
    Ok(())
}
