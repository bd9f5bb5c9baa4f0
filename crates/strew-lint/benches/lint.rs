//! Measures the cost of the rules: 2,000 Deployments with a budget each, from text to verified fixes. Prints JSON lines
//! on stdout; `cargo xtask bench lint` runs it.
//!
//! Targets: 1 s of CPU time, without nodes and with 100. The program exits with 1 if one is missed.

use std::fmt::Write;
use std::process::ExitCode;

use strew_lint::{Scheduling, lint_with_fixes};
use strew_manifest::read::{KubeObject, Sources, read};

const WORKLOADS: usize = 2_000;
const TARGET_S: f64 = 1.0;

fn main() -> ExitCode {
    let is_met = [0, 100].map(measure);
    ExitCode::from(u8::from(is_met.contains(&false)))
}

/// CPU time of this thread so far, in seconds. Other work on the machine does not count.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn measure(n_nodes: usize) -> bool {
    let text = manifests(n_nodes);
    let mut sources = Sources::new();
    sources.add("all.yaml", text);
    let start = cpu_s();
    let reading = read(&sources);
    let read_s = cpu_s() - start;
    let objects: Vec<&KubeObject> = reading.objects.iter().map(|l| &l.object).collect();
    let found = lint_with_fixes(&objects, &Scheduling::default());
    let seconds = cpu_s() - start;
    let fixes = found.iter().filter(|found| found.fix.is_some()).count();
    println!(
        "{{\"name\":\"lint/{WORKLOADS}/{n_nodes}\",\"objects\":{},\"findings\":{},\"fixes\":{fixes},\"read_s\":{read_s:.3},\"cpu_s\":{seconds:.3},\"target_s\":{TARGET_S}}}",
        objects.len(),
        found.len(),
    );
    seconds <= TARGET_S
}

/// Every tenth workload has a hard constraint without matchLabelKeys, every other tenth one with it.
fn manifests(n_nodes: usize) -> String {
    let mut text = String::new();
    for number in 0..n_nodes {
        let zone = ["a", "b", "c"][number % 3];
        let _ = write!(
            text,
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n{number}, labels: {{topology.kubernetes.io/zone: {zone}, kubernetes.io/hostname: n{number}}}}}\nstatus: {{allocatable: {{cpu: \"64\", memory: 256Gi, pods: \"250\"}}}}\n---\n"
        );
    }
    for number in 0..WORKLOADS {
        let keys = match number % 10 {
            0 => "",
            1 => ", matchLabelKeys: [pod-template-hash]",
            _ => "-",
        };
        let constraint = match keys {
            "-" => String::new(),
            keys => format!(
                "      topologySpreadConstraints: [{{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: w{number}}}}}{keys}}}]\n"
            ),
        };
        let replicas = 2 + number % 8;
        let namespace = number % 40;
        let _ = write!(
            text,
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w{number}, namespace: team-{namespace}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: w{number}}}}}\n  template:\n    metadata: {{labels: {{app: w{number}}}}}\n    spec:\n      containers: [{{name: main, image: nginx, resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}}}]\n{constraint}---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: w{number}, namespace: team-{namespace}}}\nspec: {{maxUnavailable: 1, selector: {{matchLabels: {{app: w{number}}}}}}}\n---\n"
        );
    }
    text
}
