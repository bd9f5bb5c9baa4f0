use std::collections::BTreeMap;

use serde_json::{Value, json};
use strew_apiserver::object::{Deployment, Phase};
use strew_model::time::Span;

use super::*;
use crate::testing::TestCluster;

fn world() -> TestCluster {
    TestCluster::new(vec![Box::new(ReplicaSetController::new())])
}

fn set(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {"note": "x"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    })
}

fn bare(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}
    })
}

/// `replicas fully-labelled ready available terminating`
fn counts(world: &TestCluster, name: &str) -> [i32; 5] {
    let status = world.get::<ReplicaSet>(name).status.clone();
    [
        status.replicas,
        status.fully_labeled_replicas.unwrap_or(-1),
        status.ready_replicas.unwrap_or(-1),
        status.available_replicas.unwrap_or(-1),
        status.terminating_replicas.unwrap_or(-1),
    ]
}

fn failure(world: &TestCluster, name: &str) -> Option<String> {
    let conditions = world.get::<ReplicaSet>(name).status.conditions.clone();
    let failure = conditions?.into_iter().next()?;
    Some(format!("{} {}", failure.reason?, failure.message?))
}

#[test]
fn pods_are_made_of_the_template_and_share_it() {
    let mut world = world();
    world.create(set("web", 3));
    world.settle();
    let pods = world.pods(|_| true);
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert!(pod.meta.name.name.starts_with("web-"));
        assert_eq!(pod.meta.label("tier"), Some("front"));
        assert_eq!(pod.meta.annotation("note"), Some("x"));
        let owner = pod.meta.controller().unwrap();
        assert!(owner.blocks_deletion);
        assert_eq!(
            (&*owner.kind, &*owner.api_version, &*owner.name),
            ("ReplicaSet", "apps/v1", "web")
        );
        assert!(Arc::ptr_eq(&pod.spec, &pods[0].spec));
    }
    assert_eq!(counts(&world, "web"), [3, 3, 0, 0, 0]);
    let news = world.news();
    assert_eq!(news.len(), 3);
    assert_eq!(
        news[0],
        format!("SuccessfulCreate Created pod: {}", pods[0].meta.name.name)
    );
    world.edit::<ReplicaSet>("web", |set| Arc::make_mut(&mut set.spec).replicas = Some(4));
    world.settle();
    let pods = world.pods(|_| true);
    assert!(pods.iter().all(|pod| Arc::ptr_eq(&pod.spec, &pods[0].spec)));
    assert_eq!(
        (
            pods.len(),
            world.get::<ReplicaSet>("web").status.observed_generation
        ),
        (4, Some(2))
    );
}

#[test]
fn a_terminating_pod_is_replaced_at_once_and_a_finished_one_is_left_lying() {
    let mut world = world();
    world.create(set("web", 3));
    world.settle();
    world.start_pods(3, |_| true);
    world.settle();
    let names: Vec<_> = world
        .pods(|_| true)
        .iter()
        .map(|p| p.meta.name.name.to_string())
        .collect();
    world.delete::<Pod>(&names[0]);
    world.edit_pod(&names[1], |pod| pod.status.phase = Phase::Failed);
    world.settle();
    assert_eq!(counts(&world, "web"), [3, 3, 1, 1, 1]);
    assert_eq!(world.pods(|_| true).len(), 5);
    world.end_pods();
    world.settle();
    assert_eq!(counts(&world, "web"), [3, 3, 1, 1, 0]);
    assert_eq!(world.pods(|_| true).len(), 4);
}

#[test]
fn availability_waits_for_min_ready_seconds() {
    let mut world = world();
    let mut manifest = set("web", 2);
    manifest["spec"]["minReadySeconds"] = json!(10);
    world.create(manifest);
    world.settle();
    world.start_pods(1, |_| true);
    world.pass(Span::from_secs(4));
    world.start_pods(1, |_| true);
    world.settle();
    let mut seen = Vec::new();
    for _ in 0..11 {
        seen.push(counts(&world, "web")[3]);
        world.pass(Span::from_secs(1));
    }
    assert_eq!(seen, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2]);
    let first = Pod::clone(&world.pods(|_| true)[0]);
    world.edit_pod(&first.meta.name.name, |pod| pod.status.conditions.clear());
    world.settle();
    assert_eq!(counts(&world, "web"), [2, 2, 1, 1, 0]);
    world.edit::<ReplicaSet>("web", |set| {
        Arc::make_mut(&mut set.spec).min_ready_seconds = Some(60)
    });
    world.settle();
    assert_eq!(counts(&world, "web"), [2, 2, 1, 0, 0]);
}

