//! How long lives take, and what they cost in memory, by pods, nodes and steps.
//!
//! `cargo xtask bench lives` prints a table, a process for each line. Machines are noisy: what counts is CPU time, and
//! the ratio of lines.

#[path = "../../strew-plan/benches/used/mod.rs"]
mod used;

use std::ops::ControlFlow;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant as Clock;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use strew_apiserver::admission::SetDefaults;
use strew_apiserver::object::{Deployment as Live, Key, Kind, Name, Object};
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::Span;
use strew_sim::{Blueprint, Settings, Simulation, Timing};
use strew_wire::config::AdmissionOptions;
use strew_wire::config::{FeatureGates, Given, configure};

use used::{cpu_seconds, peak_mib};

/// Deployments of equal size are applied, and then rolled out this number of times.
#[derive(Debug, Clone, Copy)]
struct Case {
    deployments: usize,
    replicas: usize,
    nodes: usize,
    rollouts: usize,
}

/// What grows, and what stays as it is meanwhile.
const CASES: [(&str, &[[usize; 4]]); 4] = [
    (
        "pods",
        &[
            [1, 1_000, 5_000, 0],
            [1, 10_000, 5_000, 0],
            [1, 100_000, 5_000, 0],
        ],
    ),
    (
        "deployments",
        &[
            [1, 10_000, 5_000, 0],
            [10, 1_000, 5_000, 0],
            [100, 100, 5_000, 0],
            [100, 1_000, 5_000, 0],
        ],
    ),
    (
        "nodes",
        &[
            [1, 10_000, 200, 0],
            [1, 10_000, 1_000, 0],
            [1, 10_000, 5_000, 0],
            [1, 10_000, 15_000, 0],
        ],
    ),
    (
        "rollouts",
        &[
            [1, 1_000, 500, 0],
            [1, 1_000, 500, 1],
            [1, 1_000, 500, 2],
            [1, 1_000, 500, 4],
            [1, 4_000, 500, 1],
        ],
    ),
];

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    if let [word, numbers @ ..] = &words[..]
        && word == "case"
    {
        let numbers: Vec<usize> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
        if let [deployments, replicas, nodes, rollouts] = numbers[..] {
            return Case {
                deployments,
                replicas,
                nodes,
                rollouts,
            }
            .play();
        }
    }
    println!(
        "{:>12} {:>8} {:>6} {:>8} {:>8} {:>8} {:>10} {:>9} {:>9}",
        "deployments",
        "replicas",
        "nodes",
        "rollouts",
        "wall s",
        "CPU s",
        "steps",
        "us/start",
        "peak MiB"
    );
    for (name, cases) in CASES {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        println!("{name}:");
        for case in cases {
            in_its_own_process(case);
        }
    }
}

/// The peak of memory is a process's.
fn in_its_own_process(case: &[usize; 4]) {
    let program = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
    let status = Command::new(program)
        .arg("case")
        .args(case.map(|n| n.to_string()))
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("{case:?} FAILED");
        std::process::exit(1);
    }
}

impl Case {
    /// Lives on until all pods run, after each rollout again.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    fn play(self) {
        let Self {
            deployments,
            replicas,
            nodes,
            rollouts,
        } = self;
        let mut objects: Vec<Object> = (0..nodes).map(node).collect();
        objects.extend((0..deployments).map(|i| deployment(i, replicas)));
        let clock = Clock::now();
        let mut simulation = simulation(objects);
        let mut is_done = self.rest(&mut simulation);
        for rollout in 0..rollouts {
            for i in 0..deployments {
                let key = Key {
                    kind: Kind::Deployment,
                    name: Name::new("default", format!("web-{i}")),
                };
                let edited = simulation.edit(&key, &mut |value| {
                    value["spec"]["template"]["metadata"]["annotations"]["rollout"] =
                        json!(rollout.to_string());
                    Ok(())
                });
                is_done &= edited.is_ok();
            }
            is_done &= self.rest(&mut simulation);
        }
        let wall = clock.elapsed().as_secs_f64();
        let cpu = cpu_seconds();
        let n_starts = deployments * replicas * (rollouts + 1);
        println!(
            "{deployments:>12} {replicas:>8} {nodes:>6} {rollouts:>8} {wall:>8.2} {cpu:>8.2} {:>10} {:>9.1} {:>9}",
            simulation.n_steps(),
            cpu * 1e6 / n_starts as f64,
            peak_mib(),
        );
        if !is_done {
            println!("NOT ALL RUN");
            std::process::exit(1);
        }
    }

    /// Whether all pods of the newest template run within two hours.
    fn rest(self, simulation: &mut Simulation) -> bool {
        let n_pods = self.deployments * self.replicas;
        let mut seen = simulation.server().listen();
        let until = Span(simulation.elapsed().0 + Span::from_secs(7_200).0);
        let ended = simulation.run_until(until, &mut |simulation| {
            if !simulation.server().catch_up(&mut seen) {
                return ControlFlow::Continue(());
            }
            let deployments = simulation.server().tables().of::<Live>().iter();
            let is_new = |d: &&Arc<Live>| d.status.observed_generation == Some(d.meta.generation);
            let ready = deployments.filter(is_new).map(|d| {
                let status = &d.status;
                let available = status.available_replicas.unwrap_or(0);
                let old = status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0);
                available - old
            });
            match ready.sum::<i32>() as usize == n_pods {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        ended.is_ok_and(|flow| flow.is_break())
    }
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
