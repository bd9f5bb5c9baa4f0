//! The webhook's ledger: spec/workloadspread §9.1, and the other rules of §4.

use std::sync::Arc;

use strew_model::{Labels, Selector};
use strew_workloadspread::admission::{Denial, Input, Untouched, Verdict};
use strew_workloadspread::choose::{first_rows, ordinal};
use strew_workloadspread::revision;
use strew_workloadspread::{
    FilterSelector, GroupKind, Kinds, Marked, Row, Schedulable, Status, TargetFilter, TargetRef,
    WorkloadSpread,
};

use crate::world::*;

const IGNORED: &str = "versionIgnored";

pub(crate) fn with_rows(mut ws: WorkloadSpread, rows: Vec<Row>) -> WorkloadSpread {
    let mut status = Status::default();
    status.versioned.insert(IGNORED.into(), rows);
    ws.status = Arc::new(status);
    ws
}

/// A ledger, one request, and the results of both.
struct Case {
    name: &'static str,
    subsets: &'static [(&'static str, Option<u32>)],
    rows: Vec<Row>,
    pod: Option<&'static str>,
    subset: Option<&'static str>,
    ledger: &'static [&'static str],
    uid: Option<&'static str>,
}

fn creating(name: &str, missing: i32, pod: &str) -> Row {
    let mut row = row(name, missing);
    row.creating.insert(pod.into(), secs(900));
    row
}

#[test]
fn a_create_takes_the_first_row_with_room_and_is_entered() {
    let a5: &[_] = &[("a", Some(5))];
    let a5b: &[_] = &[("a", Some(5)), ("b", None)];
    let a0b2: &[_] = &[("a", Some(0)), ("b", Some(2))];
    let case = |name, subsets, rows, pod, subset, ledger, uid| Case {
        name,
        subsets,
        rows,
        pod,
        subset,
        ledger,
        uid,
    };
    let cases = [
        case(
            "m=5",
            a5,
            vec![row("a", 5)],
            Some("p1"),
            Some("a"),
            &["a m4 c[p1] d[]"],
            None,
        ),
        case(
            "no rows yet",
            a5,
            vec![],
            Some("p1"),
            Some("a"),
            &["a m4 c[p1] d[]"],
            None,
        ),
        case(
            "overflow",
            a5b,
            vec![row("a", 0), row("b", -1)],
            Some("p1"),
            Some("b"),
            &["a m0 c[] d[]", "b m-1 c[] d[]"],
            None,
        ),
        case(
            "full",
            a5,
            vec![row("a", 0)],
            Some("p1"),
            None,
            &["a m0 c[] d[]"],
            None,
        ),
        case(
            "m=-1",
            a5,
            vec![row("a", -1)],
            Some("p1"),
            Some("a"),
            &["a m-1 c[] d[]"],
            None,
        ),
        case(
            "retry",
            a5,
            vec![creating("a", 4, "p1")],
            Some("p1"),
            Some("a"),
            &["a m4 c[p1] d[]"],
            None,
        ),
        case(
            "unnamed",
            a0b2,
            vec![row("a", 0), row("b", 2)],
            None,
            Some("b"),
            &["a m0 c[] d[]", "b m1 c[fresh-1] d[]"],
            Some("fresh-1"),
        ),
        case(
            "a row of a subset that is gone",
            a5,
            vec![row("old", 2), row("a", 5)],
            Some("p1"),
            None,
            &["old m1 c[p1] d[]", "a m5 c[] d[]"],
            None,
        ),
    ];
    let words = words();
    let web = workload(words.web(), 10);
    for case in cases {
        let max = |m: Option<u32>| m.and_then(count);
        let subsets = case.subsets.iter().map(|(n, m)| subset(n, max(*m)));
        let ws = with_rows(spread(words.web(), subsets.collect()), case.rows);
        let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
        server.ask(create(1, asked(&web, case.pod, Labels::default()), None));
        server.run();
        assert_eq!(server.subset(1).as_deref(), case.subset, "{}", case.name);
        assert_eq!(server.ledger(IGNORED), case.ledger, "{}", case.name);
        if let Verdict::Inject(injection) = &server.answer(1).verdict {
            assert_eq!(&*injection.marker.workload_spread, "ws");
            assert_eq!(injection.marker.uid.as_deref(), case.uid, "{}", case.name);
        }
    }
}

#[test]
fn the_fields_of_a_marker_stand_in_their_order() {
    let words = words();
    let web = workload(words.web(), 10);
    let ws = spread(words.web(), vec![subset("a", count(5))]);
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    server.ask(create(1, asked(&web, None, Labels::default()), None));
    server.run();
    let Verdict::Inject(injection) = &server.answer(1).verdict else {
        panic!("there is room");
    };
    let fields: Vec<_> = injection.marker.fields().collect();
    assert_eq!(
        fields,
        [("name", "ws"), ("subset", "a"), ("uid", "fresh-1")]
    );
}

