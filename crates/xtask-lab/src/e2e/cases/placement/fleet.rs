//! Many clusters and placements; changes of clusters and their scores.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, now, until};

use super::{
    GROUP, bind_all, cluster, clusters_of, counts, placement, selected, until_selected, until_told,
};
use crate::e2e::stage::{PAUSE, Stage, name_of};

const REGIONS: usize = 4;

/// Clusters over regions of four zones each.
fn many(n: usize, tainted: Option<usize>) -> Vec<Value> {
    (0..n)
        .map(|number| {
            let region = number % REGIONS;
            let zone = number / REGIONS % 4;
            let labels = json!({
                "region": format!("r{region}"),
                "zone": format!("r{region}-z{zone}"),
                "number": number.to_string(),
            });
            let taints = match tainted {
                Some(lost) if lost == region => json!([{
                    "key": format!("{GROUP}/unreachable"), "effect": "NoSelect",
                    "timeAdded": "2026-01-01T00:00:00Z",
                }]),
                _ => json!([]),
            };
            cluster(&format!("c-{number:04}"), labels, taints)
        })
        .collect()
}

/// 200 clusters: spread over regions and zones; a region is lost and comes back; scores change.
pub(crate) fn fleet(stage: &mut Stage) -> anyhow::Result<()> {
    let n = 200;
    // The only replica: it need not wait for the lease of a killed one.
    let mut controllers = stage.hub(1, &["--leader-elect=false"])?;
    bind_all(stage)?;
    let clusters = many(n, None);
    stage.apply_all(clusters.clone())?;
    let spec = json!({
        "numberOfClusters": 20,
        "spreadPolicy": {"spreadConstraints": [
            {"topologyKey": "region", "topologyKeyType": "Label", "whenUnsatisfiable": "DoNotSchedule"},
            {"topologyKey": "zone", "topologyKeyType": "Label"},
        ]},
    });
    stage.apply_all(vec![placement("spread", spec), placement("all", json!({}))])?;
    let even = |got: &BTreeSet<String>| {
        let regions = counts(got, &clusters, "region");
        got.len() == 20 && regions.len() == REGIONS && regions.values().all(|&n| n == 5)
    };
    let first = until_selected(stage, "spread", even)?;
    let zones = counts(&first, &clusters, "zone");
    ensure!(
        zones.len() == 16 && zones.values().all(|&n| n <= 2),
        "{zones:?}"
    );
    until_selected(stage, "all", |got| got.len() == n)?;
    until_told(
        stage,
        "all",
        ("PlacementSatisfied", "True", "AllDecisionsScheduled"),
        n,
    )?;

    // An unreachable region blocks no choice, and a selected cluster stays. The region goes at once: of a region with
    // one cluster left, a hard limit would take the others down to two each.
    controllers.iter_mut().for_each(Component::kill);
    stage.apply_all(many(n, Some(0)))?;
    controllers.iter_mut().try_for_each(Component::restart)?;
    let lost = until_selected(stage, "spread", |got| {
        let regions = counts(got, &clusters, "region");
        got.len() == 20 && regions.len() == REGIONS - 1
    })?;
    let stayed = first
        .iter()
        .filter(|name| counts_in(name, &clusters, "r0") == 0);
    let gone: Vec<&String> = stayed.filter(|name| !lost.contains(*name)).collect();
    ensure!(gone.is_empty(), "moved without a need: {gone:?}");
    until_selected(stage, "all", |got| got.len() == n * 3 / 4)?;
    stage.apply_all(clusters.clone())?;
    until_selected(stage, "spread", even)?;
    until_selected(stage, "all", |got| got.len() == n)?;
    scores(stage)
}

fn counts_in(name: &str, clusters: &[Value], region: &str) -> usize {
    let one = BTreeSet::from([name.to_owned()]);
    counts(&one, clusters, "region")
        .get(region)
        .copied()
        .unwrap_or_default()
}

/// The best three clusters by an add-on's score, as the score changes.
fn scores(stage: &Stage) -> anyhow::Result<()> {
    let coordinate =
        json!({"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "demo"}});
    let spec = json!({
        "numberOfClusters": 1,
        "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]},
    });
    for (name, value) in [("c-0000", 80), ("c-0001", 90), ("c-0002", 100)] {
        // A cluster's namespace has the cluster's name; the case deletes it.
        stage.kubectl().run(&["create", "namespace", name])?;
        let score = json!({
            "apiVersion": format!("{GROUP}/v1alpha1"),
            "kind": "AddOnPlacementScore",
            "metadata": {"name": "demo", "namespace": name},
        });
        stage
            .kubectl()
            .run_with(&["create", "--filename=-"], &score)?;
        set_score(stage, name, value)?;
    }
    stage.apply_all(vec![placement("scored", spec)])?;
    let is_only = |name: &'static str| move |got: &BTreeSet<String>| got.iter().eq([name]);
    until_selected(stage, "scored", is_only("c-0002"))?;
    set_score(stage, "c-0002", -100)?;
    until_selected(stage, "scored", is_only("c-0001"))?;
    for name in ["c-0000", "c-0001", "c-0002"] {
        stage
            .kubectl()
            .run(&["delete", "namespace", name, "--wait=false"])?;
    }
    Ok(())
}

fn set_score(stage: &Stage, cluster: &str, value: i32) -> anyhow::Result<()> {
    let patch = json!({"status": {"scores": [{"name": "demo", "value": value}]}}).to_string();
    let namespace = format!("--namespace={cluster}");
    let args = [
        "patch",
        "addonplacementscore/demo",
        &namespace,
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ];
    stage.kubectl().run(&args).map(drop)
}

/// A hundred placements of ten over a hundred clusters, and one more cluster.
pub(crate) fn hundred(stage: &mut Stage) -> anyhow::Result<()> {
    let _controllers = stage.hub(1, &[])?;
    bind_all(stage)?;
    stage.apply_all(many(100, None))?;
    let begin = now();
    let all = (0..100)
        .map(|number| placement(&format!("p-{number:02}"), json!({"numberOfClusters": 10})));
    stage.apply_all(all.collect())?;
    let mut last = 0;
    until(
        "a thousand decisions",
        Duration::from_secs(120),
        PAUSE,
        || {
            let decisions = stage.list("placementdecisions")?;
            last = decisions
                .iter()
                .map(|decision| clusters_of(decision).count())
                .sum();
            Ok((last == 1000).then_some(()))
        },
    )
    .with_context(|| format!("{last} decisions"))?;
    println!(
        "  decided {:.1} s after the first was there",
        begin.elapsed().as_secs_f64()
    );
    for number in [0, 50, 99] {
        let name = format!("p-{number:02}");
        let satisfied = ("PlacementSatisfied", "True", "AllDecisionsScheduled");
        until_told(stage, &name, satisfied, 10)?;
        ensure!(selected(stage, &name)?.len() == 10, "{name}");
    }
    // Balance uses clusters about evenly, since the placements came one after another.
    let decisions = stage.list("placementdecisions")?;
    let mut names: Vec<&str> = decisions.iter().map(name_of).collect();
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == 100, "{} PlacementDecisions", names.len());
    Ok(())
}
