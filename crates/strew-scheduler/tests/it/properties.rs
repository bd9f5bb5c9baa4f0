//! After any sequence of facts: tallies equal a recount, and decisions equal the oracle's.

use std::sync::Arc;

use strew_cluster::{OwnerKind, OwnerRef, PodSpec};
use strew_model::{Labels, Selector, well_known};
use strew_scheduler::{Engine, FilterOrder, GroupLimits, Profile};

use crate::reasons::Scene;
use crate::world::{RandomCluster, profile};

#[test]
fn tallies_equal_a_recount_and_decisions_equal_the_oracle() {
    for seed in 0..150 {
        let mut world = RandomCluster::new(seed);
        let mut engine = Engine::new(profile(seed));
        if seed % 4 == 1 {
            // So small a budget that every census but those in use is dropped at once.
            world.cluster.set_census_bytes_max(1);
        }
        let mut asked: Vec<Arc<str>> = Vec::new();
        for step in 0..120 {
            world.step();
            if step % 4 != 0 {
                continue;
            }
            // A new pod, or one that was asked about before things changed.
            let known = asked
                .get(step / 8)
                .filter(|_| step % 8 == 0)
                .and_then(|uid| world.cluster.find_pod(uid));
            let pod = known.unwrap_or_else(|| world.set_pod(false));
            asked.push(world.cluster.pod(pod).uid.clone());
            world.cluster.unbind(pod);
            let compared = world
                .compare(&mut engine, pod)
                .and_then(|()| world.cluster.audit());
            if let Err(why) = compared {
                panic!("seed {seed}, step {step}: {why}");
            }
            if let strew_scheduler::Decision::Place { node, .. } =
                engine.decide(&mut world.cluster, pod)
            {
                world.cluster.bind(pod, node);
            }
        }
    }
}

/// The same facts in another order give the same counts.
#[test]
fn binding_and_taking_off_again_is_identity() {
    for seed in 0..40 {
        let mut world = RandomCluster::new(seed);
        let mut engine = Engine::new(Profile::default());
        for _ in 0..60 {
            world.step();
        }
        let pod = world.set_pod(false);
        world.cluster.unbind(pod);
        let before = engine.evaluate(&mut world.cluster, pod);
        let names = before.feasible.clone();
        for node in names {
            world.cluster.bind(pod, node);
            world.cluster.unbind(pod);
        }
        let after = engine.evaluate(&mut world.cluster, pod);
        assert_eq!(before.totals, after.totals, "seed {seed}");
        assert_eq!(before.refused, after.refused, "seed {seed}");
    }
}

/// Pods of few classes, as workloads make them: nodes are asked in groups, and groups follow what changes.
#[test]
fn asking_one_node_of_a_group_is_asking_all() {
    for seed in 0..120 {
        let mut world = RandomCluster::new(seed);
        let mut profile = profile(seed);
        if seed % 2 == 1 {
            profile.filter_order = FilterOrder::Raced { workers: 16, seed };
        }
        let mut engine = Engine::new(profile);
        // Thresholds so small that few nodes cross them: too many groups, a key with too many domains, a rest.
        let mut small = |max| world.dice.between(0, max);
        if seed % 3 != 0 {
            engine.set_group_limits(GroupLimits {
                groups_min: small(5) as usize,
                nodes_per_group: 1 + small(7) as usize,
                rest_decisions: small(4) as u32,
                decisions_min: small(3) as u32,
                bytes_max: if small(3) == 0 { 0 } else { 1 << 20 },
                nodes_per_block: 1 + small(7) as usize,
            });
        }
        (0..20).for_each(|_| world.set_node());
        let templates: Vec<_> = (0..3).map(|_| world.template()).collect();
        for step in 0..150 {
            // Long stretches without any change but the pods' own, then some.
            if step % 50 > 40 || world.dice.chance(1, 20) {
                world.step();
            }
            let pod = world.twin(&templates[step % 3]);
            let evaluation = engine.evaluate(&mut world.cluster, pod);
            let expected = evaluation
                .taken
                .map(|place| (evaluation.feasible[place], evaluation.feasible.len()));
            let decided = match engine.decide(&mut world.cluster, pod) {
                strew_scheduler::Decision::Place { node, feasible, .. } => Some((node, feasible)),
                strew_scheduler::Decision::Unfit(_) => None,
            };
            assert_eq!(decided, expected, "seed {seed}, step {step}");
            match decided {
                Some((node, _)) => world.cluster.bind(pod, node),
                None => {
                    let uid = world.cluster.pod(pod).uid.clone();
                    world.cluster.remove_pod(&uid);
                }
            }
        }
    }
}

