//! What is refused for ever costs at most 20 requests in ten minutes: of all machines, whatever is refused and how.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_runtime::placement::{self, Placements};
use strew_runtime::scheduler::{self, SchedulerMachine};
use strew_runtime::watch::{Object, Served, WatchAction, WatchEvent};
use strew_runtime::workloadspread::{self, Spreads};
use strew_runtime::{Action, Driver, Event, Machine, Moment, Progress};
use strew_scheduler::Profile;
use strew_scheduler::machine::Scheduler;
use strew_wire::facts::Named;
use strew_wire::request::{Answer, Request};

use crate::toy::START;

const PATIENCE: Span = Span::from_secs(60);

const TEN_MINUTES: Span = Span::from_secs(600);

const REQUESTS_MAX: usize = 20;

/// How often a machine decides in ten minutes about the few objects of a case: more is a loop that only the driver's
/// memory of refusals keeps from the API server.
const DECISIONS_MAX: usize = 1_000;

/// How something is refused, as a column of the table.
fn refusals() -> Vec<(&'static str, Answer)> {
    let status = |code: u16, message: &str| {
        let status = json!({"kind": "Status", "code": code, "message": message});
        Answer::of(code, None, status.to_string().as_bytes())
    };
    vec![
        ("forbidden", status(403, "no right")),
        ("invalid", status(422, "must be no more than 63 characters")),
        ("conflict", status(409, "the object has been modified")),
        ("broken", status(500, "an error on the server")),
        ("gone", status(404, "not found")),
        (
            "no connection",
            Answer::Refused("connection refused".into()),
        ),
        ("no answer", Answer::Lost("no answer within 30 s".into())),
    ]
}

/// What came of ten minutes.
#[derive(Default)]
struct Cost {
    /// Requests by what they ask for.
    requests: BTreeMap<String, usize>,
    decisions: usize,
}

fn asks(request: &Request) -> String {
    format!("{} {}", request.verb.method(), request.path())
}

/// A driver that acts, with these objects, for ten minutes; requests that `is_refused` names are answered so, others
/// succeed, and no watch tells of it.
fn play<M: Machine>(
    mut driver: Driver<M>,
    objects: &[Value],
    answer: &Answer,
    is_refused: impl Fn(&str) -> bool,
) -> Cost {
    let (mut now, mut cost) = (START, Cost::default());
    let at = |now| Moment { now, wall: now };
    driver.handle(at(now), Event::Lease(Instant(u64::MAX)), &mut ());
    driver.tell(|_, _| {});
    while now <= START + TEN_MINUTES {
        match driver.poll(at(now), &mut ()) {
            Progress::Do(Action::Send(ticket, request)) => {
                let asked = asks(&request);
                let refused = is_refused(&asked);
                if refused {
                    *cost.requests.entry(asked).or_default() += 1;
                }
                let mut stored = request.body.clone();
                stored["metadata"]["resourceVersion"] = "99".into();
                let done = Answer::of(200, None, stored.to_string().as_bytes());
                let answer = if refused { answer.clone() } else { done };
                driver.handle(at(now), Event::Answered(ticket, answer), &mut ());
            }
            Progress::Do(Action::Watch(WatchAction::Begin { id, kind, .. })) => {
                let mut tell = |event| driver.handle(at(now), Event::Watch(id, event), &mut ());
                tell(WatchEvent::ListBegins);
                for object in objects.iter().filter(|object| object["kind"] == *kind.kind) {
                    tell(there(object));
                }
                tell(WatchEvent::ListEnds);
            }
            Progress::Do(Action::Watch(WatchAction::ReadAgain { id, namespace, .. })) => {
                let pods = objects.iter().filter(|object| object["kind"] == "Pod");
                let pods = pods
                    .map(|pod| (named(pod), Object::Known(read(pod))))
                    .collect();
                let again = WatchEvent::Again(namespace, pods);
                driver.handle(at(now), Event::Watch(id, again), &mut ());
            }
            Progress::Do(_) => {}
            Progress::Decided => {
                cost.decisions += 1;
                assert!(cost.decisions <= DECISIONS_MAX, "it decides without end");
            }
            Progress::Idle => match driver.next_wake() {
                Some(wake) => now = wake.max(now + Span(1)),
                None => break,
            },
        }
    }
    cost
}

fn named(object: &Value) -> Named {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or("").into();
    Named {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
    }
}

fn read(object: &Value) -> KubeObject {
    KubeObject::of_json(object.clone()).expect("an object")
}

fn there(object: &Value) -> WatchEvent {
    WatchEvent::Set(named(object), Box::new(Object::Known(read(object))))
}

