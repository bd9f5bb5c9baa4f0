use serde_json::{Value, json};
use strew_model::{Instant, Interner, Symbol};
use strew_placement::decisions::writes::{Write, WriteKind};
use strew_placement::facts::decision::{Decision, GroupLabels, Replicas};
use strew_placement::facts::status::PlacementStatus;
use strew_placement::machine::{Effect, EffectId, Event, EventKind, Outcome, PlacementName};

use crate::placement::request::{Carrying, Context, Next};
use crate::request::{Answer, Request};

const ID: EffectId = EffectId(5);

struct Names {
    names: Interner,
    placement: PlacementName,
    decision: Symbol,
}

impl Names {
    fn new() -> Self {
        let mut names = Interner::new();
        let [namespace, name, decision] =
            ["shop", "web", "web-decision-1"].map(|t| names.intern(t));
        let placement = PlacementName {
            namespace,
            name,
            uid: "u1".into(),
        };
        Self {
            names,
            placement,
            decision,
        }
    }

    fn cx(&self) -> Context<'_> {
        Context {
            names: &self.names,
            now: Instant::from_secs(60),
            hostname: "host",
        }
    }

    fn write(&mut self, kind: WriteKind, clusters: Option<&[&str]>, labels: bool) -> Effect {
        let decision = |name: &&str| Decision {
            cluster: self.names.intern(name),
            score: None,
        };
        let decisions = clusters.map(|c| c.iter().map(decision).collect());
        let group = GroupLabels {
            index: Some(2),
            name: Some(self.names.intern("canary")),
        };
        Effect::WriteDecision {
            id: ID,
            decision: 1,
            placement: self.placement.clone(),
            write: Write {
                name: self.decision,
                kind,
                decisions,
                group: labels.then_some(group),
                replicas: None,
            },
            revision: (kind != WriteKind::Create).then_some(7),
        }
    }
}

fn ok(uid: &str, version: &str) -> Answer {
    status(
        200,
        json!({"metadata": {"uid": uid, "resourceVersion": version}}),
    )
}

fn status(code: u16, body: Value) -> Answer {
    Answer::Status {
        code,
        retry_after: None,
        body,
    }
}

fn line(request: &Request) -> String {
    format!("{} {}", request.verb.method(), request.path())
}

const OBJECT: &str =
    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/shop/placementdecisions";

