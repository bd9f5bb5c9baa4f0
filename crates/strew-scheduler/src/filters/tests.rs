//! A filter that is added is obeyed by everything that decides.

use strew_cluster::{Cluster, NodeFact, NodeIdx, PodFact, PodHistory, PodIdx, PodSpec};
use strew_model::{Labels, Resources, well_known};

use super::toy;
use crate::engine::{Decision, Engine};
use crate::group_limits::GroupLimits;
use crate::profile::Profile;

/// Enough for a search that samples.
const NODES: usize = 240;

/// Every node but this one refuses.
const ONLY: &str = "n137";

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    for i in 0..NODES {
        let name = cluster.names.intern(&format!("n{i}"));
        cluster.set_node(NodeFact {
            name,
            labels: Labels::new(vec![(well_known::HOSTNAME, name)]),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(64_000, 1 << 40),
            pods_max: 110,
            images: Box::default(),
        });
    }
    cluster
}

fn pod(cluster: &mut Cluster, name: &str) -> PodIdx {
    let requests = Resources::of(100, 1 << 20);
    cluster.set_pod(PodFact {
        uid: name.into(),
        name: name.into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec: PodSpec {
            used: requests.clone(),
            requests,
            ..PodSpec::default()
        },
        history: PodHistory::default(),
    })
}

fn node_name(cluster: &Cluster, node: NodeIdx) -> &str {
    cluster.names.text(cluster.node(node).name())
}

/// The nodes of ten pods, decided one after the other.
fn decided(mut engine: Engine) -> Vec<String> {
    let mut cluster = cluster();
    let mut nodes = Vec::new();
    for i in 0..10 {
        let pod = pod(&mut cluster, &format!("p{i}"));
        let Decision::Place { node, .. } = engine.decide(&mut cluster, pod) else {
            panic!("pod p{i} has no node");
        };
        nodes.push(node_name(&cluster, node).to_owned());
        cluster.bind(pod, node);
    }
    nodes
}

/// Engines that list all nodes, that sample them, and that evaluate one node of each group of equal nodes.
fn engines() -> Vec<(&'static str, Engine)> {
    let always = GroupLimits {
        groups_min: NODES,
        nodes_per_group: 1,
        rest_decisions: 0,
        decisions_min: 0,
        ..GroupLimits::PRODUCTION
    };
    let mut grouped = Engine::new(Profile::default());
    grouped.set_group_limits(always);
    let sampling = Profile {
        percentage_of_nodes_to_score: Some(50),
        ..Profile::default()
    };
    vec![
        ("lists", Engine::new(Profile::default())),
        ("samples", Engine::new(sampling)),
        ("groups", grouped),
    ]
}

#[test]
fn a_filter_that_is_added_is_obeyed_by_all_that_decide() {
    toy::set(Some(ONLY));
    for (how, engine) in engines() {
        assert_eq!(decided(engine), [ONLY; 10], "{how}");
    }
    let mut cluster = cluster();
    let pod = pod(&mut cluster, "p");
    let evaluation = Engine::new(Profile::default()).evaluate(&mut cluster, pod);
    let feasible = evaluation.feasible.iter().copied();
    let feasible: Vec<&str> = feasible.map(|node| node_name(&cluster, node)).collect();
    assert_eq!(feasible, [ONLY]);
    toy::set(None);
    for (how, engine) in engines() {
        assert!(decided(engine).iter().any(|node| node != ONLY), "{how}");
    }
}
