//! `strew simulate --html`: the data in the page equals the report's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::{json, only_run, stdout, strew};

/// Runs a command with `--html`. Returns its report, and the page.
#[track_caller]
fn page(name: &str, command: &str, stdin: &str, exit: i32) -> (Value, String) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let run = strew(&format!("{command} -o json --html {}", path.display()));
    let run = run.stdin(stdin.to_owned()).assert().code(exit);
    (json(&run), std::fs::read_to_string(path).unwrap())
}

/// The data that the page's script finds.
fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// A report without what its page has in other places.
fn shown(mut report: Value) -> Value {
    fn each<'a>(of: &'a mut Value, field: &str) -> std::slice::IterMut<'a, Value> {
        of[field].as_array_mut().unwrap().iter_mut()
    }
    let variants = each(&mut report, "scenarios").flat_map(|one| each(one, "variants"));
    let runs = variants.flat_map(|one| each(one, "runs"));
    for step in runs.flat_map(|one| each(one, "steps")) {
        let step = step.as_object_mut().unwrap();
        step.remove("nodes");
        step.remove("placements");
    }
    report
}

/// Pods by domain at the end of a series, by workload, as the page shows them, without empty domains.
fn counts(series: &Value, key: &str) -> BTreeMap<String, BTreeMap<String, i64>> {
    let mut found = BTreeMap::<_, BTreeMap<String, i64>>::new();
    for line in series.as_array().unwrap() {
        if line["by"] != key {
            continue;
        }
        let counts = found.entry(line["of"].as_str().unwrap().to_owned());
        let counts = counts.or_default();
        for (domain, n) in line["changed"].as_object().unwrap() {
            match n.as_i64() {
                Some(n) if n > 0 => counts.insert(domain.clone(), n),
                _ => counts.remove(domain),
            };
        }
    }
    found
}

/// The counts of a report's step, without empty domains, by the names of the log.
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
    let report = shown(report);
    let variants = report["scenarios"][0]["variants"].as_array().unwrap();
    let runs = data["runs"].as_array().unwrap();
    assert_eq!(
        (variants.len(), runs.len()),
        (2, 2),
        "of each variant the first seed"
    );
    let series = data["series"].as_array().unwrap();
    for ((variant, log), series) in variants.iter().zip(runs).zip(series) {
        assert_eq!(
            (&log[0]["variant"], &log[0]["seed"]),
            (&variant["name"], &Value::from(1))
        );
        let steps = variant["runs"][0]["steps"].as_array().unwrap();
        let key = "kubernetes.io/hostname";
        let expected = reported(steps.last().unwrap(), key);
        assert_eq!(expected.values().flat_map(|c| c.values()).sum::<i64>(), 12);
        assert_eq!(counts(series, key), expected);
    }
    let shown = &data["report"]["scenarios"][0]["variants"];
    for (shown, variant) in shown.as_array().unwrap().iter().zip(variants) {
        assert_eq!(
            shown["runs"].as_array().unwrap()[..],
            variant["runs"].as_array().unwrap()[..1]
        );
    }
}

/// A page shows the results of every seed, and of a red variant a broken seed.
#[test]
fn the_page_of_a_red_answer_is_red() {
    let scenario = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  nodeGroups: [{name: n, size: 2, template: {status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}}]
  seeds: 20
  timeline: [{at: 1m, expect: [{cel: "!pods.exists(p, p.name.matches('[0-9]$'))"}]}]
"#;
    let (report, page) = page("red.html", "simulate -", scenario, 1);
    let data = data(&page);
    let report = shown(report);
    let runs = report["scenarios"][0]["variants"][0]["runs"]
        .as_array()
        .unwrap();
    let broken: Vec<&Value> = runs.iter().filter(|run| run["held"] == false).collect();
    let verdict = &data["verdicts"][0];
    assert_eq!(verdict["red"], true);
    assert_eq!(verdict["broken"].as_array().unwrap().len(), broken.len());
    assert_eq!(verdict["shown"], broken[0]["seed"]);
    assert_eq!(verdict["broken"][0]["at"], "1m");
    assert_eq!(data["runs"][0][0]["seed"], broken[0]["seed"]);
    let shown = &data["report"]["scenarios"][0]["variants"][0]["runs"];
    assert_eq!(shown.as_array().unwrap()[..], [broken[0].clone()]);
}

