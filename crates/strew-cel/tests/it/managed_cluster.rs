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
                "ERROR: <input>:1:22: found no matching overload for 'scores' applied to 'map(string, dyn).(int)'",
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

/// cel-go checks types before it runs anything: `||` does not make up for an operand of the wrong type.
#[test]
fn types_are_checked_when_a_selector_is_compiled() {
    let wrong = [
        (
            r#"1 == "1" || true"#,
            "1:3: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "1 == 1.0",
            "1:3: found no matching overload for '_==_' applied to '(int, double)'",
        ),
        (
            "true || 1 < 'a'",
            "1:11: found no matching overload for '_<_' applied to '(int, string)'",
        ),
        (
            "1 && true",
            "1:3: found no matching overload for '_&&_' applied to '(int, bool)'",
        ),
        (
            "!1",
            "1:1: found no matching overload for '!_' applied to '(int)'",
        ),
        (
            "1 + 1u == 2",
            "1:3: found no matching overload for '_+_' applied to '(int, uint)'",
        ),
        (
            "1 in ['a']",
            "1:3: found no matching overload for '@in' applied to '(int, list(string))'",
        ),
        (
            "'abc'.startsWith(1)",
            "1:17: found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        (
            "size(1) == 1",
            "1:5: found no matching overload for 'size' applied to '(int)'",
        ),
        (
            "true ? 1 == 1 : 'a'",
            "1:6: found no matching overload for '_?_:_' applied to '(bool, bool, string)'",
        ),
        (
            "[1, 2]['a'] == 1",
            "1:7: found no matching overload for '_[_]' applied to '(list(int), string)'",
        ),
        (
            "'abc'.field == 1",
            "1:6: type 'string' does not support field selection",
        ),
        (
            "managedCluster.scores('demo') == 'x'",
            "1:31: found no matching overload for '_==_' applied to '(list(dyn), string)'",
        ),
        (
            "managedCluster == 1",
            "1:16: found no matching overload for '_==_' applied to '(map(string, dyn), int)'",
        ),
        (
            "quantity('1') == '1'",
            "1:15: found no matching overload for '_==_' applied to '(kubernetes.Quantity, string)'",
        ),
        (
            "quantity('1').isGreaterThan(1)",
            "1:28: found no matching overload for 'isGreaterThan' applied to 'kubernetes.Quantity.(int)'",
        ),
        (
            "[1].all(x, x)",
            "1:1: found no matching overload for '_&&_' applied to '(bool, int)'",
        ),
        (
            "[1].exists(x, x == 'a')",
            "1:17: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "1.all(x, true)",
            "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "'a'.orValue('b') == 'a'",
            "1:12: found no matching overload for 'orValue' applied to 'string.(string)'",
        ),
    ];
    for (text, expected) in wrong {
        let error = Program::compile(text, ManagedCluster).map(|_| ());
        let error = error.expect_err(text).to_string();
        assert_eq!(error, format!("ERROR: <input>:{expected}"), "{text}");
    }
    // What only an evaluation knows compiles, and what a part is worth is not asked of the whole.
    let right = [
        "managedCluster.metadata.name == 1",
        "dyn(1) == '1' || true",
        "managedCluster.spec.leaseDurationSeconds > 59.5",
        "managedCluster.status.capacity.cpu in [1, 'a']",
        "[1, 'a'][0] == 1",
        "managedCluster.metadata.?labels.?env.orValue('x') == 'prod'",
        "optional.none().orValue('x') == 'x'",
        "managedCluster.scores('demo').filter(s, s.value > 80).size() > 0",
        "type(1) == int",
        "duration('1h') + timestamp('2024-01-01T00:00:00Z') > timestamp('2023-01-01T00:00:00Z')",
        "{'a': 1}['a'] == 1 && {'a': 1}.a == 1",
        "[1, 2].map(x, string(x)).join(',') == '1,2'",
        "format.dns1123Label().validate('abc').hasValue()",
        "-1 < 2 && - 1 < 2",
        "'1Gi'.size() == 3 ? true : managedCluster.x",
    ];
    for text in right {
        if let Err(error) = Program::compile(text, ManagedCluster) {
            panic!("{text}: {error}");
        }
    }
}
