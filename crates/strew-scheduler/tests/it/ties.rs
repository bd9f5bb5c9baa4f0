//! Which of equal nodes is taken, over seeds: as parallel filter workers would find them.
//!
//! Source: spec/scheduler §2.5.

use std::collections::{BTreeMap, BTreeSet};

use strew_cluster::{NodeIdx, PodIdx, PodSpec};
use strew_scheduler::{Compat, Decision, Engine, FilterOrder, Profile, TieRule};

use crate::reasons::Scene;

/// `parallelism`, unless it is given.
const WORKERS: u32 = 16;

/// `n` equal nodes, and a pod that any of them takes.
fn equal_nodes(n: usize) -> (Scene, PodIdx) {
    let mut scene = Scene::new();
    (0..n).for_each(|i| scene.node(&format!("n{i}"), |_| {}));
    let fact = scene.pod("p", PodSpec::default());
    let pod = scene.cluster.set_pod(fact);
    (scene, pod)
}

/// How often each of 8 equal nodes is taken, by its number, over 200 seeds.
fn taken(profile: &Profile, workers: u32) -> BTreeMap<u32, usize> {
    let (mut scene, pod) = equal_nodes(8);
    let mut taken = BTreeMap::new();
    for seed in 0..200 {
        let mut engine = Engine::new(profile.clone().drawn_from(seed, workers));
        match engine.decide(&mut scene.cluster, pod) {
            Decision::Place { node, .. } => *taken.entry(node.0).or_default() += 1,
            unfit => panic!("{unfit:?}"),
        }
    }
    taken
}

#[test]
fn each_of_equal_nodes_is_taken_with_some_seed_and_the_first_most_often() {
    let taken = taken(&Profile::default(), WORKERS);
    assert!(taken.keys().copied().eq(0..8), "{taken:?}");
    let first = taken[&0];
    // Half of the time, about: on one core always, on two every second time, and so on.
    assert!((60..120).contains(&first), "{taken:?}");
    assert!(taken.values().skip(1).all(|&n| n < first), "{taken:?}");
}

#[test]
fn one_worker_takes_the_first_in_visiting_order_with_every_seed() {
    assert_eq!(taken(&Profile::default(), 1), BTreeMap::from([(0, 200)]));
}

/// strew's own scheduler has no parallel workers, and its rule needs no order.
#[test]
fn strew_s_own_rule_takes_the_same_node_with_every_seed() {
    let own = Profile {
        compat: Compat::Strew,
        ties: TieRule::FirstName,
        ..Profile::default()
    };
    assert_eq!(own.clone().drawn_from(7, WORKERS), own);
    assert_eq!(taken(&own, WORKERS), BTreeMap::from([(0, 200)]));
}

#[test]
fn the_random_rule_draws_from_the_seed_of_the_life() {
    let random = Profile {
        ties: TieRule::Random(0),
        ..Profile::default()
    };
    let taken = taken(&random, WORKERS);
    assert!(taken.keys().copied().eq(0..8), "{taken:?}");
    assert!(taken.values().all(|n| (10..45).contains(n)), "{taken:?}");
}

/// A search that ends early finds as many nodes, and not the same ones; what is evaluated is what is decided.
#[test]
fn a_sampled_search_finds_other_nodes_over_seeds_and_as_many() {
    let (mut scene, pod) = equal_nodes(300);
    let mut found: BTreeSet<BTreeSet<NodeIdx>> = BTreeSet::new();
    let visiting: BTreeSet<NodeIdx> = (0..144).map(NodeIdx).collect();
    for seed in 0..40 {
        let sampled = Profile {
            percentage_of_nodes_to_score: Some(48),
            ..Profile::default()
        };
        let profile = sampled.drawn_from(seed, WORKERS);
        let mut engine = Engine::new(profile);
        for _ in 0..5 {
            let evaluation = engine.evaluate(&mut scene.cluster, pod);
            assert_eq!(evaluation.feasible.len(), 144);
            let taken = evaluation.taken.map(|place| evaluation.feasible[place]);
            match engine.decide(&mut scene.cluster, pod) {
                Decision::Place { node, feasible, .. } => {
                    assert_eq!((Some(node), feasible), (taken, 144), "seed {seed}");
                }
                unfit => panic!("{unfit:?}"),
            }
            found.insert(evaluation.feasible.into_iter().collect());
        }
    }
    assert!(found.contains(&visiting), "one core");
    assert!(found.len() > 40, "{} different sets", found.len());
}

#[test]
fn a_profile_looks_at_nodes_in_visiting_order_unless_told_otherwise() {
    assert_eq!(Profile::default().filter_order, FilterOrder::Visiting);
    let raced = FilterOrder::Raced {
        workers: WORKERS,
        seed: 3,
    };
    let drawn = Profile::default().drawn_from(3, WORKERS);
    assert_eq!(drawn.filter_order, raced);
    assert_eq!(drawn.ties, TieRule::Upstream136);
}
