//! Pods that are refused at creation, and workloads without any pod.

use serde_json::Value;

use crate::scenario::scenario;
use crate::{json, stdout, strew};

/// A Deployment of three pods, as the fields of a step's `create`, with more fields of the pods' spec.
fn created(name: &str, more: &str) -> String {
    format!(
        "create: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: 3, selector: \
         {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{name: \
         c, image: i, resources: {{requests: {{cpu: 100m}}}}}}]{more}}}}}}}}}"
    )
}

/// A key that is in the selector, too: no pod of the template is valid.
const INVALID: &str = ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, \
     whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: late}}, matchLabelKeys: [app]}]";

/// A workload that a step makes is shown without any pod, and fails.
#[test]
fn a_workload_of_a_step_is_shown_without_pods_and_fails() {
    let files = |steps: &str| {
        format!(
            "apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {{name: refused}}
spec:
  until: 2m
  nodeGroups: [{{name: n, size: 3, template: {{status: {{allocatable: {{cpu: '4', memory: 8Gi, pods: '110'}}}}}}}}]
  timeline:
{steps}"
        )
    };
    let late = created("late", INVALID);
    let run = strew("simulate - --seeds 1").stdin(files(&format!("  - {{at: 1s, {late}}}\n")));
    let text = stdout(&run.assert().code(1));
    for part in [
        "\ndeployment/late  0 replicas: 0 placed\n",
        "0 pods of 1 workload on 3 nodes: ",
        "at the end, no pod of a workload is refused at creation",
        "seed 1 at 2m: deployment/late: 0 of 3 updated, 0 of 3 pods made, 0 of 3 ready, creation refused: ",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // A later step, beside a workload that has its pods.
    let early = created("early", "");
    let steps = format!("  - {{at: 1s, {early}}}\n  - {{at: 1m, {late}}}\n");
    let run = strew("simulate - --seeds 1").stdin(files(&steps));
    let text = stdout(&run.assert().code(1));
    let line = "  deployment/late  0 replicas, 0 ready\n";
    assert!(text.contains(line), "{text}");
    let run = strew("simulate - --seeds 1 -o json").stdin(files(&steps));
    let report = json(&run.assert().code(1));
    let steps = &report["scenarios"][0]["variants"][0]["runs"][0]["steps"];
    let verdicts = [&steps[0]["verdict"], &steps[1]["verdict"]];
    assert_eq!(verdicts, ["held", "broken"], "{steps:#}");
    let listed = steps[1]["workloads"].as_array().unwrap();
    let names: Vec<&Value> = listed.iter().map(|workload| &workload["of"]).collect();
    assert_eq!(names, ["deployment/early", "deployment/late"]);
    // All pods are created.
    let run = strew("simulate - --seeds 1").stdin(files(&format!("  - {{at: 1s, {early}}}\n")));
    run.assert().code(0);
}

/// A quota that refuses a pod fails for workloads of the files and of steps alike, with and without expectations.
#[test]
fn pods_that_a_quota_refuses_fail_a_scenario() {
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: '2'}}}\n---\n";
    let run = |files: String| strew("simulate - --seeds 1").stdin(files).assert();
    let at_start = format!("{quota}{}", scenario("  timeline: [{at: 1m}]\n"));
    let text = stdout(&run(at_start).code(1));
    let part = "deployment/web: 2 of 6 updated, 2 of 6 pods made, 2 of 6 ready, creation refused: ";
    assert!(text.contains(part), "{text}");
    let late = created("late", "");
    for expected in [", expect: [{rolledOut: {}, within: 1m}]", ""] {
        let spec = format!("  until: 2m\n  timeline: [{{at: 1s, {late}{expected}}}]\n");
        let files = scenario(&spec).replace("replicas: 6", "replicas: 2");
        let text = stdout(&run(format!("{quota}{files}")).code(1));
        let part =
            "deployment/late: 0 of 3 updated, 0 of 3 pods made, 0 of 3 ready, creation refused: ";
        assert!(text.contains(part), "{text}");
    }
}
