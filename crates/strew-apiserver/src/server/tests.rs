//! The door, as a real API server answers.

use serde_json::{Value, json};
use strew_manifest::read::KubeObject;
use strew_model::Prng;
use strew_model::time::Instant;
use strew_wire::config::AdmissionOptions;
use strew_wire::request::{Answer, Precondition, Request, Resource, Verb};
use strew_wire::workloadspread::request::WORKLOAD_SPREADS;

use super::Server;
use crate::admission::read_back;
use crate::object::Object;

const NOW: Instant = Instant::from_secs(1_000);

fn server(objects: &[Value]) -> Server {
    let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(1));
    for object in objects {
        let object = read_back(KubeObject::of_json(object.clone()).unwrap());
        server.preload(NOW, Object::of_wire(object));
    }
    server
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn spread() -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a"}},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": [{"name": "own"}]},
    })
}

fn request(verb: Verb, resource: Resource, subresource: &'static str, body: Value) -> Request {
    Request {
        verb,
        resource,
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        subresource,
        body,
        precondition: Precondition::default(),
    }
}

impl Server {
    fn ask(&mut self, verb: Verb, resource: Resource, part: &'static str, body: Value) -> Answer {
        self.execute(NOW, &request(verb, resource, part, body))
    }

    /// The object `shop/web`.
    #[track_caller]
    fn read(&mut self, resource: Resource) -> Value {
        let answer = self.ask(Verb::Get, resource, "", Value::Null);
        answer
            .object()
            .unwrap_or_else(|| panic!("{answer:?}"))
            .clone()
    }
}

#[track_caller]
fn expect(answer: &Answer, code: u16, reason: &str) {
    let Answer::Status {
        code: found, body, ..
    } = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!(
        (*found, body["reason"].as_str()),
        (code, Some(reason)),
        "{body}"
    );
    assert_eq!(body["kind"], "Status");
}

#[test]
fn every_field_of_a_status_that_kubernetes_knows_survives_a_patch() {
    let mut server = server(&[pod()]);
    let before = server.read(Resource::PODS);
    let status = json!({
        "phase": "Running",
        "observedGeneration": 7,
        "resize": "Proposed",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "qosClass": "Burstable",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "observedGeneration": 7, "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastProbeTime": "2026-01-01T00:00:01Z"}],
        "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 3,
            "started": true, "state": {"running": {"startedAt": "2026-01-01T00:00:02Z"}}}],
    });
    let answer = server.ask(
        Verb::Patch,
        Resource::PODS,
        "status",
        json!({"status": status}),
    );
    assert_eq!(answer.code(), Some(200), "{answer:?}");
    assert_eq!(server.read(Resource::PODS)["status"], status);
    // The next patch changes one field, and leaves the rest.
    let more = json!({"status": {"nominatedNodeName": "n1", "qosClass": null}});
    server.ask(Verb::Patch, Resource::PODS, "status", more);
    let read = server.read(Resource::PODS);
    let mut expected = status;
    expected["nominatedNodeName"] = "n1".into();
    expected.as_object_mut().unwrap().shift_remove("qosClass");
    assert_eq!(read["status"], expected);
    assert_eq!(read["spec"], before["spec"]);
}