#[test]
fn deletes_count_up_once() {
    let words = words();
    let web = workload(words.web(), 10);
    let unlimited = vec![row("a", -1)];
    let mut deleting = row("a", 1);
    deleting.deleting.insert("p1".into(), secs(900));
    // Six of five: some are adopted.
    let mut over = row("a", 0);
    over.replicas = 6;
    let mut full = row("a", 0);
    full.replicas = 5;
    for (name, rows, at, expected) in [
        ("over-full", vec![over], "a", "a m0 c[] d[p1]"),
        ("full", vec![full], "a", "a m1 c[] d[p1]"),
        ("m=0", vec![row("a", 0)], "a", "a m1 c[] d[p1]"),
        ("unknown subset", vec![row("a", 0)], "b", "a m0 c[] d[]"),
        ("twice", vec![deleting], "a", "a m1 c[] d[p1]"),
        ("m=-1", unlimited, "a", "a m-1 c[] d[]"),
    ] {
        let ws = spread(words.web(), vec![subset("a", count(5)), subset("z", None)]);
        let mut server = Server::new(&words, with_rows(ws, rows.clone()), &[]);
        let pod = asked(&web, Some("p1"), Labels::default());
        server.ask(delete(1, pod, at));
        server.run();
        assert_eq!(server.subset(1), None);
        assert_eq!(server.ledger(IGNORED), [expected], "{name}");
    }
}

#[test]
fn what_admission_does_not_look_at_passes_untouched_and_changes_nothing() {
    let words = words();
    let web = workload(words.web(), 10);
    let other = workload(words.target(words.clone_set, "x"), 10);
    let unknown = workload(words.target(words.of("v1"), "web"), 10);
    let named = |owner| asked(owner, Some("p1"), Labels::default());
    let mut dry = create(1, named(&web), None);
    dry.dry_run = true;
    let mut dry_delete = delete(2, named(&web), "a");
    dry_delete.dry_run = true;
    let mut sub = create(3, named(&web), None);
    sub.subresource = true;
    let mut inactive = delete(4, named(&web), "a");
    inactive.pod.active = false;
    let mut orphan = create(5, named(&web), None);
    orphan.pod.controller = None;
    let mut unmarked = delete(8, named(&web), "a");
    unmarked.pod.marker = Marked::Unreadable;
    let mut foreign = create(9, named(&web), None);
    foreign.pod.namespace = words.of("x");
    let ws = with_rows(
        spread(words.web(), vec![subset("a", count(5))]),
        vec![row("a", 2)],
    );
    let facts = [web.clone(), other.clone()];
    let mut server = Server::new(&words, ws, &facts);
    let cases = [
        (dry, Untouched::DryRun),
        (dry_delete, Untouched::DryRun),
        (sub, Untouched::Subresource),
        (inactive, Untouched::Inactive),
        (orphan, Untouched::NoController),
        (create(6, named(&unknown), None), Untouched::KindUnknown),
        (create(7, named(&other), None), Untouched::NoSpread),
        (unmarked, Untouched::NoMarker),
        (foreign, Untouched::NoSpread),
    ];
    for (request, expected) in cases {
        let id = request.id.0;
        server.ask(request);
        server.run();
        let verdict = &server.answer(id).verdict;
        assert!(
            matches!(verdict, Verdict::Untouched(why) if *why == expected),
            "{id}: {verdict:?}"
        );
    }
    assert_eq!(
        (server.writes, server.ledger(IGNORED)),
        (0, vec!["a m2 c[] d[]".into()])
    );
}

#[test]
fn owners_are_followed_and_one_that_is_missing_refuses_the_create() {
    let words = words();
    let deployment = workload(words.target(words.deployment, "web"), 3);
    let mut rs = workload(words.target(words.replica_set, "web-1"), 3);
    rs.controller = Some(controller(&deployment));
    let ws = spread(
        deployment.key.target,
        vec![subset("a", count(5)), subset("b", None)],
    );
    let labels = Labels::new(vec![(words.hash, words.of("v1"))]);
    let mut server = Server::new(&words, ws, &[deployment.clone(), rs.clone()]);
    server.ask(create(1, asked(&rs, Some("p1"), labels.clone()), None));
    server.run();
    assert_eq!(server.subset(1).as_deref(), Some("a"));
    assert_eq!(server.ledger("v1"), ["a m4 c[p1] d[]", "b m-1 c[] d[]"]);
    server.tell(Input::WorkloadGone(rs.key));
    server.ask(create(2, asked(&rs, Some("p2"), labels), None));
    server.run();
    let Verdict::Deny(why) = server.answer(2).verdict else {
        panic!("the ReplicaSet is not there");
    };
    let expected: TargetRef = rs.key.target;
    assert_eq!(
        (why, why.code(true)),
        (Denial::OwnerNotFound(expected), 500)
    );
}

