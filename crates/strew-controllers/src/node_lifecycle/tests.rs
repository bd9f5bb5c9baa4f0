use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{Kind, Object};
use strew_model::time::Span;

use super::*;
use crate::small_world::{START, SmallCluster};

fn world(seed: u64, zones: &[(&str, usize)]) -> SmallCluster {
    let controller = NodeLifecycle::new(Settings::KUBERNETES_1_36);
    let mut world = SmallCluster::new(seed, vec![Box::new(controller)]);
    for (zone, n_nodes) in zones {
        for i in 0..*n_nodes {
            world.add_node(&format!("{zone}{i}"), zone);
        }
    }
    world
}

/// `key:effect` of a node's taints, without the domain.
fn taints(world: &SmallCluster, node: &str) -> Vec<String> {
    let node = world.get::<Node>(node).unwrap();
    let all = node.spec.taints.iter().flatten();
    let mut all: Vec<_> = all
        .map(|t| format!("{}:{}", t.key.rsplit('/').next().unwrap(), t.effect))
        .collect();
    all.sort();
    all
}

const LOST: [&str; 2] = ["unreachable:NoExecute", "unreachable:NoSchedule"];

fn ready_of(world: &SmallCluster, node: &str) -> Truth {
    ready(&world.get::<Node>(node).unwrap().status).unwrap()
}

/// The seconds after which something holds, in tenths.
#[track_caller]
fn seconds_until(world: &mut SmallCluster, mut holds: impl FnMut(&SmallCluster) -> bool) -> f64 {
    let start = world.server.now;
    for _ in 0..4000 {
        if holds(world) {
            return world.server.now.since(start).0 as f64 / 1e9;
        }
        let next = world.server.now + Span::from_millis(100);
        world.run_until_moment(next);
    }
    panic!("it never holds");
}

#[test]
fn a_lost_node_is_marked_tainted_and_freed_in_time() {
    for seed in 0..20 {
        for counts_silence in [true, false] {
            let mut world = world(seed, &[("a", 2), ("b", 1)]);
            world.server.counts_silence = counts_silence;
            world.add_pod("p", "a0", json!({}));
            world.add_pod("unready", "a0", json!({"status": {"conditions": []}}));
            world.run_until(100);
            world.kill("a0");
            let marked = seconds_until(&mut world, |w| ready_of(w, "a0") == Truth::Unknown);
            assert!((45.0..=55.1).contains(&marked), "{marked}");
            let pod = world.get::<Pod>("p").unwrap();
            assert!(!pod.is_ready() && pod.status.phase == strew_apiserver::object::Phase::Running);
            assert_eq!(
                world.events_of("NodeNotReady"),
                [
                    "Node a0 Normal NodeNotReady: Node a0 status is now: NodeNotReady",
                    "Pod default/p Warning NodeNotReady: Node is not ready",
                ]
            );
            assert_eq!(taints(&world, "a0"), ["unreachable:NoSchedule"]);
            let tainted = seconds_until(&mut world, |w| taints(w, "a0") == LOST);
            assert!(tainted <= 5.3, "{tainted}");
            let message = world
                .get::<Node>("a0")
                .unwrap()
                .status
                .conditions
                .clone()
                .unwrap();
            let texts: Vec<_> = message
                .iter()
                .map(|c| (c.type_.as_str(), c.message.as_deref().unwrap()))
                .collect();
            assert_eq!(texts[0], ("Ready", "Kubelet stopped posting node status."));
            assert_eq!(
                texts[3],
                ("PIDPressure", "Kubelet never posted node status.")
            );
            world.revive("a0");
            let no_schedule = seconds_until(&mut world, |w| taints(w, "a0") == LOST[..1]);
            assert!(no_schedule <= 0.2);
            let freed = seconds_until(&mut world, |w| taints(w, "a0").is_empty());
            assert!(freed <= 5.1, "{freed}");
            world.run_until(world.server.now.since(START).0 / 1_000_000_000 + 60);
            assert_eq!(ready_of(&world, "a0"), Truth::True);
            assert_eq!(ready_of(&world, "a1"), Truth::True);
        }
    }
}

#[test]
fn the_nodes_of_a_lost_zone_are_tainted_ten_seconds_apart() {
    let mut world = world(3, &[("a", 3), ("b", 2)]);
    world.run_until(100);
    for node in ["a0", "a1", "a2"] {
        world.kill(node);
    }
    let lost = |w: &SmallCluster| {
        ["a0", "a1", "a2"]
            .iter()
            .filter(|n| taints(w, n) == LOST)
            .count()
    };
    seconds_until(&mut world, |w| lost(w) == 1);
    for n_lost in [2, 3] {
        let next = seconds_until(&mut world, |w| lost(w) == n_lost);
        assert!((9.9..=10.1).contains(&next), "{next}");
    }
}

