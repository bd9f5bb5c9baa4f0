use strew_model::{Instant, Interner, Span, well_known};
use strew_placement::facts::cluster::{Amounts, TaintEffect};
use strew_placement::facts::cluster_set::SetSelector;
use strew_placement::facts::decision::Replicas;
use strew_placement::facts::placement::{
    DivideBy, GroupBounds, GroupSize, OnMisconfigured, Rebalance, SortBy, TopologyKeyType,
    WhenUnsatisfiable,
};
use strew_placement::facts::status::{ConditionReason, ConditionType};

use super::{annotated, object, placement};
use crate::placement::cel::CelSelectors;
use crate::placement::facts;
use strew_manifest::read::KubeObject;

#[test]
fn an_empty_spec_asks_for_everything() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let fact = facts::placement(&placement("{}"), &mut names, &mut cel);
    assert_eq!(fact.spec, Default::default());
    assert_eq!(
        (names.text(fact.namespace), names.text(fact.name)),
        ("shop", "web")
    );
    assert_eq!((&*fact.uid, fact.revision, fact.ignored), ("u1", 7, false));
}

#[test]
fn every_field_of_a_placement_reaches_its_fact() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let wire = annotated(
        r#"{strew.dev/topology-groups: '{"zone": {"minGroups": 2, "maxGroups": 4}}', strew.dev/replicas: '10',
            strew.dev/replica-division: '{"minPerCluster": 1, "weights": [{"labelSelector": {"matchLabels": {"tier": "gold"}}, "weight": 3}]}',
            strew.dev/topology-weights: '{"zone": {"a": 2, "*": 0}}', strew.dev/on-misconfigured: Keep, strew.dev/spread-rebalance: Never,
            cluster.open-cluster-management.io/experimental-scheduling-disable: 'true'}"#,
        "{clusterSets: [s], numberOfClusters: 3, sortBy: Score, scoreRateLimit: 2h,
          spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Claim, maxSkew: 3, whenUnsatisfiable: DoNotSchedule},
            {topologyKey: rack, topologyKeyType: Label, minGroups: 1, maxGroups: 3, topologyWeights: [{value: r1, weight: 5}]}]},
          tolerations: [{key: k, operator: Exists, effect: NoSelectIfNew, tolerationSeconds: 9}],
          decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {}}], clustersPerDecisionGroup: 3}}}",
    );
    let fact = facts::placement(&wire, &mut names, &mut cel);
    let text = |symbol| names.text(symbol);
    let spec = &fact.spec;
    assert!(fact.ignored);
    assert_eq!(spec.number_of_clusters, Some(3));
    assert_eq!(text(spec.cluster_sets[0]), "s");
    assert_eq!(
        (spec.sort_by, spec.score_rate_limit),
        (SortBy::Score, Span::from_secs(7200))
    );
    let [zone, rack] = &*spec.spread else {
        panic!("there are two terms");
    };
    assert_eq!(
        (text(zone.key), &zone.key_type),
        ("zone", &TopologyKeyType::Claim)
    );
    assert_eq!(
        (zone.max_skew, &zone.when),
        (3, &WhenUnsatisfiable::DoNotSchedule)
    );
    assert_eq!(
        (rack.max_skew, &rack.when),
        (1, &WhenUnsatisfiable::ScheduleAnyway)
    );
    assert_eq!(
        rack.weights.as_ref().map(|w| (w.values[0].1, w.default)),
        Some((5, 1))
    );
    let annotated = spec.topology_weights.as_ref().expect("it is read");
    assert_eq!((text(annotated[0].0), annotated[0].1.default), ("zone", 0));
    let bounds = |min, max| GroupBounds {
        min: Some(min),
        max: Some(max),
    };
    assert_eq!(
        (zone.groups, rack.groups),
        (GroupBounds::default(), bounds(1, 3))
    );
    let annotated = spec.topology_groups.as_ref().expect("it is read");
    assert_eq!(
        (text(annotated[0].0), annotated[0].1),
        ("zone", bounds(2, 4))
    );
    let division = spec.replicas.as_ref().expect("it is read").as_ref();
    let division = division.expect("it is asked for");
    assert_eq!((division.total, division.min_per_cluster), (10, 1));
    let DivideBy::Weights { entries, default } = &division.by else {
        panic!("{division:?}");
    };
    assert_eq!((entries.len(), entries[0].weight, *default), (1, 3, 1));
    assert_eq!(spec.tolerations[0].effect, Some(TaintEffect::NoSelectIfNew));
    assert_eq!(spec.tolerations[0].seconds, Some(9));
    assert_eq!(spec.groups.size, GroupSize::Count(3));
    assert_eq!(
        spec.groups.groups.as_ref().map(|g| text(g[0].name)),
        Ok("canary")
    );
    assert_eq!(
        (spec.on_misconfigured, spec.rebalance),
        (OnMisconfigured::Keep, Rebalance::Never)
    );
}

