//! A new pod that is one more than its target asks for, by the known facts, waits for newer facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Instant, Labels, Span, Symbol};
use strew_workloadspread::admission::{Input, Limits, Request};
use strew_workloadspread::{Row, Status, Subset, WorkloadFact, WorkloadSpread};

use crate::world::*;

const IGNORED: &str = "versionIgnored";

fn zones() -> Vec<Subset> {
    vec![
        subset("a", percent(20)),
        subset("b", percent(20)),
        subset("c", percent(60)),
    ]
}

/// A replica that knows a workload with this number of pods, and their ledger: subset, pods and what is missing.
fn server(
    web: &WorkloadFact,
    subsets: Vec<Subset>,
    rows: &[(&str, i32, i32)],
    limits: Limits,
) -> Server {
    let mut ws = spread(web.key.target, subsets);
    ws.status = ledger(rows);
    Server::with(&words(), ws, std::slice::from_ref(web), limits)
}

fn ledger(rows: &[(&str, i32, i32)]) -> Arc<Status> {
    let mut status = Status::default();
    if !rows.is_empty() {
        let rows = rows.iter().map(|&(name, replicas, missing)| Row {
            replicas,
            ..row(name, missing)
        });
        status.versioned.insert(IGNORED.into(), rows.collect());
    }
    Arc::new(status)
}

fn of(kind: fn(&Words) -> Symbol, replicas: i64) -> WorkloadFact {
    let words = words();
    workload(words.target(kind(&words), "web"), replicas)
}

fn new_pod(id: u64, web: &WorkloadFact, name: Option<&str>) -> Request {
    create(id, asked(web, name, Labels::default()), None)
}

/// Asks for this number of new pods. Only effects are carried out.
fn ask(server: &mut Server, web: &WorkloadFact, ids: std::ops::Range<u64>) {
    for id in ids {
        server.ask(new_pod(id, web, None));
    }
    server.flow();
}

fn after(start: Instant, ms: u64) -> Instant {
    start + Span::from_millis(ms)
}

fn counts(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let counts = counts.iter();
    counts.map(|(name, n)| (name.to_string(), *n)).collect()
}

#[test]
fn shares_are_of_the_number_that_the_pods_were_made_for() {
    for (before, rows, now, expected) in [
        (0, &[][..], 5, &[("a", 1), ("b", 1), ("c", 3)][..]),
        (
            5,
            &[("a", 1, 0), ("b", 1, 0), ("c", 3, 0)],
            10,
            &[("a", 1), ("b", 1), ("c", 3)],
        ),
    ] {
        let mut web = of(|w| w.clone_set, before);
        let mut server = server(&web, zones(), rows, alone());
        ask(&mut server, &web, 0..5);
        assert_eq!(server.answers.len(), 0, "{before}");

        web.replicas = Some(now);
        server.tell(Input::WorkloadSet(Box::new(web.clone())));
        server.flow();
        assert_eq!(server.by_subset(), counts(expected), "{before} to {now}");
        assert_eq!(server.now, secs(1000), "nobody waited for longer");
    }
}

#[test]
fn a_later_subset_without_limit_is_not_taken_before_the_news() {
    let mut web = of(|w| w.clone_set, 0);
    let subsets = vec![subset("own", percent(50)), subset("elastic", None)];
    let mut server = server(&web, subsets, &[], alone());
    ask(&mut server, &web, 0..4);
    assert_eq!(server.answers.len(), 0);

    web.replicas = Some(4);
    server.tell(Input::WorkloadSet(Box::new(web.clone())));
    server.flow();
    assert_eq!(server.by_subset(), counts(&[("own", 2), ("elastic", 2)]));
}

#[test]
fn without_news_it_goes_by_what_is_known() {
    let web = of(|w| w.clone_set, 0);
    let mut server = server(&web, zones(), &[], alone());
    ask(&mut server, &web, 0..1);
    server.now = after(server.now, 1999);
    server.tell(Input::Tick);
    server.flow();
    assert_eq!(server.answers.len(), 0);
    assert_eq!(server.machine.next_wake(), Some(secs(1002)));
    server.run();
    assert_eq!(server.subset(0), None);
    assert_eq!(server.now, secs(1002));
}