#[test]
fn a_subset_closed_overall_or_in_the_revision_is_passed_over() {
    let words = words();
    let web = workload(words.web(), 10);
    let closed = Some(Schedulable {
        holds: false,
        since: secs(900),
    });
    for (overall, versioned) in [(closed, None), (None, closed)] {
        let mut ws = spread(words.web(), vec![subset("a", count(5)), subset("b", None)]);
        let mut rows = vec![row("a", 5), row("b", -1)];
        rows[0].schedulable = versioned;
        let mut status = Status {
            overall: vec![row("a", 5), row("b", -1)],
            ..Status::default()
        };
        status.overall[0].schedulable = overall;
        status.versioned.insert(IGNORED.into(), rows);
        ws.status = Arc::new(status);
        let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
        server.ask(create(1, asked(&web, Some("p1"), Labels::default()), None));
        server.run();
        assert_eq!(server.subset(1).as_deref(), Some("b"));
    }
}

#[test]
fn pods_of_a_stateful_set_go_by_their_ordinal() {
    for (name, expected) in [
        ("sample-0", 0),
        ("sample-499", 499),
        ("sample", -1),
        ("s-x", -1),
        ("s-", -1),
    ] {
        assert_eq!(ordinal(name, None), expected, "{name}");
    }
    let words = words();
    let set = workload(words.target(words.stateful_set, "web"), 5);
    let subsets = || {
        vec![
            subset("a", count(2)),
            subset("b", count(2)),
            subset("c", None),
        ]
    };
    let mut server = Server::new(
        &words,
        spread(set.key.target, subsets()),
        std::slice::from_ref(&set),
    );
    for i in 0..5 {
        let name = format!("web-{i}");
        server.ask(create(i, asked(&set, Some(&name), Labels::default()), None));
        server.ask(delete(
            100 + i,
            asked(&set, Some(&name), Labels::default()),
            "a",
        ));
    }
    server.run();
    let went: Vec<_> = (0..5).map(|i| server.subset(i).unwrap()).collect();
    assert_eq!(went, ["a", "a", "b", "b", "c"]);
    assert_eq!(server.writes, 0, "no ledger is kept");
}

#[test]
fn percentages_follow_an_autoscaler_at_once() {
    let words = words();
    let mut web = workload(words.web(), 10);
    let subsets = vec![
        subset("a", percent(20)),
        subset("b", percent(30)),
        subset("c", percent(50)),
    ];
    let first: Vec<i32> = {
        let ws = spread(words.web(), subsets.clone());
        first_rows(&ws.spec, 10).iter().map(|r| r.missing).collect()
    };
    assert_eq!(first, [2, 3, 5]);
    let mut rows = vec![row("a", 0), row("b", 0), row("c", 0)];
    for (row, replicas) in rows.iter_mut().zip([2, 3, 5]) {
        row.replicas = replicas;
    }
    web.replicas = Some(20);
    let ws = with_rows(spread(words.web(), subsets), rows);
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    for i in 0..10 {
        server.ask(create(
            i,
            asked(&web, Some(&format!("p{i}")), Labels::default()),
            None,
        ));
    }
    server.run();
    let by_subset: Vec<_> = server.by_subset().into_iter().collect();
    assert_eq!(
        by_subset,
        [("a".into(), 2), ("b".into(), 3), ("c".into(), 5)]
    );
}

#[test]
fn minimums_are_filled_before_anything_else() {
    let words = words();
    let web = workload(words.web(), 10);
    let mut subsets = vec![subset("a", count(4)), subset("b", None), subset("c", None)];
    subsets[1].min_replicas = 1;
    subsets[2].min_replicas = 2;
    let mut server = Server::new(
        &words,
        spread(words.web(), subsets),
        std::slice::from_ref(&web),
    );
    for i in 0..9 {
        server.ask(create(
            i,
            asked(&web, Some(&format!("p{i}")), Labels::default()),
            None,
        ));
        server.run();
    }
    let went: Vec<_> = (0..9).map(|i| server.subset(i).unwrap()).collect();
    assert_eq!(went, ["b", "c", "c", "a", "a", "a", "a", "b", "b"]);
}

