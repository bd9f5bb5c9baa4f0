//! Pods without a controller.

use strew_apiserver::object::{Key, Kind, Name, Object, Pod};
use strew_apiserver::{DeleteOptions, Propagation};
use strew_sim::kubelet::Which;

use crate::life::{Life, nodes};

const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: a}}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: '3'}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: a}}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: '3'}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  containers: [{name: c, image: nginx}]
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: '30'}}}]
";

#[test]
fn pods_are_scheduled_started_and_some_end() {
    let text = nodes(2, 2) + "---" + PODS;
    let mut life = Life::of(&text, 1);
    assert_eq!(
        life.until(0).picture(),
        "-: huge Pending\nn0: a Pending, once Pending\nn1: b Pending\n"
    );
    assert_eq!(
        life.until(10).picture(),
        "-: huge Pending\nn0: a Running ready, once Running ready\nn1: b Running ready\n"
    );
    assert_eq!(
        life.until(60).picture(),
        "-: huge Pending\nn0: a Running ready, once Succeeded\nn1: b Running ready\n"
    );
    let events: Vec<String> = life
        .sim
        .server()
        .events()
        .iter()
        .map(|e| format!("{} {}", e.reason, e.note))
        .collect();
    assert!(
        events.contains(&"Scheduled Successfully assigned default/a to n0".to_owned()),
        "{events:?}"
    );
    assert!(
        events.iter().any(|e| e.starts_with("FailedScheduling 0/2 nodes are available: 2 Insufficient cpu.")),
        "{events:?}"
    );
}

#[test]
fn equal_seeds_give_equal_lives() {
    let text = nodes(3, 3) + "---" + PODS;
    let life = |seed| {
        format!(
            "{:?}",
            Life::of(&text, seed).until(600).sim.server().events()
        )
    };
    assert_eq!(life(7), life(7));
}

#[test]
fn a_pod_whose_gates_nobody_opens_runs_and_is_not_ready() {
    let gated = "
apiVersion: v1
kind: Pod
metadata: {name: gated, labels: {app: gated}}
spec:
  readinessGates: [{conditionType: example.com/open}]
  containers: [{name: c, image: nginx}]
";
    let mut life = Life::of(&(nodes(1, 1) + "---" + gated), 1);
    assert_eq!(life.until(10).picture(), "n0: gated Running\n");
    let labels = [("app".into(), "gated".into())].into_iter().collect();
    life.sim.set_readiness(Which::Labelled(labels), true);
    assert_eq!(life.until(11).picture(), "n0: gated Running ready\n");
}

/// Its finalizer would keep the pod for ever.
#[test]
fn a_pod_that_its_job_left_behind_can_go() {
    let job = "
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: work}]}}}
";
    let mut life = Life::of(&(nodes(1, 1) + job), 1);
    life.until(20);
    let key = Key {
        kind: Kind::Job,
        name: Name::new("default", "work"),
    };
    let options = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        ..DeleteOptions::default()
    };
    life.sim.delete(&key, &options).unwrap();
    life.until(25);
    let pods = life.sim.server().tables().of::<Pod>().iter();
    let keys: Vec<Key> = pods.map(|pod| Object::Pod(pod.clone()).key()).collect();
    assert_eq!(keys.len(), 1);
    life.sim
        .delete(&keys[0], &DeleteOptions::default())
        .unwrap();
    assert_eq!(life.until(60).picture(), "");
}
