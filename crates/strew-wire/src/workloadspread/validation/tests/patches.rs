//! What patches must not touch.

use std::collections::BTreeSet;

use super::*;

/// A user with the right to create WorkloadSpreads, and no other, could change the target's pods into any pod under any
/// account.
#[test]
fn a_patch_touches_no_guarded_field_unless_that_is_allowed() {
    let at = |path: &str| format!("spec.subsets[0].patch.{path}");
    let container = |more: Value| json!({"spec": {"containers": [more]}});
    let cases = [
        (
            "hostNetwork",
            json!({"spec": {"hostNetwork": true}}),
            at("spec.hostNetwork"),
        ),
        (
            "hostPID",
            json!({"spec": {"hostPID": true}}),
            at("spec.hostPID"),
        ),
        (
            "hostIPC",
            json!({"spec": {"hostIPC": true}}),
            at("spec.hostIPC"),
        ),
        (
            "hostUsers",
            json!({"spec": {"hostUsers": true}}),
            at("spec.hostUsers"),
        ),
        (
            "hostPort",
            container(
                json!({"name": "c", "ports": [{"containerPort": 1}, {"containerPort": 2, "hostPort": 2}]}),
            ),
            at("spec.containers[0].ports[1].hostPort"),
        ),
        (
            "hostPath",
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}),
            at("spec.volumes[0].hostPath"),
        ),
        (
            "securityContext",
            json!({"spec": {"securityContext": {"runAsUser": 0}}}),
            at("spec.securityContext"),
        ),
        (
            "securityContext",
            json!({"spec": {"$patch": "replace"}}),
            at("spec.$patch"),
        ),
        (
            "securityContext",
            container(json!({"name": "c", "securityContext": {"privileged": true}})),
            at("spec.containers[0].securityContext"),
        ),
        (
            "securityContext",
            container(json!({"name": "c", "$patch": "replace"})),
            at("spec.containers[0].$patch"),
        ),
        (
            "securityContext",
            container(json!({"$patch": "replace"})),
            at("spec.containers[0].$patch"),
        ),
        (
            "securityContext",
            json!({"spec": {"initContainers": [{"name": "c", "securityContext": {}}]}}),
            at("spec.initContainers[0].securityContext"),
        ),
        (
            "serviceAccountName",
            json!({"spec": {"serviceAccountName": "admin"}}),
            at("spec.serviceAccountName"),
        ),
        (
            "serviceAccountName",
            json!({"spec": {"serviceAccount": "admin"}}),
            at("spec.serviceAccount"),
        ),
        (
            "automountServiceAccountToken",
            json!({"spec": {"automountServiceAccountToken": true}}),
            at("spec.automountServiceAccountToken"),
        ),
        (
            "nodeName",
            json!({"spec": {"nodeName": "n1"}}),
            at("spec.nodeName"),
        ),
        (
            "schedulerName",
            json!({"spec": {"schedulerName": "mine"}}),
            at("spec.schedulerName"),
        ),
        (
            "priority",
            json!({"spec": {"priority": 2_000_000_000}}),
            at("spec.priority"),
        ),
        (
            "securityContext",
            json!({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}}),
            at("metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]"),
        ),
        (
            "securityContext",
            json!({"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": null}}}),
            at("metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]"),
        ),
        (
            "securityContext",
            json!({"metadata": {"annotations": {"$patch": "replace"}}}),
            at("metadata.annotations.$patch"),
        ),
        (
            "priority",
            json!({"spec": {"preemptionPolicy": "Never"}}),
            at("spec.preemptionPolicy"),
        ),
        (
            "priorityClassName",
            json!({"spec": {"priorityClassName": "system-node-critical"}}),
            at("spec.priorityClassName"),
        ),
        (
            "finalizers",
            json!({"metadata": {"finalizers": ["x/y"]}}),
            at("metadata.finalizers"),
        ),
        (
            "finalizers",
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/y"]}}),
            at("metadata.finalizers"),
        ),
        ("finalizers", json!({"$patch": "replace"}), at("$patch")),
        (
            "ownerReferences",
            json!({"metadata": {"ownerReferences": []}}),
            at("metadata.ownerReferences"),
        ),
    ];
    for (name, patch, path) in &cases {
        let spec = subsets(json!([{"name": "a", "patch": patch}]));
        check(spec.clone(), &Context::default(), &[(path, "Invalid")]);
        let allowed = [(*name).to_owned()];
        let cx = Context {
            allowed: &allowed,
            ..Context::default()
        };
        check(spec, &cx, &[]);
    }
    let tried: BTreeSet<&str> = cases.iter().map(|(name, ..)| *name).collect();
    assert_eq!(tried, GUARDED.into_iter().collect());
    // Maps of a tenant's own have keys of any name.
    let own = json!({
        "metadata": {"annotations": {"hostPath": "x"}, "labels": {"priority": "high"}},
        "spec": {"nodeSelector": {"nodeName": "n1"}, "priorityClassName": "high", "containers": [{"name": "c", "image": "x", "env": [{"name": "hostPath", "value": "y"}]}]},
    });
    check(
        subsets(json!([{"name": "a", "patch": own}])),
        &Context::default(),
        &[],
    );
}

