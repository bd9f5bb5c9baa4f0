//! Tables: what is used, what is refused and with which words.

use super::*;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn pod(fields: Value) -> Pod {
    let mut pod = json!({"metadata": {"name": "x"}, "spec": {"containers": []}});
    pod.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    serde_json::from_value(pod).unwrap()
}

/// A pod with one container `c`.
fn asking(resources: Value) -> Pod {
    pod(json!({"spec": {"containers": [{"name": "c", "resources": resources}]}}))
}

fn quota(hard: Value, used: Value, spec: Value) -> ResourceQuota {
    let mut spec = spec;
    spec["hard"] = hard.clone();
    serde_json::from_value(
        json!({"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used}}),
    )
    .unwrap()
}

#[track_caller]
fn check_usage(pod: &Pod, expected: Value) {
    let usage = write(&pod_usage(pod, now()));
    assert_eq!(serde_json::to_value(usage).unwrap(), expected);
}

#[test]
fn a_pod_uses_what_its_containers_ask_for() {
    check_usage(
        &asking(
            json!({"requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
            "limits": {"cpu": "1", "nvidia.com/gpu": "2"}}),
        ),
        json!({
            "count/pods": "1", "pods": "1", "cpu": "500m", "requests.cpu": "500m", "limits.cpu": "1",
            "memory": "1Gi", "requests.memory": "1Gi", "requests.nvidia.com/gpu": "2",
            "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
        }),
    );
    let cpu = |name: &str, amount: &str| json!({"name": name, "resources": {"requests": {"cpu": amount}}});
    let mut sidecar = cpu("s", "1");
    sidecar["restartPolicy"] = json!("Always");
    check_usage(
        &pod(
            json!({"spec": {"containers": [cpu("c", "1")], "initContainers": [sidecar, cpu("i", "5")],
            "overhead": {"cpu": "100m", "memory": "1Ki"}}}),
        ),
        json!({"count/pods": "1", "pods": "1", "cpu": "6100m", "requests.cpu": "6100m",
            "memory": "1Ki", "requests.memory": "1Ki"}),
    );
}

#[test]
fn a_pod_counts_until_it_is_finished_or_overdue() {
    let deleted = |grace: i64| {
        json!({"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:09:30Z",
            "deletionGracePeriodSeconds": grace}})
    };
    let cases = [
        (json!({}), true),
        (json!({"status": {"phase": "Pending"}}), true),
        (json!({"status": {"phase": "Succeeded"}}), false),
        (json!({"status": {"phase": "Failed"}}), false),
        (deleted(30), true),
        (deleted(29), false),
        (deleted(i64::MAX), false),
    ];
    for (fields, expected) in cases {
        let pod = pod(fields);
        assert_eq!(counts(&pod, now()), expected, "{pod:?}");
        assert!(pod_usage(&pod, now()).contains_key(COUNT_PODS));
    }
}

/// The new usage as JSON, else the refusal.
#[track_caller]
fn check_charge(pod: &Pod, quotas: &[ResourceQuota], expected: Result<Value, &str>) {
    let charged = charge_pod(pod, quotas, now());
    let charged = match charged {
        Ok(charges) => Ok(json!(
            charges
                .iter()
                .map(|charge| json!([charge.quota_idx, charge.used]))
                .collect::<Vec<_>>()
        )),
        Err(refusal) => Err(refusal.to_string()),
    };
    assert_eq!(charged, expected.map_err(str::to_string));
}

#[test]
fn usage_rises_by_what_the_quota_counts() {
    let pod = asking(json!({"requests": {"cpu": "500m"}}));
    check_charge(
        &pod,
        &[
            quota(
                json!({"services": "1"}),
                json!({"services": "1"}),
                json!({}),
            ),
            quota(
                json!({"pods": "10", "requests.cpu": "2", "requests.nvidia.com/gpu": "0"}),
                json!({"pods": "9", "requests.cpu": "1500m", "requests.nvidia.com/gpu": "0"}),
                json!({}),
            ),
        ],
        Ok(json!([[1, {"pods": "10", "requests.cpu": "2", "requests.nvidia.com/gpu": "0"}]])),
    );
}

#[test]
fn refusals_have_the_servers_words() {
    let small = asking(json!({"requests": {"cpu": "500m", "memory": "1Gi"}}));
    let two = pod(
        json!({"spec": {"containers": [{"name": "c2"}, {"name": "c1"}], "initContainers": [
        {"name": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1"}}}]}}),
    );
    let cases = [
        (
            &small,
            quota(json!({"pods": "10"}), json!({"pods": "10"}), json!({})),
            "exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10",
        ),
        (
            &small,
            quota(
                json!({"requests.memory": "2Gi", "requests.cpu": "1", "pods": "10"}),
                json!({"requests.memory": "1536Mi", "requests.cpu": "600m", "pods": "1"}),
                json!({}),
            ),
            "exceeded quota: q, requested: requests.cpu=500m,requests.memory=1Gi, used: requests.cpu=600m,requests.memory=1536Mi, limited: requests.cpu=1,requests.memory=2Gi",
        ),
        (
            &two,
            quota(
                json!({"limits.cpu": "4", "requests.memory": "1Gi", "requests.ephemeral-storage": "1"}),
                json!({}),
                json!({}),
            ),
            "failed quota: q: must specify limits.cpu for: c1,c2; requests.memory for: c1,c2",
        ),
        (
            &small,
            quota(
                json!({"pods": "10", "cpu": "1"}),
                json!({"pods": "1"}),
                json!({}),
            ),
            "status unknown for quota: q, resources: cpu,pods",
        ),
    ];
    for (pod, quota, expected) in cases {
        let expected = format!("pods \"x\" is forbidden: {expected}");
        check_charge(pod, &[quota], Err(&expected));
    }
}

#[test]
fn scopes_pick_pods() {
    let plain = asking(json!({}));
    let asks = asking(json!({"limits": {"memory": "1"}}));
    let ends = pod(json!({"spec": {"containers": [], "activeDeadlineSeconds": 10}}));
    let high = pod(json!({"spec": {"containers": [], "priorityClassName": "high"}}));
    let abroad = pod(
        json!({"spec": {"containers": [], "affinity": {"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "k", "namespaces": ["n"]}}]}}}}),
    );
    let scopes = |names: &[&str]| json!({"scopes": names});
    let class = |operator: &str, values: &[&str]| {
        json!({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values}]}})
    };
    let cases = [
        (&plain, scopes(&["BestEffort"]), true),
        (&asks, scopes(&["BestEffort"]), false),
        (&asks, scopes(&["NotBestEffort"]), true),
        (&ends, scopes(&["Terminating"]), true),
        (&ends, scopes(&["NotTerminating", "BestEffort"]), false),
        (&plain, scopes(&["NotTerminating", "BestEffort"]), true),
        (&high, scopes(&["PriorityClass"]), true),
        (&plain, scopes(&["PriorityClass"]), false),
        (&high, class("In", &["high"]), true),
        (&high, class("NotIn", &["high"]), false),
        (&plain, class("NotIn", &["high"]), true),
        (&plain, class("DoesNotExist", &[]), true),
        (&abroad, scopes(&["CrossNamespacePodAffinity"]), true),
        (&plain, scopes(&["CrossNamespacePodAffinity"]), false),
    ];
    for (pod, spec, expected) in cases {
        let text = spec.to_string();
        let quota = quota(json!({"pods": "1"}), json!({"pods": "0"}), spec);
        let charges = charge_pod(pod, &[quota], now()).unwrap();
        assert_eq!(!charges.is_empty(), expected, "{text} {pod:?}");
    }
}

#[test]
fn charging_and_recounting_agree() {
    let hard = json!({"pods": "5", "count/pods": "5", "requests.cpu": "5", "limits.memory": "1Gi", "services": "1"});
    let mut quota = quota(hard, json!({}), json!({}));
    let made: Vec<Pod> = ["100m", "1", "250m"]
        .iter()
        .map(|cpu| asking(json!({"requests": {"cpu": cpu}, "limits": {"memory": "1Mi"}})))
        .collect();
    let empty = used_by_pods(&quota, [], now());
    quota.status.as_mut().unwrap().used = Some(empty);
    for pod in &made {
        let charged = charge_pod(pod, std::slice::from_ref(&quota), now()).unwrap();
        quota.status.as_mut().unwrap().used = Some(charged[0].used.clone());
    }
    let recounted = used_by_pods(&quota, &made, now());
    assert_eq!(quota.status.unwrap().used.unwrap(), recounted);
    assert_eq!(recounted["requests.cpu"].0, "1350m");
    assert_eq!(recounted["limits.memory"].0, "3Mi");
}
