//! What a controller does that plans and carries out again and again, on the simulated cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{Name, Node, Object, Pod, Stored};
use strew_manifest::read::KubeObject;
use strew_model::{Prng, Span};
use strew_scenario::rebalance::carry::{Next, PodSeen};
use strew_scenario::rebalance::rounds::{LABEL, Round, Rounds, RoundsSettings};
use strew_sim::chaos::Parts;
use strew_sim::{Settings, Simulation, Timing};
use strew_view::moment::{self, Frame};
use strew_view::workload::Workloads;
use strew_wire::config::AdmissionOptions;
use strew_wire::request::Answer;

const ZONE: &str = "topology.kubernetes.io/zone";

/// The pause after a round without a step.
const EVERY: Span = Span::from_secs(60);

struct World {
    sim: Simulation,
    /// The uids of evicted pods, with their Deployments.
    evicted: BTreeMap<String, String>,
    /// The most pods of a Deployment that were not ready when an eviction was granted.
    most_away: usize,
}

impl World {
    /// Two zones of three have all pods of these Deployments.
    fn new(seed: u64, objects: &[Value]) -> Self {
        let parts = Parts::real();
        let nodes = (0..6).map(|n| KubeObject::of_json(node(n, n % 3 == 2)).expect("a node"));
        let sim = Simulation::new(Settings {
            seed,
            objects: nodes.map(Object::of_wire).collect(),
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: parts.scheduler,
            elects: false,
            controllers: parts.controllers,
            timing: Timing::default(),
            groups: Vec::new(),
            autoscaler: None,
        });
        let mut world = Self {
            sim,
            evicted: BTreeMap::new(),
            most_away: 0,
        };
        for object in objects {
            world.sim.apply(object).expect("a sound object");
        }
        world.wait(Span::from_secs(60));
        for n in [2, 5] {
            world.sim.cordon(&format!("n{n}"), false).expect("a node");
        }
        world.wait(Span::from_secs(30));
        world
    }

    fn wait(&mut self, span: Span) {
        let end = Span(self.sim.elapsed().0 + span.0);
        let ran = self.sim.run_until(end, &mut |_| ControlFlow::Continue(()));
        assert!(ran.is_ok(), "{ran:?}");
    }

    fn round(&self, rounds: &mut Rounds) -> Round {
        let moment = strew_scenario::moment(&self.sim);
        let mut frame = Frame {
            names: moment.names.clone(),
            profiles: moment.profiles.to_vec(),
            workloads: Workloads::default(),
            keys: Vec::new(),
        };
        let (mut world, _) = moment::world(moment, &mut frame);
        rounds.plan(self.sim.elapsed(), &mut world, moment.tables)
    }

    fn pods(&self) -> Vec<Arc<Pod>> {
        let pods = self.sim.server().tables().of::<Pod>().iter();
        pods.cloned().collect()
    }

    /// Does what is next of a step. Returns the pause before it goes on; `None` if the plan has ended.
    fn act(&mut self, rounds: &mut Rounds) -> Option<Span> {
        let pods = self.pods().into_iter();
        let items: Vec<Value> = pods.map(|pod| Pod::into_object(pod).to_json()).collect();
        let seen = PodSeen::of_list(&json!({"items": items}));
        let mut next = rounds.look(self.sim.elapsed(), &seen);
        if let Next::Evict(request) = &next {
            let answer = self.evict(request);
            next = rounds.answered(self.sim.elapsed(), &answer);
        }
        match next {
            Next::Look(pause) => Some(Span(pause.0.max(1_000_000))),
            Next::Evict(_) => Some(Span::from_secs(1)),
            Next::Done | Next::Stop(_) => None,
        }
    }

    fn evict(&mut self, request: &strew_wire::request::Request) -> Answer {
        let name = Name::new(request.namespace.as_str(), request.name.as_str());
        let pod = self.sim.server().tables().get::<Pod>(&name).cloned();
        let away = self.pods().iter().filter(|pod| !pod.is_ready()).count();
        let answer = self.sim.execute(request);
        if let (Some(pod), Some(_)) = (pod, answer.object()) {
            self.most_away = self.most_away.max(away);
            let app = pod.meta.label("app").unwrap_or_default().to_owned();
            let twice = self.evicted.insert(pod.meta.uid.to_string(), app);
            assert_eq!(twice, None, "evicted twice");
        }
        answer
    }

    /// The pods of a Deployment per zone.
    fn zones(&self, app: &str) -> Vec<usize> {
        let tables = self.sim.server().tables();
        let mut zones = vec![0; 3];
        for pod in self
            .pods()
            .iter()
            .filter(|p| p.meta.label("app") == Some(app))
        {
            let node = pod.node.as_deref().expect("it has a node");
            let node = tables.get::<Node>(&Name::new("", node)).expect("a node");
            let zone = node.meta.label(ZONE).unwrap_or_default();
            zones[usize::from(zone.as_bytes()[0] - b'a')] += 1;
        }
        zones
    }

