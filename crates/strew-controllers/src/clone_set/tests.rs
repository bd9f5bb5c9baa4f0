//! Whole lives of CloneSets over a small server.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{CloneSet, ControllerRevision, Name};

use super::CloneSetController;
use crate::sets::REVISION_LABEL;
use crate::testing::TestCluster;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn world(fields: Value) -> TestCluster {
    let mut spec = json!({
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "a"}]},
        },
    });
    spec.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let mut world = TestCluster::new(vec![Box::new(CloneSetController::new())]);
    world.create(json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }));
    round(&mut world);
    world
}

/// The controller acts, and kubelets follow.
fn round(world: &mut TestCluster) {
    world.settle();
    world.end_pods();
    world.settle();
    world.start_pods(usize::MAX, |_| true);
    world.settle();
}

fn edit(world: &mut TestCluster, change: impl FnOnce(&mut CloneSet)) {
    world.edit::<CloneSet>("web", change);
}

fn scale(world: &mut TestCluster, replicas: i32) {
    edit(world, |set| {
        Arc::make_mut(&mut set.spec).replicas = Some(replicas)
    });
}

fn set_image(world: &mut TestCluster, image: &str) {
    edit(world, |set| {
        let spec = Arc::make_mut(&mut set.spec).template.spec.as_mut();
        spec.unwrap().containers[0].image = Some(image.to_owned());
    });
}

/// How many pods there are of each revision, and how many of them are being deleted.
fn picture(world: &TestCluster) -> String {
    let mut text = String::new();
    for number in 1..=2 {
        let is_of = |pod: &strew_apiserver::object::Pod| {
            let label = pod.meta.label(REVISION_LABEL).unwrap_or("none");
            let name = Name::new("default", label);
            let revision = world.server.tables.get::<ControllerRevision>(&name);
            revision.is_some_and(|r| r.spec.revision == number)
        };
        let pods = world.pods(is_of);
        let n_ending = pods.iter().filter(|p| p.meta.is_terminating()).count();
        write!(text, "{}", pods.len() - n_ending).unwrap();
        if n_ending > 0 {
            write!(text, "(-{n_ending})").unwrap();
        }
        text.push(' ');
    }
    text.trim_end().to_owned()
}

#[test]
fn cheap_pods_go_before_dear_ones_and_unready_ones_before_both() {
    for (costs, unready, left) in [
        (["100", "-100", "0"], None, [true, false, false]),
        (["-5", "7", "7"], Some(1), [false, false, true]),
        (["-100", "100", "50"], Some(0), [false, true, false]),
    ] {
        let mut world = world(json!({}));
        let names: Vec<Arc<str>> = world
            .pods(|_| true)
            .iter()
            .map(|pod| Arc::clone(&pod.meta.name.name))
            .collect();
        for (i, name) in names.iter().enumerate() {
            world.edit_pod(name, |pod| {
                let annotations = Arc::make_mut(&mut pod.meta.annotations);
                annotations.insert(COST.to_owned(), costs[i].to_owned());
                if unready == Some(i) {
                    pod.status.conditions.clear();
                }
            });
        }
        world.settle();
        scale(&mut world, 1);
        world.settle();
        let kept: Vec<bool> = names
            .iter()
            .map(|name| {
                let found = world.pods(|p| p.meta.name.name == *name && !p.meta.is_terminating());
                !found.is_empty()
            })
            .collect();
        assert_eq!(kept, left, "{costs:?} {unready:?}");
    }
}

/// A pod that is being deleted counts no more: another is made at once.
#[test]
fn an_update_keeps_a_partition_and_enough_pods_available() {
    for (fields, rounds) in [
        (json!({}), vec!["2 1", "1 2", "0 3"]),
        (
            json!({"updateStrategy": {"maxUnavailable": "100%"}}),
            vec!["0 3", "0 3"],
        ),
        (
            json!({"updateStrategy": {"partition": 2}}),
            vec!["2 1", "2 1", "2 1"],
        ),
        (
            json!({"updateStrategy": {"partition": "100%"}}),
            vec!["3 0", "3 0"],
        ),
        (
            json!({"updateStrategy": {"paused": true}}),
            vec!["3 0", "3 0"],
        ),
        (
            json!({"updateStrategy": {"maxSurge": 1, "maxUnavailable": 0}}),
            vec!["3 1", "2 2"],
        ),
    ] {
        let mut world = world(fields.clone());
        assert_eq!(picture(&world), "3 0", "{fields}");
        set_image(&mut world, "b");
        let mut found = Vec::new();
        for _ in 0..rounds.len() {
            world.settle();
            world.end_pods();
            found.push(picture(&world));
            world.settle();
            world.start_pods(usize::MAX, |_| true);
        }
        assert_eq!(found, rounds, "{fields}");
    }
}

#[test]
fn the_status_counts_what_there_is() {
    let mut world = world(json!({"updateStrategy": {"partition": 1}}));
    set_image(&mut world, "b");
    for _ in 0..6 {
        round(&mut world);
    }
    let set = world.get::<CloneSet>("web");
    let status = &set.status;
    assert_eq!(status.replicas, Some(3));
    assert_eq!(status.ready_replicas, Some(3));
    assert_eq!(status.updated_replicas, Some(2));
    assert_eq!(status.expected_updated_replicas, Some(2));
    assert_ne!(status.update_revision, status.current_revision);
    assert_eq!(status.observed_generation, Some(set.meta.generation));
}

#[test]
fn pods_whose_answers_come_later_are_made_once() {
    let mut world = world(json!({"replicas": 1}));
    world.server.waits = Some(Default::default());
    scale(&mut world, 8);
    let mut batches = Vec::new();
    loop {
        round(&mut world);
        match world.answer() {
            0 => break,
            n => batches.push(n),
        }
    }
    assert_eq!(batches, [1, 2, 4]);
    assert_eq!(world.pods(|_| true).len(), 8);
    let told = world.news();
    let n_made = told.iter().filter(|n| n.starts_with("SuccessfulCreate"));
    assert_eq!(n_made.count(), 8);
}
