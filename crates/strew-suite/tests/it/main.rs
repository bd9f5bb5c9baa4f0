//! Another face than the command line: texts and options in, a report out, in one thread.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::cell::RefCell;
use std::num::NonZeroU32;

use serde_json::Value;
use strew_manifest::read::Severity;
use strew_suite::failure::Failure;
use strew_suite::host::{Alone, Teller};
use strew_suite::input::Input;
use strew_suite::options::{Keep, Options, PlayArgs};
use strew_suite::ready::Ready;
use strew_suite::seeds::SeedsArg;
use strew_suite::simulate::{Results, Simulated, simulate, simulate_alone};
use strew_suite::suite::Staged;
use strew_suite::work::Work;

const SCENARIO: &str = "
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: spread}
spec:
  nodeGroups:
  - {name: a, size: 1, template: {metadata: {labels: {zone: a}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}}
  - {name: b, size: 1, template: {metadata: {labels: {zone: b}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}}
  timeline:
  - name: deploy
    at: 1m
    expect: [{spread: {of: deployment/web, by: zone, counts: [2, 2], skew: 0}}]
  variants:
  - name: one-zone
    patch: {deployment/web: {spec: {template: {spec: {nodeSelector: {zone: a}}}}}}
    mustFail: true
";

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]
";

fn options() -> Options {
    Options {
        keep: Keep::REPORT,
        ..Options::default()
    }
}

#[track_caller]
fn played(texts: &[(&str, &str)], options: &Options) -> Box<Results> {
    let inputs = texts.iter().map(|&(name, text)| Input::new(name, text));
    match simulate_alone(inputs.collect(), options).unwrap() {
        Simulated::Played(results) => results,
        Simulated::Refused(findings) => panic!("{findings:#?}"),
    }
}

fn json(results: &Results) -> Value {
    serde_json::to_value(results.report()).unwrap()
}

/// The page has both from its series and its log.
#[test]
fn nodes_and_placements_are_made_for_a_report_and_not_for_a_page() {
    let page = Keep {
        reports: false,
        pages: true,
        ..Keep::REPORT
    };
    for (keep, is_there) in [(Keep::REPORT, true), (page, false)] {
        let options = Options { keep, ..options() };
        let report = json(&played(&[("s.yaml", SCENARIO), ("w.yaml", WEB)], &options));
        let step = &report["scenarios"][0]["variants"][0]["runs"][0]["steps"][0];
        assert!(step["workloads"].is_array(), "{step:#}");
        for field in ["nodes", "placements"] {
            assert_eq!(step.get(field).is_some(), is_there, "{field}");
        }
    }
}

#[test]
fn a_scenario_is_played_with_its_variants_and_seeds() {
    let options = Options {
        play: PlayArgs {
            seeds: NonZeroU32::new(3).map(SeedsArg::Count),
            ..PlayArgs::default()
        },
        ..options()
    };
    let texts = [("spread.yaml", SCENARIO), ("web.yaml", WEB)];
    let report = json(&played(&texts, &options));
    let variants = &report["scenarios"][0]["variants"];
    assert_eq!(variants[0]["result"], "held");
    assert_eq!(variants[1]["result"], "brokeAsItMust");
    assert_eq!(variants[0]["runs"].as_array().map(Vec::len), Some(3));
    let step = &variants[0]["runs"][0]["steps"][0];
    let spread = &step["workloads"][0]["spread"][0];
    assert_eq!(spread["counts"], serde_json::json!({"a": 2, "b": 2}));
    // The same in, the same out.
    assert_eq!(json(&played(&texts, &options)), report);
}

#[test]
fn manifests_become_the_built_in_story() {
    let results = played(&[("web.yaml", WEB)], &options());
    let report = json(&results);
    assert_eq!(report["scenarios"][0]["file"], "<story>");
    let steps = &report["scenarios"][0]["variants"][0]["runs"][0]["steps"];
    let names: Vec<&str> = { steps.as_array().unwrap().iter() }
        .filter_map(|step| step["name"].as_str())
        .collect();
    assert_eq!(names[..2], ["deploy", "rollout"]);
    // On made-up nodes, which the report says.
    let notes = results.ready.findings.iter();
    let mut notes = notes.filter(|finding| finding.severity == Severity::Note);
    assert!(notes.any(|note| note.message.contains("taking 12 in 3 zones")));
}

#[test]
fn mistakes_come_back_with_their_places() {
    let wrong = WEB.replace("maxSkew: 1", "maxSkew: 0");
    let inputs = vec![Input::new("web.yaml", wrong)];
    let Simulated::Refused(findings) = simulate_alone(inputs, &options()).unwrap() else {
        panic!("it was played");
    };
    let error = &findings[0];
    assert_eq!(error.severity, Severity::Error);
    let place = error.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("web.yaml", 12));
    let options = Options {
        play: PlayArgs {
            variant: vec!["nowhere".to_owned()],
            ..PlayArgs::default()
        },
        ..options()
    };
    let inputs = vec![Input::new("web.yaml", WEB)];
    let Err(Failure::Input { message, hint }) = simulate_alone(inputs, &options) else {
        panic!("there is such a variant");
    };
    assert_eq!(message, "no scenario has a variant \"nowhere\"");
    assert!(hint.is_some());
}

/// A teller is told in order, and can end it.
#[test]
fn nothing_is_played_if_the_teller_ends_it() {
    struct Strict<'a>(&'a RefCell<Vec<String>>);
    impl Teller for Strict<'_> {
        type Error = Failure;

        fn read(&mut self, staged: &Staged) -> Result<(), Failure> {
            self.0.borrow_mut().push(staged.first_file.clone());
            Ok(())
        }

        fn begin(&mut self, _: &Ready, work: &Work<'_>) -> Result<(), Failure> {
            let n_runs = work.n_runs();
            self.0.borrow_mut().push(format!("{n_runs} runs"));
            Err(Failure::input("enough"))
        }

        fn log(&mut self) -> Option<&mut dyn std::io::Write> {
            unreachable!("no run began")
        }
    }
    let told = RefCell::default();
    let inputs = vec![
        Input::new("spread.yaml", SCENARIO),
        Input::new("web.yaml", WEB),
    ];
    let ended = simulate(inputs, &options(), &Alone, &mut Strict(&told));
    assert!(matches!(ended, Err(Failure::Input { message, .. }) if message == "enough"));
    assert_eq!(told.take(), ["spread.yaml", "2 runs"]);
}
