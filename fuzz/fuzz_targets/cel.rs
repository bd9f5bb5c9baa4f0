//! Any text as an expression of both environments: it compiles or is refused with a place inside the text, and an
//! evaluation ends, the same each time, for no more than it may cost.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use strew_cel::{Budget, Environment, Program, Value, Variables};

/// Little enough for thousands of inputs a second; that limits hold does not depend on their size.
const COST_MAX: u64 = 100_000;

static SCENARIO: LazyLock<Variables> = LazyLock::new(|| {
    let pods = json!([
        {"name": "a", "namespace": "x", "phase": "Running", "node": "n1", "ready": true,
         "labels": {"app": "web", "subset": "ecs"}, "annotations": {"cost": "100"}, "domains": {"zone": "a"}},
        {"name": "b", "namespace": "x", "phase": "Pending", "node": "", "ready": false,
         "labels": {}, "annotations": {}, "domains": {}},
    ]);
    let nodes = json!([{"name": "n1", "labels": {"zone": "a"}, "ready": true, "unschedulable": false, "pods": 1}]);
    let objects = json!([{"kind": "Job", "metadata": {"name": "j"}, "spec": {"n": 1.5, "big": u64::MAX, "null": null}}]);
    let [pods, nodes, objects] = [pods, nodes, objects].map(|json| Value::from_json(&json));
    Variables::scenario(pods, nodes, objects, Value::duration(90_000_000_000))
});

static CLUSTER: LazyLock<Variables> = LazyLock::new(|| {
    let cluster = json!({
        "metadata": {"name": "c", "labels": {"version": "1.14.3"}},
        "status": {"capacity": {"cpu": "10"}, "clusterClaims": [{"name": "sku", "value": "{\"cores\": 8}"}]},
    });
    let scores = Value::from_json(&json!([{"name": "demo", "value": 90}]));
    let scores = BTreeMap::from([("demo".to_owned(), scores)]);
    Variables::managed_cluster(Value::from_json(&cluster), scores)
});

fuzz_target!(|text: &str| {
    check(text, Environment::Scenario, &SCENARIO);
    check(text, Environment::ManagedCluster, &CLUSTER);
});

fn check(text: &str, environment: Environment, variables: &Variables) {
    let program = match Program::compile(text, environment) {
        Ok(program) => program,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{error:?}");
            assert!(error.line >= 1 && error.column >= 1, "{error:?}");
            let _ = error.as_ocm(text);
            return;
        }
    };
    let mut budget = Budget::new(COST_MAX);
    let result = program.holds_within(variables, &mut budget);
    let mut again = Budget::new(COST_MAX);
    assert_eq!(result, program.holds_within(variables, &mut again));
    assert_eq!(budget, again, "equal evaluations cost the same");
    let is_over = budget.spent() > COST_MAX;
    let ended = matches!(&result, Err(e) if e.kind == strew_cel::EvalErrorKind::Cost);
    assert_eq!(is_over, ended, "{result:?}");
}
