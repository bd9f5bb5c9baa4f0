//! `strew explain` of WorkloadSpreads and of their pods.

use snapbox::file;

use crate::{json, stderr, stdout, strew};

const DUMP: &str = "crates/strew/tests/files/spread-dump.json";

#[test]
fn a_ledger_is_compared_with_the_pods() {
    // The answer is no: it differs.
    let run = strew(&format!("explain workloadspread/web {DUMP}"))
        .assert()
        .code(1);
    run.stdout_eq(file!["snapshots/explain-ledger.txt"]);
    let run = strew(&format!("explain ws web -n shop {DUMP} -o json"))
        .assert()
        .code(1);
    let ledger = json(&run);
    assert_eq!(ledger["kind"], "WorkloadSpreadExplanation");
    assert_eq!(ledger["agrees"], false);
    let row = &ledger["rows"][0];
    assert_eq!(row["subset"], "own");
    assert_eq!(
        (&row["status"]["creating"], &row["truth"]["creating"]),
        (&2.into(), &1.into())
    );
}

/// Moment, variant and seed were ignored: "the ledger differs … status says nothing … as of 1970".
#[test]
fn a_ledger_of_a_scenario_is_that_of_a_moment_of_a_run() {
    const STORY: &str = "scenarios/workloadspread/two-for-one-target.yaml";
    let run = strew(&format!("explain ws/a {STORY} --at 1m"))
        .assert()
        .code(0);
    let text = stdout(&run);
    assert!(
        text.starts_with("WorkloadSpread default/a: the ledger says what the pods say\n"),
        "{text}"
    );
    assert!(
        text.contains("  ✓ own, limit 2: 2 pods, room for 0\n"),
        "{text}"
    );
    assert!(text.contains("1m after the start"), "{text}");
    let run = strew(&format!(
        "explain ws/b {STORY} --at 1m --variant third --seed 3"
    ))
    .assert()
    .code(0);
    let text = stdout(&run);
    assert!(
        text.contains("belong to WorkloadSpread a, which is older"),
        "{text}"
    );
    let wrong = strew(&format!("explain ws/a {STORY} --at 1m --variant nosuch"))
        .assert()
        .code(2);
    assert!(stderr(&wrong).contains("nosuch"), "{}", stderr(&wrong));
}

/// A limit that is lowered takes no pod away.
#[test]
fn a_limit_that_is_exceeded_is_told() {
    let text = std::fs::read_to_string("../../".to_owned() + DUMP).unwrap();
    let lowered = text.replacen("\"maxReplicas\": 2", "\"maxReplicas\": 1", 1);
    assert_ne!(text, lowered, "the dump has the limit");
    let run = strew("explain ws/web -f - -n shop")
        .stdin(lowered)
        .assert()
        .code(1);
    let text = stdout(&run);
    assert!(
        text.contains("own, limit 1: ") && text.contains(": 1 too many\n"),
        "{text}"
    );
}

#[test]
fn a_pod_is_told_its_subset_and_cost() {
    let told = |pod: &str| {
        let run = strew(&format!("explain pod/{pod} -n shop {DUMP}"))
            .assert()
            .code(0);
        let text = stdout(&run);
        let from = text.find("WorkloadSpread web").unwrap();
        text[from..].to_owned()
    };
    let marked = told("web-7-2");
    assert!(
        marked.starts_with("WorkloadSpread web: subset elastic, revision 7 (the latest)\n"),
        "{marked}"
    );
    assert!(
        marked.contains("not own: full: 2 and 1 on their way of 2\n"),
        "{marked}"
    );
    assert!(
        marked.contains("deletion cost 100: within the limit of its subset\n"),
        "{marked}"
    );
    let adopted = told("web-7-3");
    assert!(
        adopted.contains("score of own: does not fit\n"),
        "{adopted}"
    );
    assert!(
        adopted.contains("pod-deletion-cost is not there yet\n"),
        "{adopted}"
    );
    let run = strew(&format!("explain pod/web-7-0 -n shop {DUMP} -o json"))
        .assert()
        .code(0);
    let spread = &json(&run)["workloadSpread"];
    assert_eq!(spread["subset"], "own");
    assert_eq!(spread["deletionCost"]["cost"], 200);
    assert_eq!(spread["earlier"], serde_json::json!([]));
}

#[test]
fn a_spread_that_is_not_there_is_told_with_the_nearest_name() {
    let run = strew(&format!("explain ws/wep {DUMP}")).assert().code(2);
    assert!(
        stderr(&run).contains("did you mean web?"),
        "{}",
        stderr(&run)
    );
    let run = strew("explain ws/web examples/shop.yaml").assert().code(2);
    assert!(stderr(&run).contains("there is no WorkloadSpread in the files"));
}
