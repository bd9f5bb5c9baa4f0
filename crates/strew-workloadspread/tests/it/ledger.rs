//! Repair of the ledger: spec/workloadspread §9.2, F7.

use std::sync::Arc;

use strew_workloadspread::controller::{EventKind, Input, Outcome};
use strew_workloadspread::{FilterSelector, Phase, Row, TargetFilter, WorkloadFact};

use crate::desk::*;
use crate::world::*;

fn web(words: &Words) -> WorkloadFact {
    workload(words.web(), 5)
}

fn entry(row: &mut Row, creating: bool, pods: &[&str], age: u64) {
    let entries = if creating {
        &mut row.creating
    } else {
        &mut row.deleting
    };
    for pod in pods {
        entries.insert((*pod).into(), secs(NOW - age));
    }
}

#[test]
fn an_empty_target_shows_its_limits() {
    let words = words();
    for (subsets, expected) in [
        (vec![subset("a", count(5))], vec!["a 0/5"]),
        (
            vec![subset("a", count(5)), subset("b", count(5))],
            vec!["a 0/5", "b 0/5"],
        ),
        (
            vec![subset("a", percent(80)), subset("b", None)],
            vec!["a 0/4", "b 0/-1"],
        ),
    ] {
        let mut ws = spread(words.web(), subsets);
        ws.generation = 10;
        let mut desk = Desk::new(&words, ws, &[web(&words)]);
        desk.run();
        assert_eq!(desk.overall(), expected);
        assert_eq!(desk.ws.status.observed_generation, 10);
        assert!(desk.ws.status.versioned.is_empty());
        assert_eq!(desk.writes, 1, "the second sync finds nothing to write");
    }
}

/// A workload that was scaled to zero still has its pods until they are gone, and they hold their places: if it is
/// scaled up in the meantime, only the free places are available. Kruise shows all places as free.
#[test]
fn a_target_of_no_replicas_still_has_the_pods_that_are_there() {
    let words = words();
    let owner = workload(words.web(), 0);
    let subsets = vec![subset("a", count(4)), subset("b", None)];
    let mut desk = Desk::new(
        &words,
        spread(words.web(), subsets),
        std::slice::from_ref(&owner),
    );
    for i in 0..4 {
        desk.add(pod(&owner, &format!("p{i}"), Some("a")));
    }
    desk.run();
    assert_eq!(desk.overall(), ["a 4/0", "b 0/-1"]);
    desk.lose("p0");
    desk.run();
    assert_eq!(desk.overall(), ["a 3/1", "b 0/-1"]);
}

#[test]
fn creating_and_deleting_pods_correct_the_count_until_they_expire() {
    let words = words();
    let owner = web(&words);
    struct Case {
        name: &'static str,
        creating: (&'static [&'static str], u64),
        deleting: (&'static [&'static str], u64),
        pods: usize,
        row: &'static str,
        event: Option<EventKind>,
        wake_s: Option<u64>,
    }
    let case = |name, creating, deleting, pods, row, event, wake_s| Case {
        name,
        creating,
        deleting,
        pods,
        row,
        event,
        wake_s,
    };
    use EventKind::{CreatePodFailed, DeletePodFailed};
    let cases = [
        case(
            "kept",
            (&["p0", "p1"], 2),
            (&[], 0),
            1,
            "a 1/3 c[p1]",
            None,
            Some(28),
        ),
        case(
            "expired",
            (&["p0", "p1"], 60),
            (&[], 0),
            1,
            "a 1/4",
            Some(CreatePodFailed),
            None,
        ),
        case("done", (&["p0", "p1"], 3), (&[], 0), 2, "a 2/3", None, None),
        case("full", (&["p3", "p4"], 5), (&[], 0), 5, "a 5/0", None, None),
        case(
            "deleting",
            (&[], 0),
            (&["p4"], 1),
            5,
            "a 5/1 d[p4]",
            None,
            Some(14),
        ),
        case(
            "not deleted",
            (&[], 0),
            (&["p4"], 960),
            5,
            "a 5/0",
            Some(DeletePodFailed),
            None,
        ),
        case(
            "both",
            (&["p9"], 2),
            (&["p0"], 3),
            1,
            "a 1/4 c[p9] d[p0]",
            None,
            Some(12),
        ),
        case(
            "over-full",
            (&[], 0),
            (&["p0", "p1"], 3),
            8,
            "a 8/0 d[p0,p1]",
            None,
            Some(12),
        ),
        case(
            "at the limit of time",
            (&["p9"], 30),
            (&[], 0),
            0,
            "a 0/4 c[p9]",
            None,
            Some(0),
        ),
    ];
    for case in cases {
        let mut row = row("a", 3);
        entry(&mut row, true, case.creating.0, case.creating.1);
        entry(&mut row, false, case.deleting.0, case.deleting.1);
        let mut ws = spread(words.web(), vec![subset("a", count(5))]);
        ws.status = ledger(vec![row]);
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&owner));
        for i in 0..case.pods {
            desk.add(pod(&owner, &format!("p{i}"), Some("a")));
        }
        desk.run();
        assert_eq!(desk.rows("versionIgnored"), [case.row], "{}", case.name);
        let event = desk.events.first().map(|e| e.0);
        assert_eq!(event, case.event, "{}", case.name);
        let wake = desk.machine.next_wake().map(|at| at.secs() - NOW);
        assert_eq!(wake, case.wake_s, "{}", case.name);
    }
}

