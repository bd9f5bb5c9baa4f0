//! Scenarios as people write them.

use strew_model::Span;
use strew_scenario::format::{
    BASE, Claim, Component, Counts, ExpectedResult, Fault, NodeTarget, PodTarget, Subject,
    TaintEdit, Verb, starter,
};

use crate::{ELASTIC, MIN_DOMAINS, ROLLOUT, good, with_spec};

#[test]
fn min_domains_reads_as_it_is_written() {
    let loaded = good(MIN_DOMAINS);
    let names: Vec<&str> = loaded.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, [BASE, "no-autoscaler", "gate-off"]);
    let base = &loaded.variants[0].scenario;
    assert_eq!(base.name, "min-domains");
    assert_eq!(
        base.story(),
        Some("spread over at least 5 nodes and let the autoscaler bring the missing two")
    );
    assert_eq!(base.seeds.get(), 20);
    let group = &base.node_groups[0];
    assert_eq!((group.min, group.max, group.size), (3, 10, 3));
    assert_eq!(group.boot, Some(Span::from_secs(90)));
    assert_eq!(group.node_name(2), "pool-2");
    assert_eq!(
        base.autoscaler.map(|a| a.scan_every),
        Some(Span::from_secs(10))
    );
    assert_eq!(base.timeline[1].at, Some(Span::from_secs(600)));
    assert_eq!(
        base.timeline[1].expect[0].text,
        "spread: {of: deployment/nginx, by: kubernetes.io/hostname, counts: [2, 2, 2, 2, 2], skew: 0}"
    );
    assert!(
        matches!(&base.timeline[1].expect[1].claim, Claim::Cel(text) if text == "size(nodes) == 5")
    );
    assert_eq!(base.end(), Span::from_secs(600));

    let without = &loaded.variants[1];
    assert_eq!(without.scenario.autoscaler, None);
    assert_eq!(without.scenario.timeline[1].expect.len(), 1);
    assert!(matches!(
        without.scenario.timeline[1].expect[0].claim,
        Claim::Pods(_)
    ));
    assert_eq!(without.expected, ExpectedResult::MustHold);

    let gate_off = &loaded.variants[2];
    assert!(!gate_off.scenario.feature_gates.min_domains);
    assert!(base.feature_gates.min_domains);
    assert_eq!(gate_off.expected, ExpectedResult::MustFail);
    assert_eq!(gate_off.scenario.timeline[1].expect.len(), 2);
}

#[test]
fn a_variant_of_the_rollout_has_the_patched_deployment() {
    use strew_manifest::read::KubeObject;
    let loaded = good(ROLLOUT);
    let keys = |variant: usize| {
        let KubeObject::Deployment(deployment) = &loaded.variants[variant].objects[0].object else {
            panic!("a deployment is the only object");
        };
        let spec = deployment
            .spec
            .as_ref()
            .unwrap()
            .template
            .spec
            .as_ref()
            .unwrap();
        spec.topology_spread_constraints.as_ref().unwrap()[0]
            .match_label_keys
            .clone()
    };
    assert_eq!(keys(0), Some(vec!["pod-template-hash".to_owned()]));
    assert_eq!(keys(1), None);
    let base = &loaded.variants[0].scenario;
    assert_eq!(base.timing.pod_stop.unwrap().max, Span::from_secs(30));
    let Verb::SetImage(images) = &base.timeline[1].verbs[0].verb else {
        panic!("the second step sets an image");
    };
    assert_eq!(images[0].0.to_string(), "deployment/web");
    assert_eq!(images[0].1[0].image, "nginx:1.15.0");
    assert_eq!(
        base.timeline[2].expect[0].within,
        Some(Span::from_secs(900))
    );
}

#[test]
fn counts_of_the_elastic_example_are_exact_by_domain() {
    let loaded = good(ELASTIC);
    let base = &loaded.variants[0].scenario;
    assert_eq!(loaded.variants.len(), 1);
    assert_eq!(base.always.len(), 1);
    let Claim::Spread(spread) = &base.timeline[0].expect[0].claim else {
        panic!("a spread is expected");
    };
    assert!(matches!(&spread.of, Subject::Workload(target) if target.name == "shop"));
    let counts = [("ecs".to_owned(), 8), ("eci".to_owned(), 0)];
    assert_eq!(spread.counts, Some(Counts::Exact(counts.into())));
    assert!(matches!(&base.timeline[4].verbs[0].verb, Verb::Patch(p) if p.len() == 1));
}

#[test]
fn the_starter_is_good_and_names_every_verb_fault_and_expectation() {
    let loaded = good(starter());
    assert_eq!(loaded.variants.len(), 3);
    let schema = strew_scenario::format::schema();
    for shape in ["Step", "Expectation", "Fault"] {
        let fields = schema["$defs"][shape]["properties"].as_object().unwrap();
        let missing: Vec<&String> = fields
            .keys()
            .filter(|word| !starter().contains(*word))
            .collect();
        assert!(missing.is_empty(), "{shape}: {missing:?}");
    }
}