#[test]
fn a_finished_pod_makes_room_once_the_ledger_tells() {
    let web = of(|w| w.job, 2);
    let subsets = vec![subset("a", count(2)), subset("b", None)];
    let mut server = server(&web, subsets, &[("a", 2, 0), ("b", 0, -1)], alone());
    ask(&mut server, &web, 0..1);
    assert_eq!(server.answers.len(), 0);

    server.ws.version += 1;
    server.ws.status = ledger(&[("a", 1, 1), ("b", 0, -1)]);
    server.tell(Input::SpreadSet(Box::new(server.ws.clone())));
    server.flow();
    assert_eq!(server.subset(0).as_deref(), Some("a"));
}

#[test]
fn a_delete_waits_for_nobody_and_makes_room() {
    let web = of(|w| w.clone_set, 2);
    let mut server = server(&web, vec![subset("a", count(2))], &[("a", 2, 0)], alone());
    ask(&mut server, &web, 0..1);
    assert_eq!(server.answers.len(), 0);

    let old = asked(&web, Some("p1"), Labels::default());
    server.ask(delete(1, old, "a"));
    server.flow();
    assert_eq!(server.answers.len(), 2);
    assert_eq!(server.subset(0).as_deref(), Some("a"));
    assert_eq!(server.now, secs(1000));
}

#[test]
fn a_stateful_sets_pod_waits_by_its_ordinal() {
    let mut web = of(|w| w.stateful_set, 2);
    let subsets = vec![subset("a", percent(50)), subset("b", percent(50))];
    let mut server = server(&web, subsets, &[], alone());
    server.ask(new_pod(0, &web, Some("web-1")));
    server.ask(new_pod(1, &web, Some("web-3")));
    server.flow();
    assert_eq!(server.answers.len(), 1);
    assert_eq!(server.subset(0).as_deref(), Some("b"));

    web.replicas = Some(4);
    server.tell(Input::WorkloadSet(Box::new(web.clone())));
    server.flow();
    assert_eq!(server.subset(1).as_deref(), Some("b"));
}

#[test]
fn who_may_be_one_more_does_not_wait() {
    let full = || vec![subset("a", count(2))];
    let none = Limits {
        news_within: Span::default(),
        ..alone()
    };
    for (what, web, subsets, rows, limits) in [
        (
            "a target that asks for more",
            of(|w| w.clone_set, 3),
            full(),
            &[("a", 2, 0)][..],
            alone(),
        ),
        (
            "shares that are not of all",
            of(|w| w.clone_set, 5),
            vec![subset("a", percent(40))],
            &[("a", 2, 0)],
            alone(),
        ),
        (
            "a wait of nothing",
            of(|w| w.clone_set, 2),
            full(),
            &[("a", 2, 0)],
            none,
        ),
    ] {
        let mut server = server(&web, subsets, rows, limits);
        ask(&mut server, &web, 0..1);
        assert_eq!(server.answers.len(), 1, "{what}");
        assert_eq!(server.subset(0), None, "{what}");
    }
}

#[test]
fn a_kind_that_may_surge_waits_only_while_nothing_is_asked_for() {
    for (replicas, answers) in [(2, 1), (0, 0)] {
        let web = of(|w| w.of("x"), replicas);
        let mut server = server(&web, vec![subset("a", count(2))], &[("a", 2, 0)], alone());
        Arc::make_mut(&mut server.ws.spec).any_kind = true;
        server.tell(Input::SpreadSet(Box::new(server.ws.clone())));
        ask(&mut server, &web, 0..1);
        assert_eq!(server.answers.len(), answers, "{replicas} are asked for");
    }
}

#[test]
fn a_spread_that_goes_leaves_nobody_waiting() {
    let web = of(|w| w.clone_set, 0);
    let mut server = server(&web, zones(), &[], alone());
    ask(&mut server, &web, 0..3);
    assert_eq!(server.answers.len(), 0);
    let WorkloadSpread { key, .. } = server.ws.clone();
    server.tell(Input::SpreadGone(key));
    server.flow();
    assert_eq!(server.answers.len(), 3);
    assert_eq!(server.now, secs(1000));
}