#[test]
fn a_new_decision_is_made_and_then_filled_where_it_is_the_one_that_was_made() {
    let mut world = Names::new();
    let effect = world.write(WriteKind::Create, Some(&["c1", "c2"]), true);
    let (mut carrying, request) = Carrying::begin(effect, &world.cx());
    assert_eq!(
        line(&request),
        format!("POST {OBJECT}?fieldValidation=Strict")
    );
    assert_eq!(
        request.body,
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "PlacementDecision",
            "metadata": {
                "name": "web-decision-1",
                "namespace": "shop",
                "labels": {
                    "cluster.open-cluster-management.io/placement": "web",
                    "cluster.open-cluster-management.io/decision-group-index": "2",
                    "cluster.open-cluster-management.io/decision-group-name": "canary",
                },
                "ownerReferences": [{
                    "apiVersion": "cluster.open-cluster-management.io/v1beta1",
                    "kind": "Placement", "name": "web", "uid": "u1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        })
    );
    let Next::Send(request) = carrying.answered(&ok("d1", "8"), &world.cx()) else {
        panic!("its clusters are still to be written");
    };
    assert_eq!(
        line(&request),
        format!("PATCH {OBJECT}/web-decision-1/status?fieldValidation=Strict")
    );
    assert_eq!(request.verb.content_type(), "application/merge-patch+json");
    assert_eq!(
        request.body,
        json!({
            "metadata": {"uid": "d1", "resourceVersion": "8"},
            "status": {"decisions": [
                {"clusterName": "c1", "reason": ""}, {"clusterName": "c2", "reason": ""},
            ]},
        })
    );
    assert_eq!(request.precondition.resource_version.as_deref(), Some("8"));
    let done = carrying.answered(&ok("d1", "9"), &world.cx());
    assert_eq!(done, Next::Done(Some((ID, Outcome::Ok { revision: 9 }))));
}

#[test]
fn an_empty_decision_has_no_status() {
    let mut world = Names::new();
    let effect = world.write(WriteKind::Create, Some(&[]), true);
    let (mut carrying, _) = Carrying::begin(effect, &world.cx());
    let done = carrying.answered(&ok("d1", "8"), &world.cx());
    assert_eq!(done, Next::Done(Some((ID, Outcome::Ok { revision: 8 }))));
}

#[test]
fn clusters_and_labels_are_changed_one_after_the_other() {
    let mut world = Names::new();
    let effect = world.write(WriteKind::Update, Some(&[]), true);
    let (mut carrying, request) = Carrying::begin(effect, &world.cx());
    assert_eq!(
        request.body,
        json!({"metadata": {"resourceVersion": "7"}, "status": {"decisions": []}})
    );
    let Next::Send(request) = carrying.answered(&ok("d1", "8"), &world.cx()) else {
        panic!("its labels are still to be written");
    };
    assert_eq!(request.subresource, "");
    assert_eq!(request.body["metadata"]["resourceVersion"], "8");
    assert_eq!(
        request.body["metadata"]["labels"]["cluster.open-cluster-management.io/decision-group-index"],
        "2"
    );
    let labels_only = world.write(WriteKind::Update, None, true);
    let (mut carrying, request) = Carrying::begin(labels_only, &world.cx());
    assert_eq!(request.body.get("status"), None);
    let done = carrying.answered(&ok("d1", "8"), &world.cx());
    assert_eq!(done, Next::Done(Some((ID, Outcome::Ok { revision: 8 }))));
}

#[test]
fn replicas_are_an_annotation_of_the_decision() {
    let mut world = Names::new();
    let c1 = world.names.intern("c1");
    let parts = Replicas::Parts([(c1, 4)].into());
    let with = |mut effect: Effect, replicas: &Replicas| {
        if let Effect::WriteDecision { write, .. } = &mut effect {
            write.replicas = Some(replicas.clone());
        }
        effect
    };
    let annotation = json!({"strew.dev/replicas": r#"{"c1":4}"#});
    let new = with(world.write(WriteKind::Create, Some(&["c1"]), true), &parts);
    let (_, request) = Carrying::begin(new, &world.cx());
    assert_eq!(request.body["metadata"]["annotations"], annotation);
    // After the status, with the labels if they change as well.
    let update = with(world.write(WriteKind::Update, Some(&["c1"]), true), &parts);
    let (mut carrying, request) = Carrying::begin(update, &world.cx());
    assert_eq!(request.subresource, "status");
    let Next::Send(request) = carrying.answered(&ok("d1", "8"), &world.cx()) else {
        panic!("the annotation is still to be written");
    };
    assert_eq!(request.subresource, "");
    assert_eq!(request.body["metadata"]["annotations"], annotation);
    assert!(request.body["metadata"]["labels"].is_object());
    let gone = with(
        world.write(WriteKind::Update, None, false),
        &Replicas::Absent,
    );
    let (mut carrying, request) = Carrying::begin(gone, &world.cx());
    assert_eq!(
        request.body,
        json!({"metadata": {"resourceVersion": "7", "annotations": {"strew.dev/replicas": null}}})
    );
    let done = carrying.answered(&ok("d1", "8"), &world.cx());
    assert_eq!(done, Next::Done(Some((ID, Outcome::Ok { revision: 8 }))));
}

#[test]
fn a_decision_is_deleted_as_it_was_seen() {
    let mut world = Names::new();
    let effect = world.write(WriteKind::Delete, None, false);
    let (mut carrying, request) = Carrying::begin(effect, &world.cx());
    assert_eq!(line(&request), format!("DELETE {OBJECT}/web-decision-1"));
    assert_eq!(
        request.body["preconditions"],
        json!({"resourceVersion": "7"})
    );
    let done = carrying.answered(&status(200, json!({"kind": "Status"})), &world.cx());
    assert_eq!(done, Next::Done(Some((ID, Outcome::Ok { revision: 0 }))));
}

#[test]
fn answers_become_outcomes() {
    let mut world = Names::new();
    let effect = world.write(WriteKind::Update, Some(&[]), false);
    let busy = json!({"message": "the object has been modified"});
    let cases = [
        (status(404, json!({})), Outcome::Gone),
        (
            status(409, busy),
            Outcome::Conflict("the object has been modified".into()),
        ),
        (
            status(500, json!({"message": "no"})),
            Outcome::Failed("no".into()),
        ),
        (Answer::Lost("cut".into()), Outcome::Failed("cut".into())),
    ];
    for (answer, outcome) in cases {
        let (mut carrying, _) = Carrying::begin(effect.clone(), &world.cx());
        let done = carrying.answered(&answer, &world.cx());
        assert_eq!(done, Next::Done(Some((ID, outcome))));
    }
}

#[test]
fn a_status_is_written_whole_and_only_to_the_placement_that_was_meant() {
    let world = Names::new();
    let effect = Effect::WriteStatus {
        id: ID,
        placement: world.placement.clone(),
        status: PlacementStatus {
            selected: 2,
            ..PlacementStatus::default()
        },
        revision: 7,
    };
    let (mut carrying, request) = Carrying::begin(effect, &world.cx());
    let path =
        "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/shop/placements/web/status";
    assert_eq!(
        line(&request),
        format!("PATCH {path}?fieldValidation=Strict")
    );
    assert_eq!(
        request.body,
        json!({
            "metadata": {"uid": "u1", "resourceVersion": "7"},
            "status": {"numberOfSelectedClusters": 2, "decisionGroups": [], "conditions": []},
        })
    );
    let done = carrying.answered(&ok("u1", "8"), &world.cx());
    assert_eq!(done, Next::Done(Some((ID, Outcome::Ok { revision: 8 }))));
}

#[test]
fn an_event_tells_of_the_placement_and_its_decision_and_nobody_waits_for_it() {
    let world = Names::new();
    let event = Event {
        kind: EventKind::DecisionCreate,
        warning: false,
        placement: world.placement.clone(),
        decision: Some(world.decision),
        note: "Decision web-decision-1 is created".into(),
    };
    let (mut carrying, request) = Carrying::begin(Effect::Event(event), &world.cx());
    let name = request.name.clone();
    assert!(name.starts_with("web."), "{name}");
    assert_eq!(request.body["metadata"]["name"], json!(name));
    assert_eq!(request.body["reason"], "DecisionCreate");
    assert_eq!(request.body["action"], "DecisionCreated");
    assert_eq!(request.body["type"], "Normal");
    assert_eq!(request.body["reportingController"], "placement-controller");
    assert_eq!(request.body["eventTime"], "1970-01-01T00:01:00.000000Z");
    assert_eq!(request.body["regarding"]["uid"], "u1");
    assert_eq!(request.body["related"]["name"], "web-decision-1");
    assert_eq!(
        carrying.answered(&status(500, Value::Null), &world.cx()),
        Next::Done(None)
    );
}
