//! OCM's selectors of clusters.

use serde_json::json;
use strew_cel::Environment::ManagedCluster;
use strew_cel::{Budget, Environment, EvalErrorKind, Program, Variables};

use crate::{check, cluster, compile};

fn eu() -> Variables {
    let object = json!({
        "metadata": {"name": "eu", "labels": {"env": "prod", "version": "1.14.3"}, "annotations": {}},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
        "status": {
            "version": {"kubernetes": "v1.30.0"},
            "capacity": {"cpu": "10", "memory": "64Gi"},
            "clusterClaims": [
                {"name": "version", "value": "1.31.6"},
                {"name": "sku", "value": "{\"name\": \"large\", \"cores\": 8}"},
            ],
            "conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True"}],
        },
    });
    cluster(
        &object,
        &[(
            "demo",
            json!([{"name": "demo", "value": 90}, {"name": "gpu", "value": 2}]),
        )],
    )
}

#[test]
fn selectors_of_the_kind_that_ocm_documents() {
    check(
        &eu(),
        ManagedCluster,
        &[
            (r#"managedCluster.metadata.labels["env"] == "prod""#, "true"),
            (
                r#"managedCluster.metadata.labels["version"].matches('^1\\.(14|15)\\.\\d+$')"#,
                "true",
            ),
            (
                r#"managedCluster.status.clusterClaims.exists(c, c.name == "version" && semver(c.value).isGreaterThan(semver("1.30.0")))"#,
                "true",
            ),
            (
                r#"managedCluster.status.clusterClaims.exists(c, c.name == "version" && semver(c.value).isLessThan(semver("1.30.0")))"#,
                "false",
            ),
            (
                r#"semver(managedCluster.status.version.kubernetes, true).isLessThan(semver("1.31.0"))"#,
                "true",
            ),
            (
                r#"managedCluster.scores("demo").filter(s, s.name == 'demo').all(e, e.value > 80)"#,
                "true",
            ),
            (
                r#"managedCluster.scores("demo").exists(s, s.name == 'gpu' && s.value == 2)"#,
                "true",
            ),
            (
                r#"managedCluster.status.clusterClaims.exists(c, c.name == "sku" && c.value.parseJSON().cores == 8)"#,
                "true",
            ),
            (
                r#"quantity(managedCluster.status.capacity.memory).isGreaterThan(quantity("32Gi"))"#,
                "true",
            ),
            ("managedCluster.spec.leaseDurationSeconds == 60", "true"),
            (
                "managedCluster.status.conditions.exists(c, c.type == 'ManagedClusterConditionAvailable' && c.status == 'True')",
                "true",
            ),
            ("has(managedCluster.metadata.labels.zone)", "false"),
            (
                "managedCluster.metadata.?labels.?zone.orValue('a') == 'a'",
                "true",
            ),
            ("cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))", "true"),
        ],
    );
}

#[test]
fn what_ocm_reads_as_no_match_is_an_error() {
    check(
        &eu(),
        ManagedCluster,
        &[
            // Labels are ordinary maps here.
            (
                "managedCluster.metadata.labels.zone == 'a'",
                "no such key: 'zone' in managedCluster.metadata.labels",
            ),
            (
                "managedCluster.metadata.labels['zone'] == 'a'",
                "no such key: 'zone' in managedCluster.metadata.labels",
            ),
            (
                "managedCluster.scores('none').size() == 0",
                "no such key: the cluster has no scores 'none'",
            ),
            (r#""abc""#, "the result is of type string, not bool"),
            (
                "'{'.parseJSON().a == 1",
                "parseJSON: EOF while parsing an object at line 1 column 1",
            ),
            (
                "managedCluster.scores(1).size() == 0",
                "no such overload: 'scores' applied to (map, int)",
            ),
        ],
    );
}

#[test]
fn mistakes_of_a_text_are_told_as_ocm_tells_them() {
    let text = "xxxx.expression";
    let error = Program::compile(text, ManagedCluster).unwrap_err();
    assert_eq!(
        error.as_ocm(text),
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'xxxx' (in container '')\n | xxxx.expression\n | ^"
    );
    for (text, message) in [
        (
            "pods.size() == 1",
            "ERROR: <input>:1:1: undeclared reference to 'pods' (in container '')",
        ),
        (
            "[2, 1].sort() == [1, 2]",
            "ERROR: <input>:1:8: undeclared reference to 'sort' (in container '')",
        ),
    ] {
        let error = Program::compile(text, ManagedCluster).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert!(Program::compile("'x'.parseJSON() == 1", Environment::Scenario).is_err());
    assert!(Program::compile("[].scores('x') == 1", Environment::Scenario).is_err());
}

#[test]
fn expressions_of_a_selector_share_a_budget() {
    let program = compile(
        r#"managedCluster.metadata.labels["env"] == "prod""#,
        ManagedCluster,
    );
    let variables = eu();
    let mut budget = Budget::new(12);
    assert_eq!(program.holds_within(&variables, &mut budget), Ok(true));
    // The variable, two fields, the index, the comparison.
    assert_eq!(budget.spent(), 5);
    assert_eq!(program.holds_within(&variables, &mut budget), Ok(true));
    assert_eq!((budget.spent(), budget.left()), (10, 2));
    let error = program.holds_within(&variables, &mut budget).unwrap_err();
    assert_eq!(error.kind, EvalErrorKind::Cost);
    assert_eq!((budget.spent(), budget.left()), (13, 0));
}

#[test]
fn the_score_objects_of_an_expression_are_known() {
    let names = |text| compile(text, ManagedCluster).score_names();
    let two = "managedCluster.scores('b').size() > 0 && managedCluster.scores('a').all(s, s.value > managedCluster.scores('b')[0].value)";
    assert_eq!(names(two), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(names("true"), Some(vec![]));
    assert_eq!(
        names("managedCluster.scores(managedCluster.metadata.name).size() > 0"),
        None
    );
}
