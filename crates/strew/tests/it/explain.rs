//! `strew explain`: which pod, at which moment.

use snapbox::file;

use crate::{first_step, json, stderr, stdout, strew};

#[test]
fn a_pending_pod_is_explained_as_things_are_at_the_end() {
    let run = strew("explain deployment/web examples/tight.yaml -o json")
        .assert()
        .code(0);
    let explanation = json(&run);
    assert_eq!(explanation["kind"], "PodExplanation");
    assert_eq!(explanation["moment"], "end");
    assert_eq!(explanation["standing"], "Pending");
    let sentence = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.";
    assert_eq!(explanation["message"], sentence);
    let text = stdout(
        &strew("explain deployment/web examples/tight.yaml")
            .assert()
            .code(0),
    );
    // On a terminal of any width: tools search for the cause and for the sentence.
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("Pod default/web-"), "{text}");
    assert!(
        first.contains(" is Pending: 2 of 3 nodes would exceed maxSkew 1 over "),
        "{text}"
    );
    assert_eq!(text.lines().nth(1), Some(sentence), "{text}");
    let third = text.lines().nth(2);
    assert_eq!(
        third,
        Some("deployment/web: 2 of 9 pods are Pending"),
        "{text}"
    );
}

#[test]
fn an_explanation_as_text() {
    let run = strew("explain pod/db-2 examples/shop.yaml --nodes 12")
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/explain-placed.txt"]);
    let run = strew("explain deployment/cache examples/tight.yaml")
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/explain-pending.txt"]);
}

/// The first replica of two: there was no other pod when it was decided.
#[test]
fn a_placed_pod_is_explained_at_its_decision() {
    let run = strew("explain pod/db-0 examples/shop.yaml --nodes 12 -o json")
        .assert()
        .code(0);
    let explanation = json(&run);
    assert_eq!(explanation["moment"], "decision");
    assert_eq!(explanation["feasible"], 12);
    let run = strew("explain pod db-2 -f examples/shop.yaml --nodes 12 -o json")
        .assert()
        .code(0);
    assert_eq!(json(&run)["feasible"], 4, "two of three zones are taken");
}

/// `explain` explains the node that `simulate` names, even if it was drawn among equal ones.
#[test]
fn both_commands_tell_of_the_same_decision() {
    let mut n_drawn = 0;
    for words in ["--seed 0", "--seed 4", "--seed 5 --tie random"] {
        let report = format!("simulate examples/shop.yaml --until deploy -o json {words}");
        let report = json(&strew(&report).assert());
        for placement in first_step(&report)["placements"].as_array().unwrap() {
            let pod = placement["pod"].as_str().unwrap();
            let explain =
                format!("explain pod/{pod} examples/shop.yaml --nodes 12 -o json {words}");
            let explanation = json(&strew(&explain).assert().code(0));
            let place = format!("{pod}, {words}");
            assert_eq!(explanation["wouldGoTo"], placement["node"], "{place}");
            n_drawn += usize::from(explanation["choice"]["drawn"] == true);
        }
    }
    assert!(n_drawn > 0, "no seed drew another node than the first");
}

#[test]
fn a_moment_may_be_asked_for() {
    let explain = |at: &str| {
        let run = strew(&format!(
            "explain deployment/web examples/tight.yaml -o json --at {at}"
        ));
        json(&run.assert().code(0))
    };
    let explanation = explain("1m30s");
    assert_eq!(explanation["moment"], "at");
    assert_eq!(explanation["standing"], "Pending");
    let run = strew("explain deployment/web examples/tight.yaml --at soon");
    assert!(stderr(&run.assert().code(2)).contains("no duration"));
}

