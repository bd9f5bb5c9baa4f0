//! Whole lives of DaemonSets over a small server.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::ApiError;
use strew_apiserver::object::{ControllerRevision, DaemonSet, Node, Phase, Pod};
use strew_model::time::Span;

use super::DaemonSetController;
use crate::sets::REVISION_LABEL;
use crate::testing::TestCluster;

fn world(n_nodes: usize) -> TestCluster {
    let mut world = TestCluster::new(vec![Box::new(DaemonSetController::new())]);
    for index in 0..n_nodes {
        world.create(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{index}")}}),
        );
    }
    world
}

fn manifest(fields: Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "log"}},
        "template": {
            "metadata": {"labels": {"app": "log"}},
            "spec": {"containers": [{"name": "c", "image": "a"}]},
        },
    });
    let given = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(given);
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "log", "namespace": "default"}, "spec": spec})
}

fn target(pod: &Pod) -> String {
    let named = pod.node.clone();
    let meant = strew_apiserver::workloads::daemon_pod_node(&pod.spec);
    named.as_deref().or(meant).unwrap_or("nowhere").to_owned()
}

/// `n0=1+ n1=2-`: node, number of its pod's revision, `+` ready, `-` not, `!` terminating.
fn picture(world: &TestCluster) -> String {
    let revisions = world.server.tables.of::<ControllerRevision>();
    let mut words: Vec<String> = Vec::new();
    for pod in world.pods(|_| true) {
        let hash = pod.meta.label(REVISION_LABEL);
        let mut of_pod = revisions
            .iter()
            .filter(|r| r.meta.label(REVISION_LABEL) == hash);
        let number = of_pod.next().map_or(0, |r| r.spec.revision);
        let state = match (pod.meta.is_terminating(), pod.is_ready()) {
            (true, _) => '!',
            (false, true) => '+',
            (false, false) => '-',
        };
        let mut word = String::new();
        write!(word, "{}={number}{state}", target(&pod)).unwrap();
        words.push(word);
    }
    words.sort();
    words.join(" ")
}

#[track_caller]
fn check(world: &mut TestCluster, expected: &str) {
    world.settle();
    assert_eq!(picture(world), expected);
}

/// All pods that are not bound are bound to their nodes, run and are ready.
fn start(world: &mut TestCluster) {
    world.settle();
    for pod in world.pods(|pod| pod.node.is_none()) {
        let node = target(&pod);
        world.start_pod(&pod, &node);
    }
    world.settle();
}

fn at_rest(n_nodes: usize, fields: Value) -> TestCluster {
    let mut world = world(n_nodes);
    world.create(manifest(fields));
    start(&mut world);
    world.news();
    world
}

fn set_image(world: &mut TestCluster, image: &str) {
    let image = image.to_owned();
    world.edit::<DaemonSet>("log", move |set| {
        let spec = Arc::make_mut(&mut set.spec);
        spec.template.spec.as_mut().unwrap().containers[0].image = Some(image);
    });
}

fn taint(world: &mut TestCluster, node: &str, key: &str, effect: &str) {
    let taint = json!({"key": key, "effect": effect});
    edit_node(world, node, |node| {
        let taint = serde_json::from_value(taint).unwrap();
        Arc::make_mut(&mut node.spec).taints = Some(vec![taint]);
    });
}

fn edit_node(world: &mut TestCluster, name: &str, edit: impl FnOnce(&mut Node)) {
    let name = strew_apiserver::object::Name::new("", name);
    let mut node = Node::clone(world.server.tables.get(&name).unwrap());
    edit(&mut node);
    crate::api::Api::update(&mut world.server, node.into()).unwrap();
}

/// desired, current, misscheduled, ready, updated, available, unavailable
fn counts(world: &TestCluster) -> [i32; 7] {
    let status = &world.get::<DaemonSet>("log").status;
    [
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_misscheduled,
        status.number_ready,
        status.updated_number_scheduled.unwrap_or(0),
        status.number_available.unwrap_or(0),
        status.number_unavailable.unwrap_or(0),
    ]
}

#[test]
fn every_node_gets_a_pod_of_its_own() {
    let mut world = world(3);
    world.create(manifest(json!({})));
    check(&mut world, "n0=1- n1=1- n2=1-");
    assert_eq!(counts(&world), [3, 3, 0, 0, 3, 0, 3]);
    start(&mut world);
    assert_eq!(counts(&world), [3, 3, 0, 3, 3, 3, 0]);
    world.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n3"}}));
    check(&mut world, "n0=1+ n1=1+ n2=1+ n3=1-");
    let pod = world.pods(|pod| target(pod) == "n3").remove(0);
    let tolerations = pod.spec.tolerations.as_ref().unwrap();
    assert_eq!(tolerations.len(), 6);
    assert!(pod.meta.name.name.starts_with("log-"));
    let news = world.news();
    assert!(
        news[3].starts_with("SuccessfulCreate Created pod: log-"),
        "{news:?}"
    );
}

