//! Adaptive rescheduling: spec/workloadspread §5.7, §9.2.

use std::sync::Arc;

use strew_model::Span;
use strew_workloadspread::controller::{EventKind, Input, Outcome};
use strew_workloadspread::{Adaptive, Row, Schedulable, Strategy, WorkloadFact, WorkloadSpread};

use crate::desk::*;
use crate::world::*;

fn adaptive(words: &Words, critical: u64, window: Option<u64>) -> WorkloadSpread {
    let mut ws = spread(words.web(), vec![subset("a", count(5)), subset("b", None)]);
    let mut spec = (*ws.spec).clone();
    spec.strategy = Strategy::Adaptive(Adaptive {
        disable_simulation: true,
        critical: Some(Span::from_secs(critical)),
        closed_for: window.map(Span::from_secs),
    });
    ws.spec = Arc::new(spec);
    ws
}

fn web(words: &Words) -> WorkloadFact {
    workload(words.web(), 5)
}

fn closed_since(row: &mut Row, ago: u64) {
    row.schedulable = Some(Schedulable {
        holds: false,
        since: secs(NOW - ago),
    });
}

#[test]
fn conditions_stand_only_while_rescheduling_is_on() {
    let words = words();
    let mut desk = Desk::new(&words, adaptive(&words, 5, None), &[web(&words)]);
    desk.run();
    assert_eq!(desk.overall(), ["a 0/5 open", "b 0/-1 open"]);
    for strategy in [
        Strategy::Fixed,
        Strategy::Adaptive(Adaptive::default()),
        Strategy::Adaptive(Adaptive {
            critical: Some(Span(0)),
            ..Adaptive::default()
        }),
    ] {
        desk.change(|ws| {
            let mut spec = (*ws.spec).clone();
            spec.strategy = strategy;
            ws.spec = Arc::new(spec);
        });
        desk.run();
        assert_eq!(desk.overall(), ["a 0/5", "b 0/-1"]);
    }
}

#[test]
fn pods_that_wait_too_long_close_their_subset_and_are_deleted_after_the_write() {
    let words = words();
    let owner = web(&words);
    let mut desk = Desk::new(
        &words,
        adaptive(&words, 5, None),
        std::slice::from_ref(&owner),
    );
    desk.add(pending(&owner, "p0", "a", 3));
    desk.add(pending(&owner, "p1", "a", 3));
    desk.add(pending(&owner, "p2", "b", 60));
    desk.run();
    assert_eq!(desk.overall(), ["a 2/3 open", "b 1/-1 open"]);
    assert_eq!(desk.machine.next_wake().unwrap().secs(), NOW + 2);
    desk.pass(2);
    assert!(desk.deleted.is_empty(), "not yet beyond");
    desk.pass(1);
    assert_eq!(desk.deleted, ["p0", "p1"], "the last subset keeps its pods");
    assert_eq!(desk.overall(), ["a 0/5 closed", "b 1/-1 open"]);
}

#[test]
fn a_failed_write_deletes_nobody() {
    let words = words();
    let owner = web(&words);
    let mut desk = Desk::new(
        &words,
        adaptive(&words, 5, None),
        std::slice::from_ref(&owner),
    );
    desk.add(pending(&owner, "p0", "a", 60));
    // The cost is patched, then the write fails, then nothing more is done.
    desk.faults = vec![Outcome::Failed, Outcome::Failed];
    desk.run();
    assert!(desk.deleted.is_empty());
    assert_eq!(desk.writes, 0);
    desk.pass(1);
    desk.pass(1);
    assert_eq!(
        (desk.writes > 0, desk.deleted.as_slice()),
        (true, &["p0".to_string()][..])
    );
}

#[test]
fn a_closed_subset_opens_after_its_window_by_itself() {
    let words = words();
    for (window, ago, opens_in) in [(None, 240, 60), (Some(30), 10, 20)] {
        let mut ws = adaptive(&words, 5, window);
        let mut rows = vec![row("a", 5), row("b", -1)];
        closed_since(&mut rows[0], ago);
        let mut status = (*ledger(rows.clone())).clone();
        status.overall = rows;
        status.versioned.clear();
        ws.status = Arc::new(status);
        let mut desk = Desk::new(&words, ws, &[web(&words)]);
        desk.run();
        assert_eq!(desk.overall(), ["a 0/5 closed", "b 0/-1 open"]);
        desk.pass(opens_in);
        assert_eq!(
            desk.overall(),
            ["a 0/5 closed", "b 0/-1 open"],
            "at the very second"
        );
        desk.pass(1);
        assert_eq!(desk.overall(), ["a 0/5 open", "b 0/-1 open"]);
        assert_eq!(desk.events, [(EventKind::RecoverSchedulable, "a".into())]);
    }
}

#[test]
fn the_moment_of_closing_is_kept_while_pods_go_on_failing() {
    let words = words();
    let owner = web(&words);
    let mut ws = adaptive(&words, 5, None);
    let mut rows = vec![row("a", 5), row("b", -1)];
    closed_since(&mut rows[0], 400);
    let mut status = (*ledger(rows.clone())).clone();
    status.overall = rows;
    ws.status = Arc::new(status);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&owner));
    desk.add(pending(&owner, "p0", "a", 60));
    desk.faults = vec![Outcome::Failed];
    desk.run();
    desk.now = secs(NOW + 1);
    desk.tell(Input::Tick);
    desk.run();
    assert_eq!(desk.deleted, ["p0"]);
    // Before, without such a pod it opened at once: the time of closing, 400 s ago, had been kept.
    let kinds: Vec<_> = desk.events.iter().map(|e| e.0).collect();
    use EventKind::{PatchPodDeletionCostFailed, RecoverSchedulable};
    assert_eq!(kinds[0], PatchPodDeletionCostFailed);
    assert!(kinds[1..].iter().all(|k| *k == RecoverSchedulable) && kinds.len() > 1);
    assert_eq!(desk.overall(), ["a 0/5 open", "b 0/-1 open"]);
}

#[test]
fn a_pod_that_turns_unschedulable_sets_off_a_sync() {
    let words = words();
    let owner = web(&words);
    let mut desk = Desk::new(
        &words,
        adaptive(&words, 5, None),
        std::slice::from_ref(&owner),
    );
    let mut fresh = pending(&owner, "p0", "a", 60);
    fresh.unschedulable = false;
    desk.add(fresh.clone());
    desk.run();
    assert!(desk.deleted.is_empty() && desk.machine.is_at_rest());
    fresh = desk.pods["uid-p0"].clone();
    fresh.unschedulable = true;
    desk.add(fresh);
    desk.run();
    assert_eq!(desk.deleted, ["p0"]);
}
