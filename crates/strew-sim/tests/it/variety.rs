//! What varies from seed to seed, as it does in a real cluster, and what does not.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use strew_apiserver::object::{Node, Pod};
use strew_model::time::Span;

use crate::life::{Life, nodes};

const SEEDS: u64 = 20;

fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 400m}}}}}}]}}\n"
    )
}

/// Pods with a node, by their label `app`.
fn placed(life: &Life) -> BTreeMap<String, usize> {
    let mut placed = BTreeMap::new();
    for pod in life.sim.server().tables().of::<Pod>().iter() {
        let app = pod.meta.label("app").unwrap_or_default().to_owned();
        *placed.entry(app).or_default() += usize::from(pod.node.is_some());
    }
    placed
}

#[test]
fn of_workloads_that_want_the_same_room_the_first_of_the_file_has_a_start() {
    for [first, second] in [["web", "own"], ["own", "web"]] {
        let text = nodes(1, 1) + &deployment(first, 10) + &deployment(second, 10);
        let mut splits = BTreeSet::new();
        for seed in 0..SEEDS {
            let mut life = Life::of(&text, seed);
            let placed = placed(life.until(30));
            assert_eq!(placed.values().sum::<usize>(), 10, "{placed:?}");
            assert!(placed[first] > placed[second], "{seed}: {placed:?}");
            splits.insert(placed[second]);
        }
        assert!(splits.len() > 1, "they never mix otherwise: {splits:?}");
    }
}

/// The moments since the start at which each node's kubelet is seen to live, from now on until then.
fn returns(life: &mut Life, until: Span) -> BTreeMap<Arc<str>, Span> {
    let mut seen = BTreeMap::new();
    let ran = life.sim.run_until(until, &mut |sim| {
        for node in sim.server().tables().of::<Node>().iter() {
            let name = &node.meta.name.name;
            if sim.has_kubelet(name) {
                seen.entry(Arc::clone(name)).or_insert(sim.elapsed());
            }
        }
        ControlFlow::Continue(())
    });
    assert!(ran.unwrap().is_continue());
    seen
}

#[test]
fn nodes_that_come_back_together_report_with_the_heartbeat_of_each() {
    let names = ["n0", "n1", "n2"];
    let mut firsts = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut life = Life::of(&nodes(3, 3), seed);
        life.until(30);
        for name in names {
            life.sim.lose(name).unwrap();
        }
        life.until(120);
        for name in names {
            life.sim.restore(name).unwrap();
        }
        let returns = returns(&mut life, Span::from_secs(140));
        let (from, to) = (Span::from_secs(120), Span::from_secs(130));
        let is_within = |at: &Span| (from..=to).contains(at);
        assert!(returns.values().all(is_within), "{returns:?}");
        let moments: BTreeSet<Span> = returns.values().copied().collect();
        assert_eq!(moments.len(), names.len(), "{returns:?}");
        let first = returns.iter().min_by_key(|(_, at)| **at).unwrap();
        firsts.insert(Arc::clone(first.0));
    }
    assert_eq!(firsts.len(), names.len(), "who is first is drawn");
}

#[test]
fn a_node_that_is_lost_again_before_its_heartbeat_stays_silent() {
    let mut life = Life::of(&nodes(1, 1), 1);
    life.until(30);
    life.sim.lose("n0").unwrap();
    life.until(60);
    life.sim.restore("n0").unwrap();
    life.sim.lose("n0").unwrap();
    life.until(90);
    assert!(!life.sim.has_kubelet("n0"));
}