/// Plays a case with every refusal; `refused`: what it is about, as the beginning of a method and a part of a path.
#[track_caller]
fn check<M: Machine>(
    case: &str,
    make: impl Fn() -> Driver<M>,
    objects: &[Value],
    [method, path]: [&str; 2],
) {
    for (how, answer) in refusals() {
        let is_refused = |asked: &str| asked.starts_with(method) && asked.contains(path);
        let cost = play(make(), objects, &answer, is_refused);
        assert!(
            !cost.requests.is_empty(),
            "{case}, {how}: nothing was asked"
        );
        let most = cost.requests.iter().max_by_key(|(_, n)| **n);
        let (asked, n) = most.expect("there are some");
        assert!(
            *n <= REQUESTS_MAX,
            "{case}, {how}: {asked} was asked {n} times in ten minutes"
        );
    }
}

fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "7"},
    });
    for (key, value) in rest.as_object().expect("fields") {
        match (key.as_str(), value) {
            ("metadata", Value::Object(fields)) => {
                for (key, value) in fields {
                    object["metadata"][key] = value.clone();
                }
            }
            _ => object[key] = value.clone(),
        }
    }
    object
}

// === the scheduler ===

fn scheduler() -> Driver<SchedulerMachine> {
    let limits = strew_scheduler::machine::Limits::production();
    let machine = Scheduler::new(Interner::new(), vec![Profile::default()], limits, START);
    let machine = SchedulerMachine::new(machine, "here".to_owned());
    Driver::new(machine, scheduler::watches(), PATIENCE, 1)
}

fn node(cpu: &str) -> Value {
    let allocatable = json!({"cpu": cpu, "memory": "8Gi", "pods": "10"});
    let labels = json!({"zone": "a"});
    object(
        "v1",
        "Node",
        "n-1",
        json!({"metadata": {"labels": labels}, "status": {"allocatable": allocatable}}),
    )
}

fn pod(name: &str, cpu: &str, rest: Value) -> Value {
    let requests = json!({"requests": {"cpu": cpu}});
    let mut pod = object("v1", "Pod", name, rest);
    pod["spec"]["schedulerName"] = "default-scheduler".into();
    pod["spec"]["containers"] = json!([{"name": "web", "resources": requests}]);
    pod
}

#[test]
fn of_the_scheduler() {
    let fits = [node("4"), pod("web", "1", json!({}))];
    let not = [node("4"), pod("web", "8", json!({}))];
    let victim = pod(
        "old",
        "4",
        json!({"spec": {"nodeName": "n-1", "priority": 0}}),
    );
    let preempts = [
        node("4"),
        victim,
        pod("web", "4", json!({"spec": {"priority": 9}})),
    ];
    check("bind", scheduler, &fits, ["POST", "/binding"]);
    check("everything", scheduler, &fits, ["", ""]);
    check("condition", scheduler, &not, ["PATCH", "/status"]);
    check("event", scheduler, &not, ["", "/events"]);
    check("everything of a refused one", scheduler, &not, ["", ""]);
    check("victim", scheduler, &preempts, ["DELETE", "/pods/old"]);
    check(
        "victim's condition",
        scheduler,
        &preempts,
        ["PATCH", "/pods/old/status"],
    );
    check(
        "nomination",
        scheduler,
        &preempts,
        ["PATCH", "/pods/web/status"],
    );
    check("everything of a preemption", scheduler, &preempts, ["", ""]);
}

/// A chain whose last request is refused for ever does not send its first one for ever.
#[test]
fn of_the_requests_before_the_refused_one() {
    let objects = [
        node("4"),
        pod(
            "old",
            "4",
            json!({"spec": {"nodeName": "n-1", "priority": 0}}),
        ),
        pod("web", "4", json!({"spec": {"priority": 9}})),
    ];
    for (how, answer) in refusals() {
        let deletes = |asked: &str| asked.starts_with("DELETE");
        let n_before = std::cell::Cell::new(0);
        play(scheduler(), &objects, &answer, |asked| {
            let is_before = asked.starts_with("PATCH") && asked.contains("/pods/old/status");
            n_before.set(n_before.get() + usize::from(is_before));
            deletes(asked)
        });
        let n = n_before.get();
        assert!((1..=REQUESTS_MAX).contains(&n), "{how}: {n} times");
    }
}

// === the controller of WorkloadSpreads ===

fn spreads() -> Driver<Spreads> {
    let limits = strew_workloadspread::controller::Limits::production();
    let served = Arc::new(Served::default());
    let machine = Spreads::new(Interner::new(), limits, "here".to_owned(), served);
    Driver::new(
        machine,
        workloadspread::watches("strew-system"),
        PATIENCE,
        1,
    )
}

