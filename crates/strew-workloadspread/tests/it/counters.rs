//! What is counted for metrics, and what a CloneSet's update sets off.

use strew_model::Span;
use strew_workloadspread::controller::{self, Input};
use strew_workloadspread::{NoPatches, WorkloadFact, admission};

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
fn while_many_pods_come_one_write_tells_of_many() {
    let words = words();
    let web = workload(words.web(), 100);
    let written = |rest_ms: u64| {
        let ws = spread(words.web(), vec![subset("a", count(60)), subset("b", None)]);
        let limits = controller::Limits {
            rest: Span::from_millis(rest_ms),
            ..controller::Limits::default()
        };
        let mut desk = Desk::with(limits, &words, ws, std::slice::from_ref(&web));
        desk.run();
        // Fifty a second.
        for i in 0..100 {
            desk.now = desk.now + Span::from_millis(20);
            desk.add(desk::pod(&web, &format!("p{i}"), Some("a")));
            desk.run();
        }
        let writes = desk.writes;
        desk.pass(1);
        assert_eq!(
            desk.overall(),
            ["a 100/0", "b 0/-1"],
            "nothing is forgotten"
        );
        (writes, desk.machine.is_at_rest())
    };
    assert_eq!(written(0), (101, true));
    assert_eq!(written(500), (5, true));
}

/// A controller with something to write, after which it rests for a second.
fn resting() -> (Desk, WorkloadFact) {
    let words = words();
    let web = workload(words.web(), 3);
    let ws = spread(words.web(), vec![subset("a", count(2)), subset("b", None)]);
    let limits = controller::Limits {
        rest: Span::from_secs(1),
        ..controller::Limits::default()
    };
    let desk = Desk::with(limits, &words, ws, std::slice::from_ref(&web));
    (desk, web)
}

/// Admission wrote: its pods wait for the next write, and what the controller tells of can wait.
#[test]
fn after_a_conflict_the_controller_rests() {
    let (mut desk, _) = resting();
    desk.faults = vec![controller::Outcome::Conflict];
    desk.run();
    let mut writes_after = |ms| {
        desk.now = desk.now + Span::from_millis(ms);
        desk.tell(Input::Tick);
        desk.run();
        (desk.machine.counters().conflicts, desk.writes)
    };
    assert_eq!(writes_after(999), (1, 0));
    assert_eq!(writes_after(1), (1, 1));
}

/// And what comes while it writes waits, too.
#[test]
fn what_comes_during_a_write_is_written_after_the_rest() {
    let (mut desk, web) = resting();
    let writing = desk.machine.poll_effect(&mut NoPatches);
    let Some(controller::Effect::WriteStatus { id, .. }) = writing else {
        panic!("a write: {writing:?}");
    };
    desk.add(desk::pod(&web, "web-1", Some("a")));
    desk.tell(Input::Outcome(id, controller::Outcome::Ok));
    desk.run();
    let synced = desk.machine.counters().synced;
    desk.now = desk.now + Span::from_millis(999);
    desk.tell(Input::Tick);
    desk.run();
    assert_eq!((desk.machine.counters().synced, desk.writes), (synced, 0));
    desk.now = desk.now + Span::from_millis(1);
    desk.tell(Input::Tick);
    desk.run();
    assert_eq!(desk.writes, 1);
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
