//! deploy/mixin: its rules and dashboards use existing metrics, and promtool's tests cover all alerts.
//!
//! `promtool test rules deploy/mixin/tests.yaml` evaluates them.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::root;

/// The prefixes of metrics of strew's processes.
const PREFIXES: [&str; 7] = [
    "strew_",
    "scheduler_",
    "scheduling_",
    "leader_election_",
    "rest_client_",
    "process_",
    "strew:",
];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The metrics of docs/metrics.md, which a test of strew-kube compares with the code's catalogue; with the series of
/// histograms.
fn emitted() -> BTreeSet<String> {
    let text = read("docs/metrics.md");
    let (there, _) = text.split_once("## Not there, on purpose").unwrap();
    let mut names = BTreeSet::new();
    for line in there.lines() {
        let mut cells = line.split(" | ");
        let (Some(name), Some(kind)) = (cells.next(), cells.next()) else {
            continue;
        };
        let Some(name) = name
            .strip_prefix("| `")
            .and_then(|name| name.strip_suffix('`'))
        else {
            continue;
        };
        let suffixes: &[&str] = match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    assert!(names.len() > 80, "{}", names.len());
    names
}

/// The words of an expression that can be metrics.
fn named(expression: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let words = expression.split(|c| !is_word(c));
    let of_strew = words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
    of_strew.map(str::to_owned).collect()
}

/// The values after `KEY: ` of a file of rules, which is written line by line.
fn values(text: &str, key: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start_matches([' ', '-']));
    let values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    values.map(str::to_owned).collect()
}

/// The expressions of a dashboard: of panels, and of variables.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if ["expr", "definition"].contains(&key.as_str()) => {
                        found.push(text.clone());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn rules_and_dashboards_name_metrics_that_there_are() {
    let (rules, alerts) = (
        read("deploy/mixin/rules.yaml"),
        read("deploy/mixin/alerts.yaml"),
    );
    let mut known = emitted();
    known.extend(values(&rules, "record"));
    let mut all = values(&rules, "expr");
    all.extend(values(&alerts, "expr"));
    assert_eq!(all.len(), 10 + 19);
    for file in fs::read_dir(root().join("deploy/mixin/dashboards")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        expressions(&serde_json::from_str(&text).unwrap(), &mut all);
    }
    assert!(all.len() > 40, "{}", all.len());
    let unknown = |expression: &String| -> Vec<String> {
        let names = named(expression).into_iter();
        names.filter(|name| !known.contains(name)).collect()
    };
    for expression in &all {
        assert!(!named(expression).is_empty(), "{expression}");
        assert_eq!(unknown(expression), [""; 0], "{expression}");
    }
    // The check finds a wrong name.
    assert_eq!(
        unknown(&"rate(strew_spread_skews[5m])".to_owned()),
        ["strew_spread_skews"]
    );
    // An unused recording rule costs storage.
    for record in values(&rules, "record") {
        let users = all
            .iter()
            .filter(|expression| named(expression).contains(&record));
        assert!(users.count() > 0, "{record}");
    }
}

#[test]
fn each_alert_is_tested_to_fire_and_says_what_to_do() {
    let (alerts, tests) = (
        read("deploy/mixin/alerts.yaml"),
        read("deploy/mixin/tests.yaml"),
    );
    let defined: BTreeSet<String> = values(&alerts, "alert").into_iter().collect();
    let mut fired = BTreeSet::new();
    let mut current = String::new();
    for line in tests
        .lines()
        .map(|line| line.trim_start_matches([' ', '-']))
    {
        if let Some(name) = line.strip_prefix("alertname: ") {
            current = name.to_owned();
        } else if line.starts_with("exp_alerts:") {
            fired.insert(current.clone());
        }
    }
    assert_eq!(fired, defined);
    // A release leads to it from each alert.
    let page = read("docs/alerts.md");
    let sections = page.lines().filter_map(|line| line.strip_prefix("## "));
    assert_eq!(
        sections.map(str::to_owned).collect::<BTreeSet<_>>(),
        defined
    );
    for key in ["summary", "description", "severity"] {
        assert_eq!(values(&alerts, key).len(), defined.len(), "{key}");
    }
}
