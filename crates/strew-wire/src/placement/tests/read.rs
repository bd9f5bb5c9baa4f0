use super::{json, object};
use strew_manifest::read::{Sources, read};

/// The sentences about a text, with line and column.
#[track_caller]
fn said(text: &str) -> Vec<String> {
    let mut sources = Sources::new();
    sources.add("test.yaml", text);
    let reading = read(&sources);
    let all = reading.diagnostics.iter();
    all.map(|d| {
        let place = d.place.expect("it has a place");
        let (line, column) = (place.line, place.column);
        format!("{line}:{column} {:?} {}", d.severity, d.message)
    })
    .collect()
}

#[test]
fn objects_come_back_as_they_were_read() {
    let texts = [
        r#"{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"p","namespace":"ns"},
            "spec":{"clusterSets":["a"],"numberOfClusters":4,
            "predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"region":"us-east"}},
              "claimSelector":{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]},
              "celSelector":{"celExpressions":["true"]}}}],
            "prioritizerPolicy":{"mode":"Exact","configurations":[
              {"scoreCoordinate":{"type":"BuiltIn","builtIn":"Spread"},"weight":3},
              {"scoreCoordinate":{"type":"AddOn","addOn":{"resourceName":"r","scoreName":"s"}},"weight":-1}]},
            "spreadPolicy":{"spreadConstraints":[{"topologyKey":"zone","topologyKeyType":"Label","maxSkew":2,
              "whenUnsatisfiable":"DoNotSchedule","topologyWeights":[{"value":"a","weight":2},{"value":"*","weight":1}],"minGroups":1,"maxGroups":2}]},
            "tolerations":[{"key":"k","operator":"Exists","effect":"NoSelect","tolerationSeconds":300}],
            "decisionStrategy":{"groupStrategy":{"decisionGroups":[{"groupName":"canary","groupClusterSelector":
              {"labelSelector":{"matchLabels":{"a":"b"}}}}],"clustersPerDecisionGroup":"25%"}},
            "sortBy":"Score","scoreRateLimit":"1m"},
            "status":{"numberOfSelectedClusters":1,"decisionGroups":[{"decisionGroupIndex":0,"decisionGroupName":"",
              "decisions":["p-decision-1"],"clusterCount":1}],"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z",
              "message":"m","reason":"r","status":"True","type":"PlacementSatisfied"}],
              "lastScoreUpdateTime":"2026-01-01T00:00:00Z"}}"#,
        r#"{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1"},
            "spec":{"managedClusterClientConfigs":[{"url":"https://c1","caBundle":"YQ=="}],"hubAcceptsClient":true,
            "leaseDurationSeconds":60,"taints":[{"key":"k","value":"v","effect":"NoSelect","timeAdded":"2026-01-01T00:00:00Z"}]},
            "status":{"capacity":{"cpu":"4"},"allocatable":{"memory":"1Gi"},"version":{"kubernetes":"v1.36.3"},
            "clusterClaims":[{"name":"zone","value":"a"}],"managedNamespaces":[{"name":"n","clusterSet":"s"}]}}"#,
        r#"{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSet","metadata":{"name":"s"},
            "spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":"b"}}},
            "managedNamespaces":[{"name":"n"}]}}"#,
        r#"{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding",
            "metadata":{"name":"s","namespace":"ns"},"spec":{"clusterSet":"s"}}"#,
        r#"{"apiVersion":"cluster.open-cluster-management.io/v1alpha1","kind":"AddOnPlacementScore",
            "metadata":{"name":"demo","namespace":"c1"},"status":{"scores":[{"name":"gpu","value":-3}],
            "validUntil":"2026-01-01T00:00:00Z"}}"#,
        r#"{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"PlacementDecision",
            "metadata":{"name":"p-decision-1","namespace":"ns"},
            "status":{"decisions":[{"clusterName":"c1","reason":"","score":3}]}}"#,
    ];
    for text in texts {
        assert_eq!(object(text).to_json(), json(text));
    }
}

#[test]
fn unknown_fields_are_errors_with_their_place_and_what_was_meant() {
    let text = "apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: p}
spec:
  numberOfCluster: 4
  spreadPolicy:
    spreadConstraints:
    - topologyKey: zone
      topologyKeyTyp: Label
      maxSkew: one
";
    assert_eq!(
        said(text),
        [
            "5:3 Error unknown field \"numberOfCluster\", did you mean \"numberOfClusters\"?",
            "9:7 Error unknown field \"topologyKeyTyp\", did you mean \"topologyKeyType\"?",
            "10:16 Error expected an integer, found the string \"one\"",
        ]
    );
}

#[test]
fn unknown_fields_of_a_dump_are_named_in_a_warning() {
    let text = "apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1, uid: u}
spec: {hubAcceptsClient: true, futureField: 1}
";
    assert_eq!(
        said(text),
        [
            "4:32 Warning unknown field \"futureField\": ManagedCluster spec.futureField was passed over"
        ]
    );
}

#[test]
fn versions_that_are_not_read_and_misspelt_kinds_are_told() {
    let text = "apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata: {name: p}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placment
metadata: {name: p}
";
    assert_eq!(
        said(text),
        [
            "1:13 Error Open Cluster Management has no Placement in \"cluster.open-cluster-management.io/v1alpha1\"",
            "6:7 Error cluster.open-cluster-management.io/v1beta1 has no kind \"Placment\", did you mean \"Placement\"?",
        ]
    );
}