#[test]
fn the_page_of_the_story_has_its_steps_and_the_same_counts() {
    let (report, page) = page(
        "story.html",
        "simulate examples/shop.yaml --nodes 12 --zones 3 --seed 0",
        "",
        0,
    );
    let data = data(&page);
    assert_eq!(data["report"], shown(report.clone()));
    let log = &data["runs"][0];
    let lines = log.as_array().unwrap().iter();
    let steps: Vec<&str> = lines.filter_map(|l| l["step"].as_str()).collect();
    assert_eq!(steps, ["deploy", "rollout", "lose", "restore", "scale"]);
    let key = "topology.kubernetes.io/zone";
    let steps = only_run(&report)["steps"].as_array().unwrap();
    assert_eq!(
        counts(&data["series"][0], key),
        reported(steps.last().unwrap(), key)
    );
}

/// What the nodes have and what is requested of them, at the start and at the end of each step.
#[test]
fn the_page_has_the_room_of_nodes_at_the_end_of_each_step() {
    let command = "simulate examples/shop.yaml --nodes 12 --zones 3 --seed 0";
    let (report, page) = page("room.html", command, "", 0);
    let data = data(&page);
    let lines = data["series"][0].as_array().unwrap();
    let rooms: Vec<&Value> = lines.iter().filter(|line| line["type"] == "room").collect();
    let steps: Vec<Value> = rooms.iter().map(|room| room["step"].clone()).collect();
    assert_eq!(Value::from(steps), serde_json::json!([null, 0, 1, 2, 3, 4]));
    let milli = |node: &Value, field: &str| {
        let cpu = node[field]["cpu"].as_str().unwrap();
        match cpu.strip_suffix('m') {
            Some(milli) => milli.parse::<i64>().unwrap(),
            None => cpu.parse::<i64>().unwrap() * 1000,
        }
    };
    let nodes = only_run(&report)["steps"][0]["nodes"].as_array().unwrap();
    let of = |field: &str| -> Vec<i64> { nodes.iter().map(|n| milli(n, field)).collect() };
    assert_eq!(rooms[1]["requested"], Value::from(of("requested")));
    assert_eq!(rooms[0]["allocatable"], Value::from(of("allocatable")));
    let names: Vec<&str> = nodes.iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(rooms[0]["nodes"], names.join(" "));
    let sum = |room: &Value| -> i64 {
        let each = room["requested"].as_array().unwrap().iter();
        each.map(|n| n.as_i64().unwrap()).sum()
    };
    assert_eq!(sum(rooms[0]), 0);
    assert!(sum(rooms[5]) < sum(rooms[4]), "fewer pods after scale");
}

/// A run that is too large to be seen pod by pod has sums in place of nodes and pods, with the numbers of the report.
#[test]
fn the_page_of_a_large_run_has_sums() {
    let command = "simulate examples/shop.yaml --nodes 5001 --zones 3 --seed 0 --until rollout";
    let (report, page) = page("large.html", command, "", 0);
    let data = data(&page);
    let log = data["runs"][0].as_array().unwrap();
    assert!(log.iter().all(|line| line["key"].is_null()), "{log:?}");
    let sums = data["sums"][0].as_array().unwrap();
    let steps = only_run(&report)["steps"].as_array().unwrap();
    assert_eq!(sums.len(), steps.len() + 1, "the start, and each step");
    let key = "topology.kubernetes.io/zone";
    for (sums, step) in sums[1..].iter().zip(steps) {
        let boxes = sums["boxes"].as_array().unwrap();
        let n = |one: &Value, field: &str| one[field].as_u64().unwrap();
        let nodes: u64 = boxes.iter().map(|one| n(one, "nodes")).sum();
        let pods: u64 = boxes.iter().map(|one| n(one, "pods")).sum();
        assert_eq!((nodes, pods), (5001, n(&step["pods"], "pods")));
        for (of, counts) in reported(step, key) {
            let own = sums["own"][&of].as_object().unwrap().iter();
            let own = own.map(|(index, pods)| {
                let zone = boxes[index.parse::<usize>().unwrap()]["path"][0].as_str();
                (zone.unwrap().to_owned(), pods.as_i64().unwrap())
            });
            assert_eq!(own.collect::<BTreeMap<_, _>>(), counts, "{of}");
        }
    }
}

