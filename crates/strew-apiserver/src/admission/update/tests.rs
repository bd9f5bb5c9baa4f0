//! Tables: what may change, what may not, and when the generation goes up.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, ResourceQuota};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use strew_manifest::patch::merge_patch;

/// Stores the object, patches it, and compares the generation or the errors.
#[track_caller]
fn check<T: Update + DeserializeOwned + Serialize + Clone>(
    object: &Value,
    patch: Value,
    expected: Result<i64, &[&str]>,
) {
    let mut old: T = serde_json::from_value(object.clone()).unwrap();
    old.set_defaults();
    old.metadata_mut().generation = Some(4);
    let sent = merge_patch(&serde_json::to_value(&old).unwrap(), &patch);
    let new: T = serde_json::from_value(sent).unwrap();
    match (admit_update(new, &old), expected) {
        (Ok(updated), Ok(generation)) => {
            assert_eq!(updated.object.metadata().generation, Some(generation));
            assert_eq!(updated.is_new_generation, generation == 5);
            assert_eq!(updated.is_changed, updated.object != old);
        }
        (Err(errors), Err(expected)) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected);
        }
        (actual, _) => panic!(
            "{:?}",
            actual.map(|updated| updated.object.metadata().clone())
        ),
    }
}

fn workload(more: Value) -> Value {
    let base = json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    merge_patch(&base, &more)
}

/// Selector and template changed together, so that the object by itself is valid.
fn other_selector() -> Value {
    json!({"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}})
}

const SELECTOR: &str =
    "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable";

#[test]
fn selectors_stay_and_specs_make_generations() {
    let web = workload(json!({}));
    let scaled = || json!({"spec": {"replicas": 5}});
    check::<Deployment>(&web, json!({}), Ok(4));
    check::<Deployment>(&web, scaled(), Ok(5));
    check::<Deployment>(&web, json!({"metadata": {"labels": {"a": "b"}}}), Ok(4));
    check::<Deployment>(
        &web,
        json!({"metadata": {"annotations": {"a": "b"}}}),
        Ok(5),
    );
    check::<Deployment>(&web, json!({"status": {"replicas": 9}}), Ok(4));
    check::<Deployment>(&web, other_selector(), Err(&[SELECTOR]));
    check::<Deployment>(
        &web,
        json!({"spec": {"replicas": -1}, "metadata": {"name": "other", "namespace": "n"}}),
        Err(&[
            "metadata.name: Invalid value: \"other\": field is immutable",
            "metadata.namespace: Invalid value: \"n\": field is immutable",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ]),
    );
    check::<ReplicaSet>(&web, scaled(), Ok(5));
    check::<ReplicaSet>(
        &web,
        json!({"metadata": {"annotations": {"a": "b"}}}),
        Ok(4),
    );
    check::<ReplicaSet>(&web, other_selector(), Err(&[SELECTOR]));
    check::<DaemonSet>(&web, json!({"spec": {"minReadySeconds": 3}}), Ok(5));
    check::<DaemonSet>(&web, other_selector(), Err(&[SELECTOR]));
}

#[test]
fn what_the_client_leaves_out_stays() {
    let mut old: Deployment = serde_json::from_value(workload(
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"replicas": 1}}),
    ))
    .unwrap();
    old.set_defaults();
    let new: Deployment = serde_json::from_value(workload(json!({}))).unwrap();
    let updated = admit_update(new, &old).unwrap();
    assert_eq!(updated.object, old);
    assert!(!updated.is_changed && !updated.is_new_generation);
}

#[test]
fn stateful_sets_change_seven_fields() {
    let set = workload(json!({"spec": {"serviceName": "s"}}));
    for field in [
        json!({"replicas": 3}),
        json!({"ordinals": {"start": 1}}),
        json!({"template": {"spec": {"priorityClassName": "high"}}}),
        json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}),
        json!({"revisionHistoryLimit": 3}),
        json!({"minReadySeconds": 3}),
        json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}),
    ] {
        check::<StatefulSet>(&set, json!({"spec": field}), Ok(5));
    }
    let sentence = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    for field in [
        json!({"serviceName": "t"}),
        json!({"podManagementPolicy": "Parallel"}),
    ] {
        check::<StatefulSet>(&set, json!({"spec": field}), Err(&[sentence]));
    }
}

