//! Seeded lives of hubs under faults: none breaks a rule, and a controller that breaks one on purpose is found.

use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Key, Kind, Name};
use strew_manifest::read::{KubeObject, Sources, read};
use strew_model::time::Instant;
use strew_placement::explain::Detail;
use strew_sim::auditor::Rule;
use strew_sim::chaos::placement::{generate, play, shrink};
use strew_sim::chaos::{Figures, Parts};
use strew_sim::{Diligence, Hub};

use crate::life::{Life, nodes};

#[test]
fn no_life_of_a_hub_breaks_a_rule() {
    let parts = Parts::real();
    let mut figures = Figures::default();
    for seed in 0..200 {
        let story = generate(seed);
        let verdict = play(&story, &parts, Diligence::AsDecided);
        assert!(
            verdict.violations.is_empty(),
            "{story}{}\n# smaller: cargo xtask soak --of placement --seed {seed}",
            verdict.violations[0]
        );
        figures.add(&verdict.figures);
    }
    // A hub on which nothing happens proves nothing.
    assert!(figures.placed > 1_000, "{figures:?}");
    assert!(!figures.is_refused(), "{figures:?}");
    assert!(figures.decisions > 3_000, "{figures:?}");
    assert_eq!(figures.faults.len(), 8, "{figures:?}");
}

/// In these lives a placement's write gives Balance other scores between two writes of another placement's decision.
#[test]
fn a_decision_is_carried_out_although_scores_change_meanwhile() {
    let parts = Parts::real();
    for seed in [1872, 2109] {
        let verdict = play(&generate(seed), &parts, Diligence::AsDecided);
        assert_eq!(verdict.violations, [], "seed {seed}");
    }
}

#[test]
fn equal_stories_give_equal_lives_of_hubs() {
    let parts = Parts::real();
    for seed in [5, 6] {
        let story = generate(seed);
        assert_eq!(story, generate(seed));
        let life = || play(&story, &parts, Diligence::AsDecided);
        assert_eq!(life(), life());
    }
}

#[test]
fn writes_in_the_wrong_order_are_found_out_and_the_story_made_small() {
    let parts = Parts::real();
    let breaks = |story: &_| {
        let verdict = play(story, &parts, Diligence::Overtaking);
        verdict
            .violations
            .iter()
            .any(|v| v.rule == Rule::KeptCluster)
    };
    let mut stories = (0..100).map(generate);
    let story = stories.find(|story| breaks(story));
    let story = story.expect("no story of a hundred shows that writes overtake each other");
    let small = shrink(&story, Rule::KeptCluster, &parts, Diligence::Overtaking);
    assert!(breaks(&small), "{small}");
    assert!(small.clusters.len() <= story.clusters.len());
    assert!(small.events.len() <= 3, "{small}");
    let honest = play(&small, &parts, Diligence::AsDecided);
    assert!(
        honest.violations.is_empty(),
        "{small}{:?}",
        honest.violations
    );
}

const HUB: &str = "
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1}
spec: {hubAcceptsClient: true, taints: [{key: old, effect: PreferNoSelect, timeAdded: \"2025-12-31T00:00:00Z\"}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: default, namespace: shop}
spec: {clusterSet: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web, namespace: shop}
spec: {numberOfClusters: 1}
";

fn json(life: &Life, kind: &str, namespace: &str, name: &str) -> serde_json::Value {
    let key = key(kind, namespace, name);
    let found = life.sim.server().tables().find(&key);
    found.map(|object| object.to_json()).unwrap_or_default()
}

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    Key {
        kind: Kind::of(kind),
        name: Name::new(namespace, name),
    }
}

#[test]
fn a_hub_has_its_sets_and_stamps_taints() {
    let mut life = Life::of(HUB, 1);
    life.sim.drain().unwrap();
    for set in ["default", "global"] {
        assert!(
            json(&life, "ManagedClusterSet", "", set).is_object(),
            "{set}"
        );
    }
    let decision = json(&life, "PlacementDecision", "shop", "web-decision-1");
    assert_eq!(decision["status"]["decisions"][0]["clusterName"], "c1");
    let status = json(&life, "Placement", "shop", "web")["status"].clone();
    assert_eq!(status["numberOfSelectedClusters"], 1);
    let cluster = key("ManagedCluster", "", "c1");
    let edited = life.sim.edit(&cluster, &mut |value| {
        let taint = serde_json::json!({"key": "new", "effect": "NoSelect"});
        value["spec"]["taints"].as_array_mut().unwrap().push(taint);
        Ok(())
    });
    let edited = edited.unwrap().to_json();
    let taints = &edited["spec"]["taints"];
    assert_eq!(taints[0]["timeAdded"], "2025-12-31T00:00:00Z");
    assert_eq!(taints[1]["timeAdded"], "2026-01-01T00:00:00Z");
    let label = "cluster.open-cluster-management.io/clusterset";
    assert_eq!(edited["metadata"]["labels"][label], "default");
    assert_eq!(edited["metadata"]["generation"], 2);
}

#[test]
fn a_hub_at_one_instant_decides_each_placement_when_it_is_added() {
    let objects = || {
        let documents = HUB.split("---").map(|document| {
            let mut sources = Sources::new();
            sources.add("hub.yaml", document);
            read(&sources).objects.remove(0).object
        });
        documents.collect::<Vec<KubeObject>>()
    };
    let decided = |registers: bool| {
        let mut stored = objects();
        let placement = stored.pop().unwrap();
        let mut hub = Hub::new(stored, registers, Instant::from_secs(1_767_225_600));
        let KubeObject::Placement(written) = &placement else {
            panic!("{placement:?}");
        };
        let explained = hub.explain(written, Detail::Outline);
        assert!(explained.is_decided);
        hub.add(placement);
        let decision = key("PlacementDecision", "shop", "web-decision-1");
        let stored = hub.tables().find(&decision);
        let stored = stored.map(|object| object.to_json()["status"]["decisions"].clone());
        (explained.result.selected_clusters, stored)
    };
    let (selected, stored) = decided(true);
    assert_eq!(selected, ["c1"]);
    assert_eq!(stored.unwrap()[0]["clusterName"], "c1");
    // Without registration there is no set default.
    let (selected, stored) = decided(false);
    assert_eq!((selected.len(), stored), (0, Some(serde_json::Value::Null)));
}

#[test]
fn decisions_go_with_their_placement_and_come_back_alone() {
    let mut life = Life::of(HUB, 2);
    life.sim.drain().unwrap();
    let decision = key("PlacementDecision", "shop", "web-decision-1");
    let options = DeleteOptions::default();
    life.sim.delete(&decision, &options).unwrap();
    life.sim.drain().unwrap();
    assert!(json(&life, "PlacementDecision", "shop", "web-decision-1").is_object());
    let placement = key("Placement", "shop", "web");
    life.sim.delete(&placement, &options).unwrap();
    life.until(5);
    assert!(json(&life, "PlacementDecision", "shop", "web-decision-1").is_null());
}

#[test]
fn a_cluster_without_placements_has_no_controller() {
    let mut life = Life::of(&nodes(1, 1), 3);
    life.sim.drain().unwrap();
    assert!(life.sim.placing().is_none());
    assert!(json(&life, "ManagedClusterSet", "", "global").is_null());
}