    fn evicted_of(&self, app: &str) -> usize {
        self.evicted.values().filter(|of| *of == app).count()
    }
}

fn node(n: usize, is_cordoned: bool) -> Value {
    let (name, zone) = (format!("n{n}"), ["a", "b", "c"][n % 3]);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, "kubernetes.io/hostname": name}},
        "spec": {"unschedulable": is_cordoned},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn deployment(name: &str, replicas: usize, label: Option<&str>, selector: &Value) -> Value {
    let labels = json!({"app": name, "tier": "front"});
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
                        "nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": selector},
                    }],
                },
            },
        },
    });
    if let Some(label) = label {
        object["metadata"]["labels"] = json!({LABEL: label});
    }
    object
}

fn own(name: &str, label: Option<&str>) -> Value {
    deployment(name, 6, label, &json!({"app": name}))
}

fn budget(app: &str, most: usize) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "shop"},
        "spec": {"maxUnavailable": most, "selector": {"matchLabels": {"app": app}}},
    })
}

fn rounds() -> Rounds {
    Rounds::new(RoundsSettings {
        soft: false,
        patience: Span::from_secs(600),
    })
}

/// Lets one process go on until a round has nothing to do, or for as many rounds; returns the last one.
fn go_on(world: &mut World, rounds: &mut Rounds, n_rounds: usize) -> Round {
    let mut round = Round::default();
    for _ in 0..n_rounds {
        round = world.round(rounds);
        if rounds.step().is_none() && round.waiting.is_empty() && round.held.is_none() {
            break;
        }
        while rounds.step().is_some() {
            match world.act(rounds) {
                Some(pause) => world.wait(pause),
                None => break,
            }
        }
        world.wait(EVERY);
    }
    round
}

#[test]
fn only_labelled_workloads_are_evicted_from() {
    let mut world = World::new(1, &[own("web", Some("true")), own("api", None)]);
    assert_eq!(world.zones("web"), [3, 3, 0]);
    let round = go_on(&mut world, &mut rounds(), 20);
    assert_eq!(round.labelled, 1);
    assert_eq!(world.zones("web"), [2, 2, 2]);
    assert_eq!(world.zones("api"), [3, 3, 0]);
    assert_eq!((world.evicted_of("web"), world.evicted.len()), (2, 2));
    assert_eq!(world.most_away, 0, "one step at a time");
}

#[test]
fn the_label_of_a_namespace_holds_for_workloads_without_their_own() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {LABEL: "true"}},
    });
    let objects = [namespace, own("web", None), own("api", Some("false"))];
    let mut world = World::new(2, &objects);
    let round = go_on(&mut world, &mut rounds(), 20);
    assert_eq!(round.labelled, 1);
    assert_eq!(
        (world.zones("web"), world.zones("api")),
        (vec![2, 2, 2], vec![3, 3, 0])
    );
    assert_eq!(world.evicted.len(), 2);
}

/// A constraint of a labelled workload counts the pods of another one, which has no label: those stay.
#[test]
fn pods_of_others_stay_though_a_constraint_counts_them() {
    let both = json!({"tier": "front"});
    let objects = [
        deployment("web", 2, Some("true"), &both),
        deployment("api", 8, None, &both),
    ];
    let mut world = World::new(3, &objects);
    let round = go_on(&mut world, &mut rounds(), 20);
    assert_eq!(world.evicted_of("api"), 0);
    assert!(world.evicted_of("web") <= 2);
    let plan = round.plan.expect("a plan");
    let mut left = plan.constraints.iter().flat_map(|c| &c.left);
    assert!(left.any(|left| left.reason == "leftAlone"), "{plan:?}");
}

#[test]
fn without_a_labelled_workload_there_is_no_plan() {
    let mut world = World::new(4, &[own("web", None)]);
    let round = go_on(&mut world, &mut rounds(), 3);
    assert_eq!((round.labelled, round.plan), (0, None));
    assert_eq!(world.evicted.len(), 0);
}

/// While a pod of the workload is on its way nothing is planned for it.
#[test]
fn a_workload_that_is_not_settled_waits() {
    let mut world = World::new(5, &[own("web", Some("true"))]);
    let key = strew_apiserver::object::Key {
        kind: strew_apiserver::object::Kind::Deployment,
        name: Name::new("shop", "web"),
    };
    let scaled = world.sim.edit(&key, &mut |value| {
        value["spec"]["replicas"] = json!(9);
        Ok(())
    });
    assert!(scaled.is_ok());
    let mut rounds = rounds();
    let round = world.round(&mut rounds);
    assert_eq!(rounds.step(), None);
    assert_eq!(round.waiting.len(), 1, "{round:?}");
    assert_eq!(round.waiting[0].1, "it has 6 of 9 pods");
    world.wait(Span::from_secs(60));
    // The three new ones went to the empty zone.
    let round = go_on(&mut world, &mut rounds, 5);
    assert_eq!((round.waiting.len(), world.evicted.len()), (0, 0));
    assert_eq!(world.zones("web"), [3, 3, 3]);
}

