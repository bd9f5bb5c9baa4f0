//! What playing promises, whatever the scenario; the scenarios themselves are played in `library`.

use strew_manifest::read::Sources;
use strew_scenario::format::{Variant, load};
use strew_scenario::run::{Plan, play, scheduler_of};

fn variants(file: &str) -> Vec<Variant> {
    let path = format!("{}/tests/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut sources = Sources::new();
    sources.add(file, std::fs::read_to_string(path).unwrap());
    let loaded = load(&sources);
    assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
    loaded.variants
}

fn plan(variant: &Variant) -> Plan {
    let gates = &variant.scenario.feature_gates;
    let scheduler = scheduler_of(&Sources::new(), &variant.objects, gates).unwrap();
    Plan::new(&variant.scenario, &variant.objects, scheduler).unwrap()
}

#[test]
fn equal_seeds_give_equal_lives() {
    let variants = variants("rollout.yaml");
    let plan = plan(&variants[1]);
    let life = |seed| {
        let played = play(&plan, seed, None, &mut ()).unwrap();
        format!("{played:?}")
    };
    assert_eq!(life(3), life(3));
}

/// A cluster is given up five minutes after its taint, and nothing happens before.
const SILENCE: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: c1}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: c2}}
- {apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: global}, spec: {clusterSet: global}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web}
spec:
  numberOfClusters: 1
  tolerations: [{key: silent, operator: Exists, tolerationSeconds: 300}]
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: silence}
spec:
  timeline:
  - {at: 11m, patch: {managedcluster/c1: {spec: {taints: [{key: silent, effect: NoSelect}]}}}, expect: [{placement: {of: placement/web, clusters: [c2]}, within: WITHIN}]}
  - {at: 18m, expect: [{placement: {of: placement/web, clusters: [c2]}}]}
"#;

#[test]
fn what_comes_true_too_late_has_not_held_also_if_nothing_happened_at_the_deadline() {
    for (within, expected) in [("4m59.5s", false), ("5m", true)] {
        let mut sources = Sources::new();
        sources.add("silence.yaml", SILENCE.replace("WITHIN", within));
        let loaded = load(&sources);
        assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
        let played = play(&plan(&loaded.variants[0]), 1, None, &mut ()).unwrap();
        let held = |step: usize| played.steps[step].expectations[0].held;
        assert_eq!((held(0), held(1)), (expected, true), "within {within}");
    }
}