#[test]
fn the_log_of_the_page_is_of_events_and_costs_the_report_nothing() {
    let command = "simulate examples/scenarios/min-domains.yaml --variant base --seed 4";
    let events = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("html-events.jsonl");
    let with_events = format!("{command} --events {}", events.display());
    let (report, page) = page("events.html", &with_events, "", 0);
    let text = std::fs::read_to_string(events).unwrap();
    // Without versions, and without the lines in which nothing else or counts alone change.
    let lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("resourceVersion");
        if let Some(changed) = line.get_mut("changed").and_then(Value::as_object_mut) {
            changed.remove("generation");
        }
        line
    });
    let lines: Vec<Value> = lines.collect();
    let runs = data(&page)["runs"].clone();
    let of_page = runs[0].as_array().unwrap();
    let mut rest = lines.iter();
    for line in of_page {
        assert!(rest.any(|of_events| of_events == line), "{line}");
    }
    let others = |all: &[Value]| all.iter().filter(|line| line["type"] != "updated").count();
    assert_eq!(others(of_page), others(&lines));
    let nodes = |all: &[Value]| {
        let placed = all.iter().filter(|line| !line["changed"]["node"].is_null());
        placed.count()
    };
    assert!(nodes(of_page) > 0);
    assert_eq!(nodes(of_page), nodes(&lines));
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

/// A line of the series changes something: the page of a large cluster repeats nothing.
#[test]
fn no_line_of_the_series_repeats_the_one_before() {
    let command = "simulate examples/shop.yaml --nodes 12 --zones 3";
    let (_, page) = page("series.html", command, "", 0);
    let data = data(&page);
    let mut known = BTreeMap::<[String; 3], Value>::new();
    for mut line in data["series"][0].as_array().unwrap().clone() {
        let of = ["type", "of", "by"].map(|field| line[field].to_string());
        line["at"].take();
        let before = known.insert(of, line.clone());
        assert_ne!(before.as_ref(), Some(&line));
    }
    assert!(known.len() > 6, "{known:?}");
}

/// The page of an audit has the report of `-o json`, and ready pods over time that agree with its numbers.
#[test]
fn the_page_of_an_audit_has_its_report() {
    let command = "audit crates/strew/tests/cases/audit-four-causes/headroom.yaml";
    let (report, page) = page("audit.html", command, "", 1);
    let data = data(&page);
    assert_eq!(data["report"], report);
    assert_eq!(
        (&data["fails"], &data["hurt"][0]),
        (&true.into(), &serde_json::json!([0]))
    );
    let patch = data["patches"][0].as_str().unwrap();
    assert!(
        patch.contains("kubectl patch deployment web -n shop"),
        "{patch}"
    );
    let cases = report["cases"].as_array().unwrap().iter();
    let rows = cases.flat_map(|case| case["workloads"].as_array().unwrap());
    let changing = rows.filter_map(|row| Some((row, row["readyOverTime"].as_array()?)));
    let mut n = 0;
    for (row, points) in changing {
        let ready: Vec<u64> = points
            .iter()
            .map(|p| p["ready"].as_u64().unwrap())
            .collect();
        let fewest = ready.iter().skip(1).chain([&ready[0]]).min();
        let ends = (ready.first(), ready.last(), fewest);
        let told = ["before", "ready", "fewest"].map(|name| row[name].as_u64());
        assert_eq!(
            [ends.0.copied(), ends.1.copied(), ends.2.copied()],
            told,
            "{row}"
        );
        let at_once = points.iter().rfind(|point| point["second"] == 0).unwrap();
        assert!(at_once["ready"].as_u64() <= row["before"].as_u64(), "{row}");
        n += 1;
    }
    assert!(n > 6, "{n}");
}