#[test]
fn an_unknown_field_is_refused_and_counted() {
    let mut server = server(&[pod(), spread()]);
    let cursor = server.listen();
    let unknown = json!({"status": {"nodeNmae": "n1", "phase": "Running"}});
    for _ in 0..2 {
        let answer = server.ask(Verb::Patch, Resource::PODS, "status", unknown.clone());
        expect(&answer, 422, "Invalid");
        let words = answer.words();
        assert!(
            words.contains(r#"strict decoding error: unknown field "status.nodeNmae""#),
            "{words}"
        );
    }
    let answer = server.ask(
        Verb::MergePatch,
        WORKLOAD_SPREADS,
        "",
        json!({"spec": {"subset": []}}),
    );
    expect(&answer, 422, "Invalid");
    let mut other = pod();
    other["metadata"] = json!({"name": "other"});
    other["spec"]["nodeNmae"] = "n1".into();
    let answer = server.ask(Verb::Create, Resource::PODS, "", other);
    expect(&answer, 400, "BadRequest");
    let binding = json!({"metadata": {"uid": "u1"}, "target": {"name": "n1"}, "taget": {}});
    expect(
        &server.ask(Verb::Create, Resource::PODS, "binding", binding),
        400,
        "BadRequest",
    );
    let found: Vec<_> = server.unknown_fields().iter().collect();
    let found: Vec<_> = found
        .iter()
        .map(|(field, n)| (field.as_str(), **n))
        .collect();
    assert_eq!(
        found,
        [
            ("pods: spec.nodeNmae", 1),
            ("pods: status.nodeNmae", 2),
            ("pods: taget", 1),
            ("workloadspreads: spec.subset", 1),
        ]
    );
    assert!(!server.is_behind(&cursor), "nothing is written");
}

#[test]
fn a_merge_patch_changes_the_metadata_of_a_custom_resource() {
    let mut server = server(&[spread()]);
    let before = server.read(WORKLOAD_SPREADS);
    let body =
        json!({"metadata": {"labels": {"team": null, "tier": "b"}, "annotations": {"a": "1"}}});
    let answer = server.ask(Verb::MergePatch, WORKLOAD_SPREADS, "", body);
    assert_eq!(answer.code(), Some(200), "{answer:?}");
    let after = server.read(WORKLOAD_SPREADS);
    assert_eq!(Some(&after), answer.object());
    assert_eq!(after["metadata"]["labels"], json!({"tier": "b"}));
    assert_eq!(after["metadata"]["annotations"], json!({"a": "1"}));
    assert_eq!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    assert_ne!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    assert_eq!(after["spec"], before["spec"]);
    // A strategic merge patch is for Kubernetes' own kinds.
    let answer = server.ask(Verb::Patch, WORKLOAD_SPREADS, "", json!({"metadata": {}}));
    expect(&answer, 415, "UnsupportedMediaType");
}

/// As a Go program counts: after the largest generation comes the least one.
#[test]
fn the_largest_generation_of_an_object_ends_in_no_overflow() {
    let mut spread = spread();
    spread["metadata"]["generation"] = i64::MAX.into();
    spread["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let mut server = server(&[spread]);
    let body = json!({"spec": {"subsets": [{"name": "other"}]}});
    let answer = server.ask(Verb::MergePatch, WORKLOAD_SPREADS, "", body);
    assert_eq!(answer.code(), Some(200), "{answer:?}");
    let generation =
        |server: &mut Server| server.read(WORKLOAD_SPREADS)["metadata"]["generation"].as_i64();
    assert_eq!(generation(&mut server), Some(i64::MIN));
    let answer = server.ask(Verb::Delete, WORKLOAD_SPREADS, "", Value::Null);
    assert_eq!(answer.code(), Some(200), "{answer:?}");
    assert_eq!(generation(&mut server), Some(i64::MIN + 1));
}

/// As `deletionFinalizersForGarbageCollection` of the API server: there is never more than one of the two.
#[test]
fn the_propagation_of_a_later_deletion_takes_the_place_of_an_earlier_one() {
    let mut spread = spread();
    spread["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let mut server = server(&[spread]);
    for (policy, expected) in [
        (None, json!(["example.com/wait"])),
        (
            Some("Foreground"),
            json!(["example.com/wait", "foregroundDeletion"]),
        ),
        (None, json!(["example.com/wait", "foregroundDeletion"])),
        (Some("Orphan"), json!(["example.com/wait", "orphan"])),
        (
            Some("Foreground"),
            json!(["example.com/wait", "foregroundDeletion"]),
        ),
        (Some("Background"), json!(["example.com/wait"])),
    ] {
        let body = json!({"propagationPolicy": policy});
        let answer = server.ask(Verb::Delete, WORKLOAD_SPREADS, "", body);
        assert_eq!(answer.code(), Some(200), "{policy:?}: {answer:?}");
        let read = server.read(WORKLOAD_SPREADS);
        assert_eq!(read["metadata"]["finalizers"], expected, "{policy:?}");
    }
}

#[test]
fn a_json_patch_is_carried_out_whole_or_not_at_all() {
    let mut server = server(&[pod()]);
    let add = json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "1"}});
    let test = json!({"op": "test", "path": "/metadata/labels/app", "value": "other"});
    let answer = server.ask(Verb::JsonPatch, Resource::PODS, "", json!([add, test]));
    expect(&answer, 422, "Invalid");
    assert_eq!(
        server.read(Resource::PODS)["metadata"].get("annotations"),
        None
    );
    let answer = server.ask(Verb::JsonPatch, Resource::PODS, "", json!([add]));
    assert_eq!(answer.code(), Some(200), "{answer:?}");
    let read = server.read(Resource::PODS);
    assert_eq!(read["metadata"]["annotations"], json!({"a": "1"}));
    expect(
        &server.ask(Verb::JsonPatch, Resource::PODS, "", json!({})),
        400,
        "BadRequest",
    );
}

