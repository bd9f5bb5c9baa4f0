//! What is sent, to the letter, and what answers mean.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::{
    Condition, ConditionReason, Effect, EffectId, Event, EventKind, Outcome, PodName,
};

use super::event::series_key;
use super::{Answer, Context, Request, outcome_of, requests_of};

const NOW: Instant = Instant(1_700_000_000_123_456_789);
const ID: EffectId = EffectId(7);

struct Names {
    names: Interner,
}

impl Names {
    fn new() -> Self {
        let mut names = Interner::new();
        for text in ["shop", "n1", "default-scheduler"] {
            names.intern(text);
        }
        Self { names }
    }

    fn cx(&self) -> Context<'_> {
        Context {
            names: &self.names,
            now: NOW,
            hostname: "host-a",
            generation: None,
            unscheduled_since: None,
        }
    }

    fn symbol(&self, text: &str) -> strew_model::Symbol {
        self.names.get(text).unwrap()
    }

    fn pod(&self, name: &str) -> PodName {
        PodName {
            uid: format!("uid-{name}").into(),
            namespace: self.symbol("shop"),
            name: name.into(),
        }
    }

    fn bind(&self) -> Effect {
        Effect::Bind {
            id: ID,
            pod: self.pod("web-1"),
            node: self.symbol("n1"),
        }
    }

    fn condition(&self) -> Effect {
        Effect::PodCondition {
            id: ID,
            pod: self.pod("web-1"),
            condition: Condition {
                reason: ConditionReason::Unschedulable,
                message: "0/1 nodes are available".into(),
            },
        }
    }

    fn event(&self, note: &str) -> Event {
        Event {
            kind: EventKind::Preempted,
            scheduler: self.symbol("default-scheduler"),
            regarding: self.pod("low"),
            related: Some(self.pod("web-1")),
            note: note.into(),
        }
    }

    fn requests(&self, effect: &Effect) -> Vec<Request> {
        requests_of(effect, &self.cx())
    }
}

/// Method, path and body of each request.
fn sent(requests: &[Request]) -> Vec<(String, Value)> {
    let line = |r: &Request| format!("{} {}", r.verb.method(), r.path());
    requests.iter().map(|r| (line(r), r.body.clone())).collect()
}

#[test]
fn a_bind_names_the_pod_by_uid() {
    let world = Names::new();
    let requests = world.requests(&world.bind());
    let body = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "uid-web-1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    });
    let line = "POST /api/v1/namespaces/shop/pods/web-1/binding?fieldValidation=Strict";
    assert_eq!(sent(&requests), [(line.to_owned(), body)]);
    assert_eq!(requests[0].precondition.uid.as_deref(), Some("uid-web-1"));
    assert_eq!(requests[0].verb.content_type(), "application/json");
}

#[test]
fn a_condition_keeps_the_moment_since_when_it_holds() {
    let world = Names::new();
    let line = "PATCH /api/v1/namespaces/shop/pods/web-1/status?fieldValidation=Strict";
    let mut condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available", "lastTransitionTime": "2023-11-14T22:13:20Z",
    });
    let body = |condition: &Value| json!({"metadata": {"uid": "uid-web-1"}, "status": {"conditions": [condition]}});
    let requests = world.requests(&world.condition());
    assert_eq!(sent(&requests), [(line.to_owned(), body(&condition))]);
    assert_eq!(
        requests[0].verb.content_type(),
        "application/strategic-merge-patch+json"
    );

    let cx = Context {
        generation: Some(3),
        unscheduled_since: Some(Instant::from_secs(60)),
        ..world.cx()
    };
    condition["lastTransitionTime"] = "1970-01-01T00:01:00Z".into();
    condition["observedGeneration"] = 3.into();
    let requests = requests_of(&world.condition(), &cx);
    assert_eq!(sent(&requests), [(line.to_owned(), body(&condition))]);
}

#[test]
fn a_nomination_is_set_and_cleared() {
    let world = Names::new();
    let status = |node| {
        let effect = Effect::Nominate {
            id: ID,
            pod: world.pod("web-1"),
            node,
        };
        world.requests(&effect)[0].body["status"].clone()
    };
    assert_eq!(
        status(Some(world.symbol("n1"))),
        json!({"nominatedNodeName": "n1"})
    );
    assert_eq!(status(None), json!({ "nominatedNodeName": null }));
}

#[test]
fn a_victim_is_told_why_before_it_goes() {
    let world = Names::new();
    let requests = world.requests(&Effect::DeleteVictim {
        id: ID,
        victim: world.pod("low"),
        message: "default-scheduler: preempting to accommodate a higher priority pod".to_owned(),
    });
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    });
    let patch = json!({"metadata": {"uid": "uid-low"}, "status": {"conditions": [condition]}});
    let delete =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-low"}});
    let lines = [
        "PATCH /api/v1/namespaces/shop/pods/low/status?fieldValidation=Strict",
        "DELETE /api/v1/namespaces/shop/pods/low",
    ];
    let expected = [(lines[0].to_owned(), patch), (lines[1].to_owned(), delete)];
    assert_eq!(sent(&requests), expected);
}

