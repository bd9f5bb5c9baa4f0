//! What is sent, to the letter, and what answers mean.

use std::sync::Arc;

use strew_model::{Instant, Interner};
use strew_workloadspread::controller::{
    Effect, EffectId, Event, EventKind, Outcome, PodName, Removal,
};
use strew_workloadspread::{Marker, Row, Status, WsKey, admission};

use super::*;
use crate::request::{Answer, Precondition, Verb};
use crate::workloadspread::Translator;
use crate::workloadspread::request::{
    Context, admission_outcome, controller_outcome, of_admission, of_controller,
};

const NOW: Instant = Instant(1_700_000_000_123_456_789);
const ID: EffectId = EffectId(7);

fn names() -> (Interner, WsKey, PodName) {
    let mut names = Interner::new();
    let namespace = names.intern("shop");
    let key = WsKey {
        namespace,
        name: "ws".into(),
    };
    let pod = PodName {
        uid: "u-1".into(),
        namespace,
        name: "web-7-x".into(),
    };
    (names, key, pod)
}

fn cx(names: &Interner) -> Context<'_> {
    Context {
        names,
        now: NOW,
        hostname: "host-a",
    }
}

#[test]
fn a_status_is_put_whole_with_uid_and_version() {
    let (names, key, _) = names();
    let mut row = Row::new("a".into(), 4);
    row.creating
        .insert("web-7-x".into(), Instant::from_secs(1_700_000_000));
    let mut status = Status::default();
    status.versioned.insert("7".into(), vec![row]);
    let (uid, status) = (Arc::from("ws-uid"), Arc::new(status));
    let effect = admission::Effect::WriteStatus {
        id: ID,
        key,
        uid,
        version: 41,
        status,
    };
    let (_, request) = of_admission(&effect, &cx(&names)).unwrap();
    assert_eq!(
        request.path(),
        "/apis/apps.kruise.io/v1beta1/namespaces/shop/workloadspreads/ws/status?fieldValidation=Strict"
    );
    assert_eq!(
        (request.verb, request.is_idempotent()),
        (Verb::Update, false)
    );
    let expected = Precondition {
        uid: Some("ws-uid".to_owned()),
        resource_version: Some("41".to_owned()),
    };
    assert_eq!(request.precondition, expected);
    assert_eq!(
        request.body,
        json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "WorkloadSpread",
            "metadata": {"name": "ws", "namespace": "shop", "uid": "ws-uid", "resourceVersion": "41"},
            "status": {"versionedSubsetStatuses": {"7": [
                {"name": "a", "replicas": 0, "missingReplicas": 4, "creatingPods": {"web-7-x": "2023-11-14T22:13:20Z"}},
            ]}},
        })
    );
}

#[test]
fn pods_are_patched_and_deleted_by_uid() {
    let (names, key, pod) = names();
    let mut translator = Translator::default();
    // Validation refuses most of this patch, but may be younger than its WorkloadSpread.
    let patch = json!({
        "metadata": {
            "labels": {"subset": "a", "pod-template-hash": "1"},
            "annotations": {"x": "y", "container.apparmor.security.beta.kubernetes.io/c": "unconfined"},
            "uid": "no",
            "finalizers": ["a/b"],
            "ownerReferences": [],
        },
        "spec": {"hostname": "h"},
    });
    let metadata_of = Some(translator.contents.patch_id(&patch));
    let marker = Marker {
        workload_spread: "ws".into(),
        subset: "a".into(),
        uid: None,
    };
    let adopt = |metadata_of| Effect::Adopt {
        id: ID,
        pod: pod.clone(),
        marker: marker.clone(),
        metadata_of,
    };
    let text = r#"{"name":"ws","subset":"a"}"#;
    for (effect, verb, body) in [
        (
            adopt(metadata_of),
            Verb::Patch,
            json!({"metadata": {"labels": {"subset": "a"}, "annotations": {"x": "y", "apps.kruise.io/matched-workloadspread": text}, "uid": "u-1"}}),
        ),
        (
            adopt(None),
            Verb::Patch,
            json!({"metadata": {"annotations": {"apps.kruise.io/matched-workloadspread": text}, "uid": "u-1"}}),
        ),
        (
            Effect::SetCost {
                id: ID,
                pod: pod.clone(),
                cost: -200,
            },
            Verb::Patch,
            json!({"metadata": {"uid": "u-1", "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-200"}}}),
        ),
        (
            Effect::DeletePod {
                id: ID,
                pod: pod.clone(),
                how: Removal::Delete,
            },
            Verb::Delete,
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1"}}),
        ),
    ] {
        let (id, request) = of_controller(&effect, &translator, &cx(&names));
        assert_eq!(id, Some(ID));
        assert_eq!((request.verb, &request.body), (verb, &body));
        assert_eq!(request.precondition, Precondition::uid("u-1"));
        assert!(
            request
                .path()
                .starts_with("/api/v1/namespaces/shop/pods/web-7-x")
        );
        assert!(request.is_idempotent());
    }
    let event = Effect::Event(Event {
        key,
        kind: EventKind::RecoverSchedulable,
        subject: "a".into(),
    });
    let (id, request) = of_controller(&event, &translator, &cx(&names));
    assert_eq!(id, None);
    assert_eq!(request.body["regarding"]["kind"], "WorkloadSpread");
    assert_eq!(request.body["reason"], "RecoverSchedulable");
    assert_eq!(request.body["type"], "Normal");
    assert_eq!(request.body["eventTime"], "2023-11-14T22:13:20.123456Z");
    let (_, again) = of_controller(&event, &translator, &cx(&names));
    assert_eq!(again, request);
}