/// Every form of every verb; what is looked at comes after.
const ALL_VERBS: &str = r#"
nodeGroups: [{name: g, min: 1, max: 4, size: 2, template: {metadata: {labels: {zone: a, topology.kubernetes.io/zone: zone-b}}}}]
autoscaler: {}
timeline:
- at: 0
  apply: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: default}}
  create: [{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {zone: b}}}, {apiVersion: v1, kind: Pod, metadata: {name: p, labels: {tier: x}}, spec: {containers: [{name: c, image: i}]}}]
- {at: 1s, delete: [pod/p, "zone=b"], patch: {deploy/web: {spec: {paused: null}}}, scale: {deployment/web: 0}}
- {at: 1s, rollout-restart: deployment/web, rollout-undo: [deploy/web], rollout-pause: deployment.apps/web, rollout-resume: default/deployment/web}
- {at: 2s, cordon: n1, uncordon: [n1, node/n2], drain: {nodes: [g-3, "zone=a"], timeout: 2m}}
- {at: 2.5s, drain: n2, ready: {pod/web-x: false, "app=web,tier=x": true}}
- {at: 3s, taint: {n1: "dedicated=db:NoSchedule", "zone=a": ["a:NoExecute-", b-]}, label: {node/n2: "zone=b", deployment/web: [a=b, c-]}, annotate: {n1: "a=b c"}}
- {at: 4s, lose: ["topology.kubernetes.io/zone=zone-b"], restore: n1, gates: {MinDomainsInPodTopologySpread: false}, metric: {hpa/web: 80}}
- {at: 5s, crash: scheduler}
- {at: 5s, crash: [webhook, controller]}
- {at: 5s, crash: {controllers: , scheduler: {for: 30s}, webhook: {}}}
- {at: 6s, fault: {watch: {delay: 5s, repeat: 0.1, cut: 0.05, for: 2m}, conflict: {rate: 0.2, for: 1m}, bind: {slow: 10s, fail: 1, for: 1m}, clock: {jump: 1h}, secondScheduler: {for: 1m}}}
- at: 7s
- at: 8s
  expect:
  - {spread: {selector: {matchLabels: {app: web}}, namespace: shop, by: zone, max: 1, revision: latest}, for: 5m, not: true}
  - {pods: {select: {app: web}, phase: Running, count: {min: 1, max: 3}, message: x}}
  - {events: {of: deployment/web, reason: ScalingReplicaSet, contains: up, count: 1}}
  - {removed: {of: deployment/web, by: zone, counts: [1, 0]}}
  - {object: {kind: Pod, metadata: {labels: {app: web}}, status: {phase: Running}}}
  - {cel: "true"}
until: 1h
"#;

#[test]
fn every_form_of_every_verb_is_read() {
    let loaded = good(&with_spec(ALL_VERBS));
    let steps = &loaded.variants[0].scenario.timeline;
    let verbs: Vec<&Verb> = steps
        .iter()
        .flat_map(|s| &s.verbs)
        .map(|v| &v.verb)
        .collect();
    assert_eq!(verbs.len(), 25);
    let nodes = [
        NodeTarget::Name("g-3".to_owned()),
        NodeTarget::Label("zone".to_owned(), "a".to_owned()),
    ];
    assert!(verbs.iter().any(
        |verb| matches!(verb, Verb::Drain { nodes: found, timeout: Some(timeout), .. }
        if *found == nodes && *timeout == Span::from_secs(120))
    ));
    assert!(verbs.iter().any(|verb| matches!(verb, Verb::Ready(pods)
        if matches!(&pods[1], (PodTarget::Labels(labels), true) if labels.len() == 2))));
    assert!(verbs.iter().any(|verb| matches!(verb, Verb::Taint(taints)
        if matches!(&taints[1].1[1], TaintEdit::Remove { key, effect: None } if key == "b"))));
    let crashes = |verb: &&Verb| match verb {
        Verb::Crash(crashes) => Some(
            crashes
                .iter()
                .map(|c| (c.component, c.lasts))
                .collect::<Vec<_>>(),
        ),
        _ => None,
    };
    let crashes: Vec<_> = verbs.iter().filter_map(crashes).collect();
    let second = Span::from_secs(1);
    assert_eq!(
        crashes,
        [
            vec![(Component::Scheduler, second)],
            vec![
                (Component::Webhook, second),
                (Component::Controller, second)
            ],
            vec![
                (Component::Controllers, second),
                (Component::Scheduler, Span::from_secs(30)),
                (Component::Webhook, second)
            ],
        ]
    );
    let Some(Verb::Fault(faults)) = verbs.last() else {
        panic!("the last verb is a fault");
    };
    assert_eq!(faults.len(), 5);
    assert!(matches!(&faults[0], Fault::Watch { repeat, .. } if repeat.millionths() == 100_000));
    assert!(steps[11].verbs.is_empty() && steps[11].expect.is_empty());
    assert_eq!(steps[12].expect.len(), 6);
    assert!(steps[12].expect[0].is_negated);
}

#[test]
fn without_a_scenario_the_stream_alone_is_read() {
    let loaded = good("{apiVersion: v1, kind: Node, metadata: {name: n1}}");
    assert_eq!((loaded.variants.len(), loaded.objects.len()), (0, 1));
}
