//! `strew explain` of WorkloadSpreads and of their pods.

use snapbox::file;

use crate::{json, stderr, stdout, strew};

const DUMP: &str = "crates/strew/tests/files/spread-dump.json";

#[test]
fn a_ledger_is_compared_with_the_pods() {
    // The answer is no: they differ.
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

/// Before, moment, variant and seed were ignored: "the ledger differs … status says nothing … as of 1970".
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

/// A lowered limit removes no pod.
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

const FULL_POOL: &str = "scenarios/workloadspread/rollout-of-a-full-pool.yaml";

/// Limits, costs and pods without a marker are shown beside the counts.
#[test]
fn a_ledger_is_told_with_costs_and_rollouts() {
    let run = strew(&format!("explain ws/shop {FULL_POOL} --at 50s")).assert();
    let text = stdout(&run.code(0));
    assert!(text.contains("      deletion cost 200\n"), "{text}");
    assert!(!text.contains("without a marker"), "{text}");
    let stuck = "scenarios/workloadspread/stuck-rollout.yaml";
    let run = strew(&format!("explain ws/shop {stuck} --at 4m -o json")).assert();
    let ledger = json(&run.code(0));
    let rows = ledger["rows"].as_array().unwrap();
    let overall = rows.iter().find(|row| row["revision"].is_null()).unwrap();
    let told = overall["rollout"].as_str().unwrap();
    assert!(told.starts_with("a rollout does not go on"), "{ledger}");
    let costs = |row: &serde_json::Value| row["deletionCosts"].to_string();
    let costs: Vec<String> = rows.iter().map(costs).collect();
    assert!(costs.contains(&"{\"100\":4}".to_owned()), "{costs:?}");
}

/// Before, the section was missing if the pod was not in the files.
#[test]
fn a_pod_of_a_scenario_is_told_its_subset_at_a_moment() {
    for moment in ["", "--at 50s", "--at 10m --seed 3 --variant kruise"] {
        let run = strew(&format!("explain deployment/shop {FULL_POOL} {moment}"));
        let text = stdout(&run.assert().code(0));
        assert!(text.contains("WorkloadSpread shop: subset "), "{text}");
        assert!(text.contains("deletion cost "), "{text}");
    }
}

/// Each number has the name of its subset.
#[test]
fn counts_that_an_expectation_names_are_told_by_name() {
    let run = strew(&format!("simulate {FULL_POOL} --variant base --seeds 2"));
    let text = stdout(&run.assert().code(0));
    assert!(
        text.contains("shop by type elastic 6, own 4: held in 2 of 2\n"),
        "{text}"
    );
}

#[test]
fn events_and_page_have_the_ledger_the_subsets_and_the_costs() {
    use serde_json::{Value, json};

    let path = |name: &str| std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (events, page) = (path("subsets.jsonl"), path("subsets.html"));
    let command = format!(
        "simulate {FULL_POOL} --variant base --seed 1 --events {} --html {}",
        events.display(),
        page.display()
    );
    strew(&command).assert().code(0);
    let text = std::fs::read_to_string(events).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        let is_of = move |line: &&Value| {
            line["key"]
                .as_str()
                .is_some_and(|key| key.starts_with(kind))
        };
        lines.iter().filter(is_of).collect::<Vec<_>>()
    };
    let pods = of("Pod ");
    let created = pods.iter().find(|line| line["type"] == "created").unwrap();
    assert_eq!(created["changed"]["subset"], "own", "{created}");
    assert_eq!(created["changed"]["deletionCost"], "200", "{created}");
    let ledgers = of("WorkloadSpread ");
    let is_changed = |field: &str| {
        ledgers
            .iter()
            .any(|line| line["changed"].get(field).is_some())
    };
    assert!(is_changed("own.missing") && is_changed("versionIgnored/own.creating"));
    assert!(is_changed("elastic.replicas"), "{ledgers:?}");

    let page = std::fs::read_to_string(page).unwrap();
    let data = page.split_once("id=\"data\">").unwrap().1;
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let mut series = data["series"][0].as_array().unwrap().iter();
    let last = series.rfind(|line| line["type"] == "ledger");
    let last = last.unwrap();
    assert_eq!(last["target"], "Deployment default/shop");
    let own = &last["rows"][0];
    assert_eq!(
        own,
        &json!({"subset": "own", "limit": "4", "pods": 4, "counted": 4, "missing": 0,
            "creating": 0, "deleting": 0, "costs": {"200": 4}, "conditions": []})
    );
    assert_eq!(last["rows"][1]["limit"], Value::Null);
}

#[test]
fn steps_tell_each_subset_by_its_name() {
    let text = std::fs::read_to_string("../../".to_owned() + FULL_POOL).unwrap();
    let (manifests, _) = text.split_once("  timeline:").unwrap();
    let steps = "  timeline:
  - {at: 30s}
  - {at: 1m, scale: {deployment/shop: 12}}
  - {at: 2m, label: {deployment/shop: a=b}}
";
    let manifests = manifests.split_once("  always:").unwrap().0;
    let run = strew("simulate - --seed 1").stdin(format!("{manifests}{steps}"));
    let text = stdout(&run.assert().code(0));
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("workloadspread/shop"))
        .collect();
    assert_eq!(
        lines,
        [
            "  workloadspread/shop  own 4 of at most 4 (deletion cost 200); elastic 6 (deletion cost 100)",
            "  workloadspread/shop  own 4 of at most 4 (deletion cost 200); elastic 8 (deletion cost 100)",
        ],
        "{text}"
    );
}