#[test]
fn a_filter_takes_some_pods_and_the_first_spread_that_takes_one_handles_it() {
    let words = words();
    let web = workload(words.web(), 10);
    let labelled = |value: &str| Labels::new(vec![(words.hash, words.of(value))]);
    let v1 = Selector::of_labels([(words.hash, words.of("v1"))]);
    for (selector, of_v1, of_v2) in [
        (FilterSelector::Of(v1), "ws", "zz"),
        (FilterSelector::Every, "ws", "ws"),
        (FilterSelector::Broken, "zz", "zz"),
    ] {
        let mut first = spread(words.web(), vec![subset("a", None)]);
        let mut spec = (*first.spec).clone();
        spec.filter = Some(TargetFilter {
            selector,
            replicas_paths: Box::default(),
        });
        first.spec = Arc::new(spec);
        let mut second = spread(words.web(), vec![subset("a", None)]);
        second.key.name = "zz".into();
        let mut server = Server::new(&words, first, std::slice::from_ref(&web));
        server.tell(Input::SpreadSet(Box::new(second)));
        for (id, value) in [(1, "v1"), (2, "v2")] {
            server.ask(create(id, asked(&web, Some("p"), labelled(value)), None));
        }
        server.run();
        let handled = |id| {
            server
                .answer(id)
                .spread
                .as_ref()
                .map(|k| k.name.to_string())
        };
        assert_eq!(
            (handled(1), handled(2)),
            (Some(of_v1.into()), Some(of_v2.into()))
        );
    }
}

#[test]
fn custom_kinds_are_followed_once_they_are_listed() {
    let words = words();
    let kind = |text: &str| GroupKind {
        group: words.apps,
        kind: words.of(text),
    };
    let top = workload(words.target(words.of("x"), "web"), 5);
    let mut middle = workload(words.target(words.of("c"), "web-1"), 1);
    middle.controller = Some(controller(&top));
    let ws = spread(top.key.target, vec![subset("a", None)]);
    for (listed, expected) in [
        (vec![], None),
        (vec![kind("c")], Some("a")),
        (vec![kind("x")], None),
        (vec![kind("x"), kind("c")], Some("a")),
    ] {
        let mut server = Server::new(&words, ws.clone(), &[top.clone(), middle.clone()]);
        server.tell(Input::KindsListed(listed.into()));
        server.ask(create(
            1,
            asked(&middle, Some("p"), Labels::default()),
            None,
        ));
        server.run();
        assert_eq!(server.subset(1).as_deref(), expected);
    }
}

#[test]
fn a_workload_spread_may_make_the_kind_of_its_target_known() {
    let words = words();
    let top = workload(words.target(words.of("x"), "web"), 5);
    let ask = |id| create(id, asked(&top, Some("p"), Labels::default()), None);
    let mut ws = spread(top.key.target, vec![subset("a", None)]);
    let mut server = Server::new(&words, ws.clone(), std::slice::from_ref(&top));
    server.ask(ask(1));
    server.run();
    assert_eq!(server.subset(1), None);
    Arc::make_mut(&mut ws.spec).any_kind = true;
    server.tell(Input::SpreadSet(Box::new(ws.clone())));
    server.ask(ask(2));
    server.run();
    assert_eq!(server.subset(2).as_deref(), Some("a"));
    server.tell(Input::SpreadGone(ws.key.clone()));
    server.tell(Input::SpreadSet(Box::new(ws.clone())));
    Arc::make_mut(&mut ws.spec).any_kind = false;
    server.tell(Input::SpreadSet(Box::new(ws)));
    server.ask(ask(3));
    server.run();
    assert_eq!(server.subset(3), None);
}

#[test]
fn revision_keys_are_read_off_the_labels() {
    let mut words = words();
    let deployment = workload(words.target(words.deployment, "web"), 3);
    let web = workload(words.web(), 3);
    let kinds = Kinds::new(&mut words.names);
    let key = words.names.intern("controller-revision-hash");
    let long = words.names.intern("workload-xyz-5474f59575");
    let short = words.names.intern("5474f59575");
    let labels = |pairs: &[_]| Labels::new(pairs.to_vec());
    for (owner, labels, expected) in [
        (&deployment, labels(&[(key, short)]), "5474f59575"),
        (&deployment, labels(&[(key, long)]), "5474f59575"),
        (&deployment, labels(&[(words.hash, short)]), "5474f59575"),
        (
            &deployment,
            labels(&[(words.hash, short), (key, words.of("v1"))]),
            "5474f59575",
        ),
        (&deployment, labels(&[]), IGNORED),
        (&web, labels(&[(words.hash, short)]), IGNORED),
    ] {
        let owner = controller(owner);
        let got = revision::of_pod(
            Default::default(),
            &labels,
            Some(&owner),
            &kinds,
            &words.names,
        );
        assert_eq!(&*got, expected);
    }
}
