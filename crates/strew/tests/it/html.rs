//! `strew simulate --html`: the data in the page, and that it is the report's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::{json, stdout, strew};

/// Runs a command with `--html`; its report, and the page.
#[track_caller]
fn page(name: &str, command: &str, stdin: &str, exit: i32) -> (Value, String) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let run = strew(&format!("{command} -o json --html {}", path.display()));
    let run = run.stdin(stdin.to_owned()).assert().code(exit);
    (json(&run), std::fs::read_to_string(path).unwrap())
}

/// What the page's script finds.
fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Active pods by domain at the end of a log, counted by workload and key as the page's script does.
fn counts(log: &Value, key: &str) -> BTreeMap<String, BTreeMap<String, i64>> {
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for line in log.as_array().unwrap() {
        let name = line["key"].as_str().unwrap_or_default().to_owned();
        match line["type"].as_str().unwrap() {
            "created" => {
                if let Some(owner) = line["changed"]["owner"].as_str() {
                    owners.insert(name.clone(), owner.to_owned());
                }
                objects.insert(name, line["changed"].clone());
            }
            "updated" => {
                for (field, change) in line["changed"].as_object().into_iter().flatten() {
                    objects.get_mut(&name).unwrap()[field] = change[1].clone();
                }
            }
            "deleted" => drop(objects.remove(&name)),
            _ => {}
        }
    }
    let mut found = BTreeMap::<_, BTreeMap<String, i64>>::new();
    for (name, fields) in &objects {
        let is_placed =
            name.starts_with("Pod ") && fields["node"].is_string() && fields["terminating"] != true;
        if is_placed {
            let owner = owners.get(name).unwrap_or(name);
            let owner = owners.get(owner).unwrap_or(owner);
            let node = format!("Node {}", fields["node"].as_str().unwrap());
            let domain = objects[&node]["labels"][key].as_str().unwrap().to_owned();
            *found
                .entry(owner.clone())
                .or_default()
                .entry(domain)
                .or_default() += 1;
        }
    }
    found
}

/// The counts of a report's step, empty domains left out, by the names that the log has.
fn reported(step: &Value, key: &str) -> BTreeMap<String, BTreeMap<String, i64>> {
    let each = step["workloads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|workload| {
            let (kind, name) = workload["of"].as_str().unwrap().split_once('/').unwrap();
            let kind = match kind {
                "deployment" => "Deployment",
                "statefulset" => "StatefulSet",
                other => panic!("{other}"),
            };
            let of = format!("{kind} {}/{name}", workload["namespace"].as_str().unwrap());
            let spread = workload["spread"]
                .as_array()
                .unwrap()
                .iter()
                .find(|s| s["by"] == key)
                .unwrap();
            let counts = spread["counts"].as_object().unwrap().iter();
            let counts = counts.map(|(domain, n)| (domain.clone(), n.as_i64().unwrap()));
            (of, counts.filter(|(_, n)| *n > 0).collect())
        });
    each.collect()
}

#[test]
fn the_page_of_a_scenario_counts_as_the_report_does() {
    let command = "simulate examples/scenarios/rollout.yaml --seeds 6";
    let (report, page) = page("rollout.html", command, "", 0);
    assert!(
        !page.contains("http:") && !page.contains("https:"),
        "it asks for nothing"
    );
    let data = data(&page);
    let variants = report["scenarios"][0]["variants"].as_array().unwrap();
    let runs = data["runs"].as_array().unwrap();
    assert_eq!(
        (variants.len(), runs.len()),
        (2, 2),
        "of each variant the first seed"
    );
    for (variant, log) in variants.iter().zip(runs) {
        assert_eq!(
            (&log[0]["variant"], &log[0]["seed"]),
            (&variant["name"], &Value::from(1))
        );
        let steps = variant["runs"][0]["steps"].as_array().unwrap();
        let key = "kubernetes.io/hostname";
        let expected = reported(steps.last().unwrap(), key);
        assert_eq!(expected.values().flat_map(|c| c.values()).sum::<i64>(), 12);
        assert_eq!(counts(log, key), expected);
    }
    let shown = &data["report"]["scenarios"][0]["variants"];
    for (shown, variant) in shown.as_array().unwrap().iter().zip(variants) {
        assert_eq!(
            shown["runs"].as_array().unwrap()[..],
            variant["runs"].as_array().unwrap()[..1]
        );
    }
}

#[test]
fn the_page_of_the_story_has_its_steps_and_the_same_counts() {
    let (report, page) = page(
        "story.html",
        "simulate examples/shop.yaml --nodes 12 --zones 3",
        "",
        0,
    );
    let data = data(&page);
    assert_eq!(data["report"], report);
    let log = &data["runs"][0];
    let verbs: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|l| l["verb"].as_str())
        .collect();
    let first: Vec<&str> = verbs
        .iter()
        .map(|verb| verb.split(' ').next().unwrap())
        .collect();
    assert_eq!(first, ["deploy", "rollout", "scale", "lose", "restore"]);
    let key = "topology.kubernetes.io/zone";
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(counts(log, key), reported(steps.last().unwrap(), key));
}

#[test]
fn the_log_of_the_page_is_the_one_of_events_and_costs_the_report_nothing() {
    let command = "simulate examples/scenarios/min-domains.yaml --variant base --seed 4";
    let events = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("html-events.jsonl");
    let with_events = format!("{command} --events {}", events.display());
    let (report, page) = page("events.html", &with_events, "", 0);
    let text = std::fs::read_to_string(events).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(data(&page)["runs"], Value::Array(vec![Value::Array(lines)]));
    let plain = strew(&format!("{command} -o json")).assert().code(0);
    assert_eq!(json(&plain), report);
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let nasty = "</script><script>alert(1)</script>";
    let scenario = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec: {{containers: [{{name: c, image: i}}]}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {{name: s, annotations: {{story: \"{nasty}\"}}}}
spec:
  nodeGroups: [{{name: n, size: 1, template: {{status: {{allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"110\"}}}}}}}}]
  timeline: [{{at: 1s, annotate: {{pod/p: \"note={nasty}\"}}}}]
"
    );
    let (report, page) = page("nasty.html", "simulate -", &scenario, 0);
    assert_eq!(report["scenarios"][0]["story"], nasty);
    assert_eq!(
        page.matches("</script>").count(),
        2,
        "the data's and the script's own"
    );
    let data = data(&page);
    assert_eq!(data["report"]["scenarios"][0]["story"], nasty);
    assert!(data["runs"][0].to_string().contains("alert(1)"), "{data}");
}

#[test]
fn a_page_that_cannot_be_written_is_told() {
    let run = strew("simulate examples/shop.yaml --until deploy --html missing/folder/page.html");
    let run = run.assert().code(3);
    assert_eq!(stdout(&run), "");
}