#[test]
fn orphans_are_adopted_and_strangers_released() {
    let mut world = world();
    world.create(bare("before", "web"));
    world.create(bare("other", "db"));
    world.create(set("web", 2));
    world.settle();
    world.create(bare("after", "web"));
    world.settle();
    let own = |world: &TestCluster| {
        let own = world.pods(|pod| pod.meta.controller().is_some());
        own.iter()
            .map(|p| p.meta.name.name.to_string())
            .collect::<Vec<_>>()
    };
    // One of three was too many; bare pods lack the label that only the template has.
    assert_eq!(own(&world).len(), 2);
    assert_eq!(counts(&world, "web")[0], 2);
    assert!(
        world.pods(|p| &*p.meta.name.name == "other")[0]
            .meta
            .controller()
            .is_none()
    );
    let released = own(&world)[0].clone();
    world.edit_pod(&released, |pod| {
        Arc::make_mut(&mut pod.meta.labels).insert("app".into(), "quarantine".into());
    });
    world.settle();
    assert!(!own(&world).contains(&released));
    assert_eq!((own(&world).len(), counts(&world, "web")[0]), (2, 2));
    world.edit_pod(&released, |pod| {
        Arc::make_mut(&mut pod.meta.labels).insert("app".into(), "web".into());
    });
    world.settle();
    assert_eq!((own(&world).len(), counts(&world, "web")[0]), (2, 2));
    assert_eq!(
        world.pods(|_| true).len(),
        3,
        "adopted again, and one too many went"
    );
}

#[test]
fn pods_of_others_and_of_a_set_that_goes_are_left_alone() {
    let mut world = world();
    world.create(set("web", 1));
    world.settle();
    world.create(set("rival", 1));
    world.settle();
    assert_eq!(
        [counts(&world, "web")[0], counts(&world, "rival")[0]],
        [1, 1]
    );
    let key = Object::ReplicaSet(world.get("web")).key();
    let foreground = strew_apiserver::DeleteOptions {
        propagation: Some(strew_apiserver::Propagation::Foreground),
        ..Default::default()
    };
    crate::api::Api::delete(&mut world.server, &key, &foreground).unwrap();
    world.edit::<ReplicaSet>("rival", |set| {
        Arc::make_mut(&mut set.spec).replicas = Some(0)
    });
    world.settle();
    world.create(bare("free", "web"));
    world.settle();
    assert_eq!(
        counts(&world, "web"),
        [1, 1, 0, 0, 0],
        "its status is still written"
    );
    let owner = world.get::<ReplicaSet>("rival").meta.uid.clone();
    let free = world.pods(|pod| &*pod.meta.name.name == "free");
    assert!(
        free.iter()
            .all(|pod| pod.meta.controller().is_some_and(|c| c.uid == owner))
    );
}

#[test]
fn with_room_for_seven_seven_appear_and_the_failure_is_told_until_it_is_over() {
    let mut world = world();
    world.server.n_pods_max = 7;
    world.create(set("web", 20));
    world.deliver(1);
    world.sync();
    let count =
        |news: &[String], reason: &str| news.iter().filter(|n| n.starts_with(reason)).count();
    let news = world.news();
    assert_eq!(
        (
            count(&news, "SuccessfulCreate"),
            count(&news, "FailedCreate")
        ),
        (7, 8)
    );
    assert!(news.contains(&"FailedCreate Error creating: exceeded quota".to_owned()));
    world.settle();
    assert_eq!(
        failure(&world, "web").unwrap(),
        "FailedCreate exceeded quota"
    );
    world.server.n_pods_max = 100;
    world.pass(Span::from_secs(60));
    assert_eq!(
        (failure(&world, "web"), counts(&world, "web")[0]),
        (None, 20)
    );
}

/// How many pods are asked for at the same time, until nothing waits any more.
fn batches(world: &mut TestCluster) -> Vec<usize> {
    let mut batches = Vec::new();
    loop {
        world.settle();
        match world.answer() {
            0 => return batches,
            n => batches.push(n),
        }
    }
}

#[test]
fn slow_start_goes_on_over_answers_that_come_later() {
    let mut world = world();
    world.server.waits = Some(BTreeMap::new());
    world.create(set("web", 20));
    assert_eq!(batches(&mut world), [1, 2, 4, 8, 5]);
    assert_eq!(counts(&world, "web")[0], 20);
    assert_eq!(world.news().len(), 20);
    // The next growth starts slowly again.
    world.edit::<ReplicaSet>("web", |set| {
        Arc::make_mut(&mut set.spec).replicas = Some(24)
    });
    assert_eq!(batches(&mut world), [1, 2, 1]);
}

#[test]
fn while_answers_are_awaited_nothing_else_is_ordered() {
    let mut world = world();
    world.server.waits = Some(BTreeMap::new());
    world.create(set("web", 3));
    world.settle();
    let asked = |world: &TestCluster| world.server.waits.as_ref().map_or(0, BTreeMap::len);
    assert_eq!(asked(&world), 1);
    world.edit::<ReplicaSet>("web", |set| Arc::make_mut(&mut set.spec).replicas = Some(1));
    world.pass(Span::from_secs(600));
    assert_eq!(asked(&world), 1, "the worker waits");
    assert_eq!(batches(&mut world), [1]);
    assert_eq!(counts(&world, "web")[0], 1);
}

