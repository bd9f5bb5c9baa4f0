//! The decision log, and events that come again.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::Profile;
use strew_scheduler::machine::Limits;
use strew_wire::facts::Named;
use strew_wire::request::{Answer, Request};
use tracing::field::{Field, Visit};
use tracing::span;

use super::*;
use crate::driver::{Action, Driver, Event, Progress};
use crate::watch::Kind;
use crate::watch::Object;

const START: Instant = Instant::from_secs(1_000);

/// What is logged: target, level and fields of each event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self, of: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let lines = lines.iter().filter(|line| line.starts_with(of));
        lines.cloned().collect()
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let about = event.metadata();
        let mut fields = Fields(format!("{} {}", about.target(), about.level()));
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn there(kind: Kind, object: Value) -> Update {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or("").into();
    let named = Named {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
    };
    let object = KubeObject::of_json(object).expect("an object");
    Update::Set(kind, named, Box::new(Object::Known(object)))
}

fn pod(cpu: &str) -> Value {
    let requests = json!({"requests": {"cpu": cpu}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web", "uid": "2"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "web", "resources": requests}],
        },
    })
}

/// A scheduler that has a pod, and a node of 4 CPUs.
fn with(pod: Value) -> Driver<SchedulerMachine> {
    let profiles = vec![Profile::default()];
    let scheduler = Scheduler::new(Interner::default(), profiles, Limits::production(), START);
    let machine = SchedulerMachine::new(scheduler, "here".to_owned());
    let mut driver = Driver::new(machine, Watches::default(), Span::from_secs(60), 1);
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1", "uid": "1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    driver.tell(|machine, watches| {
        for update in [
            there(Kind::of::<Node>(), node),
            there(Kind::of::<Pod>(), pod),
        ] {
            machine.take_in(START, update, watches);
        }
    });
    driver
}

/// The next request of a scheduler that leads; it succeeds.
fn next_request(driver: &mut Driver<SchedulerMachine>) -> Arc<Request> {
    let at = |now| Moment { now, wall: now };
    driver.handle(at(START), Event::Lease(Instant(u64::MAX)), &mut ());
    for s in 0..60 {
        let now = START + Span::from_secs(s);
        if let Progress::Do(Action::Send(ticket, request)) = driver.poll(at(now), &mut ()) {
            let done = Answer::of(200, None, b"{}");
            driver.handle(at(now), Event::Answered(ticket, done), &mut ());
            return request;
        }
    }
    panic!("nothing is asked for");
}

#[test]
fn a_pod_that_cannot_be_read_gets_a_condition() {
    let mut driver = with(pod("1e30"));
    let request = next_request(&mut driver);
    assert_eq!((&*request.name, request.subresource), ("web", "status"));
    let condition = &request.body["status"]["conditions"][0];
    assert_eq!(condition["type"], "PodScheduled");
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["reason"], "SchedulerError");
    let message = condition["message"].as_str().unwrap();
    let why = "strew sets this pod aside: spec.containers[0].resources.requests[cpu]: ";
    assert!(message.starts_with(why), "{message}");

    // As soon as it can be read, it is tried.
    let mut driver = with(pod("1e30"));
    driver.tell(|machine, watches| {
        let changed = there(Kind::of::<Pod>(), pod("1"));
        machine.take_in(START, changed, watches);
    });
    let mut asked = next_request(&mut driver);
    while asked.subresource == "status" {
        asked = next_request(&mut driver);
    }
    assert_eq!(asked.body["target"]["name"], "n-1");
}

/// The log of a scheduler with a pod, and a node with room for it. The lease ends this many seconds after the decision.
/// If the bind is sent, it is forbidden.
fn logged(lease_left_s: i64) -> Log {
    let mut driver = with(pod("1"));
    let at = |now| Moment { now, wall: now };
    let decided = START + Span::from_secs(10);
    let ends = Instant(
        decided
            .0
            .saturating_add_signed(lease_left_s * 1_000_000_000),
    );
    driver.handle(at(START), Event::Lease(decided + Span(1)), &mut ());
    assert!(matches!(
        driver.poll(at(decided), &mut ()),
        Progress::Decided
    ));
    driver.handle(at(decided), Event::Lease(ends), &mut ());
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let next = driver.poll(at(decided), &mut ());
    assert_eq!(driver.outbox().waiting(), 1);
    if let Progress::Do(Action::Send(ticket, _)) = next {
        let body = br#"{"kind": "Status", "message": "pods \"web\" is forbidden"}"#;
        let forbidden = Answer::of(403, None, body);
        driver.handle(at(decided), Event::Answered(ticket, forbidden), &mut ());
    }
    // Long enough for all tries of a request that is not sent.
    for s in 0..120 {
        let now = decided + Span::from_secs(s);
        for _ in 0..8 {
            driver.poll(at(now), &mut ());
        }
    }
    drop(guard);
    log
}

#[test]
fn what_is_decided_by_who_does_not_lead_any_more_is_no_decision() {
    let bind = "strew::decision DEBUG message=bind";
    assert_eq!(logged(1).lines(bind).len(), 1);
    assert_eq!(logged(-1).lines("strew::decision").len(), 0);
}

#[test]
fn a_refused_bind_is_told_with_pod_node_error_and_next_try() {
    // tracing records for each line of code whether anybody listens. Another test may reach this line first, while this
    // one begins to listen: then nobody listens there until the next listener comes.
    let mut told = (0..3).map(|_| logged(1).lines("strew_runtime::warning"));
    let told = told.find(|told| !told.is_empty()).unwrap_or_default();
    let fields = r#"WARN message=bind failed kind="Pod" namespace="shop" name="web" node="n-1" action="bind" error=pods "web" is forbidden next="after the pod's backoff""#;
    assert_eq!(told, [format!("strew_runtime::warning {fields}")]);
}

#[test]
fn requests_that_a_replica_holds_back_since_it_does_not_lead_are_no_warnings() {
    assert_eq!(logged(-1).lines("strew_runtime::warning"), [""; 0]);
}
