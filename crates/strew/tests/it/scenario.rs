//! `strew simulate` on files with a Scenario, and `strew diff` of its reports.

use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json as value};
use snapbox::file;

use crate::{json, root, stderr, stdout, strew};

const ROLLOUT: &str = "simulate examples/scenarios/rollout.yaml";
const MIN_DOMAINS: &str = "simulate examples/scenarios/min-domains.yaml";

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("scenario-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A workload of six pods, three nodes, and these fields of the spec.
pub(crate) fn scenario(spec: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 6
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: i, resources: {{requests: {{cpu: 100m}}}}}}]}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {{name: small}}
spec:
  nodeGroups: [{{name: n, size: 3, template: {{status: {{allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"110\"}}}}}}}}]
{spec}"
    )
}

#[test]
fn variants_hold_and_break_as_they_must() {
    let run = strew(&format!("{MIN_DOMAINS} --seeds 2")).assert().code(0);
    run.stdout_eq(file!["snapshots/min-domains.txt"]);
}

#[test]
fn a_breach_is_told_with_counts_cause_and_what_plays_it_again() {
    let spec = "  timeline:
  - {at: 1m, expect: [{spread: {of: deployment/web, by: kubernetes.io/hostname, counts: [2, 2, 3]}}]}
  - {at: 2m, scale: {deployment/web: 9}}
";
    let run = strew("simulate - --seed 3").stdin(scenario(spec));
    let run = run.assert().code(1);
    let text = stdout(&run);
    for part in [
        "✗ 1m  web by hostname 2/2/2 skew 0",
        "n-0  ████ 2",
        "2/2/2, not 3/2/2",
        "strew simulate - --variant base --seed 3 --until 1m",
        "1 run (1 variant × 1 seed): 0 held, 1 broke (base)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn what_must_always_hold_names_its_cause() {
    let spec = "  always: [{pods: {of: deployment/web, count: {max: 6}}}]
  timeline: [{at: 1m, scale: {deployment/web: 7}}]
";
    let run = strew("simulate -").stdin(scenario(spec)).assert().code(1);
    let text = stdout(&run);
    assert!(text.contains("✗ always"), "{text}");
    assert!(text.contains("seed 1 at 1m"), "{text}");
    assert!(text.contains("just before: "), "{text}");
}

#[test]
fn a_variant_that_must_break_and_does_not_is_red() {
    let spec = "  timeline: [{at: 1m, expect: [{pods: {of: deployment/web, phase: Running, count: 6}, within: 5m}]}]
  variants: [{name: calm, mustFail: true}, {name: wild, mayFail: true}]
";
    let run = strew("simulate -").stdin(scenario(spec)).assert().code(1);
    let text = stdout(&run);
    assert!(
        text.contains("nothing broke where it must (calm)"),
        "{text}"
    );
    let run = strew("simulate - --variant base --variant wild -q");
    let run = run.stdin(scenario(spec)).assert().code(0);
    let text = stdout(&run);
    assert!(
        text.starts_with("2 runs (2 variants × 1 seed): 2 held; "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn a_verb_that_the_server_refuses_is_a_breach() {
    let spec = "  timeline: [{at: 1m, apply: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {priorityClassName: vip, containers: [{name: c, image: i}]}}}]
";
    let run = strew("simulate - -o json").stdin(scenario(spec));
    let run = run.assert().code(1);
    let step = json(&run)["scenarios"][0]["variants"][0]["runs"][0]["steps"][0].clone();
    assert_eq!(step["refused"][0]["breach"], true);
    let why = step["refused"][0]["why"].as_str().unwrap();
    assert!(why.contains("vip"), "{why}");
}

#[test]
fn a_run_that_is_ended_early_leaves_open_what_may_still_come() {
    let spec =
        "  timeline: [{at: 1m, expect: [{pods: {of: deployment/web, count: 7}, within: 1h}]}]
";
    // Nothing was judged: that is told, and not green.
    let run = strew("simulate - --until 2m").stdin(scenario(spec));
    let text = stdout(&run.assert().code(1));
    for part in ["1 not decided", "nothing was judged"] {
        assert!(text.contains(part), "{text}");
    }
    strew("simulate -").stdin(scenario(spec)).assert().code(1);
}

#[test]
fn a_run_that_is_ended_between_steps_lives_until_then() {
    let spec = "  timeline: [{at: 1m}, {at: 1h}]
";
    let run = strew("simulate - --until 10m -o json").stdin(scenario(spec));
    let report = json(&run.assert().code(0));
    let run = &report["scenarios"][0]["variants"][0]["runs"][0];
    assert_eq!(run["ended"], "10m");
    assert_eq!(run["steps"].as_array().unwrap().len(), 1);
}

/// Equal input gives equal bytes, whatever the number of threads.
#[test]
fn equal_runs_give_equal_bytes() {
    let folder = folder("equal");
    let outputs = [1, 2, 2].map(|jobs| {
        let log = folder.join("log.jsonl");
        let of = |output: &str, more: &str| {
            let args = format!("{ROLLOUT} --seeds 6 -o {output} --jobs {jobs} {more}");
            stdout(&strew(&args).assert().code(0))
        };
        let events = format!("--events {}", log.display());
        let report = of("json", &events);
        (
            report,
            of("junit", ""),
            std::fs::read_to_string(&log).unwrap(),
        )
    });
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[1], outputs[2]);
}

#[test]
fn every_line_of_the_log_tells_one_thing() {
    let log = folder("log").join("log.jsonl");
    let spec = "  timeline: [{at: 1m, scale: {deployment/web: 3}}, {at: 2m}]
";
    strew(&format!("simulate - --events {}", log.display()))
        .stdin(scenario(spec))
        .assert()
        .code(0);
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(serde_json::from_str::<serde_json::Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(lines[0]["type"], "run");
    assert_eq!(
        lines[0]["replay"],
        "strew simulate - --variant base --seed 1"
    );
    assert_eq!(lines[lines.len() - 1]["type"], "end");
    let n = |kind: &str, key: &str| {
        let found = lines.iter().filter(|line| line["type"] == kind);
        found
            .filter(|line| line["key"].as_str().unwrap_or(key).starts_with(key))
            .count()
    };
    assert_eq!(n("created", "Pod default/web-"), 6);
    assert_eq!(n("deleted", "Pod default/web-"), 3);
    assert_eq!(n("created", "Node n-"), 3);
    assert_eq!(n("verb", ""), 1);
    assert!(n("event", "") > 6);
    let bound = lines
        .iter()
        .filter(|line| !line["changed"]["node"].is_null());
    assert_eq!(bound.filter(|line| line["type"] == "updated").count(), 6);
}

#[test]
fn reports_tell_each_step() {
    let run = strew(&format!("{ROLLOUT} --seeds 1 --variant base -o json"));
    let report = json(&run.assert().code(0));
    let run = &report["scenarios"][0]["variants"][0]["runs"][0];
    let workload = &run["steps"][0]["workloads"][0];
    assert_eq!(workload["of"], "deployment/web");
    assert_eq!(workload["replicas"], 12);
    assert_eq!(workload["spread"][0]["counts"]["n-0"], 4);
    assert_eq!(workload["spread"][0]["constraint"]["maxSkew"], 1);
    assert_eq!(run["maxSkew"][0]["by"], "kubernetes.io/hostname");
    assert_eq!(report["summary"]["held"], 1);
}

#[test]
fn junit_has_a_case_for_each_expectation() {
    let spec = "  timeline: [{at: 1m, expect: [{pods: {of: deployment/web, count: 7}}, {cel: \"size(nodes) == 3 && 'a' < 'b'\"}]}]
";
    let run = strew("simulate - -o junit").stdin(scenario(spec));
    let text = stdout(&run.assert().code(1));
    assert!(
        text.contains("<testsuites name=\"strew simulate\" tests=\"2\" failures=\"1\">"),
        "{text}"
    );
    assert!(
        text.contains("<failure message=\"broke in 1 of 1 seeds\">seed 1 at 1m: "),
        "{text}"
    );
    assert!(
        text.contains("&apos;a&apos; &lt;") || text.contains("'a' &lt;"),
        "{text}"
    );
}

/// A failure has the command that plays it again and every broken seed; wrong input is a case, too.
#[test]
fn junit_tells_every_seed_and_wrong_input() {
    let spec = "  timeline: [{at: 1m, expect: [{pods: {of: deployment/web, count: 7}}]}]
";
    let run = strew("simulate - --seeds 3 -o junit").stdin(scenario(spec));
    let text = stdout(&run.assert().code(1));
    for part in [
        "&#10;seeds that broke: 1, 2, 3",
        "&#10;again: strew simulate - --variant base --seed 1 --until 1m",
        " time=\"180.000\" file=",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    for (input, error) in [
        ("", "no objects passed to simulate"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: B_d}}",
            "invalid-field",
        ),
    ] {
        let run = strew("simulate - -o junit").stdin(input);
        let text = stdout(&run.assert().code(2));
        assert!(text.contains(" errors=\""), "{text}");
        assert!(text.contains(error), "{error:?} in {text}");
    }
}

#[test]
fn a_folder_of_scenarios_is_played_file_by_file() {
    let run = strew("simulate examples/scenarios/ --seeds 1 --variant base -o json");
    let report = json(&run.assert().code(0));
    let files = report["scenarios"].as_array().unwrap().iter();
    let files: Vec<_> = files.map(|s| s["file"].as_str().unwrap()).collect();
    let expected = ["min-domains.yaml", "rollout.yaml"];
    assert_eq!(files, expected.map(|f| format!("examples/scenarios/{f}")));
    let run = strew("simulate examples/scenarios/ -o name")
        .assert()
        .code(0);
    assert!(stdout(&run).contains("scenario/min-domains gate-off\n"));
}

#[test]
fn diff_tells_what_moved() {
    let folder = folder("diff");
    let report = |name: &str, spec: &str| {
        let path = folder.join(name);
        let run = strew("simulate - -o json").stdin(scenario(spec));
        std::fs::write(&path, stdout(&run.assert().code(0))).unwrap();
        path.display().to_string()
    };
    let a = report("a.json", "  timeline: [{at: 1m}]\n");
    let b = report(
        "b.json",
        "  timeline: [{at: 1m, scale: {deployment/web: 9}}]\n",
    );
    let run = strew(&format!("diff {a} {a}")).assert().code(0);
    assert_eq!(stdout(&run), "nothing moved\n");
    let run = strew(&format!("diff {a} {b}")).assert().code(1);
    let text = stdout(&run);
    assert!(text.starts_with("small/base seed 1 at 1m\n"), "{text}");
    assert!(
        text.contains("  deployment/web: Pending 0 → 3 (+3)")
            || text.contains("replicas 6 → 9 (+3)"),
        "{text}"
    );
    strew("diff Cargo.toml Cargo.toml").assert().code(2);
    let run = strew(&format!("diff {a} {b} --step nosuch"))
        .assert()
        .code(2);
    assert!(stderr(&run).contains("count nothing of these words"));
    strew(&format!("diff {a} nowhere.json")).assert().code(3);
    let run = strew(&format!("diff {a} {b} -o json")).assert().code(1);
    assert_eq!(json(&run)["kind"], "SimulationDiff");
}

/// A key that only one report counts is named, not compared; below a summary, the worst changes come first.
#[test]
fn diff_sums_up_and_shows_the_worst_first() {
    let folder = folder("diff-summary");
    let write = |name: &str, steps: Value| {
        let path = folder.join(name);
        let report = value!({
            "apiVersion": "report.strew.dev/v1alpha1", "kind": "SimulationReport",
            "scenarios": [{"name": "s", "variants": [{"name": "base", "runs": [{"seed": 1, "steps": steps}]}]}],
        });
        std::fs::write(&path, report.to_string()).unwrap();
        path.display().to_string()
    };
    let workload = |name: &str, skews: &[(&str, i32)], n_pending: u32| {
        let spread = skews
            .iter()
            .map(|(key, skew)| value!({"by": key, "counts": {"a": skew}, "skew": skew}));
        value!({
            "of": format!("deployment/{name}"), "namespace": "default", "replicas": 3, "ready": 3,
            "pending": [{"count": n_pending}], "spread": spread.collect::<Vec<_>>(),
        })
    };
    let deploy = |workloads: Value| value!([{"name": "deploy", "workloads": workloads}]);
    let a = write(
        "a.json",
        deploy(value!([
            workload("better", &[("zone", 3)], 0),
            workload("same", &[("zone", 1)], 0),
            workload("worse", &[("zone", 0)], 2),
        ])),
    );
    let b = write(
        "b.json",
        deploy(value!([
            workload("better", &[("zone", 1), ("rack", 9)], 0),
            workload("same", &[("zone", 1), ("rack", 9)], 0),
            workload("worse", &[("zone", 2), ("rack", 9)], 5),
        ])),
    );
    let text = stdout(&strew(&format!("diff {a} {b}")).assert().code(1));
    let expected = "s/base seed 1 deploy
  Pending 2 → 5
  by zone: 1 better, 1 worse, 1 same; mean skew 1.3 → 1.3
  by rack: counted in the second report only
  deployment/worse: Pending 2 → 5 (+3)
  deployment/worse by zone: in a 0 → 2 (+2), skew 0 → 2 (+2)
  deployment/better by zone: in a 3 → 1 (-2), skew 3 → 1 (-2)
5 changes in 3 places
";
    assert_eq!(text, expected);
    let text = stdout(
        &strew(&format!("diff {a} {b} --top 1 --by zone"))
            .assert()
            .code(1),
    );
    assert!(
        text.contains("… and 1 more place (--all shows them)"),
        "{text}"
    );
    // The best come below the worst on request, and what is equal fills no line of theirs.
    let text = stdout(
        &strew(&format!("diff {a} {b} --top 1 --best"))
            .assert()
            .code(1),
    );
    let expected = "  deployment/worse: Pending 2 → 5 (+3)
  deployment/better by zone: in a 3 → 1 (-2), skew 3 → 1 (-2)
  … and 1 more place (--all shows them)
";
    assert!(text.contains(expected), "{text}");
    // Before: every value of both was a change, and the exit code 1.
    let d = write("d.json", deploy(value!([workload("x", &[("zone", 1)], 0)])));
    let run = strew(&format!("diff {a} {d}")).assert().code(2);
    assert!(stderr(&run).contains("the reports have no workload in common"));
    let c = write(
        "c.json",
        value!([{"name": "other", "workloads": []}, {"name": "more", "workloads": [workload("x", &[], 0)]}]),
    );
    let run = strew(&format!("diff {a} {c}")).assert().code(2);
    assert!(stderr(&run).contains("the reports have no step in common"));
}

/// Right after a loss no pod is Pending yet: the claim does not test the loss.
#[test]
fn what_holds_before_a_step_has_an_effect_is_told() {
    let claim = "pods: {of: deployment/web, phase: Pending, count: 0}";
    let text = |step: &str| {
        let spec = format!("  timeline: [{{at: 1m}}, {step}]\n");
        let run = strew("simulate -").stdin(scenario(&spec));
        stdout(&run.assert().code(0))
    };
    let trap = text(&format!(
        "{{at: 2m, scale: {{deployment/web: 5}}, expect: [{{{claim}, within: 15m}}]}}"
    ));
    assert!(
        trap.contains("held before the step too, and says nothing of it: atRest: true"),
        "{trap}"
    );
    for step in [
        format!("{{at: 2m, scale: {{deployment/web: 5}}, rest: {{}}, expect: [{{{claim}}}]}}"),
        format!("{{at: 2m, scale: {{deployment/web: 5}}, expect: [{{{claim}, for: 15m}}]}}"),
    ] {
        let text = text(&step);
        assert!(!text.contains("held before"), "{text}");
    }
    // Here the step made it true at once.
    let claim = "pods: {of: deployment/web, phase: Running, count: 2}";
    let at_once = text(&format!(
        "{{at: 2m, scale: {{deployment/web: 2}}, expect: [{{{claim}, within: 15m}}]}}"
    ));
    assert!(!at_once.contains("held before"), "{at_once}");
}

/// `always` is written first, and breaks after the first step.
#[test]
fn breaches_are_in_the_order_of_time_and_each_has_what_was_found_and_expected() {
    let spec = "  always: [{pods: {of: deployment/web, count: {max: 8}}}]
  timeline:
  - {at: 1m, expect: [{pods: {of: deployment/web, count: 7}}]}
  - {at: 2m, scale: {deployment/web: 9}}
  - {at: 3m, expect: [{pods: {of: deployment/web, count: 8}}]}
  variants: [{name: same, mayFail: true}]
";
    let run = strew("simulate - --variant same").stdin(scenario(spec));
    let text = stdout(&run.assert().code(0));
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let found = lines
        .iter()
        .filter_map(|line| line.strip_prefix("seed 1 at "));
    let found: Vec<&str> = found.map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(found, ["1m", "2m", "3m"], "{text}");
    let n = |word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!((n("expected: "), n("again: ")), (3, 1), "{text}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let spec = "  seeds: 0
  sedes: 3
  until: 99999999999h
  timeline:
  - {at: 2m, scael: {deployment/web: 3}}
  - {at: 1m, scale: {deployment/wbe: 3}}
  - {at: 3m, expect: [{spread: {of: deployment/web, by: kubernetes.io/hostname, counts: [1, 9], skew: 0}}]}
";
    let run = strew("simulate -").stdin(scenario(spec)).assert().code(2);
    run.stdout_eq("")
        .stderr_eq(file!["snapshots/scenario-bad.stderr.txt"]);
}

#[test]
fn what_only_a_plan_finds_has_its_place_too() {
    let spec = "  timeline: [{at: 1m, expect: [{cel: \"size(nodes) == = 3\"}]}]
";
    let bad = scenario(spec).replace("cpu: 100m", "cpu: -1");
    let run = strew("simulate -").stdin(bad).assert().code(2);
    let text = stderr(&run);
    assert!(text.contains("<stdin>:9:"), "{text}");
    assert!(text.contains("<stdin>:16:"), "{text}");
}

#[test]
fn what_is_wrong_with_a_workload_spread_has_its_place() {
    let spread = "apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets:
  - {name: own, maxReplicas: 3}
  - {name: own}
  - {name: rest, maxReplicas: -1}
---
";
    let stream = |spread: &str| format!("{spread}{}", scenario("  timeline: [{at: 1m}]\n"));
    let run = strew("simulate -").stdin(stream(spread)).assert().code(2);
    let text = stderr(&run);
    for part in [
        "<stdin>:8:12",
        "subsets[1].name",
        "<stdin>:9:",
        "spec.subsets[2].maxReplicas",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Objects of a dump may be older than the webhook.
    let dumped = spread.replace("name: web}\nspec", "name: web, uid: 1-2}\nspec");
    assert_ne!(dumped, spread);
    strew("simulate -").stdin(stream(&dumped)).assert().code(0);
}

#[test]
fn words_that_do_not_go_with_the_files_are_refused() {
    for (args, word) in [
        ("simulate examples/shop.yaml --variant wild", "wild"),
        (
            "simulate examples/scenarios --print-scenario",
            "--print-scenario",
        ),
        ("simulate examples/scenarios --nodes 3", "nodeGroups"),
        ("simulate examples/scenarios --until soon", "--until soon"),
        ("simulate examples/scenarios --until=-1s", "--until -1s"),
        ("simulate examples/scenarios --variant nobody", "nobody"),
    ] {
        let run = strew(args).assert().code(2);
        assert!(stderr(&run).contains(word), "{args}");
    }
}

#[test]
fn the_starter_runs_and_the_schema_is_one() {
    let starter = stdout(&strew("simulate --new").assert().code(0));
    strew("simulate - --seeds 1 --variant base")
        .stdin(starter)
        .assert()
        .code(0);
    let schema = json(&strew("simulate --schema").assert().code(0));
    assert!(schema["$schema"].is_string(), "{schema}");
}

/// Ctrl-C ends the runs, and the results so far are written.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "another process has no way to tell that it is under way but its file"
)]
fn an_interrupted_simulation_tells_what_it_knows() {
    let log = folder("interrupt").join("log.jsonl");
    let child = Process::new(snapbox::cmd::cargo_bin!("strew"))
        .current_dir(root())
        .args(ROLLOUT.split(' '))
        .args([
            "--seeds",
            "100000",
            "--variant",
            "base",
            "--jobs",
            "1",
            "--color",
            "never",
        ])
        .arg("--events")
        .arg(&log)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // After the first output, runs are under way and the handler of Ctrl-C is set.
    let is_written = || std::fs::metadata(&log).is_ok_and(|file| file.len() > 0);
    while !is_written() {
        assert!(began.elapsed() < Duration::from_secs(120), "no run ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Process::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("interrupted: "), "{text}");
    assert!(text.contains("not played to the end"), "{text}");
}

#[test]
fn every_decision_is_told_to_who_asks_for_more() {
    let run = strew(&format!(
        "{MIN_DOMAINS} --variant no-autoscaler --seeds 2 -v"
    ));
    let text = stdout(&run.assert().code(0));
    let count = |reason: &str| text.matches(reason).count();
    let told = (
        count("decisions of seed 1\n"),
        count(" Scheduled: Successfully assigned default/nginx-"),
        count(" FailedScheduling: 0/3 nodes are available: "),
    );
    assert_eq!(
        told,
        (1, 6, 8),
        "of ten pods the last four are tried at once, and when the queue is flushed: {text}"
    );
    // A decision is written before its effects.
    assert!(text.find("Scheduled").unwrap() < text.find("✓ 5s").unwrap());
}

/// Its daemon leaves too little room on a new node: the autoscaler sees that before it orders one.
#[test]
fn no_node_is_ordered_whose_daemons_leave_no_room() {
    let manifests = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: i, resources: {requests: {cpu: \"3\"}}}]}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: daemons}
spec:
  autoscaler: {scanEvery: 10s}
  nodeGroups: [{name: n, size: 1, max: 5, boot: 10s, template: {status: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"110\"}}}}]
  always: [{cel: size(nodes) == 1}]
  timeline:
  - {at: 1m, apply: {apiVersion: v1, kind: Pod, metadata: {name: big}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: \"2\"}}}]}}}
  - {at: 5m, expect: [{pods: {of: pod/big, phase: Pending, count: 1}}]}
";
    strew("simulate - -q").stdin(manifests).assert().code(0);
}
