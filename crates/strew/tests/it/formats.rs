//! Outputs for programs besides JSON, and the conditions under which reports can be compared.

use std::path::PathBuf;

use crate::{first_step, json, stdout, strew};

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("formats-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: one, labels: {rack: r1}}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}\n---\n";

/// A result has the line of its expectation, or of the mistake.
#[test]
fn breaches_and_mistakes_are_results_of_sarif() {
    let path = folder("sarif").join("a b.yaml");
    let scenario = |claim: &str| {
        format!(
            "{NODE}apiVersion: sim.strew.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: small}}\nspec:\n  timeline:\n  - at: 1m\n    expect:\n    - {claim}\n"
        )
    };
    let run = |claim: &str, code: i32| {
        std::fs::write(&path, scenario(claim)).unwrap();
        let command = strew("simulate -o sarif").arg(&path);
        json(&command.assert().code(code))
    };
    let log = run("{pods: {count: 3}}", 1);
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"pods".into(), &"error".into())
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 10);
    let uri = place["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.ends_with("a%20b.yaml"), "{uri}");
    let text = result["message"]["text"].as_str().unwrap();
    assert!(
        text.contains("broke in 1 of 1 seeds") && text.contains("again: "),
        "{text}"
    );
    let log = run("{pods: {cuont: 3}}", 2);
    let result = &log["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 10, "{log}");
    assert_eq!(
        run("{pods: {count: 0}}", 0)["runs"][0]["results"],
        serde_json::json!([])
    );
}

#[test]
fn a_report_counts_by_a_key_on_request_and_diff_chooses_by_labels() {
    let web = "{apiVersion: v1, kind: List, items: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}]}\n";
    let report = |replicas: &str, words: &str| {
        let files = format!("{NODE}{}", web.replace("replicas: 2", replicas));
        let run = strew(&format!("simulate - --until deploy -o json {words}"));
        run.stdin(files).assert().code(0)
    };
    let keys = |words: &str| {
        let report = json(&report("replicas: 2", words));
        let spreads = first_step(&report)["workloads"][0]["spread"].clone();
        let spreads = spreads.as_array().unwrap().clone();
        spreads
            .iter()
            .filter(|spread| spread["by"] == "rack")
            .count()
    };
    assert_eq!((keys(""), keys("--by rack")), (0, 1));
    let files = format!("{NODE}{web}");
    let run = strew("simulate - --by rcak").stdin(files).assert().code(2);
    assert!(crate::stderr(&run).contains("did you mean rack?"));
    let folder = folder("diff");
    for (name, replicas) in [("a.json", "replicas: 2"), ("b.json", "replicas: 3")] {
        std::fs::write(folder.join(name), stdout(&report(replicas, ""))).unwrap();
    }
    let diff = |query: &str, code: i32| {
        let files = format!("{0}/a.json {0}/b.json", folder.display());
        strew(&format!("diff {files} -l {query}"))
            .assert()
            .code(code)
    };
    assert!(stdout(&diff("app=web", 1)).contains("deployment/web"));
    assert!(crate::stderr(&diff("app=other", 2)).contains("count nothing of these words"));
}
