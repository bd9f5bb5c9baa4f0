use super::{annotated, object, placement};
use crate::admission::SetDefaults;
use crate::validation::Validate;
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;
use strew_wire::placement::facts::misconfigured;

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_placement_that_the_crd_refuses_is_told_everything_at_once() {
    let long = "x".repeat(1025);
    let spec = format!(
        "{{prioritizerPolicy: {{configurations: [{{weight: 11}}, {{weight: -11, scoreCoordinate: {{type: Foo, addOn: {{resourceName: a}}}}}}]}},
          spreadPolicy: {{spreadConstraints: [
            {{topologyKey: 'a b', topologyKeyType: Annotation, maxSkew: 0, whenUnsatisfiable: Never}},
            {{topologyWeights: [{{value: a, weight: 1}}, {{value: a, weight: 2}}]}}]}},
          tolerations: [{{key: '', value: {long}, effect: NoExecute}}],
          decisionStrategy: {{groupStrategy: {{decisionGroups: [{{groupName: a}}, {{}}], clustersPerDecisionGroup: 0%}}}},
          sortBy: Name, scoreRateLimit: 1d}}"
    );
    let mut bad = placement(&spec);
    bad.set_defaults();
    let label_key = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
    let topology_key = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
    let at = "spec.prioritizerPolicy.configurations";
    let term = "spec.spreadPolicy.spreadConstraints";
    let groups = "spec.decisionStrategy.groupStrategy";
    assert_eq!(
        texts(&bad.validate()),
        [
            format!("{at}[0].weight: Invalid value: 11: {at}[0].weight in body should be less than or equal to 10"),
            format!("{at}[0].scoreCoordinate: Required value"),
            format!("{at}[1].weight: Invalid value: -11: {at}[1].weight in body should be greater than or equal to -10"),
            format!("{at}[1].scoreCoordinate.type: Unsupported value: \"Foo\": supported values: \"BuiltIn\", \"AddOn\""),
            format!("{at}[1].scoreCoordinate.addOn.scoreName: Required value"),
            format!("{term}[0].topologyKey: Invalid value: \"a b\": {term}[0].topologyKey in body should match '{topology_key}'"),
            format!("{term}[0].topologyKeyType: Unsupported value: \"Annotation\": supported values: \"Label\", \"Claim\""),
            format!("{term}[0].maxSkew: Invalid value: 0: {term}[0].maxSkew in body should be greater than or equal to 1"),
            format!("{term}[0].whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""),
            format!("{term}[1].topologyKey: Required value"),
            format!("{term}[1].topologyKeyType: Required value"),
            format!("{term}[1].topologyWeights[1]: Duplicate value: {{\"value\":\"a\"}}"),
            format!("spec.tolerations[0].key: Invalid value: \"\": spec.tolerations[0].key in body should match '{label_key}'"),
            "spec.tolerations[0].value: Too long: may not be more than 1024 bytes".to_owned(),
            "spec.tolerations[0].effect: Unsupported value: \"NoExecute\": supported values: \"NoSelect\", \"PreferNoSelect\", \"NoSelectIfNew\"".to_owned(),
            format!("{groups}.decisionGroups[0].groupName: Invalid value: \"a\": {groups}.decisionGroups[0].groupName in body should match '^[a-zA-Z0-9][-A-Za-z0-9_.]{{0,61}}[a-zA-Z0-9]$'"),
            format!("{groups}.decisionGroups[0].groupClusterSelector: Required value"),
            format!("{groups}.decisionGroups[1].groupName: Required value"),
            format!("{groups}.decisionGroups[1].groupClusterSelector: Required value"),
            format!("{groups}.clustersPerDecisionGroup: Invalid value: \"0%\": {groups}.clustersPerDecisionGroup in body should match '^((100|[1-9][0-9]{{0,1}})%|[1-9][0-9]*)$'"),
            "spec.sortBy: Unsupported value: \"Name\": supported values: \"ClusterName\", \"Score\"".to_owned(),
            "spec.scoreRateLimit: Invalid value: \"1d\": spec.scoreRateLimit in body should match '^[0-9]+[hms]$'".to_owned(),
        ]
    );
    let nine = "{topologyKey: z, topologyKeyType: Label},".repeat(9);
    let many = placement(&format!(
        "{{spreadPolicy: {{spreadConstraints: [{nine}]}}}}"
    ));
    assert_eq!(
        texts(&many.validate()),
        [format!("{term}: Too many: 9: must have at most 8 items")]
    );
}