#[test]
fn what_cannot_be_read_is_kept_for_the_rule_that_asks() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let wire = placement(
        "{predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [xxxx.expression]}}}],
          decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: some}}}",
    );
    let fact = facts::placement(&wire, &mut names, &mut cel);
    let predicates = fact.spec.predicates.expect_err("it does not compile");
    let start = "compilation failed: ERROR: <input>:1:1: undeclared reference to 'xxxx'";
    assert!(predicates.starts_with(start), "{predicates}");
    assert_eq!(
        fact.spec.groups.size,
        GroupSize::NotAPercentage("some".into())
    );
}

#[test]
fn a_cluster_is_read_with_its_claims_taints_and_amounts() {
    let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
    let text = "apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1, labels: {region: us-east}}
spec: {taints: [{key: a, value: v, effect: NoSelect, timeAdded: '1970-01-01T00:00:09Z'}, {key: b, effect: NoSelectIfNew, timeAdded: null}]}
status:
  clusterClaims: [{name: zone, value: old}, {name: zone, value: new}]
  allocatable: {cpu: 1500m, memory: 1Gi}
  capacity: {cpu: '2'}
";
    let KubeObject::ManagedCluster(wire) = object(text) else {
        panic!("it is a cluster");
    };
    let fact = facts::cluster(&wire, &mut names, &mut cel);
    let get = |names: &Interner, key: &str| names.get(key);
    let zone = fact.claims.get(get(&names, "zone").expect("it is known"));
    assert_eq!(zone, get(&names, "new"));
    assert_eq!(
        fact.cpu,
        Amounts {
            allocatable: Some(1500),
            capacity: Some(2000)
        }
    );
    assert_eq!(
        fact.memory,
        Amounts {
            allocatable: Some(1 << 30),
            capacity: None
        }
    );
    let [a, b] = &*fact.taints else {
        panic!("there are two taints");
    };
    assert_eq!(
        (a.added, a.effect),
        (Some(Instant::from_secs(9)), TaintEffect::NoSelect)
    );
    assert_eq!((b.added, b.value), (None, well_known::EMPTY));
    // The same object has the same number, another one another.
    assert_eq!(facts::cluster(&wire, &mut names, &mut cel).raw, fact.raw);
    let mut other = *wire;
    other.spec.get_or_insert_default().hub_accepts_client = true;
    assert_ne!(facts::cluster(&other, &mut names, &mut cel).raw, fact.raw);
}

#[test]
fn selectors_of_sets_mean_what_ocm_means() {
    let cases = [
        ("{}", Some(true)),
        ("{clusterSelector: {selectorType: ''}}", Some(true)),
        (
            "{clusterSelector: {selectorType: LabelSelector}}",
            Some(false),
        ),
        ("{clusterSelector: {selectorType: Magic}}", None),
        (
            "{clusterSelector: {selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: a, operator: Foo}]}}}",
            None,
        ),
    ];
    for (spec, exclusive) in cases {
        let text = format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {{name: s}}\nspec: {spec}"
        );
        let KubeObject::ManagedClusterSet(wire) = object(&text) else {
            panic!("it is a set");
        };
        let fact = facts::cluster_set(&wire, &mut Interner::new());
        let found = match fact.selector {
            SetSelector::Exclusive => Some(true),
            SetSelector::Labels(_) => Some(false),
            SetSelector::Unknown(_) => None,
        };
        assert_eq!(found, exclusive, "{spec}");
    }
}

