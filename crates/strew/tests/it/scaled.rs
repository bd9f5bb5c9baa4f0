//! `scale=N` of a what-if takes the pods that the simulated controller deletes.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{Object, Pod};
use strew_cluster::PodIdx;
use strew_manifest::read::KubeObject;
use strew_model::time::Span;
use strew_model::{Interner, Prng};
use strew_plan::{Change, Transaction};
use strew_sim::{Blueprint, Settings, Simulation, Timing};
use strew_view::lives::lives;
use strew_view::moment::{Frame, world};
use strew_view::workload::Workloads;
use strew_wire::config::{AdmissionOptions, FeatureGates, Given, configure};

const SEEDS: u64 = 40;

/// A time, this many seconds before noon.
fn ago(secs: u64) -> String {
    let at = 12 * 3600 - secs;
    format!(
        "2026-03-01T{:02}:{:02}:{:02}Z",
        at / 3600,
        at / 60 % 60,
        at % 60
    )
}

/// A time in the middle between two powers of two nanoseconds ago, so that the next seconds change no bucket.
fn some_age(dice: &mut Prng) -> u64 {
    (3_u64 << (36 + dice.between(0, 5))) / 2_000_000_000
}

fn node(index: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("n{index}"), "uid": format!("n{index}"), "creationTimestamp": ago(0)},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn set(replicas: usize, has_controller: bool) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "web", "creationTimestamp": ago(30_000)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "a"}]},
            },
        },
    });
    if has_controller {
        set["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "n0", "controller": true,
        }]);
    }
    set
}

/// A pod that is ready, or one that fits no node. No two are alike in all rules: then chance would decide.
fn pod(index: usize, n_nodes: usize, dice: &mut Prng) -> Value {
    let ready = some_age(dice);
    let created = ago(some_age(dice).max(ready) + index as u64);
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("web-{index}"), "namespace": "default", "labels": {"app": "web"},
            "uid": format!("{:04x}-{index}", dice.between(0, 0xffff)), "creationTimestamp": created,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true,
            }],
        },
        "spec": {"containers": [{"name": "c", "image": "a"}]},
    });
    if dice.chance(1, 3) {
        let cost = dice.between(0, 2).to_string();
        pod["metadata"]["annotations"] =
            json!({"controller.kubernetes.io/pod-deletion-cost": cost});
    }
    if dice.chance(1, 6) {
        pod["spec"]["nodeSelector"] = json!({"disk": "none"});
        pod["status"] = json!({"phase": "Pending"});
        return pod;
    }
    pod["spec"]["nodeName"] = format!("n{}", dice.index(n_nodes)).into();
    pod["status"] = json!({
        "phase": "Running", "startTime": created,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(ready)}],
        "containerStatuses": [{
            "name": "c", "image": "a", "imageID": "a", "ready": true, "restartCount": index,
            "state": {"running": {"startedAt": ago(ready)}},
        }],
    });
    pod
}

fn simulation(seed: u64, manifests: Vec<Value>) -> Simulation {
    let object = |manifest| Object::of_wire(KubeObject::of_json(manifest).unwrap());
    let mut names = Interner::new();
    let configured = configure(Given::Nothing, &FeatureGates::default(), &mut names).unwrap();
    Simulation::new(Settings {
        seed,
        objects: manifests.into_iter().map(object).collect(),
        options: AdmissionOptions::KUBERNETES_1_36,
        scheduler: Blueprint::of(&configured, names),
        elects: false,
        controllers: Arc::new(strew_sim::controllers),
        timing: Timing::default(),
        groups: Vec::new(),
        autoscaler: None,
    })
}

fn live(sim: &mut Simulation, secs: u64) {
    let end = Span(sim.elapsed().0 + Span::from_secs(secs).0);
    let ended = sim.run_until(end, &mut |_| ControlFlow::Continue(()));
    assert_eq!(ended, Ok(ControlFlow::Continue(())));
}

fn active(sim: &Simulation) -> BTreeSet<String> {
    let pods = sim.server().tables().of::<Pod>().iter();
    let active = pods.filter(|pod| pod.is_active());
    active.map(|pod| pod.meta.name.name.to_string()).collect()
}

/// The pods that a what-if takes.
fn taken(sim: &Simulation, to: usize) -> BTreeSet<String> {
    let moment = strew_scenario::moment(sim);
    let mut frame = Frame {
        names: moment.names.clone(),
        profiles: moment.profiles.to_vec(),
        workloads: Workloads::default(),
        keys: Vec::new(),
    };
    let (mut world, _) = world(moment, &mut frame);
    let subject: Vec<PodIdx> = world.pods.iter().map(|entry| entry.pod).collect();
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
    trial.set_lives(lives(moment.tables, sim.now()));
    trial.apply(&Change::Scale { to }, &subject);
    let gone = subject.iter().filter(|pod| trial.is_gone(**pod));
    gone.map(|pod| trial.cluster().pod(*pod).name.to_string())
        .collect()
}

#[test]
fn a_what_if_takes_the_pods_that_the_controller_deletes() {
    for seed in 0..SEEDS {
        let mut dice = Prng::new(seed);
        let has_controller = dice.chance(1, 2);
        let n_nodes = dice.between(1, 6) as usize;
        let n_pods = dice.between(2, 20) as usize;
        let to = dice.index(n_pods);
        let mut manifests: Vec<Value> = (0..n_nodes).map(node).collect();
        manifests.push(set(n_pods, has_controller));
        manifests.extend((0..n_pods).map(|index| pod(index, n_nodes, &mut dice)));
        let mut sim = simulation(seed, manifests);
        live(&mut sim, 2);
        let before = active(&sim);
        assert_eq!(before.len(), n_pods, "seed {seed}");
        let taken = taken(&sim, to);
        sim.apply(&json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "default"}, "spec": set(to, false)["spec"],
        }))
        .unwrap();
        live(&mut sim, 5);
        let left = active(&sim);
        let deleted: BTreeSet<String> = before.difference(&left).cloned().collect();
        assert_eq!(taken, deleted, "seed {seed}: {n_pods} to {to}");
        assert_eq!(deleted.len(), n_pods - to, "seed {seed}");
    }
}