#[test]
fn the_template_of_a_job_stays_once_it_runs() {
    let job = |spec: Value| {
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
        let base = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
        merge_patch(&base, &json!({"spec": spec}))
    };
    let node_selector = || json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
    check::<Job>(
        &job(json!({})),
        json!({"spec": {"parallelism": 2, "suspend": true}}),
        Ok(5),
    );
    check::<Job>(
        &job(json!({})),
        node_selector(),
        Err(&[
            "spec.template: Invalid value: {\"spec\":{\"containers\":[{\"image\":\"i\",\"name\":\"c\"}],\"nodeSelector\":{\"a\":\"b\"},\"restartPolicy\":\"Never\",\"schedulerName\":\"default-scheduler\",\"terminationGracePeriodSeconds\":30}}: field is immutable",
        ]),
    );
    let suspended = job(json!({"suspend": true}));
    check::<Job>(&suspended, node_selector(), Ok(5));
    check::<Job>(
        &suspended,
        json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"affinity": {"nodeAffinity": {}}, "tolerations": [{"operator": "Exists"}]}}}}),
        Ok(5),
    );
    check::<Job>(
        &job(json!({"completions": 2})),
        json!({"spec": {"completions": 3}}),
        Err(&["spec.completions: Invalid value: 3: field is immutable"]),
    );
    let indexed = job(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed"}));
    check::<Job>(
        &indexed,
        json!({"spec": {"completions": 3, "parallelism": 3}}),
        Ok(5),
    );
    check::<Job>(
        &indexed,
        json!({"spec": {"completions": 3}}),
        Err(&[
            "spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism",
        ]),
    );
}

fn pod(spec: Value) -> Value {
    let base = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]}});
    merge_patch(&base, &json!({"spec": spec}))
}

#[test]
fn pods_hardly_change() {
    let plain = pod(json!({"activeDeadlineSeconds": 10}));
    let only = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    let kept =
        json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
    let cases: [(Value, Result<i64, &[&str]>); 11] = [
        (json!({}), Ok(4)),
        (json!({"containers": [{"name": "c", "image": "j"}]}), Ok(5)),
        (json!({"activeDeadlineSeconds": 9}), Ok(5)),
        (
            json!({"tolerations": [kept, {"key": "more", "operator": "Exists"}]}),
            Ok(5),
        ),
        (
            json!({"activeDeadlineSeconds": 11}),
            Err(&[
                "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value",
            ]),
        ),
        (
            json!({"activeDeadlineSeconds": null}),
            Err(&[
                "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
            ]),
        ),
        (
            json!({"tolerations": []}),
            Err(&[
                "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            ]),
        ),
        (
            json!({"schedulingGates": [{"name": "g"}]}),
            Err(&[
                "spec.schedulingGates[0]: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
            ]),
        ),
        (
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}),
            Err(&["spec.containers: Forbidden: pod updates may not add or remove containers"]),
        ),
        (json!({"nodeSelector": {"a": "b"}}), Err(&[only])),
        (json!({"nodeName": "n"}), Err(&[only])),
    ];
    for (patch, expected) in cases {
        check::<Pod>(&plain, json!({"spec": patch}), expected);
    }
}

