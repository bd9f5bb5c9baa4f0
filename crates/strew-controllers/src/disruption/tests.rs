use serde_json::{Value, json};
use strew_apiserver::object::{Kind, Object};

use super::*;

use crate::small_world::{START, SmallCluster};

fn world(budget: Value) -> SmallCluster {
    let mut world = SmallCluster::new(1, vec![Box::new(Disruption::new())]);
    world.add_node("n", "a");
    let wire = json!({"metadata": {"name": "b"}, "spec": budget});
    let wire: k8s_openapi::api::policy::v1::PodDisruptionBudget =
        serde_json::from_value(wire).unwrap();
    world.add(wire);
    world
}

fn owned(kind: &str, name: &str) -> Value {
    let group = match kind {
        "Job" => "batch/v1",
        "CloneSet" => "apps.kruise.io/v1alpha1",
        _ => "apps/v1",
    };
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": group, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true}
    ]}})
}

fn add_replica_set(world: &mut SmallCluster, name: &str, replicas: i32, deployment: Option<&str>) {
    let mut wire =
        json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {}}});
    if let Some(deployment) = deployment {
        crate::small_world::merge(&mut wire, owned("Deployment", deployment));
    }
    let set: k8s_openapi::api::apps::v1::ReplicaSet = serde_json::from_value(wire).unwrap();
    world.add(set);
}

fn add_deployment(world: &mut SmallCluster, name: &str, replicas: i32) {
    let spec = json!({"replicas": replicas, "selector": {}, "template": {}});
    let deployment: k8s_openapi::api::apps::v1::Deployment =
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    world.add(deployment);
}

/// `healthy/desired of expected, allowed reason`
fn status(world: &SmallCluster) -> String {
    let status = world.get::<Budget>("b").unwrap().status.clone();
    let condition = &status.conditions.as_ref().unwrap()[0];
    format!(
        "{}/{} of {}, {} {}",
        status.current_healthy.unwrap_or(0),
        status.desired_healthy.unwrap_or(0),
        status.expected_pods.unwrap_or(0),
        status.disruptions_allowed.unwrap(),
        condition.reason
    )
}

fn set_ready(world: &mut SmallCluster, pod: &str, ready: bool) {
    let now = world.server.now;
    world.change(Kind::Pod, pod, |object| {
        if let Object::Pod(pod) = object {
            let status = &mut Arc::make_mut(pod).status;
            status.set_condition("Ready", ready.into(), "", "", now);
        }
    });
}

