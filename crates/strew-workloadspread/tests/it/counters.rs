//! The counters for metrics, and the syncs that a CloneSet's update triggers.

use strew_workloadspread::controller::{self, Input};
use strew_workloadspread::{WorkloadFact, admission};

use crate::desk::{self, Desk};
use crate::world::*;

#[test]
fn admissions_are_counted_by_subset_and_forgotten_with_their_spread() {
    let words = words();
    let web = workload(words.web(), 3);
    let ws = spread(
        words.web(),
        vec![subset("a", count(2)), subset("b", count(1))],
    );
    let mut world = Server::new(&words, ws, std::slice::from_ref(&web));
    for id in 0..4 {
        world.ask(create(
            id,
            asked(&web, Some(&format!("p{id}")), Default::default()),
            None,
        ));
    }
    world.run();
    let counters = world.machine.counters().clone();
    let of = |subset: &str| counters.injected.get(&(ws_key(), subset.into())).copied();
    assert_eq!(
        (of("a"), of("b"), counters.untouched),
        (Some(2), Some(1), 1)
    );
    assert!(counters.written >= 1);
    assert_eq!((counters.denied, counters.conflicts), (0, 0));
    world.tell(admission::Input::SpreadGone(ws_key()));
    assert!(world.machine.counters().injected.is_empty());
}

#[test]
fn syncs_and_their_writes_are_counted() {
    let words = words();
    let web = workload(words.web(), 3);
    let ws = spread(words.web(), vec![subset("a", count(2)), subset("b", None)]);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
    desk.add(desk::pod(&web, "p0", Some("a")));
    desk.run();
    let controller::Counters {
        synced,
        failed,
        costs,
        written,
        adopted,
        ..
    } = *desk.machine.counters();
    assert!(synced >= 1 && written >= 1);
    assert_eq!((failed, costs, adopted), (0, 1, 0));
}

#[test]
fn a_clone_set_under_update_sets_off_a_sync_at_every_change() {
    let words = words();
    let target = words.target(words.of("CloneSet"), "web");
    let of = |current: &str, update: &str| WorkloadFact {
        revisions: Some([words.of(current), words.of(update)]),
        ..workload(target, 3)
    };
    let ws = spread(target, vec![subset("a", None)]);
    let mut desk = Desk::new(&words, ws, &[of("web", "web")]);
    desk.run();
    for (current, update, expected) in [
        ("web", "web", false),
        ("web", "v2", true),
        ("web", "v2", true),
        ("v2", "v2", true),
        ("v2", "v2", false),
    ] {
        let before = desk.machine.counters().synced;
        desk.tell(Input::WorkloadSet(Box::new(of(current, update))));
        desk.run();
        let synced = desk.machine.counters().synced > before;
        assert_eq!(synced, expected, "{current} {update}");
    }
}
