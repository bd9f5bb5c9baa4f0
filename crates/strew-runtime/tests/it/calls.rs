//! Calls of an API server, and the answers of admission's machine.

use serde_json::{Value, json};
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_runtime::admission::{AdmissionMachine, Call, PATIENCE, spreads, watches};
use strew_runtime::watch::{Object, Served, ServedKind, WatchAction, WatchEvent, WatchId};
use strew_runtime::{Action, CallId, Driver, Event, Moment, Observer, Progress};
use strew_scheduler::Profile;
use strew_wire::facts::Named;
use strew_wire::workloadspread::review::{Decision, Operation, Review};
use strew_workloadspread::Ground;
use strew_workloadspread::admission::{Effect, Limits};

use crate::toy::START;

/// A driver that has listed a cluster with nothing but a WorkloadSpread for a Deployment.
struct ListedDriver {
    driver: Driver<AdmissionMachine>,
    now: Instant,
    replica_sets: WatchId,
    spreads: WatchId,
    seen: Grounds,
}

/// On which grounds subsets were taken.
#[derive(Default)]
struct Grounds(Vec<Ground>);

impl Observer<AdmissionMachine> for Grounds {
    fn decided(&mut self, _: &mut AdmissionMachine, effect: &Effect) {
        if let Effect::Answer(answer) = effect {
            let choice = answer.choice.as_ref();
            self.0
                .extend(choice.and_then(|choice| choice.ground().cloned()));
        }
    }
}

impl ListedDriver {
    fn new() -> Self {
        let profiles = vec![Profile::default()];
        let machine = AdmissionMachine::new(Interner::new(), profiles, Limits::production(), 1);
        let mut world = Self {
            driver: Driver::new(machine, watches("strew-system"), PATIENCE, 1),
            now: START,
            replica_sets: WatchId(0),
            spreads: WatchId(0),
            seen: Grounds::default(),
        };
        world.handle(Event::Lease(Instant(u64::MAX)));
        world.poll();
        assert!(
            !world.driver.is_ready(),
            "which kinds there are is not known"
        );
        world
            .driver
            .tell(|machine, watches| machine.serve(served(), watches));
        assert!(!world.driver.is_ready(), "WorkloadSpreads are not listed");
        world.poll();
        assert!(world.driver.is_ready());
        world
    }

    fn handle(&mut self, event: Event<Call>) {
        let at = Moment {
            now: self.now,
            wall: self.now,
        };
        self.driver.handle(at, event, &mut ());
    }

    /// Polls until the driver is idle: each watch lists nothing. The answers.
    fn poll(&mut self) -> Vec<(u64, Decision)> {
        let mut replies = Vec::new();
        loop {
            let at = Moment {
                now: self.now,
                wall: self.now,
            };
            match self.driver.poll(at, &mut self.seen) {
                Progress::Do(Action::Watch(WatchAction::Begin { id, kind, .. })) => {
                    if *kind.kind == *"ReplicaSet" {
                        self.replica_sets = id;
                    }
                    self.handle(Event::Watch(id, WatchEvent::ListBegins));
                    if kind == spreads() {
                        self.spreads = id;
                        self.handle(Event::Watch(id, told("spread", spread())));
                    }
                    self.handle(Event::Watch(id, WatchEvent::ListEnds));
                }
                Progress::Do(Action::Watch(_)) | Progress::Decided => {}
                Progress::Do(Action::Reply(id, decision)) => replies.push((id.0, *decision)),
                Progress::Do(Action::Send(_, request)) => panic!("{request:?}"),
                Progress::Idle => return replies,
            }
        }
    }

    fn ask(&mut self, number: u64, operation: Operation, pod: Value) {
        self.ask_as(number, operation, pod, true);
    }

    fn ask_as(&mut self, number: u64, operation: Operation, pod: Value, is_simulated: bool) {
        let review = Review {
            uid: format!("review-{number}"),
            operation,
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
            pod,
            dry_run: false,
            subresource: false,
        };
        let call = Call {
            review,
            fresh_uid: "fresh".into(),
            is_simulated,
        };
        self.handle(Event::Asked(CallId(number), Box::new(call)));
    }
}

