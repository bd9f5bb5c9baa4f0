//! How the scheduler is configured: files, gates, ties; and the results of preemption.

use std::path::PathBuf;

use snapbox::file;

use crate::{first_step, json, only_run, stderr, stdout, strew};

/// KEP-1258's own configuration, whose keys are not label names.
fn of_the_kep(rack: &str, host: &str) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultConstraints:
        - maxSkew: 5
          topologyKey: \"{host}\"
          whenUnsatisfiable: ScheduleAnyway
        - maxSkew: 15
          topologyKey: \"{rack}\"
          whenUnsatisfiable: DoNotSchedule
"
    )
}

/// Four hosts in two racks, and a Deployment without constraints of its own.
fn racks() -> String {
    let mut text = String::new();
    for (host, rack) in [("h1", "r1"), ("h2", "r1"), ("h3", "r2"), ("h4", "r2")] {
        text += &format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {host}, labels: {{example.com/rack: {rack}, example.com/physical_host: {host}}}}}\nstatus: {{allocatable: {{cpu: '8', memory: 16Gi, pods: '110'}}}}\n---\n"
        );
    }
    text + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: demo}\nspec:\n  replicas: 6\n  selector: {matchLabels: {app: demo}}\n  template:\n    metadata: {labels: {app: demo}}\n    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n"
}

/// A file of this run.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let file = format!("strew-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_keps_own_keys_are_refused_both_at_once() {
    let text = of_the_kep(
        "example.com/topology/rack",
        "example.com/topology/physical_host",
    );
    let run = strew("simulate examples/shop.yaml --config -")
        .stdin(text)
        .assert()
        .code(2);
    run.stdout_eq("")
        .stderr_eq(file!["snapshots/config-kep.stderr.txt"]);
}

#[test]
fn with_keys_that_are_label_names_the_keps_configuration_runs() {
    let manifests = Scratch::new("racks.yaml", &racks());
    let text = of_the_kep("example.com/rack", "example.com/physical_host");
    let run = strew("simulate --config - --until deploy")
        .arg(manifests.path())
        .stdin(text.clone())
        .assert()
        .code(0);
    let by_option = stdout(&run);
    run.stdout_eq(file!["snapshots/config-racks.txt"])
        .stderr_eq(file!["snapshots/config-racks.stderr.txt"]);
    // It does the same among the manifests.
    let both = racks() + "---\n" + &text;
    let run = strew("simulate - --until deploy")
        .stdin(both)
        .assert()
        .code(0);
    assert_eq!(stdout(&run), by_option);
}

#[test]
fn one_configuration_is_enough() {
    let text = of_the_kep("example.com/rack", "example.com/physical_host");
    let run = strew("simulate - --config examples/policy.yaml")
        .stdin(format!("{}---\n{text}", racks()))
        .assert()
        .code(2);
    let said = stderr(&run);
    assert!(
        said.contains("another in --config examples/policy.yaml"),
        "{said}"
    );
    assert!(said.contains("<stdin>:31:1"), "{said}");
    let run = strew("simulate - --until deploy -o json")
        .stdin(format!("{}---\n{text}---\n{text}", racks()))
        .assert()
        .code(2);
    let said = &json(&run)["items"][0];
    assert_eq!(said["code"], "surplus-document");
    assert_eq!(said["related"][0]["place"]["line"], 31);
}

#[test]
fn a_policy_of_old() {
    let run =
        strew("simulate examples/shop.yaml --nodes 6 --config examples/policy.yaml --until deploy")
            .assert()
            .code(0);
    run.stdout_eq(file!["snapshots/config-policy.txt"])
        .stderr_eq(file!["snapshots/config-policy.stderr.txt"]);
}

