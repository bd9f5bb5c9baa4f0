use std::collections::BTreeSet;

use serde_json::{Value, json};
use strew_apiserver::object::{Deployment, Pod, ReplicaSet};

use super::*;
use crate::small_world::{SmallCluster, key};

fn owner(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{name}"),
        "controller": true, "blockOwnerDeletion": true})
}

/// A Deployment `d` with ReplicaSet `rs` with two pods, one of them on a node.
fn world() -> SmallCluster {
    let mut world = SmallCluster::new(1, vec![Box::new(GarbageCollector::new())]);
    world.add_node("n", "a");
    let deployment: k8s_openapi::api::apps::v1::Deployment =
        serde_json::from_value(json!({"metadata": {"name": "d"}})).unwrap();
    world.add(deployment);
    let metadata = json!({"name": "rs", "ownerReferences": [owner("Deployment", "d")]});
    let set: k8s_openapi::api::apps::v1::ReplicaSet =
        serde_json::from_value(json!({"metadata": metadata})).unwrap();
    world.add(set);
    for (pod, node) in [("p0", "n"), ("p1", "")] {
        let owners = json!({"metadata": {"ownerReferences": [owner("ReplicaSet", "rs")]}});
        world.add_pod(pod, node, owners);
    }
    world.run_until(10);
    world
}

fn left(world: &SmallCluster) -> String {
    let sets = [
        world.names::<Deployment>(),
        world.names::<ReplicaSet>(),
        world.names::<Pod>(),
    ];
    let all: BTreeSet<String> = sets.into_iter().flatten().collect();
    all.into_iter().collect::<Vec<_>>().join(" ")
}

fn delete(world: &mut SmallCluster, kind: Kind, name: &str, propagation: Propagation) {
    let options = DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    world.server.delete(&key(kind, name), &options).unwrap();
}

#[test]
fn in_the_background_the_owner_goes_at_once_and_the_rest_follows() {
    let mut world = world();
    delete(&mut world, Kind::Deployment, "d", Propagation::Background);
    world.run_until(11);
    assert_eq!(left(&world), "p0");
    assert!(world.get::<Pod>("p0").unwrap().is_terminating());
    world.run_until(41);
    assert_eq!(left(&world), "");
}

#[test]
fn in_the_foreground_the_owner_waits_level_by_level() {
    let mut world = world();
    world.server.n_conflicts = 2;
    delete(&mut world, Kind::Deployment, "d", Propagation::Foreground);
    world.run_until(11);
    assert_eq!(left(&world), "d p0 rs");
    let set = world.get::<ReplicaSet>("rs").unwrap();
    assert_eq!(set.meta.finalizers[..], [FOREGROUND.to_owned()]);
    world.run_until(39);
    assert_eq!(left(&world), "d p0 rs");
    world.run_until(41);
    assert_eq!(left(&world), "");
}

#[test]
fn a_later_deletion_says_what_becomes_of_the_dependents() {
    let of_set = |world: &SmallCluster| {
        let set = world.get::<ReplicaSet>("rs");
        set.map_or_else(String::new, |set| set.meta.finalizers.join(" "))
    };
    let mut world = world_with_a_set_in_the_foreground();
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Orphan);
    assert_eq!(of_set(&world), ORPHAN);
    world.run_until(100);
    assert_eq!(left(&world), "d");

    let mut world = world_with_a_set_in_the_foreground();
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Background);
    world.run_until(12);
    assert_eq!(left(&world), "d p0");

    let mut world = self::world();
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Orphan);
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Foreground);
    assert_eq!(of_set(&world), FOREGROUND);
    world.run_until(11);
    assert_eq!(left(&world), "d p0 rs");
    let unsaid = DeleteOptions::default();
    let set = key(Kind::ReplicaSet, "rs");
    world.server.delete(&set, &unsaid).unwrap();
    assert_eq!(of_set(&world), FOREGROUND);
    world.run_until(41);
    assert_eq!(left(&world), "d");
}

fn world_with_a_set_in_the_foreground() -> SmallCluster {
    let mut world = world();
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Foreground);
    world.run_until(11);
    assert_eq!(left(&world), "d p0 rs");
    world
}

#[test]
fn orphans_stay_without_the_owner() {
    let mut world = world();
    delete(&mut world, Kind::Deployment, "d", Propagation::Orphan);
    world.run_until(100);
    assert_eq!(left(&world), "p0 p1 rs");
    assert!(
        world
            .get::<ReplicaSet>("rs")
            .unwrap()
            .meta
            .owners
            .is_empty()
    );
    assert_eq!(world.get::<Pod>("p0").unwrap().meta.owners.len(), 1);
}

#[test]
fn an_object_goes_only_when_all_owners_are_gone_by_uid() {
    let mut world = world();
    let other = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "uid-d"});
    let stale =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "uid-of-before"});
    let foreign = json!({"apiVersion": "x.io/v1", "kind": "App", "name": "app", "uid": "uid-app"});
    for (pod, owners) in [
        ("two", json!([owner("ReplicaSet", "rs"), other])),
        ("stale", json!([stale])),
        ("mixed", json!([stale, other])),
        // No object of kind App was ever seen, so the collector cannot know whether the owner exists.
        ("foreign", json!([foreign])),
    ] {
        world.add_pod(pod, "", json!({"metadata": {"ownerReferences": owners}}));
    }
    world.run_until(11);
    assert_eq!(left(&world), "d foreign mixed p0 p1 rs two");
    let owners = |world: &SmallCluster, pod: &str| world.get::<Pod>(pod).unwrap().meta.owners.len();
    assert_eq!([owners(&world, "mixed"), owners(&world, "two")], [1, 2]);
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Background);
    world.run_until(60);
    assert_eq!(left(&world), "d foreign mixed two");
    assert_eq!(owners(&world, "two"), 1);
    delete(&mut world, Kind::Deployment, "d", Propagation::Background);
    world.run_until(61);
    assert_eq!(left(&world), "foreign");
}

#[test]
fn a_dependent_that_does_not_block_is_not_waited_for() {
    let mut world = world();
    let mut free = owner("Deployment", "d");
    free["blockOwnerDeletion"] = json!(false);
    world.add_pod(
        "free",
        "n",
        json!({"metadata": {"ownerReferences": [free], "finalizers": ["x/y"]}}),
    );
    delete(&mut world, Kind::ReplicaSet, "rs", Propagation::Orphan);
    world.run_until(20);
    delete(&mut world, Kind::Deployment, "d", Propagation::Foreground);
    world.run_until(21);
    assert_eq!(left(&world), "free p0 p1");
}