/// The kinds of CustomResourceDefinitions that there are.
fn served() -> Served {
    let served = ServedKind {
        kind: spreads(),
        has_scale: false,
    };
    [served].into_iter().collect()
}

fn spread() -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "spread", "namespace": "shop", "uid": "s1", "resourceVersion": "1"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
            "subsets": [{"name": "own", "maxReplicas": 3}, {"name": "elastic"}],
        },
    })
}

/// That an object is there.
fn told(name: &str, object: Value) -> WatchEvent {
    let named = Named {
        namespace: "shop".into(),
        name: name.into(),
        uid: object["metadata"]["uid"]
            .as_str()
            .expect("it has one")
            .into(),
    };
    let object = Object::Known(KubeObject::of_json(object).expect("it can be read"));
    WatchEvent::Set(named, Box::new(object))
}

fn pod_of(set: &str) -> Value {
    json!({
        "metadata": {
            "name": "web-1", "namespace": "shop",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": "r1", "controller": true,
            }],
        },
        "spec": {"containers": [{"name": "c", "image": "a"}]},
    })
}

#[test]
fn what_needs_no_machine_is_answered_at_once() {
    let mut world = ListedDriver::new();
    world.ask(1, Operation::Create, json!({"metadata": {"name": "web-1"}}));
    world.ask(2, Operation::Create, json!(7));
    let unreadable = "read the pod: invalid type: integer `7`, expected Pod";
    let expected = [
        (2, Decision::refuse("review-2", 400, unreadable)),
        (1, Decision::allow("review-1")),
    ];
    assert_eq!(world.poll(), expected);
    assert_eq!(world.driver.machine().open(), 0);
}

#[test]
fn a_pod_waits_for_news_of_its_owner() {
    let mut world = ListedDriver::new();
    world.ask(1, Operation::Create, pod_of("web"));
    assert_eq!(world.poll(), []);
    let wake = world.driver.next_wake().expect("it waits");
    assert_eq!(wake, START + Span::from_secs(1));
    world.now = START + Span::from_millis(300);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "r1"},
    });
    world.handle(Event::Watch(world.replica_sets, told("web", set)));
}

#[test]
fn a_pod_without_its_owner_is_refused_after_a_second() {
    let mut world = ListedDriver::new();
    world.ask(1, Operation::Create, pod_of("web"));
    assert_eq!(world.poll(), []);
    world.now = START + Span::from_secs(1);
    let why = "the pod's owner ReplicaSet \"web\" was not found";
    assert_eq!(world.poll(), [(1, Decision::refuse("review-1", 500, why))]);
}

#[test]
fn a_call_that_is_given_up_has_no_answer() {
    let mut world = ListedDriver::new();
    world.ask(1, Operation::Create, pod_of("web"));
    world.ask(2, Operation::Create, pod_of("web"));
    world.handle(Event::GaveUp(CallId(1)));
    assert_eq!(world.poll(), []);
    world.handle(Event::GaveUp(CallId(2)));
    world.handle(Event::GaveUp(CallId(3)));
    assert_eq!(world.driver.machine().open(), 0);
    world.now = START + Span::from_secs(2);
    assert_eq!(world.poll(), []);
}

/// A namespace beyond its budget, or a large pod: no node is asked, and the subset is chosen as if it had room.
#[test]
fn a_call_without_simulation_asks_no_node() {
    let mut world = ListedDriver::new();
    let mut adaptive = spread();
    adaptive["metadata"]["resourceVersion"] = "2".into();
    adaptive["spec"]["scheduleStrategy"] = json!({"type": "Adaptive", "adaptive": {}});
    adaptive["spec"]["subsets"] = json!([{"name": "own"}, {"name": "elastic"}]);
    world.handle(Event::Watch(world.spreads, told("spread", adaptive)));
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "r1",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "d1", "controller": true,
            }],
        },
    });
    world.handle(Event::Watch(world.replica_sets, told("web", set)));
    for (call, is_simulated) in [(1, true), (2, false)] {
        world.ask_as(call, Operation::Create, pod_of("web"), is_simulated);
        assert_eq!(world.poll().len(), 1);
    }
    // There is no node.
    let expected = [
        Ground::Fallback { missing: -1 },
        Ground::RoomUnasked { missing: -1 },
    ];
    assert_eq!(world.seen.0, expected);
}