#[test]
fn everything_wrong_with_the_flags_is_told_at_once() {
    let run = strew("simulate examples/shop.yaml --config - --feature-gates A,MinDomainInPodTopologySpread=false")
        .stdin("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofile: []\n")
        .assert()
        .code(2);
    run.stdout_eq("")
        .stderr_eq(file!["snapshots/config-wrong.stderr.txt"]);
    for (args, said) in [
        ("--until never", "no step is called so"),
        ("- --config -", "standard input is read once"),
        ("--tie best", "invalid value 'best'"),
        ("--config nosuch.yaml", "cannot read nosuch.yaml"),
    ] {
        let run = strew(&format!("simulate examples/shop.yaml {args}")).assert();
        assert!(stderr(&run).contains(said), "{args}: {}", stderr(&run));
        assert_ne!(run.get_output().status.code(), Some(0));
    }
}

#[test]
fn a_gate_that_is_off_takes_its_field_away() {
    let cache = |args: &str| {
        let run = strew(&format!(
            "simulate examples/tight.yaml --until deploy -o json {args}"
        ))
        .assert();
        let report = json(&run);
        let all = only_run(&report)["steps"][0]["workloads"]
            .as_array()
            .unwrap();
        let cache = all.iter().find(|w| w["of"] == "deployment/cache").unwrap();
        cache["placed"].as_i64().unwrap()
    };
    assert_eq!(cache(""), 2);
    assert_eq!(
        cache("--feature-gates MinDomainsInPodTopologySpread=false"),
        3
    );
    assert_eq!(
        cache(
            "--feature-gates SchedulerAsyncPreemption=true --feature-gates MinDomainsInPodTopologySpread=f"
        ),
        3
    );
}

#[test]
fn a_seed_gives_the_same_result_again() {
    let run = |args: &str| {
        stdout(
            &strew(&format!(
                "simulate examples/shop.yaml --until deploy -o json {args}"
            ))
            .assert()
            .code(0),
        )
    };
    let first = run("--tie random --seed 1");
    assert_eq!(first, run("--tie random --seed 1"));
    assert_ne!(first, run("--tie random --seed 2"));
    assert_eq!(run("--tie random"), run("--tie random"));
    assert_eq!(run(""), run("--tie upstream-1.36"));
    assert_ne!(run("--seed 1"), run("--seed 2"), "names, at least");
}

#[test]
fn what_was_drawn_is_what_is_explained() {
    let args = "examples/shop.yaml --nodes 12 -o json --tie random --seed 1";
    let report = json(&strew(&format!("simulate --until deploy {args}")).assert());
    for placement in first_step(&report)["placements"].as_array().unwrap() {
        let pod = placement["pod"].as_str().unwrap();
        let run = strew(&format!("explain pod/{pod} {args}")).assert().code(0);
        let explanation = json(&run);
        let rows = explanation["choice"]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["node"] == placement["node"]);
        // Another draw may choose another of the best nodes.
        assert_eq!(row.unwrap()["total"], rows[0]["total"], "{pod}");
    }
}

fn pod(name: &str, spec: &str, cpu: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  {spec}\n  containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}}}]\n---\n"
    )
}

#[test]
fn each_pod_is_decided_by_the_profile_that_it_names() {
    let mut manifests =
        pod("there", "nodeName: node-1", "1") + &pod("too", "nodeName: node-1", "1");
    for name in ["default-scheduler", "packing", "strew"] {
        manifests += &pod(
            &format!("of-{name}"),
            &format!("schedulerName: {name}"),
            "1",
        );
    }
    let run = strew(
        "simulate - --until deploy --nodes 3 --node-memory 8Gi -o json --config examples/scheduler-config.yaml",
    )
    .stdin(manifests)
    .assert()
    .code(1);
    let report = json(&run);
    let node = |pod: &str| {
        let all = first_step(&report)["placements"].as_array().unwrap();
        let found = all.iter().find(|p| p["pod"] == pod);
        found.map(|p| p["node"].as_str().unwrap().to_owned())
    };
    assert_eq!(node("of-packing").as_deref(), Some("node-1"));
    assert_ne!(node("of-default-scheduler").as_deref(), Some("node-1"));
    // With a configuration, only its profiles exist, and no scheduler takes the pod.
    assert_eq!(node("of-strew"), None);
    let findings = report["findings"].as_array().unwrap();
    let errors: Vec<&str> = { findings.iter() }
        .filter(|finding| finding["severity"] == "error")
        .filter_map(|finding| finding["message"].as_str())
        .collect();
    assert!(errors.len() == 1 && errors[0].contains("pod/of-strew: 1 left to scheduler strew"));
    assert!(stderr(&run).contains("left 1 pod alone: schedulerName strew"));
}

