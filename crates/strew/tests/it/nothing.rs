//! Input without anything to answer about is an error, not a success.

use crate::{json, stderr, strew};

const NODE: &str = "
---
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}
";

const WEB: &str = "
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: i}]}
";

/// The error of a command about an input.
fn refused(args: &str, input: &str) -> String {
    let run = strew(args).stdin(input.to_owned()).assert().code(2);
    assert!(run.get_output().stdout.is_empty(), "{args}");
    stderr(&run)
}

#[test]
fn an_input_without_objects_is_an_error() {
    let empty = ["", "\n", "---\n---\n", "# only a comment\n"];
    let lists = [
        "{apiVersion: v1, kind: List, items: []}",
        r#"{"apiVersion": "v1", "kind": "List", "items": []}"#,
    ];
    for input in empty.into_iter().chain(lists) {
        for args in ["simulate -", "simulate - -q", "explain deployment/web -"] {
            let said = refused(args, input);
            let verb = args.split(' ').next().unwrap();
            let expected = format!("no objects passed to {verb}");
            assert!(said.contains(&expected), "{said}");
        }
    }
}

#[test]
fn an_input_without_workloads_is_an_error() {
    let input = "
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: b}}
";
    let said = refused("simulate -", &format!("{input}{NODE}"));
    assert!(
        said.contains("no workload passed to simulate, only 1 Node, 1 Rollout (argoproj.io), 1 ServiceAccount: strew has no controller"),
        "{said}"
    );
}

#[test]
fn words_that_choose_no_workload_are_an_error() {
    let said = refused("simulate - -n nosuch", WEB);
    assert!(
        said.contains("no workload is in namespace nosuch")
            && said.contains("there are workloads in shop"),
        "{said}"
    );
    let said = refused("simulate - -l app=wbe", WEB);
    assert!(
        said.contains("no workload has the labels of --selector"),
        "{said}"
    );
    let said = refused("place examples/placement/worked-example.yaml -n nosuch", "");
    assert!(
        said.contains("there is no Placement in namespace \"nosuch\""),
        "{said}"
    );
}

/// A workload is matched by its own labels, and by those of its pods.
#[test]
fn labels_of_pods_choose_their_workload() {
    for labels in ["tier=front", "app=web", "app in (web),tier!=back"] {
        let run = strew("simulate - --until deploy -o json -l")
            .arg(labels)
            .stdin(WEB)
            .assert()
            .code(0);
        let report = json(&run);
        let shown = &crate::first_step(&report)["workloads"];
        assert_eq!(shown[0]["of"], "deployment/web", "{labels}");
    }
}

/// An explanation must not use nodes that do not exist.
#[test]
fn an_explanation_needs_nodes() {
    let said = refused("explain deployment/web -n shop -", WEB);
    assert!(said.contains("no node in the input"), "{said}");
    assert!(said.contains("--nodes 12"), "{said}");
    for (args, input) in [
        ("explain deployment/web -n shop - --nodes 2", WEB.to_owned()),
        ("explain deployment/web -n shop -", format!("{WEB}{NODE}")),
    ] {
        strew(args).stdin(input).assert().code(0);
    }
}
