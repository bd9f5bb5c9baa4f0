//! Policies of Jobs.

use super::*;

/// Checks a Job whose pods are not restarted, with these fields.
#[track_caller]
fn check_job(fields: Value, expected: &[&str]) {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    let mut job = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
    let given = fields.as_object().unwrap().clone();
    job["spec"].as_object_mut().unwrap().extend(given);
    let expected: Vec<String> = expected.iter().map(|line| format!("spec.{line}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check::<Job>(job, &expected);
}

#[test]
fn limits_per_index_need_indexes() {
    check_job(
        json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1, "maxFailedIndexes": 2}),
        &[],
    );
    check_job(
        json!({"backoffLimitPerIndex": 1}),
        &["backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
    );
    check_job(
        json!({"maxFailedIndexes": -1}),
        &[
            "maxFailedIndexes: Invalid value: -1: must be greater than or equal to 0",
            "backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
            "maxFailedIndexes: Invalid value: -1: requires indexed completion mode",
        ],
    );
    check_job(
        json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1, "maxFailedIndexes": 3}),
        &["maxFailedIndexes: Invalid value: 3: must be less than or equal to completions"],
    );
}

#[test]
fn failure_policies() {
    let rules = |rules: Value| json!({"podFailurePolicy": {"rules": rules}});
    check_job(
        rules(json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1, 2]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0]}},
        ])),
        &[],
    );
    check_job(
        rules(json!([
            {"action": "", "onPodConditions": [{"type": "a b", "status": "Maybe"}]},
            {"action": "Fail"},
            {"action": "FailIndex", "onExitCodes": {"containerName": "x", "operator": "Is", "values": []}},
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [3, 0, 3]},
                "onPodConditions": [{"type": "Ready", "status": "False"}]},
        ])),
        &[
            "podFailurePolicy.rules[0].action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
            "podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: \"a b\": name part must consist of…",
            "podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
            "podFailurePolicy.rules[1].action: Unsupported value: \"Fail\": supported values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"",
            "podFailurePolicy.rules[1]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            "podFailurePolicy.rules[2].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
            "podFailurePolicy.rules[2].onExitCodes.operator: Unsupported value: \"Is\": supported values: \"In\", \"NotIn\"",
            "podFailurePolicy.rules[2].onExitCodes.containerName: Invalid value: \"x\": must be one of the container or initContainer names in the pod template",
            "podFailurePolicy.rules[2].onExitCodes.values: Invalid value: []: at least one value is required",
            "podFailurePolicy.rules[3].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
            "podFailurePolicy.rules[3].onExitCodes.values[2]: Duplicate value: 3",
            "podFailurePolicy.rules[3].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
            "podFailurePolicy.rules[3]: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
        ],
    );
    let many = vec![json!({"action": "Count", "onPodConditions": [{"type": "Ready"}]}); 21];
    check_job(
        rules(json!(many)),
        &["podFailurePolicy.rules: Too many: 21: must have at most 20 items"],
    );
}

#[test]
fn a_failure_policy_looks_at_pods_that_have_ended() {
    let policy = json!({"rules": []});
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("OnFailure");
    check_job(
        json!({"podFailurePolicy": policy, "podReplacementPolicy": "TerminatingOrFailed", "template": template}),
        &[
            "podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \"Failed\"",
            "template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified",
        ],
    );
    check_job(
        json!({"podReplacementPolicy": "Soon"}),
        &[
            "podReplacementPolicy: Unsupported value: \"Soon\": supported values: \"Failed\", \"TerminatingOrFailed\"",
        ],
    );
}

#[test]
fn success_policies_need_indexes() {
    let rules = json!({"rules": [{"succeededCount": 1}]});
    check_job(
        json!({"completionMode": "Indexed", "completions": 2, "successPolicy": rules}),
        &[],
    );
    check_job(
        json!({"successPolicy": rules}),
        &[
            "successPolicy: Invalid value: {\"Rules\":[{\"SucceededIndexes\":null,\"SucceededCount\":1}]}: requires indexed completion mode",
        ],
    );
    let indexed = |rules: Value| json!({"completionMode": "Indexed", "completions": 2, "successPolicy": {"rules": rules}});
    check_job(
        indexed(json!([])),
        &[
            "successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified",
        ],
    );
    check_job(
        indexed(json!([{}, {"succeededCount": 3}])),
        &[
            "successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified",
            "successPolicy.rules[1].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of specified completions)",
        ],
    );
}
