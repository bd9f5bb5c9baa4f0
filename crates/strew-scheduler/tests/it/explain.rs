//! What is explained is what is decided.

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_scheduler::explain::{Cause, Explanation, Whereabouts, explain_with};
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{Decision, Engine, Profile, Reason, Unfit};

use crate::world::{RandomCluster, profile};

#[test]
fn explanations_agree_with_decisions() {
    let (mut pending, mut kept) = (0, 0);
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
            let explained = agrees(&mut engine, &mut world.cluster, &profile, pod, &nominations);
            let explanation = match explained {
                Ok(explanation) => explanation,
                Err(why) => panic!("seed {seed}, step {step}: {why}"),
            };
            let causes = explanation.refused.iter().flat_map(|node| &node.causes);
            kept += causes
                .filter(|cause| matches!(cause, Cause::Nominated { .. }))
                .count();
            pending += usize::from(explanation.standing.would_go().is_none());
        }
    }
    assert!(
        pending > 100,
        "the dice make pods that are refused: {pending}"
    );
    assert!(kept > 100, "room is kept for nominated pods: {kept}");
}

/// Explains a pod; says what does not agree with a decision made afresh.
fn agrees(
    engine: &mut Engine,
    cluster: &mut Cluster,
    profile: &Profile,
    pod: PodIdx,
    nominations: &Nominations,
) -> Result<Explanation, String> {
    let on = cluster.pod(pod).node;
    let placed: Vec<(PodIdx, Option<NodeIdx>)> = cluster.pods().map(|(p, r)| (p, r.node)).collect();
    let explanation = explain_with(engine, cluster, pod, nominations, None);
    let after: Vec<(PodIdx, Option<NodeIdx>)> = cluster.pods().map(|(p, r)| (p, r.node)).collect();
    if placed != after {
        return Err("a pod was moved".to_owned());
    }
    cluster.audit()?;
    let is_placed = matches!(explanation.standing, Whereabouts::Placed { .. });
    if is_placed != on.is_some() {
        return Err(format!("on {on:?}, said {:?}", explanation.standing));
    }

    let mut copy = cluster.clone();
    copy.unbind(pod);
    let decision = Engine::new(profile.clone()).decide_with(&mut copy, pod, nominations);
    let decided = match &decision {
        Decision::Place { node, .. } => Some(*node),
        Decision::Unfit(_) => None,
    };
    if decided != explanation.standing.would_go() {
        return Err(format!("{decision:?}, said {:?}", explanation.standing));
    }
    if let Decision::Unfit(unfit) = &decision
        && let Unfit::EveryNode(refusals) = &**unfit
    {
        let firsts = explanation.refused.iter();
        let firsts: Vec<_> = firsts.map(|r| (r.node, &r.first)).collect();
        if !refusals.iter().eq(firsts.iter().copied()) {
            return Err(format!("{refusals:?}, said {firsts:?}"));
        }
    }
    causes_are_named(&explanation)?;
    Ok(explanation)
}

/// Each refusal has a cause of its plugin that is told in full, and as many as kube-scheduler has reasons.
fn causes_are_named(explanation: &Explanation) -> Result<(), String> {
    for node in &explanation.refused {
        let own = node
            .causes
            .iter()
            .filter(|c| c.plugin() == node.first.plugin);
        let mut reasons: Vec<_> = own.map(|c| c.reason()).collect();
        // A quirk of kube-scheduler's text, not another cause.
        if node.causes.contains(&Cause::NarrowedOut) {
            let reason = node.first.reasons.first();
            let beside = reason.filter(|r| matches!(r, Reason::NarrowedOutBeside(..)));
            reasons.extend(beside.map(|reason| Some(reason.clone())));
        }
        let missing = node
            .first
            .reasons
            .iter()
            .find(|r| !reasons.contains(&Some((*r).clone())));
        let unnamed = node.causes.iter().any(|c| matches!(c, Cause::Other(_)));
        if unnamed || missing.is_some() {
            return Err(format!("not all is told: {node:?}"));
        }
    }
    Ok(())
}