/// A Deployment of three pods under a WorkloadSpread: one has no marker yet, one waits for a node in vain.
fn spread_pods() -> Vec<Value> {
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "i"}]}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": template});
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
    let marker = |subset: &str| {
        let marker = json!({"name": "web", "subset": subset}).to_string();
        json!({"apps.kruise.io/matched-workloadspread": marker})
    };
    let metadata = |annotations: Value| {
        json!({
            "labels": {"app": "web", "pod-template-hash": "1"},
            "ownerReferences": owner("ReplicaSet", "web-1"),
            "annotations": annotations,
            "creationTimestamp": "1970-01-01T00:10:00Z",
        })
    };
    let subset = |name: &str, zone: &str| {
        json!({
            "name": name,
            "maxReplicas": 2,
            "requiredNodeSelectorTerm": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]},
        })
    };
    let strategy = json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let waits = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
    ]});
    let runs = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    vec![
        node("4"),
        object("apps/v1", "Deployment", "web", json!({"spec": spec})),
        object(
            "apps/v1",
            "ReplicaSet",
            "web-1",
            json!({
                "metadata": {"labels": {"app": "web", "pod-template-hash": "1"}, "ownerReferences": owner("Deployment", "web")},
                "spec": spec,
            }),
        ),
        pod(
            "web-a",
            "1",
            json!({"metadata": metadata(marker("a")), "status": waits}),
        ),
        pod(
            "web-b",
            "1",
            json!({"metadata": metadata(marker("b")), "status": runs, "spec": {"nodeName": "n-1"}}),
        ),
        pod(
            "web-c",
            "1",
            json!({"metadata": metadata(json!({})), "status": runs, "spec": {"nodeName": "n-1"}}),
        ),
        object(
            "apps.kruise.io/v1beta1",
            "WorkloadSpread",
            "web",
            json!({"metadata": {"generation": 1}, "spec": {
                "targetRef": target,
                "scheduleStrategy": strategy,
                "subsets": [subset("a", "b"), subset("b", "a")],
            }}),
        ),
    ]
}

#[test]
fn of_the_controller_of_workloadspreads() {
    let objects = spread_pods();
    check("cost", spreads, &objects, ["PATCH", "/pods/web-b"]);
    check("adoption", spreads, &objects, ["PATCH", "/pods/web-c"]);
    check(
        "status",
        spreads,
        &objects,
        ["", "/workloadspreads/web/status"],
    );
    check("deletion", spreads, &objects, ["DELETE", "/pods/web-a"]);
    check("everything", spreads, &objects, ["", ""]);
}

// === placements ===

fn placements() -> Driver<Placements> {
    let limits = strew_placement::machine::Limits::production();
    let machine = Placements::new("here".to_owned(), limits, START);
    Driver::new(machine, placement::watches(), PATIENCE, 1)
}

const OCM: &str = "cluster.open-cluster-management.io";

fn hub(placement: &str) -> Vec<Value> {
    let cluster = |name: &str| {
        let labels = json!({format!("{OCM}/clusterset"): "all"});
        object(
            &format!("{OCM}/v1"),
            "ManagedCluster",
            name,
            json!({"metadata": {"labels": labels, "namespace": ""}}),
        )
    };
    let set = json!({"metadata": {"namespace": ""}, "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}});
    vec![
        cluster("c-1"),
        cluster("c-2"),
        object(&format!("{OCM}/v1beta2"), "ManagedClusterSet", "all", set),
        object(
            &format!("{OCM}/v1beta2"),
            "ManagedClusterSetBinding",
            "all",
            json!({
                "spec": {"clusterSet": "all"},
                "status": {"conditions": [
                {"type": "Bound", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ]},
            }),
        ),
        object(
            &format!("{OCM}/v1beta1"),
            "Placement",
            placement,
            json!({"spec": {"numberOfClusters": 1}}),
        ),
    ]
}

/// A PlacementDecision of more than there are clusters for.
fn surplus() -> Value {
    let labels =
        json!({format!("{OCM}/placement"): "p", format!("{OCM}/decision-group-index"): "7"});
    object(
        &format!("{OCM}/v1beta1"),
        "PlacementDecision",
        "p-decision-7",
        json!({"metadata": {"labels": labels}}),
    )
}

#[test]
fn of_placements() {
    let objects = hub("p");
    check(
        "decision",
        placements,
        &objects,
        ["POST", "/placementdecisions"],
    );
    check(
        "decision's clusters",
        placements,
        &objects,
        ["PATCH", "/placementdecisions/p-decision-1/status"],
    );
    check(
        "status",
        placements,
        &objects,
        ["PATCH", "/placements/p/status"],
    );
    check("event", placements, &objects, ["", "/events"]);
    check("everything", placements, &objects, ["", ""]);
    let mut objects = objects;
    objects.push(surplus());
    check(
        "deletion",
        placements,
        &objects,
        ["DELETE", "/placementdecisions/p-decision-7"],
    );
}