#[test]
fn what_is_not_served_is_not_found() {
    let mut server = server(&[pod()]);
    let maps = Resource {
        plural: "configmaps",
        ..Resource::PODS
    };
    let old = Resource {
        version: "v1beta1",
        ..Resource::PODS
    };
    for (verb, resource, part) in [
        (Verb::Get, maps, ""),
        (Verb::Create, maps, ""),
        (Verb::Patch, old, "status"),
        (Verb::Get, Resource::PODS, "log"),
    ] {
        let answer = server.ask(verb, resource, part, json!({}));
        expect(&answer, 404, "NotFound");
        assert_eq!(
            &*answer.words(),
            "the server could not find the requested resource"
        );
    }
    expect(
        &server.ask(Verb::Delete, Resource::PODS, "status", json!({})),
        405,
        "MethodNotAllowed",
    );
    let answer = server.ask(Verb::Get, Resource::PLACEMENTS, "", Value::Null);
    expect(&answer, 404, "NotFound");
}

#[test]
fn another_object_or_version_than_the_one_that_is_meant_is_not_written() {
    let mut server = server(&[pod(), spread()]);
    let other_uid = json!({"metadata": {"uid": "u2"}, "status": {"phase": "Running"}});
    for part in ["", "status"] {
        let answer = server.ask(Verb::Patch, Resource::PODS, part, other_uid.clone());
        expect(&answer, 422, "Invalid");
        assert!(answer.is_of_another_uid());
    }
    let stale = json!({"metadata": {"resourceVersion": "77"}, "status": {"phase": "Running"}});
    expect(
        &server.ask(Verb::Patch, Resource::PODS, "status", stale),
        409,
        "Conflict",
    );
    let mut read = server.read(WORKLOAD_SPREADS);
    read["status"] = json!({"observedGeneration": 1});
    let answer = server.ask(Verb::Update, WORKLOAD_SPREADS, "status", read.clone());
    assert_eq!(answer.code(), Some(200), "{answer:?}");
    expect(
        &server.ask(Verb::Update, WORKLOAD_SPREADS, "status", read.clone()),
        409,
        "Conflict",
    );
    read["metadata"]["resourceVersion"].take();
    expect(
        &server.ask(Verb::Update, WORKLOAD_SPREADS, "status", read),
        422,
        "Invalid",
    );
    for preconditions in [json!({"uid": "u2"}), json!({"resourceVersion": "77"})] {
        let body =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        expect(
            &server.ask(Verb::Delete, Resource::PODS, "", body),
            409,
            "Conflict",
        );
    }
    let body = json!({"preconditions": {"uid": "u1"}});
    assert_eq!(
        server.ask(Verb::Delete, Resource::PODS, "", body).code(),
        Some(200)
    );
    expect(
        &server.ask(Verb::Get, Resource::PODS, "", Value::Null),
        404,
        "NotFound",
    );
}