#[test]
fn who_is_not_there_is_told_with_the_nearest() {
    let run = strew("explain pod/db-9 examples/shop.yaml --nodes 12")
        .assert()
        .code(2);
    let text = stderr(&run);
    assert!(
        text.contains("there is no pod \"db-9\" in the files"),
        "{text}"
    );
    assert!(text.contains("hint: did you mean db-0"), "{text}");
    let run = strew("explain pod/db-0 -n shop examples/shop.yaml --nodes 12")
        .assert()
        .code(2);
    assert!(stderr(&run).contains("-n default"));
    strew("explain deploy/wed examples/shop.yaml --nodes 12")
        .assert()
        .code(2);
}

/// One run of a Scenario, at a moment and at a pod's decision.
#[test]
fn a_run_of_a_scenario_is_explained_at_any_moment() {
    let scenario = "examples/scenarios/min-domains.yaml";
    let explain = |words: &str| {
        strew(&format!(
            "explain deployment/nginx {scenario} {words} -o json"
        ))
    };
    // Two per node on three of its five nodes; the autoscaler has not reacted.
    let explanation = json(&explain("--at 5s").assert().code(0));
    assert_eq!(explanation["moment"], "at");
    assert_eq!(explanation["standing"], "Pending");
    let message = explanation["message"].as_str().unwrap();
    assert!(message.starts_with("0/3 nodes are available"), "{message}");
    // All are placed at its end, so the first is explained at its decision.
    assert_eq!(json(&explain("").assert().code(0))["moment"], "decision");
    let alone = json(&explain("--variant no-autoscaler").assert().code(0));
    assert_eq!(alone["moment"], "end");
    assert_eq!(alone["standing"], "Pending");
    for (words, complaint) in [
        ("--variant nobody", "no scenario has a variant \"nobody\""),
        ("--at 900h", "ends after"),
    ] {
        let text = stderr(&explain(words).assert().code(2));
        assert!(text.contains(complaint), "{text}");
    }
    let run = strew("explain deployment/nginx examples/scenarios --at 5s");
    let text = stderr(&run.assert().code(2));
    assert!(text.contains("files hold a Scenario each"), "{text}");
}

#[test]
fn a_volume_that_keeps_a_pod_off_is_named_with_its_claim() {
    let run = strew("explain pod/db-1 scenarios/volumes-zone-bound.yaml --at 4m -o json")
        .assert()
        .code(0);
    let explanation = json(&run);
    let refused = explanation["refused"].as_array().unwrap();
    let elsewhere = refused.iter().find(|node| node["name"] == "a-0").unwrap();
    assert_eq!(elsewhere["plugin"], "VolumeBinding");
    assert_eq!(
        elsewhere["causes"][0]["text"],
        "persistentvolumeclaim \"data-db-1\" is bound to \"disk-1\", which is for nodes with \
         topology.kubernetes.io/zone=zone-b"
    );
}

#[test]
fn a_label_of_our_simulation_makes_no_scenario_of_a_dump() {
    let dump = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n-1", "labels": {"sim.strew.dev/kubelet": "runs"}},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
        },
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": "2"}}}]},
        },
    ]});
    let run = strew("explain pod/web -").stdin(dump.to_string());
    let run = run.assert().code(0);
    let text = stdout(&run);
    let sentence = "0/1 nodes are available: 1 Insufficient cpu.";
    let second = text.lines().nth(1).unwrap_or_default();
    assert!(second.starts_with(sentence), "{text}");
}

