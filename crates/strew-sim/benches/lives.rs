//! How long lives take, and what they cost in memory, by pods, nodes and steps.
//!
//! `cargo bench -p strew-sim` prints a table; machines are noisy, so what counts is the ratio of its lines.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant as Clock;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use strew_api::admission::{AdmissionOptions, SetDefaults};
use strew_api::config::{FeatureGates, Given, configure};
use strew_api::read::KubeObject;
use strew_controllers::object::{Deployment as Live, Object};
use strew_model::Interner;
use strew_model::time::Span;
use strew_sim::{Blueprint, Settings, Simulation, Timing};

fn main() {
    println!(
        "{:>12} {:>8} {:>8} {:>10} {:>10} {:>10} {:>12}",
        "deployments", "replicas", "nodes", "seconds", "steps", "us/pod", "peak MiB"
    );
    for (deployments, replicas, nodes) in [
        (1, 1_000, 5_000),
        (1, 10_000, 5_000),
        (1, 10_000, 500),
        (1, 100_000, 5_000),
        (100, 1_000, 5_000),
    ] {
        deploy(deployments, replicas, nodes);
    }
}

/// Applies Deployments of equal size and lives on until all pods run.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn deploy(deployments: usize, replicas: usize, nodes: usize) {
    let mut objects: Vec<Object> = (0..nodes).map(node).collect();
    objects.extend((0..deployments).map(|i| deployment(i, replicas)));
    let n_pods = deployments * replicas;
    let clock = Clock::now();
    let mut simulation = simulation(objects);
    let mut seen = 0;
    let ended = simulation.run_until(Span::from_secs(600), &mut |simulation| {
        if simulation.server().version() == seen {
            return ControlFlow::Continue(());
        }
        seen = simulation.server().version();
        let deployments = simulation.server().tables().of::<Live>().iter();
        let available = deployments.map(|d| d.status.available_replicas.unwrap_or(0));
        let rests = available.sum::<i32>() as usize == n_pods;
        if rests {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let seconds = clock.elapsed().as_secs_f64();
    let is_done = ended.is_ok_and(|flow| flow.is_break());
    println!(
        "{deployments:>12} {replicas:>8} {nodes:>8} {seconds:>10.2} {:>10} {:>10.1} {:>12} {}",
        simulation.n_steps(),
        seconds * 1e6 / n_pods as f64,
        peak_mib(),
        if is_done { "" } else { "NOT ALL RUN" },
    );
}

fn simulation(objects: Vec<Object>) -> Simulation {
    let mut names = Interner::new();
    let configuration = configure(Given::Nothing, &FeatureGates::default(), &mut names)
        .unwrap_or_else(|_| unreachable!("the default configuration has no mistakes"));
    Simulation::new(Settings {
        seed: 1,
        objects,
        options: AdmissionOptions::KUBERNETES_1_36,
        scheduler: Blueprint::of(&configuration, names),
        elects: false,
        controllers: Arc::new(strew_sim::controllers),
        timing: Timing::default(),
        groups: Vec::new(),
        autoscaler: None,
    })
}

fn object<T: serde::de::DeserializeOwned + SetDefaults>(value: Value) -> Object
where
    KubeObject: From<T>,
{
    let mut object: T = serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}"));
    object.set_defaults();
    Object::of_wire(object.into())
}

fn node(i: usize) -> Object {
    object::<Node>(json!({
        "metadata": {"name": format!("n{i}"), "labels": {
            "kubernetes.io/hostname": format!("n{i}"),
            "topology.kubernetes.io/zone": format!("z{}", i % 3),
        }},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}},
    }))
}

fn deployment(i: usize, replicas: usize) -> Object {
    let labels = json!({"app": format!("web-{i}")});
    object::<Deployment>(json!({
        "metadata": {"name": format!("web-{i}"), "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {
                "containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels},
                }],
            },
        }},
    }))
}

/// The most memory that this process has had, so far.
fn peak_mib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map_or_else(|| "-".to_owned(), |kib| (kib / 1024).to_string())
}