#[test]
fn taints_and_labels_take_effect_at_once() {
    for (key, effect, expected, misscheduled) in [
        ("gpu", "NoExecute", "n0=1! n1=1+", 1),
        ("gpu", "NoSchedule", "n0=1+ n1=1+", 1),
        ("gpu", "PreferNoSchedule", "n0=1+ n1=1+", 0),
        (
            "node.kubernetes.io/unschedulable",
            "NoSchedule",
            "n0=1+ n1=1+",
            0,
        ),
        (
            "node.kubernetes.io/unreachable",
            "NoExecute",
            "n0=1+ n1=1+",
            0,
        ),
    ] {
        let mut world = at_rest(2, json!({}));
        taint(&mut world, "n0", key, effect);
        check(&mut world, expected);
        assert_eq!(counts(&world)[2], misscheduled, "{key} {effect}");
        edit_node(&mut world, "n0", |node| {
            Arc::make_mut(&mut node.spec).taints = None
        });
        world.end_pods();
        start(&mut world);
        assert_eq!(picture(&world), "n0=1+ n1=1+", "{key} {effect}");
    }
}

#[test]
fn a_pod_comes_back_only_when_the_old_one_is_gone() {
    let mut world = at_rest(2, json!({}));
    let name = Arc::clone(&world.pods(|pod| target(pod) == "n0")[0].meta.name.name);
    world.delete::<Pod>(&name);
    check(&mut world, "n0=1! n1=1+");
    world.end_pods();
    check(&mut world, "n0=1- n1=1+");
}

#[test]
fn pods_for_a_node_that_is_gone_go_unless_they_are_bound() {
    let mut world = world(2);
    world.create(manifest(json!({})));
    world.settle();
    let bound = world.pods(|pod| target(pod) == "n1").remove(0);
    world.start_pod(&bound, "n1");
    for node in ["n0", "n1"] {
        let key = strew_apiserver::object::Key {
            kind: strew_apiserver::object::Kind::Node,
            name: strew_apiserver::object::Name::new("", node),
        };
        crate::api::Api::delete(&mut world.server, &key, &Default::default()).unwrap();
    }
    check(&mut world, "n1=1+");
    assert_eq!(counts(&world)[0], 0);
}

#[test]
fn a_rolling_update_replaces_as_many_as_may_be_unavailable() {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    let mut world = at_rest(5, json!({"updateStrategy": strategy}));
    set_image(&mut world, "b");
    for n_updated in [2, 4, 5] {
        world.settle();
        let n_going = world.pods(Pod::is_terminating).len();
        assert!(n_going <= 2 && n_going > 0, "{}", picture(&world));
        world.end_pods();
        start(&mut world);
        assert_eq!(counts(&world)[4], n_updated);
    }
    check(&mut world, "n0=2+ n1=2+ n2=2+ n3=2+ n4=2+");
}

#[test]
fn with_surge_the_new_pod_comes_beside_the_old() {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let mut world = at_rest(
        2,
        json!({"updateStrategy": strategy, "minReadySeconds": 10}),
    );
    world.pass(Span::from_secs(20));
    set_image(&mut world, "b");
    world.settle();
    assert_eq!(world.pods(|pod| pod.node.is_none()).len(), 1);
    assert_eq!(world.pods(|_| true).len(), 3);
    start(&mut world);
    world.pass(Span::from_secs(9));
    assert_eq!(world.pods(Pod::is_terminating).len(), 0);
    world.pass(Span::from_secs(1));
    assert_eq!(world.pods(Pod::is_terminating).len(), 1);
    for _ in 0..3 {
        world.end_pods();
        start(&mut world);
        world.pass(Span::from_secs(10));
    }
    world.end_pods();
    check(&mut world, "n0=2+ n1=2+");
}

#[test]
fn with_surge_an_old_pod_that_is_not_ready_makes_room_at_once() {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let mut world = at_rest(3, json!({"updateStrategy": strategy}));
    let sick = world.pods(|pod| target(pod) == "n1").remove(0);
    world.edit_pod(&sick.meta.name.name, |pod| pod.status.conditions.clear());
    set_image(&mut world, "b");
    world.settle();
    assert_eq!(
        world.pods(|pod| pod.node.is_none()).len(),
        2,
        "{}",
        picture(&world)
    );
    assert!(world.get::<Pod>(&sick.meta.name.name).meta.is_terminating());
}

