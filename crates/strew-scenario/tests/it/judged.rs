//! Claims that cannot be judged, and claims about every moment.

use strew_manifest::read::Sources;
use strew_scenario::run::{ExpectationOutcome, Plan, Played, play, scheduler_of};

use crate::good;

/// Two zones of one node each, a third node without a zone, and a Deployment with a budget.
const MANIFESTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}], nodeSelector: {pool: one}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n-a, labels: {zone: a, pool: one}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 3}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n-b, labels: {zone: b, pool: one}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 4}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n-c, labels: {pool: two}}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec:
";

fn played(spec: &str) -> Played {
    played_of(MANIFESTS, spec)
}

fn played_of(manifests: &str, spec: &str) -> Played {
    let loaded = good(&format!("{manifests}{spec}"));
    let variant = &loaded.variants[0];
    let gates = &variant.scenario.feature_gates;
    let scheduler = scheduler_of(&Sources::new(), &variant.objects, gates).unwrap();
    let plan = Plan::new(&variant.scenario, &variant.objects, scheduler).unwrap();
    play(&plan, 1, None, &mut ()).unwrap()
}

/// The outcomes of the claims after a verb; the first step has deployed everything.
fn outcomes(verb: &str, claims: &[&str]) -> Vec<ExpectationOutcome> {
    let claims = claims.join(", ");
    let played = played(&format!(
        "  timeline:
  - {{rest: {{}}}}
  - {{{verb}, rest: {{}}, expect: [{claims}]}}
"
    ));
    assert_eq!(played.steps[1].refused, []);
    played.steps[1].expectations.clone()
}

#[track_caller]
fn check(verb: &str, claims: &[(&str, bool, &str)]) {
    let texts: Vec<&str> = claims.iter().map(|(text, _, _)| *text).collect();
    for (outcome, (text, holds, why)) in outcomes(verb, &texts).iter().zip(claims) {
        assert_eq!(outcome.held, *holds, "{text}: {}", outcome.why);
        assert!(outcome.why.contains(why), "{text}: {}", outcome.why);
    }
}

#[test]
fn a_skew_of_nothing_is_neither_small_nor_large() {
    let none = "there is no pod of deployment/web, so nothing is spread";
    check(
        "scale: {deployment/web: 0}",
        &[
            (
                "{spread: {of: deployment/web, by: zone, max: 1}}",
                false,
                none,
            ),
            (
                "{spread: {of: deployment/web, by: zone, max: 1}, not: true}",
                false,
                none,
            ),
            (
                "{spread: {of: deployment/web, by: zone, skew: 0}}",
                false,
                none,
            ),
            (
                "{spread: {selector: {matchLabels: {app: web}}, by: zone, max: 0}}",
                false,
                "no pod with these labels",
            ),
            // Asked for.
            (
                "{spread: {of: deployment/web, by: zone, counts: {a: 0, b: 0}}}",
                true,
                "",
            ),
            (
                "{spread: {of: deployment/web, by: zone, counts: {a: 0, b: 0}, skew: 0}}",
                true,
                "",
            ),
        ],
    );
    check(
        "patch: {deployment/web: {spec: {strategy: {type: Recreate, rollingUpdate: null}, template: {spec: {nodeSelector: {pool: three}}}}}}",
        &[(
            "{spread: {of: deployment/web, by: zone, max: 1}}",
            false,
            "none of the 4 pods of deployment/web is on a node",
        )],
    );
}

#[test]
fn a_pod_that_is_left_out_is_told_and_breaks_a_skew_but_no_counts() {
    // Its pods stay, and no node of the zone counts for them any more.
    let out = "b has 2 of the pods but no node that counts for them any more";
    check(
        "label: {n-b: pool=two}",
        &[
            (
                "{spread: {of: deployment/web, by: zone, max: 2}}",
                false,
                out,
            ),
            (
                "{spread: {of: deployment/web, by: zone, max: 2}, not: true}",
                false,
                out,
            ),
            (
                "{spread: {of: deployment/web, by: zone, skew: 0}}",
                false,
                out,
            ),
            (
                "{spread: {of: deployment/web, by: zone, counts: [2, 2]}}",
                true,
                "",
            ),
        ],
    );
    check(
        "label: {n-b: zone-}",
        &[(
            "{spread: {of: deployment/web, by: zone, max: 2}}",
            false,
            "2 of the pods on nodes without the label zone",
        )],
    );
}

#[test]
fn pods_of_several_revisions_are_counted_together() {
    // The old pods may be on pool one, the new one on pool two: both zones and the new node's count.
    check(
        "patch: {deployment/web: {spec: {strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, template: {spec: {nodeSelector: {pool: four}}}}}}",
        &[
            (
                "{spread: {of: deployment/web, by: zone, counts: [2, 2], skew: 0}}",
                true,
                "",
            ),
            (
                "{spread: {of: deployment/web, by: zone, max: 0, revision: latest}}",
                false,
                "is on no node",
            ),
        ],
    );
}