/// A budget that allows nothing holds up only its own workload, which has its turn when it allows one.
#[test]
fn a_budget_that_refuses_holds_up_no_other_workload() {
    let objects = [
        own("api", Some("true")),
        own("web", Some("true")),
        budget("api", 0),
    ];
    let mut world = World::new(6, &objects);
    let mut rounds = rounds();
    go_on(&mut world, &mut rounds, 5);
    assert_eq!(world.zones("api"), [3, 3, 0]);
    assert_eq!(world.zones("web"), [2, 2, 2]);
    let key = strew_apiserver::object::Key {
        kind: strew_apiserver::object::Kind::PodDisruptionBudget,
        name: Name::new("shop", "api"),
    };
    let widened = world.sim.edit(&key, &mut |value| {
        value["spec"]["maxUnavailable"] = json!(1);
        Ok(())
    });
    assert!(widened.is_ok());
    world.wait(EVERY);
    go_on(&mut world, &mut rounds, 20);
    assert_eq!(world.zones("api"), [2, 2, 2]);
    assert_eq!((world.evicted_of("api"), world.most_away), (2, 0));
}

/// Another scheduler puts every new pod where the old one was: after one eviction the workload rests, for longer each
/// time.
#[test]
fn a_workload_whose_pods_come_back_elsewhere_rests_longer_and_longer() {
    let mut world = World::new(7, &[own("web", Some("true"))]);
    let mut rounds = rounds();
    let mut evictions_at = BTreeSet::new();
    let begin = world.sim.elapsed();
    // Right after each eviction zone c is cordoned, so that the new pod goes to a or b; then it is open again.
    while world.sim.elapsed().0 - begin.0 < Span::from_secs(4 * 3600).0 {
        let _round = world.round(&mut rounds);
        while rounds.step().is_some() {
            let n = world.evicted.len();
            for node in ["n2", "n5"] {
                world
                    .sim
                    .cordon(node, rounds.step().is_some())
                    .expect("a node");
            }
            let pause = world.act(&mut rounds);
            if world.evicted.len() > n {
                evictions_at.insert((world.sim.elapsed().0 - begin.0) / 60_000_000_000);
            }
            match pause {
                Some(pause) => world.wait(pause),
                None => break,
            }
        }
        for node in ["n2", "n5"] {
            world.sim.cordon(node, false).expect("a node");
        }
        world.wait(EVERY);
    }
    // In four hours: after 0, 5, 15, 35, 75 and 155 minutes, each a little later.
    assert!((4..=6).contains(&world.evicted.len()), "{evictions_at:?}");
}

/// Two replicas, of which one leads at a time; the leader dies at any point, also between a request and its answer. For
/// each move one pod is evicted.
#[test]
fn replicas_that_die_at_any_point_evict_one_pod_for_each_move() {
    for seed in 0..16 {
        let mut dice = Prng::new(seed);
        let mut objects = vec![own("web", Some("true")), own("api", None)];
        if seed % 2 == 0 {
            objects.push(budget("web", 1));
        }
        let mut world = World::new(seed, &objects);
        let mut leader = rounds();
        let (mut n_deaths, mut n_idle) = (0, 0);
        while n_idle < 3 {
            let round = world.round(&mut leader);
            let is_idle = leader.step().is_none() && round.waiting.is_empty();
            n_idle = if is_idle { n_idle + 1 } else { 0 };
            while leader.step().is_some() {
                if dice.chance(1, 6) && n_deaths < 6 {
                    if dice.chance(1, 2) {
                        // It died before it heard the answer.
                        let _unheard = world.act(&mut leader);
                    }
                    n_deaths += 1;
                    leader = rounds();
                    break;
                }
                match world.act(&mut leader) {
                    Some(pause) => world.wait(pause),
                    None => break,
                }
            }
            world.wait(Span::from_millis(dice.between(1, 20_000)));
            let hours = world.sim.elapsed().0 / Span::from_secs(3600).0;
            assert!(hours < 3, "seed {seed}: it does not end");
        }
        assert_eq!(world.zones("web"), [2, 2, 2], "seed {seed}");
        assert_eq!(world.zones("api"), [3, 3, 0], "seed {seed}");
        let evicted = (world.evicted_of("web"), world.evicted.len());
        assert_eq!(evicted, (2, 2), "seed {seed}, {n_deaths} deaths");
        assert_eq!(world.most_away, 0, "seed {seed}: one step at a time");
    }
}