/// One object of each kind that has a table of its own and of some that have none, with a status.
fn objects_with_status() -> Vec<(Resource, Value)> {
    let of = |group, version, plural, kind: &str, spec: Value, status: Value| {
        let resource = Resource {
            group,
            version,
            plural,
        };
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": spec, "status": status,
        });
        (resource, object)
    };
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let workload = || json!({"selector": {"matchLabels": {"app": "web"}}, "template": template, "replicas": 2});
    let without_replicas =
        || json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    // An update adds what the admission plug-in adds on creation, too.
    let lasting = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
    let mut pod_spec = template["spec"].clone();
    pod_spec["tolerations"] = json!([
        lasting("node.kubernetes.io/not-ready"),
        lasting("node.kubernetes.io/unreachable")
    ]);
    let counted = || json!({"replicas": 2});
    vec![
        of(
            "",
            "v1",
            "pods",
            "Pod",
            pod_spec,
            json!({"phase": "Running"}),
        ),
        of(
            "",
            "v1",
            "nodes",
            "Node",
            json!({"podCIDR": "10.0.0.0/24"}),
            json!({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}),
        ),
        of(
            "apps",
            "v1",
            "deployments",
            "Deployment",
            workload(),
            counted(),
        ),
        of(
            "apps",
            "v1",
            "replicasets",
            "ReplicaSet",
            workload(),
            counted(),
        ),
        of(
            "",
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            json!({"selector": {"app": "web"}, "template": template, "replicas": 2}),
            counted(),
        ),
        of(
            "apps",
            "v1",
            "statefulsets",
            "StatefulSet",
            workload(),
            counted(),
        ),
        of(
            "apps",
            "v1",
            "daemonsets",
            "DaemonSet",
            without_replicas(),
            json!({"currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1}),
        ),
        of(
            "batch",
            "v1",
            "jobs",
            "Job",
            json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}),
            json!({"active": 1}),
        ),
        of(
            "batch",
            "v1",
            "cronjobs",
            "CronJob",
            json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}),
            json!({"lastScheduleTime": "2026-01-01T00:00:00Z"}),
        ),
        of(
            "autoscaling",
            "v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            json!({"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}),
            json!({"desiredReplicas": 2}),
        ),
        of(
            "policy",
            "v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            json!({"minAvailable": 1}),
            json!({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}),
        ),
        of(
            "apps.kruise.io",
            "v1alpha1",
            "clonesets",
            "CloneSet",
            workload(),
            counted(),
        ),
        of(
            "apps.kruise.io",
            "v1beta1",
            "workloadspreads",
            "WorkloadSpread",
            spread()["spec"].clone(),
            json!({"observedGeneration": 1}),
        ),
        of(
            "",
            "v1",
            "resourcequotas",
            "ResourceQuota",
            json!({"hard": {"pods": "3"}}),
            json!({"used": {"pods": "1"}}),
        ),
        of(
            "cluster.open-cluster-management.io",
            "v1beta1",
            "placements",
            "Placement",
            json!({"numberOfClusters": 2, "sortBy": "ClusterName", "scoreRateLimit": "1m"}),
            json!({"numberOfSelectedClusters": 2, "conditions": [], "decisionGroups": []}),
        ),
    ]
}

