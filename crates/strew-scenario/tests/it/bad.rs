//! Wrong scenarios, and what is said of them.

use crate::{STREAM, loaded, with_spec};

/// Each spec with what is said of it: `line:column message`, lines counted in the spec.
#[track_caller]
fn check(spec: &str, expected: &[&str]) {
    let (_, loaded) = loaded(&with_spec(spec));
    let first_line = STREAM.lines().count() + 1;
    let said: Vec<String> = loaded
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let place = diagnostic.place.expect("everything has its place");
            let line = place.line as usize - first_line;
            format!("{line}:{} {}", place.column - 2, diagnostic.message)
        })
        .collect();
    assert_eq!(said, expected, "{spec}");
    assert!(loaded.variants.is_empty(), "nothing is run of {spec}");
}

#[test]
fn words_that_are_not_there_are_told_with_the_nearest() {
    check(
        "sedes: 3",
        &[r#"1:1 unknown field "sedes", did you mean "seeds"?"#],
    );
    check(
        "timeline: [{at: 1s, scael: {deployment/web: 3}}]",
        &[r#"1:21 unknown verb "scael", did you mean "scale"?"#],
    );
    check(
        "timeline: [{at: 1s, fault: {wacth: {for: 1s}}}]",
        &[r#"1:29 unknown kind of fault "wacth", did you mean "watch"?"#],
    );
    check(
        "always: [{sperad: {of: deployment/web}}]",
        &[r#"1:11 unknown kind of expectation "sperad", did you mean "spread"?"#],
    );
    check(
        "timeline: [{at: 1s, scale: {deplyment/web: 3}}]",
        &[r#"1:29 unknown type "deplyment", did you mean "deployment"?"#],
    );
    check(
        "timeline: [{at: 1s, scale: {deployment/wbe: 3}}]",
        &[r#"1:29 there is no deployment/wbe, did you mean "web"?"#],
    );
    // Its namespace is told in the help.
    check(
        "timeline: [{at: 1s, scale: {shop/deployment/web: 3}}]",
        &["1:29 there is no shop/deployment/web"],
    );
    check(
        "timeline: [{at: 1s, crash: {shceduler: {}}}]",
        &[r#"1:29 unknown component "shceduler", did you mean "scheduler"?"#],
    );
    check(
        "featureGates: {MinDomainInPodTopologySpread: false}",
        &[
            r#"1:16 unrecognized feature gate: MinDomainInPodTopologySpread, did you mean "MinDomainsInPodTopologySpread"?"#,
        ],
    );
    check(
        "always: [{pods: {blockedBy: PodTopologySpred}}]",
        &[r#"1:29 unknown value "PodTopologySpred", did you mean "PodTopologySpread"?"#],
    );
    check(
        "nodeGroups: [{name: a, size: 1, template: {spec: {taint: []}}}]",
        &[r#"1:51 unknown field "taint", did you mean "taints"?"#],
    );
    check(
        "timeline: [{at: 1s, apply: {apiVersion: v1, kind: Nod, metadata: {name: x}}}]",
        &[r#"1:51 v1 has no kind "Nod", did you mean "Node"?"#],
    );
    check(
        "timeline: [{at: 1s, expect: [{object: {kind: Deployment, spec: {replica: 3}}}]}]",
        &[r#"1:65 unknown field "replica", did you mean "replicas"?"#],
    );
}

#[test]
fn labels_containers_and_objects_that_match_nothing_are_told() {
    check(
        "timeline: [{at: 1s, lose: z=zb}]",
        &["1:27 no node has the label z=zb"],
    );
    check(
        "timeline: [{at: 1s, drain: rakc=r1}]",
        &[r#"1:28 no node has the label "rakc", did you mean "rack"?"#],
    );
    check(
        "timeline: [{at: 1s, lose: rac=<most pods>}]",
        &[r#"1:27 no node has the label "rac", did you mean "rack"?"#],
    );
    check(
        "always: [{spread: {of: deployment/web, by: zone, max: 2}}]",
        &[r#"1:44 no node has the label "zone""#],
    );
    check(
        "timeline: [{at: 1s, expect: [{removed: {of: deployment/web, by: rck, counts: []}}]}]",
        &[r#"1:65 no node has the label "rck", did you mean "rack"?"#],
    );
    check(
        "timeline: [{at: 1s, ready: {app=wbe: false}}]",
        &[r#"1:29 no pod has the label app=wbe, did you mean "web"?"#],
    );
    check(
        "timeline: [{at: 1s, expect: [{pods: {select: {apps: web}, count: 0}}]}]",
        &[r#"1:47 no pod has the label "apps", did you mean "app"?"#],
    );
    check(
        "always: [{spread: {selector: {matchLabels: {app: nothere}}, by: z, max: 0}}]",
        &["1:45 no pod has the label app=nothere"],
    );
    check(
        "always: [{spread: {selector: {matchExpressions: [{key: app, operator: In, values: [a, b]}]}, by: z, max: 0}}]",
        &["1:51 no pod has the label app=a or app=b"],
    );
    check(
        "timeline: [{at: 1s, set-image: {deployment/web: wbe=nginx:2}}]",
        &[r#"1:49 deployment/web has no container "wbe", did you mean "web"?"#],
    );
    check(
        "timeline: [{at: 1s, expect: [{object: {kind: Deployment, metadata: {name: wbe}}}]}]",
        &[r#"1:75 there is no deployment/wbe, did you mean "web"?"#],
    );
}

#[test]
fn labels_that_an_earlier_step_sets_are_there() {
    for timeline in [
        "[{at: 1s, label: {node/n1: tier=front}}, {at: 2s, lose: tier=front}]",
        "[{at: 1s, patch: {node/n1: {metadata: {labels: {tier: front}}}}}, {at: 2s, lose: tier=front}]",
        "[{at: 1s, apply: {apiVersion: v1, kind: Node, metadata: {name: n2, labels: {tier: front}}}}, {at: 2s, lose: tier=front}]",
        "[{at: 1s, lose: kubernetes.io/hostname=n1}]",
        // From now on: also pods that come later.
        "[{at: 1s, ready: {tier=front: false}}, {at: 2s, patch: {deployment/web: {spec: {template: {metadata: {labels: {tier: front}}}}}}}]",
        "[{at: 1s, ready: {app=web: false}}]",
        "[{at: 1s, patch: {deployment/web: {spec: {template: {metadata: {labels: {tier: front}}}}}}}, {at: 2s, ready: {tier=front: true}}]",
    ] {
        crate::good(&with_spec(&format!("timeline: {timeline}")));
    }
}

#[test]
fn values_out_of_their_range_are_told() {
    check("seeds: 0", &["1:8 without a seed nothing runs"]);
    check("seeds: -1", &["1:8 -1 is negative"]);
    check(
        "kubernetes: \"1.35\"",
        &[r#"1:13 strew can't be Kubernetes "1.35""#],
    );
    check(
        "kubernetes: 1.36",
        &["1:13 expected a string, found the number 1.36"],
    );
    check(
        "until: 99999999999h",
        &[r#"1:8 "99999999999h" is too long: at most ten years (87600h)"#],
    );
    check(
        "until: 11y",
        &[r#"1:8 expected a duration, found the string "11y""#],
    );
    check("until: 5", &["1:8 expected a duration, found the number 5"]);
    check("timeline: [{at: -5s}]", &[r#"1:17 "-5s" is negative"#]);
    check(
        "timing: {podStart: {min: 2s, max: 1s}}",
        &["1:21 min 2s is more than max 1s"],
    );
    check(
        "nodeGroups: [{name: a, min: 3, max: 5, size: 7, template: {}}]",
        &["1:40 size 7 is more than max 5"],
    );
    check(
        "nodeGroups: [{name: a, min: 3, size: 1, template: {}}]",
        &["1:32 size 1 is less than min 3"],
    );
    check(
        "nodeGroups: [{name: a, min: 3, max: 1, template: {}}]",
        &["1:24 min 3 is more than max 1"],
    );
    check(
        "nodeGroups: [{name: a, template: {}}]",
        &["1:15 size is missing"],
    );
    check(
        "autoscaler: {}",
        &["1:1 an autoscaler without nodeGroups has nothing to scale"],
    );
    check(
        "timeline: [{at: 1s, fault: {conflict: {rate: 1.5, for: 1m}}}]",
        &["1:46 expected a ratio from 0 to 1, found the number 1.5"],
    );
    check(
        "timeline: [{at: 1s, fault: {bind: {for: 1m}}}]",
        &["1:29 this fault does nothing"],
    );
    check(
        "timeline: [{at: 1s, taint: {n1: \"a=b\"}}]",
        &[r#"1:33 "a=b" is no taint"#],
    );
    check(
        "timeline: [{at: 1s, set-image: {deployment/web: nginx}}]",
        &[r#"1:49 "nginx" is no CONTAINER=IMAGE"#],
    );
    check(
        "timeline: [{at: 1s, scale: {node/n1: 3}}]",
        &["1:29 scale takes no node"],
    );
    check(
        "timeline: [{at: 1s, cordon: []}]",
        &["1:21 nothing is named here"],
    );
    check(
        "params: {n: x}",
        &[r#"1:13 expected a number, found the string "x""#],
    );
    check(
        "timeline: [{at: \"${m}s\"}]",
        &[
            r#"1:17 unknown parameter "m""#,
            r#"1:17 expected a duration, found the string "${m}s""#,
        ],
    );
}

#[test]
fn what_quarrels_is_told_with_both_places() {
    check(
        "timeline: [{at: 5s}, {at: 3s}]",
        &["1:23 3s comes after 5s"],
    );
    check(
        "timeline: [{at: 5m}]\nuntil: 3m",
        &["2:1 the run ends at 3m, before its last step at 5m"],
    );
    check(
        "nodeGroups: [{name: a, size: 1, template: {}}, {name: a, size: 1, template: {}}]",
        &[r#"1:49 nodeGroup "a" is there twice"#],
    );
    check(
        "timeline: [{at: 1s, scale: {deployment/web: 3, deploy/web: 4}}]",
        &["1:48 this is the same as one before"],
    );
    check(
        "timeline: [{at: 1s, cordon: [n1, node/n1]}]",
        &["1:34 this is the same as one before"],
    );
    check(
        "timeline:\n- at: 1s\n  apply: {apiVersion: v1, kind: Node, metadata: {name: x}}\n  create: {apiVersion: v1, kind: Node, metadata: {name: x}}",
        &["4:3 apply and create of one step both make Node x"],
    );
    check(
        "always: [{spread: {of: deployment/web, by: z, skew: 3, max: 2}}]",
        &["1:47 no skew is 3 and at most 2"],
    );
    check(
        "always: [{spread: {of: deployment/web, by: z, counts: [5, 2], skew: 1}}]",
        &["1:63 the skew of these counts is 3, not 1"],
    );
    check(
        "always: [{spread: {of: deployment/web, by: z, counts: [5, 2], max: 1}}]",
        &["1:47 no skew is 3 and at most 1"],
    );
    check(
        "always: [{pods: {of: deployment/web, count: {min: 3, max: 2}}}]",
        &["1:46 min 3 is more than max 2"],
    );
    check(
        "always: [{cel: a, pods: {}}]",
        &["1:19 an expectation makes one claim, and this is another"],
    );
    check("always: [{not: true}]", &["1:11 nothing is expected here"]);
    check(
        "always: [{cel: a, within: 2m}]",
        &["1:19 within means nothing in always: it holds at every instant"],
    );
    check(
        "always: [{spread: {of: deployment/web, by: z}}]",
        &["1:11 this holds whatever happens"],
    );
}

#[test]
fn what_is_not_there_is_told_and_what_will_be_is_not() {
    check(
        "timeline: [{at: 1s, cordon: n7}]",
        &["1:29 there is no node/n7"],
    );
    check(
        "timeline: [{at: 1s, metric: {hpa/web: 80}}]",
        &["1:30 there is no horizontalpodautoscaler/web"],
    );
    check(
        "timeline: [{at: 1s, delete: pdb/web}]",
        &["1:29 there is no poddisruptionbudget/web"],
    );
    check(
        "nodeGroups: [{name: g, size: 2, template: {}}]\ntimeline: [{at: 1s, cordon: [g-1, g-2]}]",
        &["2:35 there is no node/g-2"],
    );
    check(
        "timeline:\n- {at: 1s, cordon: n2}\n- {at: 2s, apply: {apiVersion: v1, kind: Node, metadata: {name: n2}}}\n- {at: 3s, cordon: n2}",
        &["2:20 there is no node/n2"],
    );
    check(
        "timeline: [{at: 1s, scale: {shop/deployment/web: 2}}]",
        &["1:29 there is no shop/deployment/web"],
    );
}

#[test]
fn mistakes_of_variants_are_told_where_they_are_written() {
    check(
        "variants: [{name: a}, {name: a}]",
        &[r#"1:24 variant "a" is there twice"#],
    );
    check(
        "variants: [{name: base}]",
        &[r#"1:19 "base" is the scenario as it is written"#],
    );
    check(
        "variants: [{name: a, set: {seeds: 0}}]",
        &["1:35 without a seed nothing runs"],
    );
    check(
        "variants: [{name: a, set: {sedes: 1}}]",
        &[r#"1:28 unknown field "sedes", did you mean "seeds"?"#],
    );
    check(
        "variants: [{name: a, set: {variants: []}}]",
        &["1:28 a variant has no variants"],
    );
    check(
        "variants: [{name: a, mustFail: true, mayFail: true}]",
        &["1:38 a variant either must fail or may fail"],
    );
    check(
        "timeline: [{at: 5m}]\nvariants: [{name: a, replace: {\"6m\": []}}]",
        &["2:32 no step with expectations is at 6m"],
    );
    check(
        "timeline: [{at: 5m}]\nvariants: [{name: a, replace: {\"5m\": [{cle: x}]}}]",
        &[r#"2:40 unknown kind of expectation "cle", did you mean "cel"?"#],
    );
    check(
        "variants: [{name: a, patch: {deployment/shop: []}}]",
        &[
            "1:30 nothing is named here",
            "1:30 there is no deployment/shop",
        ],
    );
    check(
        "variants: [{name: a, patch: {deployment/shop: {}}}]",
        &["1:30 there is no deployment/shop"],
    );
    check(
        "variants: [{name: a, patch: {deployment/web: [{op: remove, path: /spec/nothing}]}}]",
        &[r#"1:48 deployment/web can't be patched so: there is nothing at "/spec/nothing""#],
    );
    check(
        "variants: [{name: a, patch: {deployment/web: [{op: delete, path: /spec}]}}]",
        &[r#"1:52 unknown value "delete""#],
    );
    check(
        "seeds: 0\nvariants: [{name: a}, {name: b}]",
        &["1:8 without a seed nothing runs"],
    );
}

#[test]
fn a_patch_that_breaks_an_object_is_told_of_its_variant() {
    let spec = "variants: [{name: a, patch: {deployment/web: {spec: {replica: 3}}}}]";
    let (_, loaded) = loaded(&with_spec(spec));
    let said: Vec<_> = loaded
        .diagnostics
        .iter()
        .map(|d| (d.message.as_str(), d.help.as_deref()))
        .collect();
    assert_eq!(
        said,
        [(
            r#"unknown field "replica", did you mean "replicas"?"#,
            Some("it is so in variant a only"),
        )]
    );
    assert!(loaded.has_errors());
}

#[test]
fn a_stream_has_one_scenario_of_the_right_version() {
    let other =
        "---\napiVersion: sim.strew.dev/v1alpha1\nkind: Scenario\nmetadata: {name: other}\n";
    let (_, two) = loaded(&format!("{STREAM}{other}"));
    assert_eq!(
        two.diagnostics[0].message,
        "a stream has one Scenario, and this is another"
    );
    assert_eq!(two.diagnostics[0].related.len(), 1);
    for (from, to, message) in [
        (
            "sim.strew.dev/v1alpha1",
            "sim.strew.dev/v1",
            r#"no Scenario in "sim.strew.dev/v1""#,
        ),
        (
            "kind: Scenario",
            "kind: Scenaro",
            r#"sim.strew.dev/v1alpha1 has no kind "Scenaro", did you mean "Scenario"?"#,
        ),
        ("metadata: {name: test}", "metadata: {}", "name is missing"),
    ] {
        let (_, loaded) = loaded(&STREAM.replace(from, to));
        let said: Vec<&str> = loaded
            .diagnostics
            .iter()
            .map(|d| d.message.as_str())
            .collect();
        assert_eq!(said, [message]);
    }
}

#[test]
fn many_mistakes_look_like_this() {
    let (sources, loaded) = loaded(&with_spec(MANY));
    let text = strew_manifest::read::render(&loaded.diagnostics, &sources, false);
    snapbox::assert_data_eq!(text, snapbox::file!["../bad/many.txt"].raw());
}

const MANY: &str = r#"kubernetes: "1.35"
seeds: 0
nodeGroups: [{name: g, size: 2, template: {status: {allocatable: {cpu: "4x"}}}}]
timeline:
- at: 5m
  scael: {deployment/web: 3}
  set-image: {deployment/wbe: "web=nginx:2"}
- at: 3m
  taint: {g-5: "a:NoSchedul"}
  expect:
  - {spread: {of: deployment/web, by: zone, counts: [4, 1], skew: 2}}
  - {pods: {of: deployment/web, phase: Pendin}}
variants:
- {name: a, set: {timing: {podStart: {min: 3s, max: 1s}}}}
- {name: a, patch: {deployment/shop: {spec: {replicas: 1}}}}"#;

#[test]
fn a_reason_that_no_event_can_have_is_no_claim() {
    check(
        "always: [{events: {reason: FailedSchedulin, count: 0}}]",
        &[
            r#"1:28 no part of the simulated cluster records events with reason "FailedSchedulin", did you mean "FailedScheduling"?"#,
        ],
    );
}

#[test]
fn topology_keys_and_clusters_that_a_fleet_does_not_have_are_told() {
    let fleet = "
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: east-1, labels: {region: east}}
status: {clusterClaims: [{name: zone.open-cluster-management.io, value: a}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web, namespace: default}
spec: {}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: fleet}
spec:
  timeline:
  - at: 10s
    expect:
    - placement: {of: placement/web, skew: {regoin: 0, region: 0, zone.open-cluster-management.io: 0}}
    - placement: {of: placement/web, counts: {zone: {a: 1}}}
    - placement: {of: placement/web, clusters: [east-2]}
";
    let (_, loaded) = loaded(fleet);
    let said = loaded.diagnostics.iter();
    let said: Vec<&str> = said.map(|diagnostic| &*diagnostic.message).collect();
    assert_eq!(
        said,
        [
            r#"no cluster has the label "regoin", did you mean "region"?"#,
            r#"no cluster has the label "zone""#,
            r#"there is no managedcluster/east-2, did you mean "east-1"?"#,
        ]
    );
}