#[test]
fn a_time_out_heals_the_ledger_by_itself() {
    let words = words();
    let owner = web(&words);
    let mut lost = row("a", 4);
    entry(&mut lost, true, &["p9"], 0);
    let mut ws = spread(words.web(), vec![subset("a", count(5))]);
    ws.status = ledger(vec![lost]);
    let mut desk = Desk::new(&words, ws, &[owner]);
    desk.run();
    desk.pass(30);
    assert_eq!(desk.rows("versionIgnored"), ["a 0/4 c[p9]"]);
    desk.pass(1);
    assert!(
        desk.ws.status.versioned.is_empty(),
        "a revision without pods goes"
    );
    assert_eq!(desk.overall(), ["a 0/5"]);
    assert!(desk.machine.is_at_rest());
}

#[test]
fn finished_and_terminating_pods_do_not_count() {
    let words = words();
    let owner = web(&words);
    let mut rows = vec![row("a", 0)];
    entry(&mut rows[0], false, &["p4"], 1);
    let mut ws = spread(words.web(), vec![subset("a", count(5))]);
    ws.status = ledger(rows);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&owner));
    for i in 0..5 {
        let mut pod = pod(&owner, &format!("p{i}"), Some("a"));
        match i {
            1 | 2 => pod.phase = Phase::Failed,
            3 => pod.phase = Phase::Succeeded,
            4 => pod.deleting = true,
            _ => {}
        }
        desk.add(pod);
    }
    desk.run();
    assert_eq!(desk.rows("versionIgnored"), ["a 1/4"]);
}

#[test]
fn rows_follow_the_spec_and_are_matched_by_name() {
    let words = words();
    let owner = web(&words);
    let mut rows = vec![row("a", 4), row("b", 4), row("gone", 4)];
    entry(&mut rows[0], true, &["p0"], 1);
    entry(&mut rows[1], true, &["p1"], 1);
    let mut ws = spread(
        words.web(),
        vec![subset("b", count(5)), subset("a", count(5))],
    );
    ws.status = ledger(rows);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&owner));
    desk.add(pod(&owner, "p0", Some("a")));
    desk.add(pod(&owner, "p1", Some("b")));
    desk.run();
    assert_eq!(desk.rows("versionIgnored"), ["b 1/4", "a 1/4"]);
}

#[test]
fn totals_come_from_the_scale_or_from_paths_and_filters_drop_pods() {
    let words = words();
    let custom = |replicas| {
        let mut fact = workload(words.target(words.of("x"), "web"), 0);
        fact.replicas = replicas;
        fact
    };
    let filter = |paths: &[&str]| {
        Some(TargetFilter {
            selector: FilterSelector::Every,
            replicas_paths: paths.iter().map(|p| Arc::from(*p)).collect(),
        })
    };
    let mut by_path = custom(Some(1));
    by_path.numbers = [("spec.a".into(), 5), ("spec.b.0".into(), 9)].into();
    for (fact, filter, expected) in [
        (custom(Some(14)), None, vec!["a 2/3", "b 0/7"]),
        (
            by_path.clone(),
            filter(&["spec.a", "spec.b.0"]),
            vec!["a 2/3", "b 0/7"],
        ),
        (by_path.clone(), filter(&[""]), vec!["a 2/3", "b 0/0"]),
        (custom(None), None, vec!["a 2/3", "b 0/0"]),
    ] {
        let mut ws = spread(
            fact.key.target,
            vec![subset("a", count(5)), subset("b", percent(50))],
        );
        let mut spec = (*ws.spec).clone();
        spec.filter = filter;
        ws.spec = Arc::new(spec);
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&fact));
        for name in ["p0", "p1"] {
            desk.add(pod(&fact, name, Some("a")));
        }
        desk.run();
        assert_eq!(desk.overall(), expected);
        assert_eq!(desk.costs(), counts(&[("-", 2)]));
    }
    // A path without an integer fails the sync, which is retried after growing pauses.
    let mut ws = spread(by_path.key.target, vec![subset("a", count(5))]);
    let mut spec = (*ws.spec).clone();
    spec.filter = filter(&["spec.not.there"]);
    ws.spec = Arc::new(spec);
    let mut desk = Desk::new(&words, ws, &[by_path]);
    desk.run();
    assert!(desk.overall().is_empty());
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let wake = desk.machine.next_wake().unwrap();
        pauses.push(wake.since(desk.now).0 / 1_000_000);
        desk.now = wake;
        desk.tell(Input::Tick);
        desk.run();
    }
    assert_eq!(pauses, [5, 10, 20, 40]);
}

#[test]
fn a_failed_patch_leaves_the_status_unwritten_and_is_told() {
    let words = words();
    let owner = web(&words);
    let mut desk = Desk::new(
        &words,
        spread(words.web(), vec![subset("a", count(5))]),
        std::slice::from_ref(&owner),
    );
    desk.add(pod(&owner, "p0", Some("a")));
    desk.faults = vec![Outcome::Failed];
    desk.run();
    assert_eq!(desk.writes, 0);
    assert_eq!(
        desk.events,
        [(EventKind::PatchPodDeletionCostFailed, "p0".into())]
    );
    desk.pass(1);
    assert_eq!(
        (desk.writes, desk.overall()),
        (1, vec!["a 1/4".to_string()])
    );
}

#[test]
fn a_conflict_of_the_status_is_tried_again() {
    let words = words();
    let mut desk = Desk::new(
        &words,
        spread(words.web(), vec![subset("a", count(5))]),
        &[web(&words)],
    );
    desk.faults = vec![Outcome::Conflict, Outcome::Conflict];
    desk.run();
    assert_eq!(desk.writes, 0);
    desk.pass(1);
    desk.pass(1);
    assert_eq!(desk.writes, 1);
}