#[test]
fn a_write_of_one_part_leaves_the_other_of_every_kind() {
    for (resource, object) in objects_with_status() {
        let mut server = server(std::slice::from_ref(&object));
        let before = server.read(resource);
        let status = before["status"].clone();
        assert!(status.is_object(), "{resource:?}");
        // The status is not the object's to write.
        let mut body = json!({"metadata": {"annotations": {"a": "1"}}, "status": null});
        let answer = server.ask(Verb::MergePatch, resource, "", body.clone());
        assert_eq!(answer.code(), Some(200), "{resource:?}: {answer:?}");
        let after = server.read(resource);
        assert_eq!(
            after["metadata"]["annotations"],
            json!({"a": "1"}),
            "{resource:?}"
        );
        assert_eq!(
            after["metadata"]["generation"], before["metadata"]["generation"],
            "{resource:?}"
        );
        assert_eq!(after["status"], status, "{resource:?}");
        // Nor the rest the status'.
        body["status"] = status.clone();
        body["metadata"] = json!({"annotations": {"a": "2"}});
        body["spec"] = json!({});
        let name = status.as_object().unwrap().keys().next().unwrap();
        body["status"][name] = Value::Null;
        let answer = server.ask(Verb::MergePatch, resource, "status", body);
        assert_eq!(answer.code(), Some(200), "{resource:?}: {answer:?}");
        let last = server.read(resource);
        assert_ne!(last["status"], status, "{resource:?}");
        assert_eq!(
            last["metadata"]["annotations"],
            json!({"a": "1"}),
            "{resource:?}"
        );
        assert_eq!(last["spec"], after["spec"], "{resource:?}");
    }
}

#[test]
fn an_event_that_comes_again_is_recorded_with_its_count() {
    let mut server = server(&[]);
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "web", "namespace": "shop"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning", "reason": "FailedScheduling",
        "action": "Scheduling", "note": "no room", "reportingController": "s", "reportingInstance": "s-1",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "p", "uid": "u"},
    });
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.000000Z"}});
    let patch =
        |server: &mut Server| server.ask(Verb::MergePatch, Resource::EVENTS, "", series.clone());
    expect(&patch(&mut server), 404, "NotFound");
    let create =
        |server: &mut Server| server.ask(Verb::Create, Resource::EVENTS, "", event.clone());
    assert_eq!(create(&mut server).code(), Some(201));
    expect(&create(&mut server), 409, "AlreadyExists");
    assert_eq!(patch(&mut server).code(), Some(200));
    let told: Vec<_> = server
        .events()
        .iter()
        .map(|e| (&*e.reason, &*e.note, e.count))
        .collect();
    assert_eq!(
        told,
        [
            ("FailedScheduling", "no room", 1),
            ("FailedScheduling", "no room", 2)
        ]
    );
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_being_deleted() {
    let ending = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "shop", "uid": "n1", "finalizers": ["a.b/c"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "status": {"phase": "Terminating"},
    });
    let mut server = server(&[ending]);
    let of = |namespace: &str| {
        let mut pod = pod();
        pod["metadata"]["namespace"] = namespace.into();
        Object::of_wire(read_back(KubeObject::of_json(pod).unwrap()))
    };
    let refused = server.create(NOW, of("shop")).unwrap_err();
    assert!(
        refused.to_string().ends_with(
            "unable to create new content in namespace shop because it is being terminated"
        ),
        "{refused}"
    );
    server.create(NOW, of("other")).unwrap();
}

#[test]
fn an_image_with_a_space_is_refused_of_a_pod_and_not_of_a_template() {
    let mut server = server(&[]);
    let mut spaced = pod();
    spaced["spec"]["containers"][0]["image"] = " i".into();
    let object = Object::of_wire(read_back(KubeObject::of_json(spaced.clone()).unwrap()));
    let refused = server.create(NOW, object).unwrap_err().to_string();
    assert!(
        refused.contains("must not have leading or trailing whitespace"),
        "{refused}"
    );
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spaced["spec"]},
        },
    });
    let object = Object::of_wire(read_back(KubeObject::of_json(set).unwrap()));
    server.create(NOW, object).unwrap();
}