/// `45-patch-ns.yaml` of the audit: an API server refuses every pod with such a patch, and nothing said so before.
#[test]
fn a_patch_names_no_pod() {
    let metadata = "spec.subsets[0].patch.metadata";
    for (field, value) in [
        ("name", json!("z")),
        ("name", json!(null)),
        ("generateName", json!("z-")),
        ("namespace", json!("other")),
        ("uid", json!("u")),
        ("resourceVersion", json!("1")),
        ("generation", json!(1)),
        ("creationTimestamp", json!("2026-01-01T00:00:00Z")),
        ("deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(1)),
        ("selfLink", json!("/x")),
        ("managedFields", json!([])),
    ] {
        let patch = json!({"metadata": {field: value, "labels": {"name": "z"}}});
        let spec = subsets(json!([{"name": "a", "patch": patch}]));
        let path = format!("{metadata}.{field}");
        check(spec, &Context::default(), &[(&path, "Invalid")]);
    }
    let own = json!({"metadata": {"annotations": {"name": "z", "uid": "u"}}});
    check(
        subsets(json!([{"name": "a", "patch": own}])),
        &Context::default(),
        &[],
    );
}

/// `selector-label-patch.yaml` of the audit: its ReplicaSet never saw its pods, and made sixty others a second.
#[test]
fn a_patch_leaves_the_labels_by_which_a_workload_finds_its_pods() {
    let target = KubeObject::of_json(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pay"},
        "spec": {
            "selector": {"matchLabels": {"app": "pay"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]},
            "template": {"metadata": {"labels": {"app": "pay", "more": "1"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
        },
    }))
    .unwrap();
    let cx = Context {
        target: Some(&target),
        ..Context::default()
    };
    let labels = "spec.subsets[0].patch.metadata.labels";
    for (patch, wrong) in [
        (json!({"app": "other"}), Some(labels.to_owned())),
        (json!({"app": null}), Some(labels.to_owned())),
        (json!({"tier": "test"}), Some(labels.to_owned())),
        (
            json!({"pod-template-hash": "x"}),
            Some(format!("{labels}[pod-template-hash]")),
        ),
        (
            json!({"app": "pay", "more": "2", "tier": "live", "subset": "a"}),
            None,
        ),
    ] {
        let spec = subsets(json!([{"name": "a", "patch": {"metadata": {"labels": patch}}}]));
        let expected: Vec<(&str, &str)> = wrong
            .iter()
            .map(|path| (path.as_str(), "Invalid"))
            .collect();
        check(spec, &cx, &expected);
    }
}

/// `uc4-limits.yaml` of the audit: every pod was refused, since the template's limits had become requests before the patch
/// lowered the limits.
#[test]
fn requests_that_follow_from_the_templates_limits_are_in_the_pod_that_is_patched() {
    let deployment = KubeObject::of_json(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "m:1", "resources": {
                "limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "150m"}}}]},
        }},
    }));
    let deployment = deployment.expect("a Deployment");
    let cx = Context {
        target: Some(&deployment),
        ..Context::default()
    };
    let patch = |memory: &str| json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": memory}}}]}});
    let with = |memory: &str| subsets(json!([{"name": "a", "patch": patch(memory)}]));
    check(with("2Gi"), &cx, &[]);
    let at = "spec.subsets[0].patch.containers[0].resources.requests";
    check(with("900Mi"), &cx, &[(at, "Invalid")]);
}