/// Nodes under ever new names, as autoscalers make them: rows are used again, and nothing old is counted.
#[test]
fn nodes_that_come_and_go_leave_no_rows_behind() {
    let mut world = RandomCluster::new(7);
    let mut engine = Engine::new(Profile::default());
    (0..20).for_each(|_| world.set_node());
    let rows = world.cluster.node_rows();
    for round in 0..50 {
        let name = world.cluster.names.intern(&format!("spot-{round}"));
        world.set_node_named(name);
        let pod = world.set_pod(false);
        world.cluster.unbind(pod);
        let node = world.cluster.find_node(name).expect("just set");
        world.cluster.bind(pod, node);
        world.cluster.remove_node(name);
        let uid = world.cluster.pod(pod).uid.clone();
        world.cluster.remove_pod(&uid);
        assert_eq!(world.cluster.find_node(name), None);
        assert_eq!(world.cluster.audit(), Ok(()));
        let probe = world.set_pod(false);
        world.cluster.unbind(probe);
        assert_eq!(world.compare(&mut engine, probe), Ok(()), "round {round}");
    }
    assert!(world.cluster.node_rows() <= rows + 1);
}

/// Workloads of ever new names come and go, and what they leave is freed: rows, ids and strings are used again, and
/// decisions, counts and labels are what they would be otherwise.
#[test]
fn what_is_used_again_has_nothing_of_before() {
    for seed in 0..30 {
        let mut world = RandomCluster::churning(seed);
        let mut engine = Engine::new(profile(seed));
        let words = world.cluster.names.len();
        for step in 0..160 {
            world.step();
            if step % 3 == 0 {
                world.renew_app();
            }
            if step % 20 == 19 {
                world.thin_out();
            }
            if world.dice.chance(1, 5) {
                let before = world.told();
                world.sweep(&mut engine);
                assert_eq!(world.told(), before, "seed {seed}, step {step}");
            }
            let pod = world.set_pod(false);
            world.cluster.unbind(pod);
            let compared = world
                .compare(&mut engine, pod)
                .and_then(|()| world.cluster.audit());
            if let Err(why) = compared {
                panic!("seed {seed}, step {step}: {why}");
            }
        }
        let uids: Vec<_> = { world.cluster.pods() }
            .map(|(_, row)| row.uid.clone())
            .collect();
        uids.iter().for_each(|uid| world.cluster.remove_pod(uid));
        (0..3).for_each(|_| world.sweep(&mut engine));
        let (kept, of_engine) = (world.cluster.kept(), engine.kept());
        assert_eq!(
            (kept.classes, kept.censuses, kept.columns, kept.rules),
            (0, 0, 0, 0)
        );
        assert_eq!(of_engine, [0; 3], "seed {seed}");
        // Two workloads are there still, and both namespaces may have a label of one of before.
        assert!(kept.strings <= words + 4, "seed {seed}: {kept:?}, {words}");
    }
}

/// A ReplicaSet's status is written again and again in a rollout: what is deduced from its selector stays good.
#[test]
fn the_same_fact_again_invalidates_nothing() {
    let mut scene = Scene::new();
    scene.node("a1", |_| {});
    let (app, web) = (scene.name("app"), scene.name("web"));
    let namespace = well_known::DEFAULT_NAMESPACE;
    let of_web = Labels::new(vec![(app, web)]);
    let owner = OwnerRef {
        kind: OwnerKind::ReplicaSet,
        name: web,
    };
    let mut term = scene.term(web);
    term.namespace_selector = Selector::all_of(Vec::new());
    let mut spec = PodSpec::default();
    spec.affinity.required = [term].into();
    let fact = scene.pod("web-1", spec);
    let pod = scene.cluster.set_pod(fact);
    let mut engine = Engine::new(Profile::default());
    let mut after = |service: bool, controller: bool, namespace_known: bool| {
        let cluster = &mut scene.cluster;
        cluster.set_service(namespace, web, service.then(|| of_web.clone()));
        let selector = Selector::of_labels(of_web.iter());
        cluster.set_controller(namespace, owner, controller.then_some(selector));
        cluster.set_namespace(namespace, namespace_known.then(|| of_web.clone()));
        engine.decide(cluster, pod);
        (cluster.owners().version(), cluster.evicted())
    };
    let mut last = after(false, false, false);
    assert_eq!(after(false, false, false), last);
    // Each fact comes, and goes again; each change counts once.
    let changes = [
        (true, false, false),
        (true, true, false),
        (true, true, true),
        (false, false, false),
    ];
    for (service, controller, namespace_known) in changes {
        let now = after(service, controller, namespace_known);
        assert_ne!(now, last);
        assert_eq!(after(service, controller, namespace_known), now);
        last = now;
    }
}
