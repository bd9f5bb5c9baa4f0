//! `strew simulate` on the examples.

use snapbox::file;

use crate::{first_step, json, only_run, stderr, stdout, strew};

#[test]
fn shop_as_text() {
    let run = strew("simulate examples/shop.yaml").assert().code(0);
    run.stdout_eq(file!["snapshots/shop.txt"])
        .stderr_eq(file!["snapshots/shop.stderr.txt"]);
}

#[test]
fn shop_wide_with_every_pod() {
    let run = strew("simulate examples/shop.yaml --until deploy --nodes 6 -o wide -v")
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/shop-wide.txt"]);
}

#[test]
fn shop_for_programs() {
    let run = strew("simulate examples/shop.yaml --until deploy --nodes 4 -o json")
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/shop.json"]);
    let run = strew("simulate examples/shop.yaml --until deploy --nodes 4 -o yaml -l tier=front")
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/shop-front.yaml"]);
    let run = strew("simulate examples/shop.yaml --until deploy -o name")
        .assert()
        .code(0);
    assert_eq!(
        stdout(&run),
        "deployment.apps/web\ndeployment.apps/api\nstatefulset.apps/db\n"
    );
}

#[test]
fn what_stays_pending_is_told_with_the_next_command() {
    let run = strew("simulate examples/tight.yaml --until deploy")
        .assert()
        .code(1);
    run.stdout_eq(file!["snapshots/tight.txt"]).stderr_eq("");
}

#[test]
fn equal_runs_give_equal_bytes() {
    for output in ["json", "yaml", "wide"] {
        let args =
            format!("simulate examples/tight.yaml --nodes 30 --zones 3 --until deploy -o {output}");
        let runs = [(); 2].map(|()| stdout(&strew(&args).assert()));
        assert_eq!(runs[0], runs[1], "{output}");
        assert!(!runs[0].is_empty());
    }
}

#[test]
fn standard_input_is_a_file() {
    let manifest = std::fs::read(crate::root().join("examples/shop.yaml")).unwrap();
    let from_stdin = strew("simulate - --until deploy")
        .stdin(manifest)
        .assert()
        .code(0);
    let from_file = strew("simulate -f examples/shop.yaml --until deploy")
        .assert()
        .code(0);
    assert_eq!(stdout(&from_stdin), stdout(&from_file));
}

#[test]
fn only_the_top_and_only_a_namespace_are_shown() {
    let mut manifests = String::new();
    for i in 0..30 {
        let namespace = if i % 3 == 0 { "red" } else { "blue" };
        manifests.push_str(&deployment(&format!("app-{i}"), namespace, 1 + i % 5));
    }
    let shown = |args: &str| {
        let run = strew(&format!("simulate - --until deploy {args}"))
            .stdin(manifests.clone())
            .assert()
            .code(0);
        let text = stdout(&run);
        let names = text.lines().filter(|line| line.starts_with("deployment/"));
        (names.count(), text.contains("more workloads"))
    };
    assert_eq!(shown(""), (20, true));
    assert_eq!(shown("--top 5"), (5, true));
    assert_eq!(shown("--all"), (30, false));
    assert_eq!(shown("-n red"), (10, false));
    assert_eq!(shown("-q"), (0, false));
    let run = strew("simulate - --until deploy -n red -o json")
        .stdin(manifests.clone())
        .assert()
        .code(0);
    assert_eq!(
        only_run(&json(&run))["steps"][0]["workloads"]
            .as_array()
            .unwrap()
            .len(),
        10
    );
}

/// Higher priority first, whatever the order of the files; equal priorities in the order of the files.
#[test]
fn priority_goes_first() {
    let manifests = format!(
        "{}---\n{}",
        pod("low", "", "cpu: 3"),
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n---\n".to_owned()
            + &pod("high", "priorityClassName: high", "cpu: 3")
    );
    let run = strew("simulate - --until deploy --nodes 1 --node-cpu 4 -o json")
        .stdin(manifests)
        .assert()
        .code(1);
    let report = json(&run);
    assert_eq!(first_step(&report)["placements"][0]["pod"], "high");
    let low = &only_run(&report)["steps"][0]["workloads"][0];
    assert_eq!(low["of"], "pod/low");
    assert_eq!(
        low["pending"][0]["message"],
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    );
    assert_eq!(low["pending"][0]["blockedBy"][0], "NodeResourcesFit");
}

/// A pod with affinity to a later pod is tried again.
#[test]
fn one_pod_may_wait_for_another() {
    let affinity = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {name: second}}}]}}";
    let manifests = pod("first", affinity, "cpu: 1") + &pod("second", "", "cpu: 1");
    let run = strew("simulate - --until deploy -o json")
        .stdin(manifests)
        .assert()
        .code(0);
    let placements = first_step(&json(&run))["placements"].clone();
    assert_eq!(placements[0]["node"], placements[1]["node"]);
}

#[test]
fn gated_pods_and_pods_of_other_schedulers_are_not_tried() {
    let manifests = pod(
        "gated",
        "schedulingGates: [{name: example.com/quota}]",
        "cpu: 1",
    ) + &pod("foreign", "schedulerName: volcano", "cpu: 1");
    let run = strew("simulate - --until deploy --nodes 2 -o json")
        .stdin(manifests)
        .assert()
        .code(1);
    let report = json(&run);
    let gated = &only_run(&report)["steps"][0]["workloads"][0]["pending"][0];
    assert_eq!(gated["blockedBy"][0], "SchedulingGates");
    assert_eq!(first_step(&report)["pods"]["leftAlone"], 1);
    assert!(stderr(&run).contains("left 1 pod alone: schedulerName volcano"));
}

fn pod(name: &str, spec: &str, requests: &str) -> String {
    let spec = if spec.is_empty() {
        String::new()
    } else {
        format!("  {spec}\n")
    };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{name: {name}}}}}\nspec:\n{spec}  containers: [{{name: c, image: i, resources: {{requests: {{{requests}}}}}}}]\n---\n"
    )
}

fn deployment(name: &str, namespace: &str, replicas: usize) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: c, image: i}}]}}\n---\n"
    )
}

/// The compatibility mode is a flag, and it is in the output for programs and in the next command.
#[test]
fn whose_choices_were_made_is_shown() {
    for compat in ["1.36", "strew"] {
        let run = strew(&format!(
            "simulate examples/tight.yaml --until deploy --compat {compat} -o json"
        ));
        assert_eq!(json(&run.assert().code(1))["compat"], compat);
    }
    let run = strew("simulate examples/tight.yaml --until deploy --compat strew")
        .assert()
        .code(1);
    let text = stdout(&run);
    assert!(
        text.contains("examples/tight.yaml --compat strew"),
        "{text}"
    );
    let run = strew("simulate examples/tight.yaml --until deploy --compat 1.35")
        .assert()
        .code(2);
    let text = stderr(&run);
    assert!(text.contains("1.36") && text.contains("strew"), "{text}");
}
