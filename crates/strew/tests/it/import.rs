//! `strew import`, and `strew simulate` of its output.

use std::path::PathBuf;

use snapbox::cmd::OutputAssert;

use crate::data::data;
use crate::{json, stderr, stdout, strew};

const KWOK: &str = "crates/strew-scenario/tests/cases/kwok-record.yaml";

/// Plays a scenario. Returns the report.
#[track_caller]
fn played(import: &OutputAssert) -> serde_json::Value {
    let run = strew("simulate - -o json")
        .stdin(stdout(import))
        .assert()
        .code(0);
    assert_eq!(stderr(&run), "", "nothing is to be said of it");
    json(&run)
}

/// Each workload of the last step, with its ready replicas.
fn last(report: &serde_json::Value) -> Vec<(String, u64)> {
    let steps = report["scenarios"][0]["variants"][0]["runs"][0]["steps"]
        .as_array()
        .unwrap();
    let workloads = steps.last().unwrap()["workloads"].as_array().unwrap();
    let there = workloads.iter().filter(|w| w["replicas"] != 0);
    let each = there.map(|w| {
        (
            w["of"].as_str().unwrap().to_owned(),
            w["ready"].as_u64().unwrap(),
        )
    });
    each.collect()
}

#[test]
fn a_record_of_kwok_is_played() {
    let import = strew(&format!("import kwok {KWOK}")).assert().code(0);
    let said = stderr(&import);
    assert!(
        said.contains("note: left out 3 changes of status"),
        "{said}"
    );
    assert!(!said.contains("no nodes"), "it has its own: {said}");
    assert_eq!(last(&played(&import)), [("deployment/web".to_owned(), 4)]);
}

#[test]
fn nodes_are_made_where_the_recording_has_none_or_more_are_wanted() {
    let trace = r#"{"version": 2, "events": [{"ts": 5, "applied_objs": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}]}"#;
    let import = strew("import simkube -").stdin(trace).assert().code(0);
    assert!(stderr(&import).contains("taking 12 in 3 zones"));
    assert_eq!(last(&played(&import)), [("pod/p".to_owned(), 1)]);
    let import = strew("import simkube - --nodes 5 --zones 2 --node-cpu 16").stdin(trace);
    let text = stdout(&import.assert().code(0).stderr_eq(""));
    for part in [
        "name: zone-a\n    size: 3",
        "name: zone-b\n    size: 2",
        "cpu: \"16\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let import = strew(&format!("import kwok {KWOK} --node-cpu 16"))
        .assert()
        .code(2);
    assert!(stderr(&import).contains("there are none to shape"));
}

#[test]
fn the_scenario_goes_into_a_file() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("imported.yaml");
    let import = strew(&format!("import kwok {KWOK} -q -o {}", path.display()));
    import.assert().code(0).stdout_eq("").stderr_eq("");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("  - at: 8m0.000000001s\n"), "{text}");
    strew(&format!("simulate {} -o name", path.display()))
        .assert()
        .code(0)
        .stdout_eq("scenario/kwok-record base\n");
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    let import = strew("import simkube -").stdin("{\"version\": 3,\n \"events\": {}}");
    let import = import.assert().code(2).stdout_eq("");
    let said = stderr(&import);
    for part in [
        "<stdin>:1:13",
        "<stdin>:2:2",
        "nothing was imported: 2 errors in the input",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    strew("import kwok examples").assert().code(2);
    strew("import kwok missing.yaml").assert().code(3);
    strew("import tapes x.yaml").assert().code(2);
}

#[test]
fn a_real_trace_is_imported_and_played() {
    let Some(folder) = data() else { return };
    let trace = folder.join("simkube/dsb_social_network_trace.json");
    let import = strew("import simkube --nodes 12")
        .arg(trace)
        .assert()
        .code(0);
    assert_eq!(
        stderr(&import),
        "note: left out 198 changes of status or bookkeeping alone, or of nothing at all\n"
    );
    let report = played(&import);
    let ready = last(&report);
    assert_eq!(
        (ready.len(), ready.iter().all(|(_, n)| *n == 1)),
        (27, true),
        "{ready:?}"
    );
    let steps = report["scenarios"][0]["variants"][0]["runs"][0]["steps"]
        .as_array()
        .unwrap();
    // 13m47s: nginx-thrift is scaled to ten; 21m5s is 1265 s after the first event.
    let at = |time: &str| steps.iter().position(|step| step["ended"] == time).unwrap();
    let nginx = |step: usize| {
        let all = steps[step]["workloads"].as_array().unwrap();
        all.iter()
            .find(|w| w["of"] == "deployment/nginx-thrift")
            .unwrap()["replicas"]
            .clone()
    };
    assert_eq!(
        (nginx(at("16m28s")), nginx(at("26m5s"))),
        (10.into(), 1.into())
    );
    assert_eq!(steps[steps.len() - 2]["ended"], "21m5s");
}