#[test]
fn an_expression_that_ends_in_an_error_breaks_its_claim_also_under_not() {
    let why = "the expression ended in an error: no such key: 'replica' in o.spec, where o is default/web; o.spec has ";
    check(
        "scale: {deployment/web: 3}",
        &[
            (
                "{cel: \"objects.filter(o, o.kind == 'Deployment').exists(o, o.spec.replica == 9)\"}",
                false,
                why,
            ),
            (
                "{cel: \"objects.filter(o, o.kind == 'Deployment').exists(o, o.spec.replica == 9)\", not: true}",
                false,
                "did you mean replicas?",
            ),
            (
                "{cel: \"objects.filter(o, o.kind == 'Deployment').exists(o, o.spec.replicas == 9)\", not: true}",
                true,
                "",
            ),
            (
                "{cel: \"pods.map(p, p.labels.tier).size() == 0\", not: true}",
                false,
                "no such key: 'tier' in p.labels",
            ),
        ],
    );
}

#[test]
fn the_objects_of_an_expression_are_all_objects() {
    check(
        "scale: {deployment/web: 3}",
        &[
            (
                "{cel: \"objects.filter(o, o.kind == 'Pod' && has(o.spec.nodeName)).size() == pods.size() && pods.size() == 3\"}",
                true,
                "",
            ),
            (
                "{cel: \"objects.filter(o, o.kind == 'Node').size() == nodes.size() && nodes.size() > 0\"}",
                true,
                "",
            ),
        ],
    );
}

#[test]
fn a_claim_about_what_is_gone_is_not_judged() {
    check(
        "delete: [deployment/web, poddisruptionbudget/web]",
        &[
            (
                "{rolledOut: {of: deployment/web}}",
                false,
                "there is no deployment/web",
            ),
            (
                "{rolledOut: {of: deployment/web}, not: true}",
                false,
                "there is no deployment/web",
            ),
            (
                "{withinBudget: {of: deployment/web}}",
                false,
                "there is no deployment/web",
            ),
        ],
    );
    check(
        "delete: poddisruptionbudget/web",
        &[(
            "{withinBudget: {of: deployment/web}}",
            false,
            "no PodDisruptionBudget selects the pods of deployment/web",
        )],
    );
}

/// The outcome of a claim of `always` where no node admits the pods.
fn always_pending(claim: &str, timeline: &str) -> ExpectationOutcome {
    let manifests = MANIFESTS.replace("nodeSelector: {pool: one}", "nodeSelector: {pool: none}");
    let spec = format!("  always: [{claim}]\n  timeline:\n{timeline}");
    played_of(&manifests, &spec).always[0].clone()
}

fn always(claim: &str, timeline: &str) -> ExpectationOutcome {
    let played = played(&format!("  always: [{claim}]\n  timeline:\n{timeline}"));
    played.always[0].clone()
}

#[test]
fn a_budget_is_judged_from_its_first_healthy_pods_on() {
    let deploys = "  - {rest: {}}\n";
    for claim in ["{withinBudget: {}}", "{withinBudget: {of: deployment/web}}"] {
        let outcome = always(claim, deploys);
        assert!(outcome.held, "{outcome:?}");
        // By times only, without a step at rest.
        let outcome = always(claim, "  - {at: 5m}\n");
        assert!(outcome.held, "{outcome:?}");
        let rolled = format!("{deploys}  - {{rollout-restart: deployment/web, rest: {{}}}}\n");
        let outcome = always(claim, &rolled);
        assert!(outcome.held, "{outcome:?}");
        // It had its pods, and loses them.
        let deleted = format!("{deploys}  - {{delete: app=web, rest: {{}}}}\n");
        let outcome = always(claim, &deleted);
        assert!(
            !outcome.held && outcome.why.contains("of 3 healthy pods"),
            "{outcome:?}"
        );
        // It never gets them.
        for timeline in [deploys, "  - {at: 5m}\n"] {
            let outcome = always_pending(claim, timeline);
            assert!(
                !outcome.held && outcome.why.contains("0 of 3 healthy pods"),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn a_claim_of_always_passes_over_moments_without_pods_and_breaks_if_there_is_no_other() {
    let claim = "{spread: {of: deployment/web, by: zone, max: 1}}";
    let times = "  - {at: 5m, scale: {deployment/web: 0}}\n  - {at: 10m, scale: {deployment/web: 4}}\n  - {at: 15m}\n";
    let outcome = always(claim, times);
    assert!(outcome.held, "{outcome:?}");
    for claim in [
        claim,
        "{spread: {of: deployment/web, by: zone, max: 1}, not: true}",
    ] {
        let outcome = always_pending(claim, "  - {at: 5m}\n");
        assert!(
            !outcome.held
                && outcome
                    .why
                    .starts_with("it was never judged: none of the 4 pods"),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_claim_that_must_stay_true_is_not_broken_by_a_moment_without_pods() {
    let played = played(
        "  timeline:
  - {at: 3m, expect: [{spread: {of: deployment/web, by: zone, max: 1}, for: 10m}]}
  - {at: 5m, scale: {deployment/web: 0}}
  - {at: 8m, scale: {deployment/web: 4}}
",
    );
    assert!(played.held(), "{played:?}");
}