#[test]
fn three_of_five_in_a_small_zone_stop_evictions() {
    let mut slipped = Vec::new();
    for seed in 0..40 {
        let mut world = world(seed, &[("a", 5), ("b", 2)]);
        world.run_until(100);
        for node in ["a0", "a1", "a2"] {
            world.kill(node);
        }
        world.run_until(400);
        let n_lost = ["a0", "a1", "a2"]
            .iter()
            .filter(|n| taints(&world, n) == LOST)
            .count();
        assert!(n_lost <= 1);
        assert_eq!(ready_of(&world, "a2"), Truth::Unknown);
        slipped.push(n_lost);
        // The fourth makes it no better, the recovery of one makes the zone normal again: the rest goes by the rate.
        world.revive("a0");
        world.run_until(440);
        assert_eq!(
            [
                taints(&world, "a0").len(),
                taints(&world, "a1").len(),
                taints(&world, "a2").len()
            ],
            [0, 2, 2]
        );
    }
    slipped.sort_unstable();
    assert_eq!(slipped[0], 0);
}

#[test]
fn when_all_nodes_are_lost_nothing_is_evicted() {
    for seed in 0..40 {
        let mut world = world(seed, &[("a", 3), ("b", 3)]);
        world.run_until(100);
        for node in ["a0", "a1", "a2", "b0", "b1", "b2"] {
            world.kill(node);
        }
        world.run_until(600);
        let all = ["a0", "a1", "a2", "b0", "b1", "b2"];
        let n_lost = all.iter().filter(|n| taints(&world, n) == LOST).count();
        assert!(n_lost <= 2, "{n_lost}");
        assert!(all.iter().all(|n| ready_of(&world, n) == Truth::Unknown));
        // One comes back: the others go at the rate of their zones, the first 10 s later.
        world.revive("b0");
        let more = seconds_until(&mut world, |w| {
            all.iter().filter(|n| taints(w, n) == LOST).count() > n_lost
        });
        assert!((9.9..=15.2).contains(&more), "{more}");
    }
}

#[test]
fn a_new_node_without_status_has_a_minute() {
    let mut world = world(1, &[("a", 1)]);
    world.run_until(100);
    let node: k8s_openapi::api::core::v1::Node =
        serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    world
        .server
        .dead
        .insert("n".into(), strew_model::time::Instant::default());
    world.add(node);
    let has_ready = |w: &SmallCluster| ready(&w.get::<Node>("n").unwrap().status).is_some();
    let marked = seconds_until(&mut world, has_ready);
    assert!((59.9..=65.1).contains(&marked), "{marked}");
    assert_eq!(
        world.events_of("RegisteredNode"),
        [
            "Node a0 Normal RegisteredNode: Node a0 event: Registered Node a0 in Controller",
            "Node n Normal RegisteredNode: Node n event: Registered Node n in Controller",
        ]
    );
}

#[test]
fn a_pod_bound_later_to_a_lost_node_is_not_ready_either() {
    let mut world = world(1, &[("a", 2)]);
    world.kill("a0");
    world.run_until(100);
    world.add_pod("late", "a0", json!({}));
    world.add_pod("well", "a1", json!({}));
    world.run_until(101);
    assert!(!world.get::<Pod>("late").unwrap().is_ready());
    assert!(world.get::<Pod>("well").unwrap().is_ready());
}

#[test]
fn a_cordon_and_conflicts() {
    let mut world = world(1, &[("a", 1)]);
    world.run_until(20);
    world.server.n_conflicts = 3;
    world.change(Kind::Node, "a0", |object| {
        if let Object::Node(node) = object {
            let node = Arc::make_mut(node);
            Arc::make_mut(&mut node.spec).unschedulable = Some(true);
        }
    });
    world.run_until(21);
    assert_eq!(taints(&world, "a0"), ["unschedulable:NoSchedule"]);
    assert_eq!(world.server.n_conflicts, 0);
}

#[test]
fn a_pass_over_healthy_nodes_touches_none() {
    let mut controller = NodeLifecycle::new(Settings::KUBERNETES_1_36);
    let mut world = world(1, &[("a", 3)]);
    world.run_until(30);
    let mut queue = Queue::default();
    for node in world.server.store.of::<Node>().iter() {
        let object = Object::Node(Arc::clone(node));
        let change = Change {
            old: None,
            new: Some(&object),
        };
        controller.observe(START, change, &world.server.store, &mut queue);
    }
    let store = world.server.store.clone();
    let mut dice = Prng::new(1);
    let cx = Context {
        now: START,
        cache: &store,
        api: &mut world.server,
        dice: &mut dice,
        queue: &mut queue,
    };
    assert_eq!(controller.candidates(&cx), []);
}

