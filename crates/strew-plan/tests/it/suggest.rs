//! What is suggested helps.

use strew_cluster::{Cluster, NodeFact, PodFact, PodHistory, PodSpec};
use strew_model::{Labels, Resources, well_known};
use strew_plan::{Change, Suggestion, Target, decide_after, suggest};
use strew_scheduler::explain::explain_with;
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{Engine, Profile};

use crate::world::{RandomCluster, profile};

#[test]
fn suggestions_help_when_they_are_decided_afresh() {
    let (mut pending, mut helped) = (0, 0);
    for seed in 0..200 {
        // Every second world has pods of several priorities, and nominations.
        let has_nominations = seed % 2 == 1;
        let mut world = match has_nominations {
            true => RandomCluster::crowded(seed, 30, 15),
            false => RandomCluster::new(seed),
        };
        let profile = profile(seed);
        let mut engine = Engine::new(profile.clone());
        for step in 0..60 {
            world.step();
            if step % 12 != 0 {
                continue;
            }
            let pod = world.set_pod(step % 24 == 0);
            let nominations = match has_nominations {
                true => Nominations::of(&world.cluster),
                false => Nominations::new(),
            };
            let untouched = world.cluster.clone();
            let cluster = &mut world.cluster;
            let explanation = explain_with(&mut engine, cluster, pod, &nominations, None);
            let Some(found) = suggest(&profile, cluster, &nominations, &explanation) else {
                assert!(explanation.standing.would_go().is_some());
                continue;
            };
            cluster.same_facts(&untouched).unwrap();
            pending += 1;
            helped += usize::from(!found.suggestions.is_empty());
            for suggestion in &found.suggestions {
                let target = decide_after(&profile, cluster, pod, &nominations, &suggestion.change);
                assert_eq!(
                    target,
                    Some(suggestion.target),
                    "seed {seed}, step {step}: {suggestion:?}"
                );
            }
        }
    }
    assert!(pending > 100, "pods are refused: {pending}");
    assert!(
        helped * 2 > pending,
        "most refusals have a cure: {helped} of {pending}"
    );
}

/// A node that has gone leaves its row to the next one: the new node is not the one that has gone.
#[test]
fn the_first_node_is_suggested_where_there_is_none() {
    let mut cluster = Cluster::new();
    let pod = cluster.set_pod(PodFact {
        uid: "1".into(),
        name: "web".into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec: PodSpec::default(),
        history: PodHistory::default(),
    });
    let name = cluster.names.intern("a");
    cluster.set_node(NodeFact {
        name,
        labels: Labels::default(),
        taints: Box::default(),
        unschedulable: false,
        allocatable: Resources::default(),
        pods_max: 1,
        images: Box::default(),
    });
    cluster.remove_node(name);
    let profile = Profile::default();
    let mut engine = Engine::new(profile.clone());
    let nominations = Nominations::new();
    let explanation = explain_with(&mut engine, &mut cluster, pod, &nominations, None);
    let found = suggest(&profile, &mut cluster, &nominations, &explanation).unwrap();
    let first_node = Suggestion {
        change: Change::AddFirstNode,
        target: Target::NewNode,
    };
    assert_eq!(found.suggestions, [first_node]);
}