#[test]
fn an_event_says_who_what_and_why() {
    let world = Names::new();
    let event = world.event("Preempted by pod uid-web-1 on node n1");
    let requests = world.requests(&Effect::Event(Box::new(event)));
    let body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": requests[0].name, "namespace": "shop"},
        "eventTime": "2023-11-14T22:13:20.123456Z",
        "type": "Normal", "reason": "Preempted", "action": "Preempting",
        "note": "Preempted by pod uid-web-1 on node n1",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host-a",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "low", "uid": "uid-low"},
        "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "uid-web-1"},
    });
    let line = "POST /apis/events.k8s.io/v1/namespaces/shop/events?fieldValidation=Strict";
    assert_eq!(sent(&requests), [(line.to_owned(), body)]);
}

#[test]
fn names_of_events_are_equal_only_for_equal_events() {
    let world = Names::new();
    let name = |event: &Event, cx: &Context<'_>| {
        let effect = Effect::Event(Box::new(event.clone()));
        requests_of(&effect, cx).remove(0).name
    };
    let (a, b) = (world.event("a"), world.event("b"));
    let later = Context {
        now: Instant(NOW.0 + 1),
        ..world.cx()
    };
    assert_eq!(name(&a, &world.cx()), name(&a, &world.cx()));
    assert_ne!(name(&a, &world.cx()), name(&a, &later));
    assert_ne!(name(&a, &world.cx()), name(&b, &world.cx()));
    assert_eq!(series_key(&a, &world.cx()), series_key(&a, &later));
    assert_ne!(series_key(&a, &world.cx()), series_key(&b, &world.cx()));

    let mut long = world.event(&"x".repeat(2000));
    long.regarding.name = format!("{}.{}", "a".repeat(235), "b".repeat(17)).into();
    let requests = world.requests(&Effect::Event(Box::new(long)));
    assert_eq!(requests[0].name.len(), 235 + 17);
    assert_eq!(requests[0].body["note"].as_str().unwrap().len(), 1024);
}

#[test]
fn names_stay_in_their_part_of_the_path() {
    let world = Names::new();
    for (name, segment) in [("..", "%2E%2E"), ("a/b?c", "a%2Fb%3Fc"), ("ä", "%C3%A4")] {
        let mut request = world.requests(&world.bind()).remove(0);
        request.name = name.to_owned();
        let path = request.path();
        assert!(path.contains(&format!("/pods/{segment}/binding")), "{path}");
    }
}

fn answered(code: u16, message: &str) -> Answer {
    let body = json!({"kind": "Status", "message": message});
    Answer::of(code, None, body.to_string().as_bytes())
}

#[test]
fn answers_are_outcomes() {
    let world = Names::new();
    let bind = world.requests(&world.bind()).remove(0);
    let status = world.requests(&world.condition()).remove(0);
    let event = world
        .requests(&Effect::Event(Box::new(world.event("a"))))
        .remove(0);
    let here = "Operation cannot be fulfilled on pods/binding \"web-1\": pod web-1 is already assigned to node \"n1\"";
    let elsewhere = &here.replace("n1", "n11");
    let uid = "Operation cannot be fulfilled on pods \"web-1\": Precondition failed: UID in precondition: a, UID in object meta: b";
    let conflict = |text: &str| Outcome::Conflict(text.into());
    let failed = |text: &str| Outcome::Failed(text.into());
    for (request, code, text, repeated, expected) in [
        (&bind, 201, "", false, Outcome::Ok),
        (&status, 200, "", false, Outcome::Ok),
        (&bind, 409, here, false, conflict(here)),
        (&bind, 409, here, true, Outcome::Ok),
        (&bind, 409, elsewhere, true, conflict(elsewhere)),
        (&bind, 409, uid, true, Outcome::Gone),
        (&bind, 404, "pods \"web-1\" not found", false, Outcome::Gone),
        (&event, 409, "already exists", true, Outcome::Ok),
        (&bind, 403, "no", false, failed("no")),
        (&bind, 429, "later", false, failed("later")),
        (
            &bind,
            503,
            "",
            false,
            failed("the server answered with status 503"),
        ),
    ] {
        let answer = answered(code, text);
        assert_eq!(
            outcome_of(request, &answer, repeated),
            expected,
            "{code} {text}"
        );
    }
    let invalid = json!({"message": "Pod \"web-1\" is invalid", "details": {"causes": [{"field": "metadata.uid"}]}});
    let invalid = Answer::of(422, None, invalid.to_string().as_bytes());
    assert_eq!(outcome_of(&status, &invalid, false), Outcome::Gone);
    let invalid = answered(422, "no such field");
    assert_eq!(
        outcome_of(&status, &invalid, false),
        failed("no such field")
    );
    let words: Arc<str> = "connection refused".into();
    assert_eq!(
        outcome_of(&bind, &Answer::Refused(words), false),
        failed("connection refused")
    );
}

#[test]
fn a_busy_server_says_how_long() {
    let wait = |code, header, body: &str| Answer::of(code, header, body.as_bytes()).retry_after();
    let second = Some(Span::from_secs(1));
    assert_eq!(wait(429, Some("1"), ""), second);
    assert_eq!(wait(503, Some(" 1 "), "no json"), second);
    assert_eq!(
        wait(429, None, r#"{"details": {"retryAfterSeconds": 1}}"#),
        second
    );
    assert_eq!(wait(429, Some("soon"), ""), None);
    assert_eq!(wait(409, Some("1"), ""), None);
    let forever = wait(429, Some("18446744073709551615"), "");
    assert_eq!(forever, Some(Span(u64::MAX)));
}