#[test]
fn refusals_that_come_later_stop_slow_start_and_are_told() {
    let mut world = world();
    world.server.waits = Some(BTreeMap::new());
    world.server.n_pods_max = 7;
    world.create(set("web", 20));
    // Its own status brings it back at once, and once more it is refused.
    assert_eq!(batches(&mut world), [1, 2, 4, 8, 1]);
    let told =
        |news: &[String], reason: &str| news.iter().filter(|n| n.starts_with(reason)).count();
    let news = world.news();
    assert_eq!(
        (told(&news, "SuccessfulCreate"), told(&news, "FailedCreate")),
        (7, 9)
    );
    assert_eq!(
        failure(&world, "web").unwrap(),
        "FailedCreate exceeded quota"
    );
    world.server.n_pods_max = 100;
    world.pass(Span::from_secs(1));
    assert_eq!(batches(&mut world), [1, 2, 4, 6], "from the beginning");
    assert_eq!(
        (failure(&world, "web"), counts(&world, "web")[0]),
        (None, 20)
    );
}

#[test]
fn nothing_is_ordered_twice_while_the_watch_is_silent() {
    let mut world = world();
    world.create(set("web", 1200));
    world.settle();
    assert_eq!(counts(&world, "web")[0], 1200);
    assert_eq!(world.server.events.len(), 1200);
    world.edit::<ReplicaSet>("web", |set| {
        Arc::make_mut(&mut set.spec).replicas = Some(100)
    });
    // One change at a time, and a sync after each: no order is given again.
    for _ in 0..5000 {
        world.deliver(1);
        world.sync();
        assert!(world.pods(|_| true).len() >= 100);
        if counts(&world, "web")[0] == 100 {
            break;
        }
    }
    world.settle();
    assert_eq!(counts(&world, "web")[0], 100);
    assert_eq!(world.server.events.len(), 2300);
}

#[test]
fn a_controller_that_dies_in_the_middle_is_followed_by_one_that_finishes() {
    let mut world = world();
    world.create(set("web", 8));
    world.deliver(1);
    // The first pod is made, and the first of the second batch is its last word.
    world.server.answers = [None, Some(ApiError::Lost)].into();
    world.sync_once();
    assert_eq!(world.pods(|_| true).len(), 1);
    world.restart(vec![Box::new(ReplicaSetController::new())]);
    world.settle();
    assert_eq!(
        (world.pods(|_| true).len(), counts(&world, "web")[0]),
        (8, 8)
    );
}

/// Pods of `web`: this many on each node.
fn placed(world: &mut TestCluster, on: &[usize]) {
    let mut pods = world.pods(|pod| pod.node.is_none()).into_iter();
    for (node, n) in on.iter().enumerate() {
        for pod in pods.by_ref().take(*n) {
            world.start_pod(&pod, &format!("n{node}"));
        }
    }
    world.settle();
}

fn remaining(world: &TestCluster, n_nodes: usize) -> Vec<usize> {
    let on = |node: usize| {
        world
            .pods(|p| p.is_active() && p.node.as_deref() == Some(&format!("n{node}")[..]))
            .len()
    };
    (0..n_nodes).map(on).collect()
}

#[test]
fn the_fullest_node_is_thinned_and_ranks_are_not_computed_again() {
    let mut world = world();
    let mut manifest = set("web", 6);
    manifest["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true
    }]);
    world.create(manifest);
    world.settle();
    placed(&mut world, &[3, 2, 1]);
    world.edit::<ReplicaSet>("web", |set| Arc::make_mut(&mut set.spec).replicas = Some(3));
    world.settle();
    assert_eq!(remaining(&world, 3), [0, 2, 1]);
    assert!(world.server.tables.of::<Deployment>().is_empty());
}

#[test]
fn without_a_controller_the_nodes_do_not_count() {
    let gone = |seed: u64| {
        let mut world = world();
        world.dice = strew_model::Prng::new(seed);
        world.create(set("web", 6));
        world.settle();
        placed(&mut world, &[3, 2, 1]);
        world.edit::<ReplicaSet>("web", |set| Arc::make_mut(&mut set.spec).replicas = Some(3));
        world.settle();
        remaining(&world, 3)
    };
    assert!((0..10).any(|seed| gone(seed) != [0, 2, 1]));
}

#[test]
fn replication_controllers_live_by_the_same_code() {
    let mut world = TestCluster::new(vec![Box::new(
        ReplicaSetController::for_replication_controllers(),
    )]);
    world.create(json!({
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    }));
    world.settle();
    world.start_pods(1, |_| true);
    world.settle();
    let status = world.get::<ReplicationController>("web").status.clone();
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.observed_generation
        ),
        (2, Some(1), Some(1))
    );
    let owner = world.pods(|_| true)[0].meta.controller().unwrap().clone();
    assert_eq!(
        (&*owner.kind, &*owner.api_version),
        ("ReplicationController", "v1")
    );
}