#[test]
fn answers_are_outcomes() {
    let (mut names, key, pod) = names();
    let mut translator = Translator::default();
    let answer = |code, body: Value| Answer::of(code, None, body.to_string().as_bytes());
    let other = answer(
        409,
        json!({"message": "Precondition failed: UID in precondition: a, UID in object meta: b"}),
    );
    for (answer, expected) in [
        (answer(200, json!({})), Outcome::Ok),
        (answer(404, json!({})), Outcome::Gone),
        (answer(409, json!({})), Outcome::Conflict),
        (other, Outcome::Gone),
        (
            answer(
                422,
                json!({"details": {"causes": [{"field": "metadata.uid"}]}}),
            ),
            Outcome::Gone,
        ),
        (answer(422, json!({})), Outcome::Failed),
        (answer(500, json!({})), Outcome::Failed),
        (Answer::Lost("x".into()), Outcome::Failed),
        (Answer::Refused("x".into()), Outcome::Failed),
    ] {
        assert_eq!(controller_outcome(&answer), expected, "{answer:?}");
    }
    let uid = Arc::from("ws-uid");
    let status = Arc::new(Status::default());
    let write = admission::Effect::WriteStatus {
        id: ID,
        key: key.clone(),
        uid,
        version: 1,
        status,
    };
    let (_, write) = of_admission(&write, &cx(&names)).unwrap();
    let (_, get) =
        of_admission(&admission::Effect::ReadSpread { id: ID, key }, &cx(&names)).unwrap();
    assert_eq!(get.verb, Verb::Get);
    let stored = web(json!([{"name": "a"}]));
    for (request, answer, expected) in [
        (&write, answer(200, stored.clone()), "Written(41)"),
        (&write, answer(200, json!({})), "Lost"),
        (&write, answer(409, json!({})), "Conflict"),
        (&write, answer(404, json!({})), "Gone"),
        (&write, answer(403, json!({})), "Failed"),
        (&write, answer(504, json!({})), "Lost"),
        (&write, Answer::Lost("x".into()), "Lost"),
        (&write, Answer::Refused("x".into()), "Unsent"),
        (&get, Answer::Lost("x".into()), "Failed"),
        (&get, answer(404, json!({})), "Gone"),
        (&get, answer(200, json!({"kind": "Pod"})), "Failed"),
        (&get, answer(503, json!({})), "Failed"),
    ] {
        let outcome = admission_outcome(request, &answer, &mut translator, &mut names);
        assert_eq!(format!("{outcome:?}"), expected);
    }
    let outcome = admission_outcome(&get, &answer(200, stored), &mut translator, &mut names);
    let admission::Outcome::Read(read) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((read.version, read.spec.subsets.len()), (41, 1));
    assert_eq!(pod.uid.as_ref(), "u-1");
}
