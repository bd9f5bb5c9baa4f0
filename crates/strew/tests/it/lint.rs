//! `strew lint`.

use snapbox::file;

use crate::{json, stderr, stdout, strew};

const FILE: &str = "crates/strew/tests/files/spread-lint.yaml";

#[test]
fn all_findings_are_told_at_once_with_their_places() {
    let run = strew(&format!("lint {FILE}")).assert().code(1);
    run.stdout_eq(file!["snapshots/lint.txt"]).stderr_eq("");
    let run = strew(&format!("lint {FILE} -o json")).assert().code(1);
    let list = json(&run);
    assert_eq!(list["kind"], "Diagnostics");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 10);
    let first = &items[0];
    assert_eq!(first["code"], "no-effect");
    assert_eq!(first["severity"], "warning");
}

#[test]
fn what_is_right_is_told_in_a_line() {
    let run = strew("lint examples/elastic.yaml").assert().code(0);
    assert_eq!(stdout(&run), "1 file, 2 objects: nothing found\n");
    let run = strew("lint -q examples/elastic.yaml").assert().code(0);
    assert_eq!(stdout(&run), "");
    // May be meant so, and is no failure.
    let run = strew("lint examples/shop.yaml").assert().code(0);
    let text = stdout(&run);
    assert!(text.contains("note[one-domain-satisfies]"), "{text}");
    assert!(text.ends_with("1 file, 4 objects: 1 note\n"), "{text}");
}

#[test]
fn what_cannot_be_read_is_told_with_the_rest() {
    let text = "apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: DaemonSet, name: web}
  subsets:
  - name: a
    maxReplica: 3
  - name: b
    maxReplicas: -1
";
    let run = strew("lint -").stdin(text).assert().code(2);
    let text = stdout(&run);
    for told in [
        "unknown field \"maxReplica\", did you mean \"maxReplicas\"?",
        "<stdin>:8:5",
        "spec.subsets[1].maxReplicas: Invalid value: -1: must not be negative",
        "warning[unknown-target-kind]",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    // Without files it is a live cluster, and there is none.
    let run = strew("lint --kubeconfig no-such-file").assert().code(3);
    assert!(stderr(&run).contains("no-such-file"));
    strew("lint -").stdin("a: [").assert().code(2);
    strew("lint no-such-file.yaml").assert().code(3);
}

/// `45-patch-ns.yaml` of the audit: there was no finding, and an API server refused every pod.
#[test]
fn a_patch_of_a_pods_name_is_an_error() {
    let text = "apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets:
  - name: a
    maxReplicas: 5
    patch: {metadata: {namespace: other, name: z}}
  - name: c
    patch: {metadata: {labels: {subset: c}}}
";
    let run = strew("lint -").stdin(text).assert().code(1);
    let text = stdout(&run);
    for told in [
        "error[invalid-field]: spec.subsets[0].patch.metadata.name: Invalid value: \"z\": a patch must not touch name: ",
        "error[invalid-field]: spec.subsets[0].patch.metadata.namespace: Invalid value: \"other\": ",
        "<stdin>:9:48",
        "help: take it out of the patch",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}
