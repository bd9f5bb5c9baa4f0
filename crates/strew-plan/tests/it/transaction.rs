//! What a trial says is what a cluster that was changed by hand says, pod by pod.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Effect, Taint, well_known};
use strew_plan::{Change, Fate, Trial, Turned};
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{Decision, Engine, Profile, TieRule, Unfit};

use crate::world::{World, profile};

fn nodes(cluster: &Cluster) -> Vec<NodeIdx> {
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    rows.filter(|&node| cluster.node(node).fact().is_some())
        .collect()
}

/// Decides for all pods that wait, each with a new engine, in the order of a queue that they entered as they left.
fn decide(
    work: &mut Cluster,
    cluster: &Cluster,
    gone: &[PodIdx],
    profile: &Profile,
) -> BTreeMap<PodIdx, Rc<Unfit>> {
    let waiting = work.pods().filter(|(_, row)| row.node.is_none());
    let mut waiting: Vec<PodIdx> = waiting.map(|(pod, _)| pod).collect();
    waiting.retain(|pod| {
        let is_tried = cluster.spec_of(*pod).gates.is_empty();
        !gone.contains(pod) && is_tried && !cluster.class_of(*pod).key.terminating
    });
    waiting.sort_by_key(|&pod| {
        let waited = cluster.pod(pod).node.is_none();
        (Reverse(cluster.spec_of(pod).priority), !waited, pod)
    });
    let nominations = Nominations::of(cluster);
    let mut unfit = BTreeMap::new();
    for pod in waiting {
        let mut engine = Engine::new(profile.clone());
        match engine.decide_with(work, pod, &nominations) {
            Decision::Place { node, .. } => work.bind(pod, node),
            Decision::Unfit(why) => drop(unfit.insert(pod, why)),
        }
    }
    unfit
}

/// Takes the nodes away by the cluster's own means, and decides with a new engine for each pod.
fn by_hand(cluster: &Cluster, lost: &[NodeIdx], profile: &Profile) -> Vec<Turned> {
    let mut work = cluster.clone();
    let mut gone = Vec::new();
    for &node in lost {
        for pod in cluster.node(node).pods() {
            work.unbind(*pod);
            if cluster.class_of(*pod).key.owner.is_none() {
                gone.push(*pod);
            }
        }
        work.remove_node(cluster.node(node).name());
    }
    let unfit = decide(&mut work, cluster, &gone, profile);
    let turned = |(pod, row): (PodIdx, &strew_cluster::PodRow)| {
        let from = cluster.pod(pod).node;
        let to = match row.node {
            _ if gone.contains(&pod) => Fate::Gone,
            Some(node) => Fate::On(node),
            None => Fate::Pending(unfit.get(&pod).cloned()),
        };
        (to == Fate::Gone || from != row.node).then_some(Turned { pod, from, to })
    };
    work.pods().filter_map(turned).collect()
}

#[test]
fn nodes_that_are_lost_turn_what_they_turn_by_hand() {
    let (mut n_moved, mut n_pending, mut n_gone) = (0, 0, 0);
    for seed in 0..100 {
        let mut world = match seed % 2 {
            0 => World::new(seed),
            _ => World::crowded(seed, 30, 15),
        };
        (0..60).for_each(|_| world.step());
        let profile = Profile {
            // Draws start where the last search ended, which a new engine does not know.
            ties: TieRule::FirstName,
            ..profile(seed)
        };
        let cluster = &world.cluster;
        let there = nodes(cluster);
        let lost = &there[..there.len().min(1 + seed as usize % 3)];
        let mut trial = Trial::new(cluster, std::slice::from_ref(&profile));
        for &node in lost {
            trial.apply(&Change::LoseNode { node }, &[]);
        }
        trial.decide();
        let turned = trial.turned();
        assert_eq!(turned, by_hand(cluster, lost, &profile), "seed {seed}");
        for turned in &turned {
            match turned.to {
                Fate::On(_) => n_moved += 1,
                Fate::Pending(_) => n_pending += 1,
                Fate::Gone => n_gone += 1,
            }
        }
        trial.into_cluster().audit().unwrap();
    }
    assert!(
        n_moved > 100 && n_pending > 100 && n_gone > 20,
        "{n_moved} moved, {n_pending} pending, {n_gone} gone"
    );
}

/// A drain is a loss that leaves the node, so nothing that left may come back to it.
#[test]
fn no_pod_goes_where_a_change_keeps_it_off() {
    let mut n_left = 0;
    for seed in 0..60 {
        let mut world = World::new(seed);
        (0..60).for_each(|_| world.step());
        let profile = profile(seed);
        let cluster = &world.cluster;
        let Some(&node) = nodes(cluster).first() else {
            continue;
        };
        let taint = Taint {
            key: well_known::ZONE,
            value: well_known::EMPTY,
            effect: Effect::NoExecute,
        };
        for change in [
            Change::DrainNode { node },
            Change::TaintNode { node, taint },
        ] {
            let mut trial = Trial::new(cluster, std::slice::from_ref(&profile));
            trial.apply(&change, &[]);
            trial.decide();
            let before = cluster.node(node).pods().len();
            let after = trial.cluster().node(node).pods();
            n_left += before - after.len();
            let turned = trial.turned();
            let back: Vec<&Turned> = turned.iter().filter(|t| t.to == Fate::On(node)).collect();
            for turned in back {
                let spec = cluster.spec_of(turned.pod);
                let tolerates_all = spec.tolerations.iter().any(|t| t.key.is_none());
                assert!(tolerates_all, "seed {seed}: {turned:?} after {change:?}");
            }
            trial.into_cluster().audit().unwrap();
        }
    }
    assert!(n_left > 50, "pods left: {n_left}");
}

/// A workload that asks for something else stands where pods that have always asked for it would stand.
#[test]
fn an_edited_workload_is_decided_as_if_it_had_always_been_so() {
    let mut n_edited = 0;
    for seed in 0..60 {
        let mut world = World::new(seed);
        (0..60).for_each(|_| world.step());
        let profile = Profile {
            ties: TieRule::FirstName,
            ..profile(seed)
        };
        let cluster = &world.cluster;
        let is_soft_or_hard = |pod: &PodIdx| !cluster.spec_of(*pod).spread.is_empty();
        let Some(first) = cluster.pods().map(|(pod, _)| pod).find(is_soft_or_hard) else {
            continue;
        };
        let class = cluster.pod(first).class;
        let pods = cluster.pods().filter(|(_, row)| row.class == class);
        let pods: Vec<PodIdx> = pods.map(|(pod, _)| pod).collect();
        let mut trial = Trial::new(cluster, std::slice::from_ref(&profile));
        trial.apply(&Change::DropConstraint { constraint: 0 }, &pods);

        let mut spec = cluster.spec_of(first).clone();
        spec.spread = spec.spread[1..].to_vec().into();
        for &pod in &pods {
            assert_eq!(trial.cluster().spec_of(pod), &spec, "seed {seed}");
            assert_eq!(trial.cluster().pod(pod).node, None, "seed {seed}");
        }
        let mut by_hand = cluster.clone();
        for &pod in &pods {
            by_hand.unbind(pod);
            by_hand.respec(pod, &spec);
        }
        decide(&mut by_hand, cluster, &[], &profile);
        trial.decide();
        for &pod in &pods {
            let node = by_hand.pod(pod).node;
            assert_eq!(trial.cluster().pod(pod).node, node, "seed {seed}");
        }
        n_edited += pods.len();
    }
    assert!(n_edited > 40, "pods were edited: {n_edited}");
}
