//! What a command costs grows with its input, and no faster.
//!
//! Each command reads a dump, and one of four times as much: the CPU time of the second must stay below [`GROWTH_MAX`]
//! times that of the first. Linear is 4 or less, quadratic 16. Both are measured in one run, so the machine and the
//! optimization of the build do not matter.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Between linear and quadratic, with room for a busy machine.
const GROWTH_MAX: f64 = 7.0;

/// Below this many seconds of CPU the larger dump says nothing.
const SECONDS_MIN: f64 = 1.0;

/// Commands, and what they read.
const COMMANDS: [(&[&str], &[&str]); 6] = [
    (&["lint"], &["dump"]),
    (&["audit", "--at-once"], &["dump"]),
    (&["rebalance"], &["dump"]),
    (&["explain"], &["dump"]),
    (&["simulate", "--quiet", "--until", "deploy"], &["dump"]),
    (&["diff"], &["list", "list"]),
];

/// Deployments of ten pods with a hard constraint over zones, of which a rollout breaks the constraint: `lint` has a fix for
/// each.
fn dump(n_workloads: usize) -> Vec<Value> {
    let n_nodes = n_workloads / 2;
    let mut items: Vec<Value> = (0..n_nodes).map(node).collect();
    for number in 0..n_workloads {
        workload(number, n_nodes, &mut items);
    }
    items
}

/// The manifests of its Deployments.
fn list(n_workloads: usize) -> Vec<Value> {
    let mut items = dump(n_workloads);
    items.retain(|item| item["kind"] == "Deployment");
    for item in &mut items {
        if let Some(meta) = item["metadata"].as_object_mut() {
            meta.remove("uid");
        }
    }
    items
}

fn node(number: usize) -> Value {
    let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("n{number}"), "uid": format!("node-{number}"),
            "labels": {
                "kubernetes.io/hostname": format!("n{number}"),
                "topology.kubernetes.io/zone": format!("z{}", number % 3),
            },
        },
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn workload(number: usize, n_nodes: usize, items: &mut Vec<Value>) {
    const REPLICAS: usize = 10;
    let name = format!("app-{number}");
    let (own, set) = (
        json!({"app": name}),
        json!({"app": name, "pod-template-hash": "5d9c"}),
    );
    let spec = json!({
        "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": own},
        }],
    });
    let meta = |name: &str, labels: &Value, owner: Option<(&str, &str)>| {
        let mut meta = json!({"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "labels": labels});
        if let Some((kind, owner)) = owner {
            meta["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": format!("uid-{owner}"), "controller": true,
            }]);
        }
        meta
    };
    let of = |labels: &Value| {
        json!({
            "replicas": REPLICAS, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        })
    };
    let set_name = format!("{name}-5d9c");
    items.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(&name, &own, None), "spec": of(&own)}));
    items.push(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta(&set_name, &set, Some(("Deployment", &name))),
        "spec": of(&set),
    }));
    for pod in 0..REPLICAS {
        let mut spec = spec.clone();
        spec["nodeName"] = format!("n{}", (number * REPLICAS + pod) % n_nodes).into();
        items.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": meta(&format!("{set_name}-{pod}"), &set, Some(("ReplicaSet", &set_name))), "spec": spec,
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }));
    }
}

/// The seconds of CPU of a command, which a shell knows of its children.
fn seconds(args: &[&str], folder: &std::path::Path) -> f64 {
    let script = r#""$@" > out 2> err; code=$?; times; exit "$code""#;
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_strew")])
        .args(args)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("a shell runs");
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 1)),
        "strew {args:?} ends with {code:?}"
    );
    let times = String::from_utf8(output.stdout).expect("times are text");
    let of_children = times
        .lines()
        .last()
        .expect("the second line is of children");
    let each = of_children.split_whitespace().map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("0m1.23s");
        minutes.parse::<f64>().expect("minutes") * 60.0 + seconds.parse::<f64>().expect("seconds")
    });
    each.sum()
}

#[test]
fn no_command_grows_faster_than_its_dump() {
    let folder = std::env::temp_dir().join(format!("strew-growth-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (size, n_workloads) in [("small", 80), ("large", 320)] {
        for (kind, items) in [("dump", dump(n_workloads)), ("list", list(n_workloads))] {
            let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
            std::fs::write(folder.join(format!("{size}-{kind}.json")), text).expect("a file");
        }
    }
    let mut too_fast = Vec::new();
    for (command, read) in COMMANDS {
        let of = |size: &str| {
            let files: Vec<String> = read
                .iter()
                .map(|kind| format!("{size}-{kind}.json"))
                .collect();
            let files = files.iter().map(String::as_str);
            let args: Vec<&str> = command.iter().copied().chain(files).collect();
            seconds(&args, &folder)
        };
        // A core that is shared for one of the two runs makes a ratio larger, never three times in a row by so much.
        let mut measured = Vec::new();
        let is_linear = (0..3).any(|_| {
            let (small, large) = (of("small"), of("large"));
            measured.push(format!("{small:.2} s and {large:.2} s"));
            large <= SECONDS_MIN || large <= GROWTH_MAX * small
        });
        if !is_linear {
            too_fast.push(format!("{command:?}: {}", measured.join(", ")));
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder is there");
    assert!(
        too_fast.is_empty(),
        "a dump, and four times as much:\n{}",
        too_fast.join("\n")
    );
}
