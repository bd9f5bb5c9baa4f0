//! `strew explain` of WorkloadSpreads and of their pods.

use snapbox::file;

use crate::{json, stderr, stdout, strew};

const DUMP: &str = "crates/strew/tests/files/spread-dump.json";

#[test]
fn a_ledger_is_compared_with_the_pods() {
    let run = strew(&format!("explain workloadspread/web {DUMP}"))
        .assert()
        .code(0);
    run.stdout_eq(file!["snapshots/explain-ledger.txt"]);
    let run = strew(&format!("explain ws web -n shop {DUMP} -o json"))
        .assert()
        .code(0);
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