#[test]
fn the_scale_is_that_of_the_distinct_controllers() {
    let mut world =
        world(json!({"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "web"}}}));
    world.run_until(1);
    assert_eq!(status(&world), "0/0 of 0, 0 InsufficientPods");
    assert_eq!(
        world.events_of("NoPods")[0],
        "PodDisruptionBudget default/b Normal NoPods: No matching pods found"
    );
    add_deployment(&mut world, "d", 4);
    add_replica_set(&mut world, "old", 1, Some("d"));
    add_replica_set(&mut world, "new", 3, Some("d"));
    add_replica_set(&mut world, "bare", 2, None);
    for (pod, set) in [
        ("p0", "old"),
        ("p1", "new"),
        ("p2", "new"),
        ("p3", "new"),
        ("p4", "bare"),
        ("p5", "bare"),
    ] {
        world.add_pod(pod, "n", owned("ReplicaSet", set));
    }
    world.add_pod(
        "stranger",
        "n",
        json!({"metadata": {"labels": {"app": "db"}}}),
    );
    world.run_until(2);
    assert_eq!(status(&world), "6/4 of 6, 2 SufficientPods");
    set_ready(&mut world, "p1", false);
    set_ready(&mut world, "p2", false);
    world.run_until(3);
    assert_eq!(status(&world), "4/4 of 6, 0 InsufficientPods");
    world.change(Kind::Deployment, "d", |object| {
        if let Object::Deployment(deployment) = object {
            Arc::make_mut(&mut Arc::make_mut(deployment).spec).replicas = Some(2);
        }
    });
    world.run_until(4);
    let stale = "4/4 of 6, 0 InsufficientPods";
    assert_eq!(status(&world), stale, "until one of its pods changes");
    set_ready(&mut world, "p2", true);
    set_ready(&mut world, "p3", false);
    world.run_until(5);
    assert_eq!(status(&world), "4/3 of 4, 1 SufficientPods");
    world.add_pod("bare", "n", json!({}));
    world.run_until(6);
    assert_eq!(status(&world), "5/3 of 4, 2 SufficientPods");
    let unmanaged = world.events_of("UnmanagedPods");
    assert!(
        unmanaged[0].contains(
            "(selector: {\"matchLabels\":{\"app\":\"web\"}}) were found to be unmanaged."
        )
    );
}

#[test]
fn a_clone_set_has_a_scale() {
    let mut world = world(json!({"maxUnavailable": "25%", "selector": {}}));
    world.add_pod("p", "n", owned("CloneSet", "c"));
    let set = json!({"metadata": {"name": "c"}, "spec": {"replicas": 4, "template": {}}});
    let set: strew_manifest::kruise::workloads::CloneSet = serde_json::from_value(set).unwrap();
    world.add(set);
    world.run_until(1);
    assert_eq!(status(&world), "1/3 of 4, 0 InsufficientPods");
}

#[test]
fn a_controller_without_size_fails_the_sync_unless_min_available_is_a_number() {
    let mut failing = world(json!({"maxUnavailable": 1, "selector": {}}));
    failing.add_pod("p", "n", owned("Job", "j"));
    failing.run_until(1);
    assert_eq!(status(&failing), "0/0 of 0, 0 SyncFailed");
    let budget = failing.get::<Budget>("b").unwrap();
    assert_eq!(
        condition::failure(&budget.status),
        Some("jobs.batch does not implement the scale subresource")
    );
    failing
        .server
        .store
        .remove(&crate::small_world::key(Kind::Pod, "p"));
    let mut gone = world(json!({"minAvailable": "50%", "selector": {}}));
    gone.add_pod("p", "n", owned("ReplicaSet", "rs"));
    gone.run_until(1);
    let budget = gone.get::<Budget>("b").unwrap();
    assert_eq!(
        condition::failure(&budget.status),
        Some("found no controllers for pod \"p\"")
    );
    add_replica_set(&mut gone, "rs", 3, None);
    set_ready(&mut gone, "p", false);
    gone.run_until(2);
    assert_eq!(status(&gone), "0/2 of 3, 0 InsufficientPods");
    let mut number = world(json!({"minAvailable": 1, "selector": {}}));
    number.add_pod("p", "n", owned("Job", "j"));
    number.add_pod("q", "n", owned("Job", "j"));
    number.run_until(1);
    assert_eq!(status(&number), "2/1 of 2, 1 SufficientPods");
}

#[test]
fn evicted_pods_do_not_count_until_two_minutes_have_passed() {
    let mut world = world(json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}));
    for pod in ["p", "q", "r"] {
        world.add_pod(pod, "n", json!({}));
    }
    world.run_until(10);
    assert_eq!(status(&world), "3/1 of 3, 2 SufficientPods");
    world.change(Kind::PodDisruptionBudget, "b", |object| {
        if let Object::Budget(budget) = object {
            let since = moment::to_wire(START + Span::from_secs(10));
            let pods = ["p", "nobody"].map(|pod| (pod.to_owned(), since.clone()));
            Arc::make_mut(budget).status.disrupted_pods = Some(pods.into());
        }
    });
    world.run_until(11);
    assert_eq!(status(&world), "2/1 of 3, 1 SufficientPods");
    world.run_until(129);
    assert_eq!(status(&world), "2/1 of 3, 1 SufficientPods");
    world.run_until(131);
    assert_eq!(status(&world), "3/1 of 3, 2 SufficientPods");
    assert_eq!(
        world.get::<Budget>("b").unwrap().status.disrupted_pods,
        None
    );
    assert_eq!(
        world.events_of("NotDeleted"),
        [
            "Pod default/p Warning NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't"
        ]
    );
}

#[test]
fn a_live_pod_loses_a_stale_disruption_target() {
    let mut world = world(json!({"minAvailable": 1}));
    let condition = json!({"type": DISRUPTION_TARGET, "status": "True", "reason": "PreemptionByScheduler",
        "lastTransitionTime": moment::to_wire(START)});
    world.add_pod("p", "n", json!({"status": {"conditions": [condition]}}));
    let target = |world: &SmallCluster| {
        world
            .get::<Pod>("p")
            .unwrap()
            .status
            .condition(DISRUPTION_TARGET)
            .unwrap()
            .status
    };
    world.run_until(119);
    assert_eq!(target(&world), Truth::True);
    world.run_until(120);
    assert_eq!(target(&world), Truth::False);
}

/// A resize triggers no sync; the next change of a pod does.
#[test]
fn a_new_size_is_seen_with_the_next_change_of_a_pod() {
    let mut world =
        world(json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}));
    add_replica_set(&mut world, "web", 3, None);
    let mut fields = owned("ReplicaSet", "web");
    fields["metadata"]["labels"] = json!({"app": "web"});
    world.add_pod("p", "n", fields);
    set_ready(&mut world, "p", true);
    world.run_until(5);
    assert_eq!(status(&world), "1/2 of 3, 0 InsufficientPods");
    world.change(Kind::ReplicaSet, "web", |object| {
        if let Object::ReplicaSet(set) = object {
            let set = Arc::make_mut(set);
            Arc::make_mut(&mut set.spec).replicas = Some(1);
        }
    });
    world.run_until(10);
    assert_eq!(status(&world), "1/2 of 3, 0 InsufficientPods");
    world.change(Kind::Pod, "p", |object| {
        let annotations = &mut object.meta_mut().annotations;
        Arc::make_mut(annotations).insert("a".to_owned(), "b".to_owned());
    });
    world.run_until(15);
    assert_eq!(status(&world), "1/0 of 1, 1 SufficientPods");
}
