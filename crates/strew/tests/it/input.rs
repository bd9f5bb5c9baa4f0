//! Wrong input and usage: everything at once, and exit codes that tell what kind of no it is.

use snapbox::file;

use crate::{json, stderr, strew};

const BAD: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 500x}}}]
      topologySpreadConstraints:
      - {maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      - {maxSkw: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
---
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec:
  priorityClassName: vip
  containers: [{name: c, image: i}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: other}}
    spec: {priorityClassName: vip, containers: [{name: c, image: i}]}
";

#[test]
fn every_error_of_every_object_is_told_at_once() {
    let run = strew("simulate -").stdin(BAD).assert().code(2);
    run.stdout_eq("")
        .stderr_eq(file!["snapshots/bad.stderr.txt"]);
}

#[test]
fn programs_get_errors_as_a_list() {
    let run = strew("simulate - -o json").stdin(BAD).assert().code(2);
    let list = json(&run);
    assert_eq!(list["kind"], "Diagnostics");
    assert!(list["items"].as_array().unwrap().len() >= 4, "{list:#}");
}

/// An error of a pod that a workload makes is shown where its template says it.
#[test]
fn a_template_that_no_pod_can_come_from() {
    let manifest = "apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 100
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      priorityClassName: vip
      containers: [{name: c, image: i}]
";
    let run = strew("simulate -").stdin(manifest).assert().code(2);
    let text = stderr(&run);
    assert!(
        text.contains("no PriorityClass with name vip was found"),
        "{text}"
    );
    assert!(text.contains("<stdin>:10:26"), "{text}");
    assert_eq!(
        text.matches("error[").count(),
        1,
        "once, not a hundred times: {text}"
    );
}

#[test]
fn a_file_that_is_not_there_is_no_input_error() {
    let run = strew("simulate examples/shop.yaml nosuch.yaml")
        .assert()
        .code(3);
    let text = stderr(&run);
    assert!(
        text.starts_with("error: cannot read nosuch.yaml\n  caused by: "),
        "{text}"
    );
}

#[test]
fn usage_errors_exit_with_2() {
    for args in [
        "simulate",
        "simulate https://example.com/app.yaml",
        "simulate examples/shop.yaml --zones 5 --nodes 3",
        "simulate examples/shop.yaml --nodes 1000000000",
        "simulate examples/shop.yaml --nodes -1",
        "simulate examples/shop.yaml --node-cpu 1x",
        "simulate examples/shop.yaml --node-cpu 0",
        "simulate examples/shop.yaml --node-memory 99999999999Ei",
        "simulate examples/shop.yaml --regions 9",
        "simulate examples/tight.yaml --zones 3",
        "simulate examples/shop.yaml -l a=b=c",
        "simulate examples/shop.yaml -o xml",
        "simulate crates",
        "explain",
        "explain examples/shop.yaml",
        "explain pod/web-1",
        "frobnicate",
    ] {
        let run = strew(args).assert().code(2);
        let text = stderr(&run);
        assert!(text.starts_with("error: "), "{args}: {text}");
    }
}

#[test]
fn a_folder_gives_its_manifests_by_name() {
    let run = strew("simulate examples -o json").assert();
    // Both examples have a Deployment of one name: whatever is said, it names both files.
    let text = stderr(&run.code(2));
    assert!(
        text.contains("examples/shop.yaml") && text.contains("examples/tight.yaml"),
        "{text}"
    );
}

#[test]
fn kinds_that_nobody_models_are_named_once() {
    let manifest = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: b}\n---\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let run = strew("simulate - --nodes 1")
        .stdin(manifest)
        .assert()
        .code(0);
    let text = stderr(&run);
    assert!(
        text.contains("skipped 2 objects of kinds that strew does not model: 2 Widget"),
        "{text}"
    );
    assert!(
        text.contains("KubeSchedulerConfiguration is not read yet"),
        "{text}"
    );
}
