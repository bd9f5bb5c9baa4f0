//! What is suggested helps.

use strew_cluster::Cluster;
use strew_plan::{decide_after, suggest};
use strew_scheduler::explain::explain_with;
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{Engine, Explanation};

use crate::world::{World, profile};

#[test]
fn suggestions_help_when_they_are_decided_afresh() {
    let (mut pending, mut helped) = (0, 0);
    for seed in 0..200 {
        // Every second world has pods of several priorities, and nominations.
        let has_nominations = seed % 2 == 1;
        let mut world = match has_nominations {
            true => World::crowded(seed, 30, 15),
            false => World::new(seed),
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
            let cluster = &mut world.cluster;
            let explanation = explain_with(&mut engine, cluster, pod, &nominations, None);
            let Some(found) = suggest(&profile, cluster, &nominations, &explanation) else {
                assert!(explanation.standing.would_go().is_some());
                continue;
            };
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

#[test]
fn the_first_node_is_suggested_where_there_is_none() {
    let mut cluster = Cluster::new();
    let pod = cluster.set_pod(strew_cluster::PodFact {
        uid: "1".into(),
        name: "web".into(),
        namespace: strew_model::well_known::DEFAULT_NAMESPACE,
        labels: strew_model::Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec: strew_cluster::PodSpec::default(),
        history: strew_cluster::PodHistory::default(),
    });
    let profile = strew_scheduler::Profile::default();
    let mut engine = Engine::new(profile.clone());
    let nominations = Nominations::new();
    let explanation: Explanation = explain_with(&mut engine, &mut cluster, pod, &nominations, None);
    let found = suggest(&profile, &cluster, &nominations, &explanation);
    let changes = found.map(|f| f.suggestions);
    let changes = changes.iter().flatten().map(|s| &s.change);
    assert_eq!(
        changes.collect::<Vec<_>>(),
        [&strew_plan::Change::AddFirstNode]
    );
}
