//! What seeded lives have found, each by itself.

use std::ops::ControlFlow;
use std::sync::Arc;

use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Key, Kind, Name, Pod};
use strew_model::time::Span;
use strew_sim::chaos::{
    Action, ClusterPlan, Event, NodePlan, Parts, Story, Worker, Workload, play,
};
use strew_sim::{Between, BindFault, Fault, LeaseFault, MachineLimits, Timing};

use crate::life::{Life, nodes};

/// One node, and a ReplicaSet of `replicas` pods.
fn story(replicas: u32, elects: bool, events: &[(u64, Action)]) -> Story {
    let at = |&(secs, ref action): &(u64, Action)| Event {
        at: Span::from_secs(secs),
        action: action.clone(),
    };
    Story {
        seed: 2,
        limits: MachineLimits::production(),
        world: ClusterPlan {
            nodes: vec![NodePlan {
                name: "n0".to_owned(),
                zone: Some(0),
                cpu: 4000,
                pods: 110,
                is_tainted: false,
                is_cordoned: false,
            }],
            workloads: vec![Workload {
                name: "w0".to_owned(),
                worker: Worker::ReplicaSet,
                replicas,
                cpu: 0,
                priority: 0,
                tolerates: false,
                has_port: false,
                spread: Vec::new(),
                anti: None,
                budget: None,
                is_zone_aware: false,
                keeps_spread: false,
                scaling: None,
                is_late: false,
            }],
            quota: None,
            group: None,
            elects,
            ..ClusterPlan::default()
        },
        events: events.iter().map(at).collect(),
        calm: Span::from_secs(100),
    }
}

#[test]
fn a_bind_that_waits_is_not_sent_once_the_lease_has_run_out() {
    let slow = Fault::Bind(BindFault {
        slow: Span::from_secs(60),
        fail_ppm: 0,
    });
    let cut = Fault::Lease(LeaseFault {
        lost_ppm: 1_000_000,
    });
    let lasts = Span::from_secs(60);
    let events = [
        (1, Action::Fault(slow, lasts)),
        (2, Action::Fault(cut, lasts)),
        (3, Action::Scale("w0".to_owned(), 20)),
    ];
    let verdict = play(&story(1, true, &events), &Parts::real());
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.figures.binds, 20);
}

#[test]
fn a_pod_that_is_on_its_node_before_anything_begins_is_started() {
    let pod = "
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {nodeName: n0, containers: [{name: c, image: nginx}]}
";
    let mut life = Life::of(&(nodes(2, 2) + pod), 1);
    assert_eq!(life.until(10).picture(), "n0: a Running ready\n");
}

#[test]
fn a_pod_outlives_a_node_that_was_away_for_a_moment() {
    let events = [
        (10, Action::Scale("w0".to_owned(), 3)),
        (10, Action::DeleteNode("n0".to_owned())),
        (20, Action::CreateNode("n0".to_owned())),
    ];
    let verdict = play(&story(1, false, &events), &Parts::real());
    assert_eq!(verdict.violations, []);
}

#[test]
fn what_was_to_stop_one_pod_does_not_stop_the_next_of_its_name() {
    let set = "
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: db}]}
";
    let timing = Timing {
        pod_stop: Between::secs(20, 20),
        ..Timing::default()
    };
    let mut life = Life::with(&(nodes(1, 1) + set), 1, timing);
    let key = Key {
        kind: Kind::Pod,
        name: Name::new("default", "db-0"),
    };
    let uid = |life: &Life| {
        let pod = life.sim.server().tables().get::<Pod>(&key.name);
        pod.map(|pod| Arc::clone(&pod.meta.uid))
    };
    life.until(10);
    life.sim.delete(&key, &DeleteOptions::default()).unwrap();
    life.until(11);
    let at_once = DeleteOptions {
        grace: Some(Span::default()),
        ..DeleteOptions::default()
    };
    life.sim.delete(&key, &at_once).unwrap();
    life.until(20);
    let second = uid(&life);
    assert!(second.is_some());
    let end = Span::from_secs(60);
    let ended = life.sim.run_until(end, &mut |_| ControlFlow::Continue(()));
    assert!(ended.unwrap().is_continue());
    assert_eq!(uid(&life), second, "nobody asked for its end");
}
