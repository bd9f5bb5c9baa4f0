//! Workloads.

use super::*;

const MISMATCH: &str = "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`";

#[test]
fn selectors_of_workloads() {
    let other = json!({"selector": {"matchLabels": {"app": "db"}}});
    check::<Deployment>(workload(other.clone()), &[MISMATCH]);
    check::<ReplicaSet>(workload(other.clone()), &[MISMATCH]);
    check::<StatefulSet>(workload(other.clone()), &[MISMATCH]);
    check::<DaemonSet>(workload(other), &[MISMATCH]);
    check::<ReplicationController>(workload(json!({"selector": {"app": "db"}})), &[MISMATCH]);
    check::<ReplicationController>(workload(json!({"selector": null})), &[]);
    check::<DaemonSet>(workload(json!({"selector": {}})), &[MISMATCH]);
    check::<Deployment>(
        workload(json!({"selector": {}})),
        &["spec.selector: Required value", MISMATCH],
    );
    check::<Deployment>(
        workload(json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}})),
        &[
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator",
            "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Like\"}]}: invalid label selector",
        ],
    );
    check::<Deployment>(
        workload(
            json!({"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}}),
        ),
        &[],
    );
}

#[test]
fn templates_of_workloads() {
    let mut given = workload(json!({"replicas": -1}));
    given["spec"]["template"]["metadata"]["labels"]["bad key"] = json!("v");
    given["spec"]["template"]["spec"] =
        json!({"containers": [], "restartPolicy": "Never", "activeDeadlineSeconds": 5});
    check::<Deployment>(
        given,
        &[
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.template.labels: Invalid value: \"bad key\": name part must consist of…",
            "spec.template.spec.containers: Required value",
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
        ],
    );
}

#[test]
fn deployments() {
    let rolling = |surge: Value, unavailable: Value| {
        workload(
            json!({"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}),
        )
    };
    let path = "spec.strategy.rollingUpdate";
    check::<Deployment>(rolling(json!(0), json!("10%")), &[]);
    check::<Deployment>(
        rolling(json!(0), json!("0%")),
        &[&format!(
            "{path}.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0"
        )],
    );
    check::<Deployment>(
        rolling(json!("half"), json!("101%")),
        &[
            &format!(
                "{path}.maxSurge: Invalid value: \"half\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ),
            &format!(
                "{path}.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"
            ),
        ],
    );
    check::<Deployment>(
        workload(
            json!({"minReadySeconds": 600, "strategy": {"type": "Recreate", "rollingUpdate": {}}}),
        ),
        &[
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ],
    );
}

#[test]
fn other_workloads() {
    let mut dotted = workload(json!({"podManagementPolicy": "Random"}));
    dotted["metadata"]["name"] = json!("a.b");
    check::<StatefulSet>(
        dotted,
        &[
            "metadata.name: Invalid value: \"a.b\": must not contain dots",
            "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'",
        ],
    );
    check::<DaemonSet>(
        workload(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}})),
        &[
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ],
    );
    check::<Job>(
        workload(json!({"completionMode": "Indexed", "parallelism": 2})),
        &[
            "spec.completions: Required value: when completion mode is Indexed",
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ],
    );
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    check::<Job>(workload(json!({"template": template})), &[]);
    check::<CronJob>(
        json!({"metadata": {"name": "c"}, "spec": {"concurrencyPolicy": "Never", "jobTemplate": {"spec": {"template": template}}}}),
        &[
            "spec.schedule: Required value",
            "spec.concurrencyPolicy: Unsupported value: \"Never\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ],
    );
}