#[test]
fn gated_pods_may_be_narrowed() {
    let required = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
    let exists = |key: &str| json!({"key": key, "operator": "Exists"});
    let term = |keys: &[&str]| {
        let all: Vec<Value> = keys.iter().map(|key| exists(key)).collect();
        json!({"matchExpressions": all})
    };
    let gated = |more: Value| {
        let base = json!({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}});
        pod(merge_patch(&base, &more))
    };
    let plain = gated(json!({}));
    let narrowed = gated(required(json!([term(&["x"])])));
    check::<Pod>(&plain, json!({"spec": {"schedulingGates": null}}), Ok(5));
    check::<Pod>(&plain, json!({"spec": {"nodeSelector": {"c": "d"}}}), Ok(5));
    check::<Pod>(
        &plain,
        json!({"spec": required(json!([term(&["x"]), term(&["y"])]))}),
        Ok(5),
    );
    check::<Pod>(
        &narrowed,
        json!({"spec": required(json!([term(&["x", "y"])]))}),
        Ok(5),
    );
    check::<Pod>(
        &plain,
        json!({"spec": {"nodeSelector": {"a": "c"}}}),
        Err(&[
            "spec.nodeSelector: Invalid value: {\"a\":\"c\"}: only additions are allowed (no deletions or mutations)",
        ]),
    );
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    check::<Pod>(
        &narrowed,
        json!({"spec": required(json!([term(&["y"])]))}),
        Err(&[&format!(
            "{at}[0]: Invalid value: {{\"matchExpressions\":[{{\"key\":\"y\",\"operator\":\"Exists\"}}]}}: only additions are allowed (no deletions or mutations)"
        )]),
    );
    check::<Pod>(
        &narrowed,
        json!({"spec": {"affinity": null}}),
        Err(&[&format!(
            "{at}: Invalid value: []: no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        )]),
    );
}

#[test]
fn the_priority_of_a_pod_need_not_be_sent_again() {
    let options = AdmissionOptions::KUBERNETES_1_36;
    let mut old: Pod =
        serde_json::from_value(pod(json!({"priority": 7, "preemptionPolicy": "Never"}))).unwrap();
    old.set_defaults();
    tolerations::add_defaults(old.spec.as_mut().unwrap(), &options);
    let new: Pod = serde_json::from_value(pod(json!({}))).unwrap();
    let refused = admit_pod_update(new, &old, &options);
    // The file lacks the default tolerations too, but these are added again.
    assert!(!refused.unwrap().is_changed);
}

#[test]
fn nodes_budgets_autoscalers_and_quotas() {
    let node = json!({"metadata": {"name": "n"}, "spec": {"providerID": "p"}});
    check::<Node>(
        &node,
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        Ok(4),
    );
    check::<Node>(
        &node,
        json!({"spec": {"providerID": "q"}}),
        Err(&[
            "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
        ]),
    );
    let budget = json!({"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    check::<PodDisruptionBudget>(
        &budget,
        json!({"spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"a": "c"}}}}),
        Ok(5),
    );
    let autoscaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
    check::<HorizontalPodAutoscaler>(&autoscaler, json!({"spec": {"maxReplicas": 4}}), Ok(4));
    check::<HorizontalPodAutoscaler>(
        &autoscaler,
        json!({"spec": {"maxReplicas": 0}}),
        Err(&[
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ]),
    );
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort", "Terminating"]}});
    check::<ResourceQuota>(
        &quota,
        json!({"spec": {"scopes": ["Terminating", "BestEffort"], "hard": {"pods": "2"}}}),
        Ok(4),
    );
    check::<ResourceQuota>(
        &quota,
        json!({"spec": {"scopes": ["Terminating"]}}),
        Err(&["spec.scopes: Invalid value: [\"Terminating\"]: field is immutable"]),
    );
}

#[test]
fn claims_only_grow() {
    let claim = json!({
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeName": "v", "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": "10Gi"}},
        },
        "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}},
    });
    let with = |more: Value| merge_patch(&claim, &more);
    let asks = |storage: &str| json!({"spec": {"resources": {"requests": {"storage": storage}}}});
    check::<PersistentVolumeClaim>(&claim, asks("20Gi"), Ok(4));
    // What grows and fails to may be taken back, but not to what the volume has.
    check::<PersistentVolumeClaim>(&claim, asks("6Gi"), Ok(4));
    let smaller =
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity";
    check::<PersistentVolumeClaim>(&claim, asks("5Gi"), Err(&[smaller]));
    check::<PersistentVolumeClaim>(&claim, asks("1Gi"), Err(&[smaller]));
    check::<PersistentVolumeClaim>(&claim, json!({"metadata": {"labels": {"a": "b"}}}), Ok(4));
    check::<PersistentVolumeClaim>(&claim, json!({"status": {"phase": "Lost"}}), Ok(4));
    let stays = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    check::<PersistentVolumeClaim>(
        &claim,
        json!({"spec": {"accessModes": ["ReadWriteMany"]}}),
        Err(&[stays]),
    );
    check::<PersistentVolumeClaim>(&claim, json!({"spec": {"volumeName": "w"}}), Err(&[stays]));
    let mode = "volumeMode: Invalid value: \"Block\": field is immutable";
    check::<PersistentVolumeClaim>(
        &claim,
        json!({"spec": {"volumeMode": "Block"}}),
        Err(&[stays, mode]),
    );
    check::<PersistentVolumeClaim>(&claim, json!({"spec": {"storageClassName": "fast"}}), Ok(4));
    let classed = with(json!({"spec": {"storageClassName": "slow"}}));
    check::<PersistentVolumeClaim>(
        &classed,
        json!({"spec": {"storageClassName": "fast"}}),
        Err(&[stays]),
    );
    let pending = with(
        json!({"spec": {"volumeName": null}, "status": {"phase": "Pending", "capacity": null}}),
    );
    check::<PersistentVolumeClaim>(&pending, json!({"spec": {"volumeName": "v"}}), Ok(4));
    check::<PersistentVolumeClaim>(&pending, asks("20Gi"), Err(&[stays]));
}