/// The controller without its memory of settled nodes: each pass looks at every suspect.
struct Forgetful(NodeLifecycle);

impl Controller for Forgetful {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn n_workers(&self) -> usize {
        self.0.n_workers()
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        self.0.start(now, dice, queue);
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.0.observe(now, change, cache, queue);
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        for look in self.0.suspects.values_mut() {
            *look = Look::Due;
        }
        self.0.sync(name, cx)
    }
}

/// Kubelets die and come back, some writes are refused, others cordon nodes and take taints away.
fn random_story(seed: u64, controller: impl Controller + 'static) -> (Vec<String>, Vec<Value>) {
    let mut world = SmallCluster::new(seed, vec![Box::new(controller)]);
    let mut dice = Prng::new(seed);
    let n_zones = dice.between(1, 3);
    let mut nodes = Vec::new();
    for zone in 0..n_zones {
        for i in 0..dice.between(1, 7) {
            let name = format!("z{zone}n{i}");
            world.add_node(&name, &format!("z{zone}"));
            world.add_pod(&format!("on-{name}"), &name, json!({}));
            nodes.push(name);
        }
    }
    let mut seconds = 0;
    for _ in 0..40 {
        seconds += dice.between(1, 60);
        world.run_until(seconds);
        let node = &nodes[dice.index(nodes.len())];
        let is_dead = world.server.dead.contains_key(&**node);
        match dice.between(0, 9) {
            0..=4 if !is_dead => world.kill(node),
            0..=1 => world.revive(node),
            5 => world.server.n_conflicts = dice.index(4),
            6..=8 => {
                let choice = dice.index(3);
                world.change(Kind::Node, node, |object| {
                    let Object::Node(node) = object else { return };
                    let spec = Arc::make_mut(&mut Arc::make_mut(node).spec);
                    match choice {
                        0 => spec.taints = None,
                        1 => drop(taint::clear_execute(spec)),
                        _ => spec.unschedulable = Some(spec.unschedulable != Some(true)),
                    }
                });
            }
            _ => {}
        }
    }
    let left = world.server.store.of::<Node>().iter();
    let left = left.map(|node| Node::into_object(Arc::clone(node)).to_json());
    (world.server.events.clone(), left.collect())
}

#[test]
fn a_settled_node_is_one_of_which_a_look_changes_nothing() {
    let mut n_tainted = 0;
    for seed in 0..100 {
        let controller = || NodeLifecycle::new(Settings::KUBERNETES_1_36);
        let quick = random_story(seed, controller());
        let slow = random_story(seed, Forgetful(controller()));
        assert_eq!(quick, slow, "seed {seed}");
        let is_tainted = |node: &&Value| node.to_string().contains("NoExecute");
        n_tainted += quick.1.iter().filter(is_tainted).count();
    }
    assert!(n_tainted > 100, "{n_tainted} nodes are tainted in the end");
}

/// A large zone is lost for a day of passes.
#[test]
fn a_pass_looks_at_no_lost_node_to_which_nothing_has_happened() {
    let mut world = world(1, &[("a", 4), ("b", 1)]);
    for node in ["a0", "a1", "a2", "a3"] {
        world.kill(node);
    }
    world.run_until(200);
    world.add_pod("bound-late", "a0", json!({}));
    let mut controller = NodeLifecycle::new(Settings::KUBERNETES_1_36);
    let store = world.server.store.clone();
    let (mut queue, mut dice) = (Queue::default(), Prng::new(1));
    for node in store.of::<Node>().iter() {
        let object = Object::Node(Arc::clone(node));
        let change = Change {
            old: None,
            new: Some(&object),
        };
        controller.observe(world.server.now, change, &store, &mut queue);
    }
    controller.new.clear();
    controller.retries.insert("a0".into());
    let now = world.server.now;
    let mut pass = |controller: &mut NodeLifecycle, n_conflicts, hands_out| {
        world.server.n_conflicts = n_conflicts;
        let mut cx = Context {
            now,
            cache: &store,
            api: &mut world.server,
            dice: &mut dice,
            queue: &mut queue,
        };
        controller.pass(&mut cx).unwrap();
        if hands_out {
            controller.hand_out(&mut cx).unwrap();
        }
        let all = controller.candidates(&cx);
        [all.len(), all.iter().flatten().count()]
    };
    let pod_is_left = pass(&mut controller, 100, false);
    assert_eq!(pod_is_left, [4, 1]);
    let pod_is_marked = pass(&mut controller, 0, false);
    assert_eq!(pod_is_marked, [4, 0]);
    let one_is_handed_out = pass(&mut controller, 0, true);
    assert_eq!(one_is_handed_out, [4, 1]);
}
