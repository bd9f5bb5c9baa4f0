//! The use cases of the OCM spread proposal, and the ownership of CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::until;

use super::{bind_all, cluster, placement, selected, until_selected, until_told};
use crate::e2e::stage::{PAUSE, SOON, Stage};
use xtask::top;

/// The example, and how many clusters of each zone it gets: names without their numbers.
const USE_CASES: &[(&str, &[(&str, usize)])] = &[
    ("use-case-2", &[("east-a", 2), ("east-b", 2)]),
    ("use-case-4", &[("east-a", 1), ("east-b", 1), ("west-a", 2)]),
    ("use-case-5", &[("east-a", 2), ("east-b", 2), ("west-a", 2)]),
];

/// The files of examples/placement, as `strew place` decides them offline.
pub(crate) fn use_cases(stage: &mut Stage) -> anyhow::Result<()> {
    let _controllers = stage.hub(1, &[])?;
    bind_all(stage)?;
    apply_example(stage, "fleet")?;
    for (name, expected) in USE_CASES {
        apply_example(stage, name)?;
        let expected: BTreeMap<String, usize> = expected
            .iter()
            .map(|(zone, n)| ((*zone).to_owned(), *n))
            .collect();
        let n = expected.values().sum();
        let got = until_selected(stage, name, |got| got.len() == n)?;
        let mut zones = BTreeMap::new();
        for cluster in &got {
            let zone = cluster.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
            *zones.entry(zone.to_owned()).or_default() += 1;
        }
        ensure!(zones == expected, "{name}: {zones:?}, not {expected:?}");
        until_told(
            stage,
            name,
            ("PlacementSatisfied", "True", "AllDecisionsScheduled"),
            n,
        )?;
        let spread = ("PlacementSpreadSatisfied", "True", "SpreadSatisfied");
        until_told(stage, name, spread, n)?;
    }
    // Three and one: a hard limit of 1 lets three be chosen, and says so.
    let fleet = ["a1", "a2", "a3", "b1"];
    let fleet = fleet.map(|name| {
        let labels = json!({"region": "small", "zone": &name[..1]});
        cluster(name, labels, json!([]))
    });
    stage.apply_all(fleet.to_vec())?;
    let spec = json!({
        "numberOfClusters": 4,
        "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "small"}}}}],
        "spreadPolicy": {"spreadConstraints": [
            {"topologyKey": "zone", "topologyKeyType": "Label", "whenUnsatisfiable": "DoNotSchedule"},
        ]},
    });
    stage.apply_all(vec![placement("use-case-3", spec)])?;
    until_selected(stage, "use-case-3", |got| got.len() == 3)?;
    let unsatisfied = ("PlacementSatisfied", "False", "NotAllDecisionsScheduled");
    until_told(stage, "use-case-3", unsatisfied, 3)?;
    let limited = ("PlacementSpreadSatisfied", "False", "SpreadLimited");
    until_told(stage, "use-case-3", limited, 3)?;
    // An invalid Placement is reported, and gets no clusters.
    let spec = json!({"numberOfClusters": -1});
    stage.apply_all(vec![placement("nonsense", spec)])?;
    let misconfigured = ("PlacementMisconfigured", "True", "Misconfigured");
    until_told(stage, "nonsense", misconfigured, 0)?;
    // The deletion of a Placement deletes its decisions.
    stage.run(&["delete", "placement", "use-case-2"])?;
    until("its decisions go", SOON, PAUSE, || {
        Ok(selected(stage, "use-case-2")?.is_empty().then_some(()))
    })
}

pub(super) fn apply_example(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let path = top().join(format!("examples/placement/{name}.yaml"));
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    stage.apply_all(objects)
}

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