/// Room was freed for an important pod that is not there yet: another pod that would fit is kept away.
#[test]
fn room_kept_for_a_nominated_pod_is_a_cause() {
    let files = "\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: \"2\", memory: 8Gi, pods: \"110\"}}
---
apiVersion: v1
kind: Pod
metadata: {name: gone, namespace: default, uid: a, deletionTimestamp: \"2026-01-01T00:00:00Z\", deletionGracePeriodSeconds: 3600}
spec: {nodeName: n1, terminationGracePeriodSeconds: 3600, containers: [{name: c, image: i, resources: {requests: {cpu: 900m}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: important, namespace: default, uid: b}
spec: {priority: 100, containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}
status: {phase: Pending, nominatedNodeName: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: small, namespace: default, uid: c}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
status: {phase: Pending}
";
    let run = strew("explain pod/small --at 0s - -o json").stdin(files);
    let explanation = json(&run.assert().code(0));
    assert_eq!(explanation["standing"], "Pending", "{explanation}");
    assert_eq!(explanation["feasible"], 0);
    assert_eq!(explanation["choice"], serde_json::Value::Null);
    let cause = &explanation["refused"][0]["causes"][0];
    assert_eq!(
        cause["text"],
        "room is kept for pod default/important, nominated to it: Insufficient cpu"
    );
    assert_eq!(cause["pods"][0], "default/important");
    let suggestion = &explanation["whatIf"]["suggestions"][0];
    assert_eq!(suggestion["kind"], "AddNode", "{explanation}");
    assert_eq!(
        explanation["message"].as_str().unwrap().split(". ").next(),
        Some("0/1 nodes are available: 1 Insufficient cpu")
    );
}

/// Every kind that makes pods is accepted, as in scenarios, by each of its names.
#[test]
fn a_clone_set_is_explained() {
    let files = r#"
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "1", memory: 8Gi, pods: "110"}}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]}
"#;
    for name in ["cloneset/web", "clone/web", "clonesets.apps.kruise.io/web"] {
        let run = strew(&format!("explain {name} - -o json"));
        let explanation = json(&run.stdin(files).assert().code(0));
        assert_eq!(explanation["standing"], "Pending", "{name}");
        let name = explanation["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("web-"), "{name}");
    }
}

/// Reason, changes, tables: in this order.
#[test]
fn the_reason_with_its_numbers_stands_first() {
    let node = |name: &str, gpu: &str, free: u32| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{gpu: {gpu}}}}}, status: {{allocatable: {{cpu: 8, memory: 8Gi, pods: 110, example.com/gpu-milli: {free}}}}}}}\n---\n"
        )
    };
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, uid: p}, spec: {nodeSelector: {gpu: T4}, containers: [{name: c, image: i, resources: {requests: {cpu: 1}, limits: {example.com/gpu-milli: 1000}}}]}}\n";
    let files = [
        node("a", "T4", 140),
        node("b", "T4", 20),
        node("c", "V100", 4000),
        pod.to_owned(),
    ];
    let run = strew("explain pod/p -")
        .stdin(files.concat())
        .assert()
        .code(0);
    let text = stdout(&run);
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let summary = place(
        "2 of 3 nodes have the labels it wants (gpu=T4); none of those 2 has 1000 example.com/gpu-milli, even when empty (the largest has 140).",
    );
    assert!(summary < place("0/3 nodes are available"), "{text}");
    let changes = place("Any one of these changes would place it");
    assert!(summary < changes, "{text}");
    let sums = place(
        "example.com/gpu-milli: asks 1000; 2 nodes have less: 160 free on all of them,\n    at most 140 on a",
    );
    assert!(changes < sums, "{text}");
}

#[test]
fn a_node_is_explained() {
    let run = strew("explain node/b1 examples/tight.yaml")
        .assert()
        .code(0);
    let text = stdout(&run);
    for part in [
        "Node b1 in b has ",
        "Pending pods, and what it has against them",
        "constraint 1: skew 2 > maxSkew 1 in \"b\"",
        "deployment/cache by zone, DoNotSchedule maxSkew 1: counted in b, 1 pod there",
        "Pods on it",
        "(explained as things are at the end)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let node = json(
        &strew("explain node b1 examples/tight.yaml -o json")
            .assert()
            .code(0),
    );
    assert_eq!(
        (&node["kind"], &node["name"]),
        (&"NodeExplanation".into(), &"b1".into())
    );
    assert_eq!(node["resources"][0]["name"], "cpu");
    let run = strew("explain node/b11 examples/tight.yaml")
        .assert()
        .code(2);
    assert!(stderr(&run).contains("did you mean b1"), "{}", stderr(&run));
}