#[test]
fn a_status_comes_back_with_the_conditions_of_others() {
    let mut names = Interner::new();
    let mut wire = placement("{}");
    let condition = |kind: &str, reason: &str| {
        format!(
            r#"{{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"m","reason":"{reason}","status":"True","type":"{kind}"}}"#
        )
    };
    let status = |reason: &str| {
        let ours = condition("PlacementSatisfied", reason);
        let others = condition("Other", "Because");
        format!(
            r#"{{"numberOfSelectedClusters":1,"decisionGroups":[{{"decisionGroupIndex":2,"decisionGroupName":"g","decisions":["d"],"clusterCount":1}}],"conditions":[{ours},{others}],"lastScoreUpdateTime":"2026-01-01T00:00:00Z"}}"#
        )
    };
    let text = status("AllDecisionsScheduled");
    wire.status = serde_json::from_str(&text).expect("it is a status");
    let read = facts::status::status(&wire.status.clone().unwrap_or_default(), &mut names);
    let written = facts::status::to_wire(&read, &names);
    assert_eq!(Some(written), wire.status);
    // An unknown reason is written anew, and keeps its time.
    let other = serde_json::from_str(&status("Whatever")).expect("it is a status");
    let read = facts::status::status(&other, &mut names);
    let satisfied = read
        .condition(ConditionType::Satisfied)
        .expect("it is there");
    assert_eq!((&*satisfied.message, satisfied.status), ("", true));
    assert_eq!(satisfied.since.secs(), 1_767_225_600);
    assert_eq!(satisfied.reason, ConditionReason::Misconfigured);
}

/// Issue 32: the condition has upstream's words, the first requirement that is none with all that is wrong with it.
#[test]
fn selectors_that_are_none_are_told_in_the_words_of_upstream() {
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let cases = [
        ("matchExpressions: [{key: a, operator: Foo}]", "\"Foo\" is not a valid label selector operator".to_owned()),
        ("matchExpressions: [{key: a, operator: ''}]", "\"\" is not a valid label selector operator".to_owned()),
        ("matchExpressions: [{key: a, operator: In}]", "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty".to_owned()),
        ("matchExpressions: [{key: a, operator: NotIn, values: []}]", "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty".to_owned()),
        ("matchExpressions: [{key: a, operator: Exists, values: [b, c]}]", "values: Invalid value: [\"b\",\"c\"]: values set must be empty for exists and does not exist".to_owned()),
        ("matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]", "values: Invalid value: [\"b\"]: values set must be empty for exists and does not exist".to_owned()),
        ("matchExpressions: [{key: a, operator: In, values: ['!']}]", "values[0][a]: Invalid value: \"!\": a valid label must be an empty string".to_owned()),
        ("matchExpressions: [{key: '!', operator: Exists}]", format!("key: Invalid value: \"!\": {name}")),
        ("matchLabels: {a: '!'}", "values[0][a]: Invalid value: \"!\": a valid label must be an empty string".to_owned()),
        ("matchLabels: {'!': a}", format!("key: Invalid value: \"!\": {name}")),
        ("matchExpressions: [{key: '!', operator: In}]", format!("[key: Invalid value: \"!\": {name}")),
    ];
    for (selector, expected) in cases {
        let wire = super::placement(&format!(
            "{{predicates: [{{requiredClusterSelector: {{labelSelector: {{{selector}}}}}}}]}}"
        ));
        let fact = facts::placement(&wire, &mut Interner::new(), &mut CelSelectors::new());
        let text = fact.spec.predicates.expect_err(selector);
        assert!(text.starts_with(&expected), "{selector}: {text}");
    }
}

#[test]
fn replicas_of_decisions_are_read_and_told_from_what_cannot_be() {
    let read = |annotation: &str| {
        let text = format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\n\
             metadata: {{name: web-decision-1, namespace: shop, annotations: {annotation}}}\n\
             status: {{decisions: []}}"
        );
        let KubeObject::PlacementDecision(wire) = object(&text) else {
            panic!("it is a decision");
        };
        let mut names = Interner::new();
        let fact = facts::decision(&wire, &mut names);
        let written = facts::replicas::annotation(&fact.replicas, &names);
        (fact.replicas, written)
    };
    assert_eq!(read("{}"), (Replicas::Absent, None));
    let (parts, written) = read(r#"{strew.dev/replicas: '{"c2": 3, "c1": 0}'}"#);
    assert!(matches!(parts, Replicas::Parts(parts) if parts.len() == 2));
    assert_eq!(written.as_deref(), Some(r#"{"c1":0,"c2":3}"#), "by name");
    for other in [
        r#"{strew.dev/replicas: '10'}"#,
        r#"{strew.dev/replicas: '{"c1": -1}'}"#,
    ] {
        assert_eq!(read(other), (Replicas::Unreadable, None), "{other}");
    }
}
