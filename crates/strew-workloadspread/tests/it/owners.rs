//! Two WorkloadSpreads that match the same pods: the older one has them, and the other one reports it.

use std::sync::Arc;

use strew_model::{Labels, Selector};
use strew_workloadspread::controller::{EventKind, Input};
use strew_workloadspread::{FilterSelector, TargetFilter, WorkloadSpread};

use crate::desk::*;
use crate::world::*;

/// The one whose name is first is the younger one.
fn pair(words: &Words, filter: Option<&TargetFilter>) -> [WorkloadSpread; 2] {
    let target = words.target(words.deployment, "web");
    ["ws", "a"].map(|name| {
        let mut ws = spread(target, vec![subset("a", count(2)), subset("b", None)]);
        ws.key.name = name.into();
        ws.uid = format!("{name}-uid").into();
        ws.created = secs(if name == "ws" { 10 } else { 20 });
        Arc::make_mut(&mut ws.spec).filter = filter.cloned();
        ws
    })
}

fn overlapping(words: &Words) -> Vec<Option<TargetFilter>> {
    let filter = |selector| TargetFilter {
        selector: FilterSelector::Of(selector),
        replicas_paths: Box::default(),
    };
    vec![
        None,
        Some(filter(Selector::of_labels([(
            words.of("x"),
            words.of("a"),
        )]))),
    ]
}

#[test]
fn the_older_has_the_pods_and_the_other_says_so() {
    let words = words();
    let mut deployment = workload(words.target(words.deployment, "web"), 2);
    deployment.template = None;
    let mut rs = workload(words.target(words.replica_set, "web-1"), 2);
    rs.controller = Some(controller(&deployment));
    for filter in overlapping(&words) {
        let [old, young] = pair(&words, filter.as_ref());
        let mut desk = Desk::new(&words, young, &[deployment.clone(), rs.clone()]);
        let labels = Labels::new(vec![(words.of("x"), words.of("a"))]);
        let mut one = pod(&rs, "p0", Some("a"));
        one.labels = labels;
        desk.tell(Input::SpreadSet(Box::new(old.clone())));
        desk.add(one);
        desk.run();
        assert_eq!(desk.overall(), ["a 0/2", "b 0/-1"], "none is its own");
        let outranked = desk.ws.status.outranked.as_ref().expect("it says so");
        assert_eq!(&*outranked.by, "ws");
        let told = desk
            .events
            .iter()
            .filter(|(kind, _)| *kind == EventKind::PodsOfAnother);
        assert_eq!(told.count(), 1, "once");

        desk.tell(Input::SpreadGone(old.key));
        desk.run();
        assert_eq!(desk.ws.status.outranked, None);
    }
}

#[test]
fn admission_puts_a_pod_into_a_subset_of_the_older() {
    let words = words();
    let mut deployment = workload(words.target(words.deployment, "web"), 2);
    deployment.template = None;
    let mut rs = workload(words.target(words.replica_set, "web-1"), 2);
    rs.controller = Some(controller(&deployment));
    let [old, mut young] = pair(&words, None);
    // It names the ReplicaSet, and the older one its owner.
    Arc::make_mut(&mut young.spec).target = Some(rs.key.target);
    let mut server = Server::new(&words, old, &[deployment, rs.clone()]);
    server.tell(strew_workloadspread::admission::Input::SpreadSet(Box::new(
        young,
    )));
    server.ask(create(1, asked(&rs, Some("n1"), Labels::default()), None));
    server.run();
    let of = server.answer(1).spread.as_ref().expect("it is handled");
    assert_eq!(&*of.name, "ws");
}

/// The older one takes some of the pods by its filter, and its webhook has marked them: this is the younger one's only
/// sign.
#[test]
fn the_younger_is_told_of_pods_that_are_marked_for_the_older() {
    let words = words();
    let mut deployment = workload(words.target(words.deployment, "web"), 2);
    deployment.template = None;
    let mut rs = workload(words.target(words.replica_set, "web-1"), 2);
    rs.controller = Some(controller(&deployment));
    let [mut old, mut young] = pair(&words, None);
    let filter = |value: &str| {
        let selector = Selector::of_labels([(words.of("x"), words.of(value))]);
        let selector = FilterSelector::Of(selector);
        let replicas_paths = Box::default();
        Some(TargetFilter {
            selector,
            replicas_paths,
        })
    };
    Arc::make_mut(&mut old.spec).filter = filter("a");
    Arc::make_mut(&mut young.spec).filter = filter("b");
    let mut desk = Desk::new(&words, young, &[deployment, rs.clone()]);
    desk.tell(Input::SpreadSet(Box::new(old)));
    desk.run();
    assert_eq!(
        desk.ws.status.outranked, None,
        "the filters may differ in all pods"
    );
    desk.change(|ws| {
        let selector = Selector::of_labels([]);
        let filter = Arc::make_mut(&mut ws.spec).filter.as_mut();
        filter.expect("it has one").selector = FilterSelector::Of(selector);
    });
    desk.run();
    let mut one = pod(&rs, "p0", Some("a"));
    one.labels = Labels::new(vec![(words.of("x"), words.of("a"))]);
    desk.add(one);
    desk.run();
    assert!(desk.ws.status.outranked.is_some(), "it is told");
}
