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
        workload(json!({"completionMode": "Indexed", "parallelism": 2, "manualSelector": true})),
        &[
            "spec.completions: Required value: when completion mode is Indexed",
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ],
    );
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    check::<Job>(
        workload(json!({"template": template, "manualSelector": true})),
        &[],
    );
    check::<CronJob>(
        json!({"metadata": {"name": "c"}, "spec": {"concurrencyPolicy": "Never", "jobTemplate": {"spec": {"template": template}}}}),
        &[
            "spec.schedule: Required value",
            "spec.concurrencyPolicy: Unsupported value: \"Never\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ],
    );
}

#[test]
fn a_job_has_the_selector_that_the_api_server_generates() {
    let job = |spec: serde_json::Value, labels: serde_json::Value| {
        let mut job = json!({"metadata": {"name": "j"}, "spec": spec});
        job["spec"]["template"] = template();
        job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
        job["spec"]["template"]["metadata"] = json!({"labels": labels});
        job
    };
    check::<Job>(job(json!({}), json!({"app": "a"})), &[]);
    check::<Job>(job(json!({}), json!({"job-name": "j"})), &[]);
    check::<Job>(
        job(
            json!({"selector": {"matchLabels": {"app": "a"}}}),
            json!({"app": "a"}),
        ),
        &[
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"a\"}}: `selector` not auto-generated",
        ],
    );
    check::<Job>(
        job(
            json!({"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}}),
            json!({"batch.kubernetes.io/controller-uid": "u", "job-name": "other"}),
        ),
        &[
            "spec.template.metadata.labels[job-name]: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u\",\"job-name\":\"other\"}: must be 'j'",
            "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u\",\"job-name\":\"other\"}: must be '<uid of the new Job>'",
            "spec.selector: Invalid value: {\"matchLabels\":{\"batch.kubernetes.io/controller-uid\":\"u\"}}: `selector` not auto-generated",
        ],
    );
    check::<Job>(
        job(json!({"manualSelector": true}), json!({"app": "a"})),
        &["spec.selector: Required value"],
    );
    check::<Job>(
        job(
            json!({"manualSelector": true, "selector": {"matchLabels": {"app": "b"}}}),
            json!({"app": "a"}),
        ),
        &[
            "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`",
        ],
    );
}

#[test]
fn a_cron_job_has_a_schedule_that_is_ever_due() {
    let cron_job = |spec: serde_json::Value| {
        let mut cron_job =
            json!({"metadata": {"name": "c"}, "spec": {"concurrencyPolicy": "Allow"}});
        for (name, value) in spec.as_object().unwrap() {
            cron_job["spec"][name] = value.clone();
        }
        let mut job = template();
        job["spec"]["restartPolicy"] = json!("Never");
        cron_job["spec"]["jobTemplate"]["spec"]["template"] = job;
        cron_job
    };
    check::<CronJob>(
        cron_job(json!({"schedule": "0 3 * * *", "timeZone": "Europe/Paris"})),
        &[],
    );
    check::<CronJob>(
        cron_job(json!({"schedule": "61 * * * *", "timeZone": "Europe/Pariss"})),
        &[
            "spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61",
            "spec.timeZone: Invalid value: \"Europe/Pariss\": unknown time zone Europe/Pariss",
        ],
    );
    check::<CronJob>(
        cron_job(json!({"schedule": "CRON_TZ=UTC 0 * * * *", "timeZone": "local"})),
        &[
            "spec.schedule: Invalid value: \"CRON_TZ=UTC 0 * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            "spec.timeZone: Invalid value: \"local\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ],
    );
    check::<CronJob>(
        cron_job(
            json!({"schedule": "@daily", "jobTemplate": {"spec": {"manualSelector": true, "selector": {}}}}),
        ),
        &[
            "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
            "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: \"nil\", \"false\"",
        ],
    );
}
