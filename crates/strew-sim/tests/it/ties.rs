//! Which of equal nodes a pod gets, over seeds. Source: spec/scheduler §2.5; kube-scheduler finds feasible nodes with
//! parallel workers.

use std::collections::BTreeMap;

use strew_apiserver::object::Pod;
use strew_manifest::read::Sources;
use strew_model::Interner;
use strew_scheduler::{Compat, TieRule};
use strew_sim::Blueprint;
use strew_wire::config::{FeatureGates, Given, configure};

use crate::life::Life;

const POD: &str = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n\
     spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n";

/// How often a pod gets each of 8 equal nodes, over 200 seeds.
fn taken(parallelism: Option<u32>, ties: TieRule) -> BTreeMap<String, usize> {
    let mut sources = Sources::new();
    if let Some(parallelism) = parallelism {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             parallelism: {parallelism}\n"
        );
        sources.add("config.yaml", text);
    }
    let given = match parallelism {
        Some(_) => Given::Files(&sources),
        None => Given::Nothing,
    };
    let mut names = Interner::new();
    let mut configuration = configure(given, &FeatureGates::default(), &mut names).unwrap();
    configuration.set_choices(Compat::V1_36, ties);
    let blueprint = Blueprint::of(&configuration, names);
    let text = format!("{}{POD}", crate::life::nodes(8, 1));
    let mut taken = BTreeMap::new();
    for seed in 0..200 {
        let mut life = Life::decided_by(&blueprint, &text, seed);
        life.until(1);
        let tables = life.sim.server().tables();
        let pod = tables.of::<Pod>().iter().next().unwrap();
        let node = pod.node.as_deref().unwrap().to_owned();
        *taken.entry(node).or_default() += 1;
    }
    taken
}

fn all() -> Vec<String> {
    (0..8).map(|i| format!("n{i}")).collect()
}

#[test]
fn each_of_equal_nodes_is_taken_in_some_life() {
    let taken = taken(None, TieRule::Upstream136);
    assert!(taken.keys().eq(&all()), "{taken:?}");
    assert_eq!(taken.values().max(), taken.get("n0"), "{taken:?}");
}

#[test]
fn one_worker_takes_the_same_in_every_life() {
    let expected = BTreeMap::from([("n0".to_owned(), 200)]);
    assert_eq!(taken(Some(1), TieRule::Upstream136), expected);
    let expected = BTreeMap::from([("n0".to_owned(), 200)]);
    assert_eq!(taken(None, TieRule::FirstName), expected);
}

#[test]
fn the_random_rule_is_another_draw_in_every_life() {
    let taken = taken(None, TieRule::Random(0));
    assert!(taken.keys().eq(&all()), "{taken:?}");
}
