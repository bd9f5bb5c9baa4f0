//! How long the audit of a large dump takes, and what it costs in memory: 1,000 nodes in 3 zones, 2,000 Deployments of
//! 10 pods each, every zone lost, shifted and drained, one after the other.
//!
//! `cargo xtask bench audit` prints a line for each part. Machines are noisy: what counts is CPU time.

#[path = "../../strew-plan/benches/used/mod.rs"]
mod used;

use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use strew_manifest::read::{Sources, read_applying};
use strew_scenario::audit::play::play_case;
use strew_scenario::audit::values::Event;
use strew_scenario::audit::{domains, questions};
use strew_scenario::format::load_read;
use strew_scenario::run::{Plan, scheduler_of};
use strew_scenario::story;
use strew_wire::config::FeatureGates;

use used::{cpu_seconds, peak_mib};

const ZONE: &str = "topology.kubernetes.io/zone";
const NODES: usize = 1_000;
const WORKLOADS: usize = 2_000;
const REPLICAS: usize = 10;
const HASH: &str = "5d4f6c7b8";

fn main() -> ExitCode {
    let clock = Clock::now();
    let Some(plan) = plan() else {
        eprintln!("the dump cannot be played");
        return ExitCode::FAILURE;
    };
    clock.tell("read and admitted");
    let (domains, _) = domains(plan.objects(), ZONE);
    for event in Event::ALL {
        let clock = Clock::now();
        for question in questions(ZONE, &domains, &[event], 1) {
            match play_case(&plan, &question, &[], 0) {
                Ok(case) => assert_eq!(case.workloads.len(), WORKLOADS),
                Err(error) => {
                    eprintln!("{error}");
                    return ExitCode::FAILURE;
                }
            }
        }
        clock.tell(&format!("{} of {} zones", event.name(), domains.len()));
    }
    ExitCode::SUCCESS
}

fn plan() -> Option<Plan> {
    let mut sources = Sources::new();
    sources.add("dump.json".to_owned(), dump().to_string());
    let reading = read_applying(&sources);
    let gates = FeatureGates::default();
    let story = story::story(&reading.objects, &[], &[], Some(0), &Default::default());
    sources.add("story.json".to_owned(), story.to_string());
    let reading = read_applying(&sources);
    let loaded = load_read(&sources, reading);
    let variant = loaded.variants.into_iter().next()?;
    let configure = scheduler_of(&sources, &variant.objects, &gates).ok()?;
    Plan::new(&variant.scenario, &variant.objects, configure).ok()
}

fn dump() -> Value {
    let nodes = (0..NODES).map(node);
    let items: Vec<Value> = nodes.chain((0..WORKLOADS).flat_map(workload)).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn node(number: usize) -> Value {
    let (name, zone) = (format!("n{number:04}"), ["a", "b", "c"][number % 3]);
    let room = json!({"cpu": "32", "memory": "128Gi", "pods": "110"});
    let labels = json!({"kubernetes.io/hostname": name, ZONE: zone});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Of each ten, four have a soft constraint over zones, one a hard one that honours taints, one a hard one that does
/// not, four have none, and the pods of two of those are in one zone.
fn workload(number: usize) -> Vec<Value> {
    let name = format!("w{number:04}");
    let set = format!("{name}-{HASH}");
    let constraint = |when: &str, policy: &str| {
        json!([{
            "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when, "nodeTaintsPolicy": policy,
            "labelSelector": {"matchLabels": {"app": name}},
        }])
    };
    let constraints = match number % 10 {
        0..4 => constraint("ScheduleAnyway", "Ignore"),
        4 => constraint("DoNotSchedule", "Honor"),
        5 => constraint("DoNotSchedule", "Ignore"),
        _ => json!([]),
    };
    let stays = ["not-ready", "unreachable"].map(|reason| {
        let key = format!("node.kubernetes.io/{reason}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    });
    let requests = json!({"cpu": "500m", "memory": "512Mi"});
    let spec = json!({
        "containers": [{"name": "app", "image": "registry.example/app:1", "resources": {"requests": requests}}],
        "tolerations": stays,
        "topologySpreadConstraints": constraints,
    });
    let object = |kind: &str, name: &str, labels: &Value, owner: Option<[&str; 2]>| {
        let owners = owner.map(|[kind, name]| {
            json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}])
        });
        json!({
            "apiVersion": if kind == "Pod" { "v1" } else { "apps/v1" },
            "kind": kind,
            "metadata": {
                "name": name, "namespace": format!("team-{}", number % 50), "uid": name, "generation": 1,
                "labels": labels, "ownerReferences": owners,
                "annotations": {"deployment.kubernetes.io/revision": "1"},
            },
        })
    };
    let own = json!({"app": name});
    let labels = json!({"app": name, "pod-template-hash": HASH});
    let of = |labels: &Value| {
        json!({
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        })
    };
    let mut deployment = object("Deployment", &name, &own, None);
    deployment["spec"] = of(&own);
    deployment["status"] = json!({
        "observedGeneration": 1, "replicas": REPLICAS, "updatedReplicas": REPLICAS,
        "readyReplicas": REPLICAS, "availableReplicas": REPLICAS,
    });
    let mut replica_set = object("ReplicaSet", &set, &labels, Some(["Deployment", &name]));
    replica_set["spec"] = of(&labels);
    replica_set["status"] = json!({
        "observedGeneration": 1, "replicas": REPLICAS, "readyReplicas": REPLICAS, "availableReplicas": REPLICAS,
    });
    let pods = (0..REPLICAS).map(|pod| {
        let place = number * REPLICAS + pod;
        let node = match number % 10 {
            8 | 9 => place * 3 % (NODES - 1),
            _ => place % NODES,
        };
        let mut pod = object(
            "Pod",
            &format!("{set}-{pod}"),
            &labels,
            Some(["ReplicaSet", &set]),
        );
        pod["spec"] = spec.clone();
        pod["spec"]["nodeName"] = format!("n{node:04}").into();
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
        let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
        pod["status"] = json!({"phase": "Running", "conditions": conditions});
        pod
    });
    [deployment, replica_set].into_iter().chain(pods).collect()
}

/// The wall time and the CPU time of a part.
struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    fn now() -> Self {
        Self {
            wall: Instant::now(),
            cpu: cpu_seconds(),
        }
    }

    fn tell(&self, part: &str) {
        let (wall, cpu) = (self.wall.elapsed().as_secs_f64(), cpu_seconds() - self.cpu);
        println!(
            "{part:20} {wall:>7.2} s wall {cpu:>7.2} s CPU {:>6} MiB peak",
            peak_mib()
        );
    }
}