#[test]
fn a_spec_must_be_there_and_an_empty_one_is_good() {
    let text = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p, namespace: ns}";
    let KubeObject::Placement(bare) = object(text) else {
        panic!("it is a Placement");
    };
    assert_eq!(texts(&bare.validate()), ["spec: Required value"]);
    let mut empty = placement("{}");
    empty.set_defaults();
    assert_eq!(empty.validate(), []);
    let spec = empty.spec.expect("it is there");
    // As the API server gives it back.
    assert_eq!(
        serde_json::to_string(&spec).expect("it is JSON"),
        r#"{"sortBy":"ClusterName","scoreRateLimit":"1m"}"#
    );
}

#[test]
fn what_no_decision_can_be_made_from_is_told_with_its_field() {
    let cases = [
        (
            "{numberOfClusters: -1}",
            vec!["spec.numberOfClusters: Invalid value: -1: must not be negative"],
        ),
        (
            "{tolerations: [{operator: Equal}, {key: a, operator: Exists, value: b}]}",
            vec![
                "spec.tolerations[0].operator: Invalid value: \"Equal\": If the key is empty, operator must be Exists.",
                "spec.tolerations[1].value: Invalid value: \"b\": If the operator is Exists, the value should be empty.",
            ],
        ),
        (
            "{prioritizerPolicy: {mode: Some, configurations: [{scoreCoordinate: {builtIn: Foo}}, {scoreCoordinate: {type: AddOn}}, {weight: 0, scoreCoordinate: {builtIn: Bar}}]}}",
            vec![
                "spec.prioritizerPolicy.mode: Invalid value: \"Some\": incorrect prioritizer policy mode: Some",
                "spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn: Invalid value: \"Foo\": incorrect builtin prioritizer: Foo",
                "spec.prioritizerPolicy.configurations[1].scoreCoordinate.addOn: Required value: addOn should not be empty",
            ],
        ),
        (
            "{predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: a, operator: Foo}]}, celSelector: {celExpressions: ['true', 'xxxx.expression']}}}]}",
            vec![
                "spec.predicates[0].requiredClusterSelector.labelSelector.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid selector operator",
                "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[1]: Invalid value: \"xxxx.expression\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'xxxx' (in container '')",
            ],
        ),
        (
            "{spreadPolicy: {spreadConstraints: [{topologyKey: z, topologyKeyType: Label}, {topologyKey: z, topologyKeyType: Claim}, {topologyKey: z, topologyKeyType: Label, topologyWeights: [{value: a, weight: 1001}]}]}}",
            vec![
                "spec.spreadPolicy.spreadConstraints[2].topologyKey: Duplicate value: \"z\": duplicate topologyKey z of type Label",
                "spec.spreadPolicy.spreadConstraints[2].topologyWeights[0].weight: Invalid value: 1001: topology weight of z=a is 1001, not 0..1000",
            ],
        ),
        (
            "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: '5', decisionGroups: [{groupName: ab, groupClusterSelector: {claimSelector: {matchExpressions: [{key: a, operator: In}]}}}]}}}",
            vec![
                "spec.decisionStrategy.groupStrategy.decisionGroups[0].groupClusterSelector.claimSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: Invalid value: \"5\": 5 invalid type: string is not a percentage",
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(texts(&misconfigured(&placement(spec))), expected, "{spec}");
    }
}

#[test]
fn weights_in_the_annotation_are_checked_where_a_term_reads_them() {
    let spec = "{spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label}]}}";
    let key = "strew.dev/topology-weights";
    let cases = [
        (r#"{"zone": {"a": 2, "*": 1}}"#, None),
        (r#"{"rack": {"a": -2}}"#, None),
        (
            r#"{"zone": {"a": -2}}"#,
            Some("topology weight of zone=a is -2, not 0..1000"),
        ),
        (
            r#"{"zone": 1}"#,
            Some(
                "annotation strew.dev/topology-weights: invalid type: integer `1`, expected a map at line 1 column 10",
            ),
        ),
        (
            "{",
            Some(
                "annotation strew.dev/topology-weights: EOF while parsing an object at line 1 column 1",
            ),
        ),
    ];
    for (text, expected) in cases {
        let placement = annotated(&format!("{{{key}: '{text}'}}"), spec);
        let errors = misconfigured(&placement);
        let details: Vec<&str> = errors.iter().map(|e| e.detail.as_str()).collect();
        assert_eq!(details.first().copied(), expected, "{text}");
    }
    let other = annotated(
        &format!("{{{key}: '{{\"rack\": {{}}}}', strew.dev/on-misconfigured: Drop}}"),
        spec,
    );
    assert_eq!(
        other.warnings(),
        [
            "metadata.annotations[strew.dev/on-misconfigured]: \"Drop\" is neither Empty nor Keep: taken as Empty",
            "metadata.annotations[strew.dev/topology-weights]: no spread constraint has the topology key \"rack\"",
        ]
    );
}

#[test]
fn bounds_on_topologies_are_checked_at_the_field_or_annotation_that_has_them() {
    let spec = |term: &str| {
        format!(
            "{{numberOfClusters: 3, spreadPolicy: {{spreadConstraints: [{{topologyKey: zone, topologyKeyType: Label{term}}}]}}}}"
        )
    };
    let term = "spec.spreadPolicy.spreadConstraints[0]";
    let key = "metadata.annotations[strew.dev/topology-groups]";
    let cases = [
        (", minGroups: 2, maxGroups: 3", "{}", None),
        (
            ", minGroups: 3, maxGroups: 2",
            "{}",
            Some(format!(
                "{term}.minGroups: minGroups 3 is more than maxGroups 2"
            )),
        ),
        (
            ", minGroups: 4",
            "{}",
            Some(format!(
                "{term}.minGroups: minGroups 4 is more than numberOfClusters 3"
            )),
        ),
        (
            "",
            r#"{"zone": {"minGroups": 4}}"#,
            Some(format!(
                "{key}: minGroups 4 is more than numberOfClusters 3"
            )),
        ),
        (
            "",
            r#"{"zone": {"maxGroups": 0}}"#,
            Some(format!("{key}: maxGroups must be at least 1")),
        ),
        (
            ", maxGroups: 1",
            r#"{"zone": {"minGroups": 2}}"#,
            Some(format!("{key}: minGroups 2 is more than maxGroups 1")),
        ),
        (", minGroups: 1", r#"{"zone": {"minGroups": 9}}"#, None),
        ("", r#"{"rack": {"maxGroups": 0}}"#, None),
        (
            "",
            r#"{"zone": {"maxGroup": 1}}"#,
            Some(format!(
                "{key}: annotation strew.dev/topology-groups: unknown field `maxGroup`, expected `minGroups` or `maxGroups` at line 1 column 20"
            )),
        ),
    ];
    for (fields, annotation, expected) in cases {
        let annotations = format!("{{strew.dev/topology-groups: '{annotation}'}}");
        let errors = misconfigured(&annotated(&annotations, &spec(fields)));
        let told = errors.first().map(|e| format!("{}: {}", e.path, e.detail));
        assert_eq!(told, expected, "{fields} {annotation}");
    }
    let mut refused = placement(&spec(", minGroups: 0, maxGroups: -1"));
    refused.set_defaults();
    let paths: Vec<String> = refused
        .validate()
        .iter()
        .map(|e| e.path.to_string())
        .collect();
    assert_eq!(
        paths,
        [format!("{term}.minGroups"), format!("{term}.maxGroups")]
    );
    let other = annotated(r#"{strew.dev/topology-groups: '{"rack": {}}'}"#, &spec(""));
    assert_eq!(
        other.warnings(),
        [
            "metadata.annotations[strew.dev/topology-groups]: no spread constraint has the topology key \"rack\""
        ]
    );
}

#[test]
fn replicas_and_their_division_are_checked() {
    let total = "annotation strew.dev/replicas: ";
    let division = "annotation strew.dev/replica-division: ";
    let range = " is no whole number from 0 to 2147483647";
    let cases = [
        ("10", "{}", None),
        (
            "0",
            r#"{"weights": [], "defaultWeight": 3, "minPerCluster": 2}"#,
            None,
        ),
        ("ten", "{}", Some(format!("{total}\"ten\"{range}"))),
        ("-1", "{}", Some(format!("{total}\"-1\"{range}"))),
        (
            "2147483648",
            "{}",
            Some(format!("{total}\"2147483648\"{range}")),
        ),
        (
            "1",
            "[",
            Some(format!(
                "{division}EOF while parsing a list at line 1 column 1"
            )),
        ),
        (
            "1",
            r#"{"weight": []}"#,
            Some(format!(
                "{division}unknown field `weight`, expected one of `weights`, `defaultWeight`, `scoreCoordinate`, `minPerCluster` at line 1 column 9"
            )),
        ),
        (
            "1",
            r#"{"defaultWeight": 1001}"#,
            Some("replica weight is 1001, not 0..1000".to_owned()),
        ),
        (
            "1",
            r#"{"weights": [{"weight": 2, "labelSelector": {"matchLabel": {"a": "b"}}}]}"#,
            Some(format!(
                "{division}weights[0]: an empty selector matches every cluster: that is defaultWeight"
            )),
        ),
        (
            "1",
            r#"{"weights": [{"weight": 2, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}]}"#,
            Some(format!(
                "{division}weights[0].labelSelector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector operator"
            )),
        ),
        (
            "1",
            r#"{"scoreCoordinate": {"builtIn": "Steady"}}"#,
            Some(format!(
                "{division}nothing is divided by the builtin \"Steady\"; there are ResourceAllocatableCPU, ResourceAllocatableMemory"
            )),
        ),
        (
            "1",
            r#"{"scoreCoordinate": {"type": "AddOn"}}"#,
            Some(format!("{division}addOn should not be empty")),
        ),
        (
            "1",
            r#"{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weights": []}"#,
            Some(format!(
                "{division}scoreCoordinate and weights exclude each other"
            )),
        ),
    ];
    for (replicas, division, expected) in cases {
        let annotations = format!(
            "{{strew.dev/replicas: '{replicas}', strew.dev/replica-division: '{division}'}}"
        );
        let errors = misconfigured(&annotated(&annotations, "{}"));
        let told = errors.first().map(|e| e.detail.clone());
        assert_eq!(told, expected, "{replicas} {division}");
    }
    let alone = annotated("{strew.dev/replica-division: '['}", "{}");
    assert!(misconfigured(&alone).is_empty(), "nothing is divided");
    assert_eq!(
        alone.warnings(),
        [
            "metadata.annotations[strew.dev/replica-division]: without strew.dev/replicas no replicas are divided"
        ]
    );
}

#[test]
fn clusters_sets_bindings_and_scores_are_checked_too() {
    let head = |version: &str, kind: &str, rest: &str| {
        format!("apiVersion: cluster.open-cluster-management.io/{version}\nkind: {kind}\n{rest}")
    };
    let cases = [
        (
            head(
                "v1",
                "ManagedCluster",
                "metadata: {name: C}\nspec: {taints: [{key: '', effect: NoRun}]}\nstatus: {clusterClaims: [{name: '', value: ''}], capacity: {cpu: lots}}",
            ),
            vec![
                "metadata.name",
                "spec.taints[0].key",
                "spec.taints[0].effect",
                "status.clusterClaims[0].name",
                "status.clusterClaims[0].value",
                "status.capacity[cpu]",
            ],
        ),
        (
            head(
                "v1beta2",
                "ManagedClusterSet",
                "metadata: {name: s}\nspec: {clusterSelector: {selectorType: Magic, labelSelector: {matchExpressions: [{key: a, operator: Foo}]}}}",
            ),
            vec![
                "spec.clusterSelector.selectorType",
                "spec.clusterSelector.labelSelector.matchExpressions[0].operator",
            ],
        ),
        (
            head(
                "v1beta2",
                "ManagedClusterSetBinding",
                "metadata: {name: s, namespace: ns}\nspec: {clusterSet: t}",
            ),
            vec!["spec.clusterSet"],
        ),
        (
            head(
                "v1alpha1",
                "AddOnPlacementScore",
                "metadata: {name: s, namespace: c}\nstatus: {scores: [{name: a, value: 101}, {name: a, value: 1}]}",
            ),
            vec!["status.scores[0].value", "status.scores[1]"],
        ),
    ];
    for (text, expected) in cases {
        let errors = match object(&text) {
            KubeObject::ManagedCluster(object) => object.validate(),
            KubeObject::ManagedClusterSet(object) => object.validate(),
            KubeObject::ManagedClusterSetBinding(object) => object.validate(),
            KubeObject::AddOnPlacementScore(object) => object.validate(),
            other => panic!("{other:?}"),
        };
        let paths: Vec<String> = errors.iter().map(|e| e.path.to_string()).collect();
        assert_eq!(paths, expected, "{text}");
    }
}
