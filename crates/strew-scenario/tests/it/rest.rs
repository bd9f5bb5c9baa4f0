//! Steps that wait for rest, and what they are done to.

use strew_manifest::read::Sources;
use strew_model::Span;
use strew_scenario::format::load;
use strew_scenario::run::{Plan, Played, StepState, play, scheduler_of};
use strew_scenario::story::story;

use crate::{good, loaded};

const MANIFESTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
---
{apiVersion: v1, kind: Node, metadata: {name: n-a, labels: {zone: a, topology.kubernetes.io/zone: a}}, status: {allocatable: {cpu: 1, memory: 8Gi, pods: 3}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n-b, labels: {zone: b, topology.kubernetes.io/zone: b}}, status: {allocatable: {cpu: 1, memory: 8Gi, pods: 2}}}
---
";

fn with_timeline(timeline: &str) -> String {
    format!(
        "{MANIFESTS}apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {{name: test}}
spec:
  timeline:
{timeline}"
    )
}

fn plan(text: &str) -> Plan {
    let loaded = good(text);
    let variant = &loaded.variants[0];
    let gates = &variant.scenario.feature_gates;
    let scheduler = scheduler_of(&Sources::new(), &variant.objects, gates).unwrap();
    Plan::new(&variant.scenario, &variant.objects, scheduler).unwrap()
}

fn played(timeline: &str, until: Option<Span>) -> Played {
    let played = play(&plan(&with_timeline(timeline)), 1, until, &mut ()).unwrap();
    for step in &played.steps {
        assert_eq!(step.refused, [], "{timeline}");
    }
    played
}

#[test]
fn a_step_is_over_when_the_cluster_is_at_rest_and_then_its_claims_are_judged() {
    let played = played(
        "
  - {name: deploy, rest: {}, expect: [{pods: {phase: Running, count: 5}}, {pods: {waiting: true, count: 0}}]}
  - {name: half, scale: {deployment/web: 50%}, rest: {}, expect: [{pods: {count: 2}}]}
  - {name: one, scale: {deployment/web: 1%}, rest: {quiet: 1m}, expect: [{pods: {count: 1}}]}
  - {name: none, scale: {deployment/web: 0}, rest: {}, expect: [{pods: {count: 0}}]}
",
        None,
    );
    assert!(played.held(), "{played:?}");
    let steps = &played.steps;
    assert!(steps.iter().all(|step| step.state == StepState::AtRest));
    assert_eq!(steps[0].began, Span(0));
    for (step, next) in steps.iter().zip(&steps[1..]) {
        let quiet = next.began.0 - step.ended.0;
        let minutes = if next.began == steps[3].began { 1 } else { 6 };
        assert_eq!(Span(quiet), Span::from_secs(minutes * 60));
    }
    assert!(!played.is_cut);
}

#[test]
fn what_never_rests_is_over_in_time_and_a_cut_step_is_open() {
    let timeline = "
  - {name: deploy, rest: {within: 2s}, expect: [{pods: {phase: Running, count: 5}}]}
";
    let late = played(timeline, None);
    assert_eq!(late.steps[0].state, StepState::NotAtRest);
    assert_eq!(late.steps[0].ended, Span::from_secs(2));
    let cut = played(timeline, Some(Span::from_secs(1)));
    assert_eq!((cut.steps[0].state, cut.is_cut), (StepState::Cut, true));
    assert!(cut.steps[0].expectations[0].is_open);
    assert_eq!(cut.ended, Span::from_secs(1));
}