#[test]
fn on_delete_updates_only_what_a_user_deletes() {
    let mut world = at_rest(2, json!({"updateStrategy": {"type": "OnDelete"}}));
    set_image(&mut world, "b");
    check(&mut world, "n0=1+ n1=1+");
    let name = Arc::clone(&world.pods(|pod| target(pod) == "n0")[0].meta.name.name);
    world.delete::<Pod>(&name);
    world.settle();
    world.end_pods();
    check(&mut world, "n0=2- n1=1+");
    assert_eq!(counts(&world)[4], 1);
}

#[test]
fn failed_pods_are_replaced_ever_more_slowly() {
    let mut world = at_rest(1, json!({}));
    let mut moments = Vec::new();
    for _ in 0..5 {
        let pod = world.pods(|_| true).remove(0);
        world.edit_pod(&pod.meta.name.name, |pod| pod.status.phase = Phase::Failed);
        let mut waited = 0;
        world.settle();
        while world.pods(Pod::is_finished).len() == 1 {
            world.pass(Span::from_secs(1));
            waited += 1;
        }
        moments.push(waited);
        start(&mut world);
    }
    assert_eq!(moments, [0, 1, 2, 4, 8]);
    let news = world.news();
    assert!(news[0].starts_with("FailedDaemonPod Found failed daemon pod default/log-"));
    assert!(
        news[0].ends_with(" on node n0, will try to kill it"),
        "{news:?}"
    );
}

#[test]
fn no_more_than_250_are_made_before_they_are_seen() {
    let mut world = world(300);
    world.create(manifest(json!({})));
    world.deliver(usize::MAX);
    world.sync();
    assert_eq!(world.pods(|_| true).len(), 250);
    world.settle();
    assert_eq!(world.pods(|_| true).len(), 300);
}

#[test]
fn under_a_quota_exactly_what_fits_is_made() {
    let mut world = world(10);
    world.server.n_pods_max = 6;
    world.create(manifest(json!({})));
    world.settle();
    assert_eq!(world.pods(|_| true).len(), 6);
    world.server.n_pods_max = 10;
    world.pass(Span::from_secs(60));
    assert_eq!(world.pods(|_| true).len(), 10);
}

#[test]
fn revisions_beyond_the_limit_go() {
    let mut world = at_rest(1, json!({"revisionHistoryLimit": 1}));
    for image in ["b", "c", "d"] {
        set_image(&mut world, image);
        world.settle();
        world.end_pods();
        start(&mut world);
    }
    check(&mut world, "n0=4+");
    let revisions = world.server.tables.of::<ControllerRevision>();
    let mut numbers: Vec<i64> = revisions.iter().map(|r| r.spec.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 4]);
}

#[test]
fn orphans_are_adopted_and_others_released() {
    let mut world = at_rest(1, json!({}));
    let pod = world.pods(|_| true).remove(0);
    let name = &*pod.meta.name.name;
    world.edit_pod(name, |pod| pod.meta.owners = Arc::new([]));
    world.settle();
    assert!(world.get::<Pod>(name).meta.controller().is_some());
    world.edit_pod(name, |pod| pod.meta.labels = Arc::default());
    world.settle();
    assert!(world.get::<Pod>(name).meta.controller().is_none());
    assert_eq!(world.pods(|_| true).len(), 2);
}

#[test]
fn a_selector_for_everything_is_only_told_of() {
    let mut world = world(1);
    world.create(manifest(json!({"selector": {}})));
    check(&mut world, "");
    assert_eq!(
        world.news(),
        ["SelectingAll This daemon set is selecting all pods. A non-empty selector is required."]
    );
}

#[test]
fn a_lost_answer_makes_no_second_pod() {
    let mut world = world(1);
    world.create(manifest(json!({})));
    world.deliver(usize::MAX);
    world.server.answers.push_back(Some(ApiError::Lost));
    world.sync();
    world.restart(vec![Box::new(DaemonSetController::new())]);
    check(&mut world, "n0=1-");
}

#[test]
fn a_pods_change_asks_no_node_again() {
    use crate::controller::{Change, Controller};
    let world = at_rest(20, json!({}));
    let mut controller = DaemonSetController::new();
    let set = world.get::<DaemonSet>("log");
    let cache = &world.server.tables;
    let ledger = super::Ledger::new(&set, cache);
    assert_eq!(ledger.n_fits_asked, 20);
    controller.ledgers.insert(set.meta.name.clone(), ledger);
    let mut queue = crate::queue::Queue::default();
    let old = world.pods(|_| true).remove(0);
    let mut new = Pod::clone(&old);
    new.status.conditions.clear();
    let change = Change {
        old: Some(&strew_apiserver::object::Object::Pod(old)),
        new: Some(&strew_apiserver::object::Object::Pod(Arc::new(new))),
    };
    controller.observe(world.server.now, change, cache, &mut queue);
    assert_eq!(controller.ledgers[&set.meta.name].n_fits_asked, 20);
    assert!(queue.is_ready());
}