/// One node, full with a pod of low priority.
fn full() -> String {
    "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n---\n".to_owned()
        + &pod("low", "nodeName: n1", "3")
}

#[test]
fn preemption_makes_room() {
    let manifests = full() + &pod("high", "priorityClassName: high", "3");
    let run = strew("simulate - --until deploy -o json")
        .stdin(manifests.clone())
        .assert()
        .code(1);
    let report = json(&run);
    // Nothing makes low again.
    let preempted = &first_step(&report)["preempted"][0];
    assert_eq!(
        (&preempted["of"], &preempted["by"]),
        (&"pod/low".into(), &"pod/high".into())
    );
    assert_eq!(first_step(&report)["placements"][0]["pod"], "high");
    assert_eq!(first_step(&report)["placements"][0]["node"], "n1");
    assert_eq!(first_step(&report)["pods"]["pods"], 1, "low has gone");
    let explain = |args: &str| {
        let run = strew(&format!("explain pod/high - {args}"));
        stdout(&run.stdin(manifests.clone()).assert().code(0))
    };
    // While low is terminating.
    let text = explain("--at 0s");
    assert!(text.contains("Pod default/high is Pending"), "{text}");
    assert!(text.contains("explained as things are after 0s"), "{text}");
    let text = explain("");
    assert!(text.contains("goes to n1"), "{text}");
}

/// A budget is no absolute bound: its pods are preempted if no other ones suffice; of two nodes the one without a
/// budget is chosen.
#[test]
fn budgets_of_the_files_are_looked_at() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\nstatus: {allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}\n---\n";
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: kept}\nspec: {minAvailable: 1, selector: {matchLabels: {app: kept}}}\n---\n";
    let manifests = node.to_owned()
        + &full()
        + &pod("kept", "nodeName: n0", "3")
        + &pod("high", "priorityClassName: high", "3");
    let taken = |manifests: String| {
        let run = strew("simulate - --until deploy -o json");
        let report = json(&run.stdin(manifests).assert().code(1));
        first_step(&report)["placements"][0]["node"].clone()
    };
    assert_eq!(taken(manifests.clone()), "n0");
    assert_eq!(taken(manifests + budget), "n1");
}

/// Room that was freed for a pod is not given to another pod unless its priority is higher.
#[test]
fn nominations_of_a_dump_are_kept() {
    let waiting = "apiVersion: v1\nkind: Pod\nmetadata: {name: first, uid: u1}\nspec: {schedulingGates: [{name: g}], containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\nstatus: {nominatedNodeName: n1, phase: Pending}\n---\n";
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}\n---\n";
    let second = pod("second", "", "3");
    let run = strew("simulate - --until deploy -o json")
        .stdin(format!("{node}{waiting}{second}"))
        .assert()
        .code(1);
    assert_eq!(first_step(&json(&run))["pods"]["pending"], 2);
    let run = strew("explain pod/second -")
        .stdin(format!("{node}{waiting}{second}"))
        .assert()
        .code(0);
    let text = stdout(&run);
    let mut lines = text.lines();
    let kept = "has 4 cpu free, kept for pod default/first nominated to it";
    assert!(lines.next().unwrap_or_default().contains(kept), "{text}");
    let sentence = "0/1 nodes are available: 1 Insufficient cpu. ";
    assert!(
        lines.next().unwrap_or_default().starts_with(sentence),
        "{text}"
    );
}