#[test]
fn the_fullest_zone_and_what_was_lost_are_chosen_when_the_step_begins() {
    let played = played(
        "
  - {rest: {}}
  - {lose: zone=<most pods>, rest: {within: 10m}, expect: [{cel: \"pods.filter(p, p.node == 'n-b' && !p.terminating).size() == 2\"}]}
  - {restore: <lost>, rest: {}, expect: [{pods: {phase: Running, count: 5}}]}
  - {lose: <most pods>, rest: {within: 1m}}
",
        None,
    );
    assert!(played.held(), "{played:#?}");
    let chosen: Vec<&[String]> = played.steps.iter().map(|step| &*step.chosen).collect();
    assert_eq!(chosen[1], ["a"]);
    assert_eq!(chosen[2], ["a"]);
    assert_eq!(chosen[3].len(), 1);
}

#[test]
fn a_pod_waits_that_is_gated_and_not_one_of_another_scheduler() {
    let pods = "apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: foreign}
spec: {schedulerName: volcano, containers: [{name: c, image: i}]}
---
";
    let timeline = "  - {at: 5s, expect: [{pods: {waiting: true, count: 1}}]}\n";
    let text = format!("{pods}{}", with_timeline(timeline));
    assert!(play(&plan(&text), 1, None, &mut ()).unwrap().held());
}

#[test]
fn steps_without_a_time_follow_one_that_waits() {
    for (timeline, said) in [
        ("  - {scale: {deployment/web: 1}}\n", "at is missing"),
        ("  - {at: 1s}\n  - {rest: {}}\n", "at is missing"),
        (
            "  - {rest: {}}\n  - {at: 1h}\n",
            "a step at 1h after one that is over when the cluster is at rest",
        ),
        (
            "  - {name: a, rest: {}}\n  - {name: a, rest: {}}\n",
            "step \"a\" is there twice",
        ),
        (
            "  - {at: 1s, scale: {deployment/web: half}}\n",
            "expected a number of replicas, or a percentage such as 50%, found the string \"half\"",
        ),
        ("  - {rest: {quiet: 0s}}\n", "it must last longer than 0s"),
    ] {
        let (_, loaded) = loaded(&with_timeline(timeline));
        let messages: Vec<&str> = loaded.diagnostics.iter().map(|d| &*d.message).collect();
        assert!(
            messages.iter().any(|message| message.contains(said)),
            "{timeline}: {messages:?}"
        );
        assert!(loaded.variants.is_empty());
    }
}

/// The document that is made is one that people could have written.
#[test]
fn the_story_is_a_scenario() {
    let mut sources = Sources::new();
    sources.add("in.yaml", MANIFESTS);
    let stream = load(&sources).objects;
    let document = story(
        &stream,
        &[],
        &[],
        Some(7),
        &[("MinDomainsInPodTopologySpread".to_owned(), true)].into(),
    );
    assert_eq!(
        document["spec"]["timeline"][1]["rollout-restart"][0],
        "deployment/web"
    );
    let text = format!("{MANIFESTS}{document}");
    let loaded = good(&text);
    let scenario = &loaded.variants[0].scenario;
    assert_eq!(scenario.seed, 7);
    let names: Vec<&str> = scenario
        .timeline
        .iter()
        .filter_map(|step| step.name.as_deref())
        .collect();
    assert_eq!(names, ["deploy", "rollout", "lose", "restore", "scale"]);
    let played = play(&plan(&text), 7, None, &mut ()).unwrap();
    assert!(played.held(), "{played:?}");
    assert_eq!(played.steps[2].chosen.len(), 1);
    assert_eq!(played.steps[3].chosen, played.steps[2].chosen);
}

#[test]
fn a_verb_that_finds_no_node_at_its_moment_is_refused() {
    let timeline = "
  - {delete: node/n-b, rest: {}}
  - {lose: zone=b, rest: {}, expect: [{pods: {count: 5}}]}";
    let played = play(&plan(&with_timeline(timeline)), 1, None, &mut ()).unwrap();
    let refused = &played.steps[1].refused;
    let why: Vec<&str> = refused.iter().map(|refused| refused.why.as_str()).collect();
    assert_eq!(why, ["no node has the label zone=b now: the values are a"]);
    assert!(!played.held());
}

#[test]
fn an_expectation_at_rest_waits_for_rest_and_the_next_steps_do_not() {
    // (timeline, held, why)
    let cases = [
        // Right after the verb the old pods are what is expected.
        (
            "- {rest: {}}\n  - {scale: {deployment/web: 3}, expect: [{pods: {count: 5}, atRest: true}]}",
            false,
            "3: there are 3 Running",
        ),
        (
            "- {rest: {}}\n  - {scale: {deployment/web: 3}, expect: [{pods: {count: 3}, atRest: true}]}",
            true,
            "3 of 3",
        ),
        (
            "- {at: 1m, expect: [{pods: {count: 5}, atRest: true}]}\n  - {at: 20m, scale: {deployment/web: 3}}",
            true,
            "5 of 5",
        ),
        (
            "- {at: 1m, expect: [{pods: {count: 5}, atRest: true}]}\n  - {at: 2m, scale: {deployment/web: 3}}",
            false,
            "the cluster was not at rest when the next step began: 5 of 5",
        ),
        // It writes nothing by itself: the first write comes when the node's heartbeats are missed.
        (
            "- {at: 20m, lose: zone=b, expect: [{pods: {phase: Pending, count: 0}, atRest: true}]}",
            false,
            "2: there are 2 Pending, 5 Running, 2 blocked by TaintToleration, NodeResourcesFit",
        ),
    ];
    for (timeline, held, why) in cases {
        let played = play(
            &plan(&with_timeline(&format!("  {timeline}"))),
            1,
            None,
            &mut (),
        );
        let played = played.unwrap();
        let outcome = played
            .steps
            .iter()
            .flat_map(|step| &step.expectations)
            .next()
            .unwrap();
        assert_eq!(
            (outcome.held, outcome.is_open, outcome.why.as_str()),
            (held, false, why),
            "{timeline}"
        );
    }
}
