//! The four use cases of the text that introduced WorkloadSpread, number by number; and explanations.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Labels, Span};
use strew_workloadspread::admission::{Effect, Input, Verdict};
use strew_workloadspread::controller::cost::CostGround;
use strew_workloadspread::explain::{Entry, Membership};
use strew_workloadspread::{
    Adaptive, Choice, NoPatches, PatchId, Strategy, Subset, WorkloadFact, WorkloadSpread,
    invariants,
};

use crate::desk::*;
use crate::world::*;

fn ask_named(server: &mut Server, web: &WorkloadFact, ids: std::ops::Range<u64>) {
    for i in ids {
        let name = format!("p{i:03}");
        let fact = pod_fact(&name, 1000);
        server.ask(create(
            i,
            asked(web, Some(&name), Labels::default()),
            Some(fact),
        ));
    }
    server.run();
}

fn by_subset(server: &Server) -> Vec<(String, usize)> {
    server.by_subset().into_iter().collect()
}

/// The pods that a scale-in to `k` keeps, by the costs that a sync writes.
fn scaled_in(server: &Server, words: &Words, web: &WorkloadFact, k: usize) -> Vec<(String, usize)> {
    let mut desk = Desk::new(words, server.ws.clone(), std::slice::from_ref(web));
    for id in server.answers.keys() {
        let subset = server.subset(id.0);
        desk.add(pod(web, &format!("p{:03}", id.0), subset.as_deref()));
    }
    desk.run();
    let cost = |p: &strew_workloadspread::Pod| -> i32 {
        p.cost
            .as_deref()
            .expect("a cost")
            .parse()
            .expect("a number")
    };
    // As the ReplicaSet controller does: the cheapest go first.
    let mut pods: Vec<_> = desk.pods.values().collect();
    pods.sort_by_key(|p| std::cmp::Reverse(cost(p)));
    let fates = pods.iter().enumerate().map(|(i, p)| (cost(p), i < k));
    invariants::keeps_the_dearest(fates).expect("I4");
    let mut kept = BTreeMap::new();
    for pod in pods.into_iter().take(k) {
        let subset = pod.marker.marker().expect("a marker").subset.to_string();
        *kept.entry(subset).or_default() += 1;
    }
    kept.into_iter().collect()
}

#[test]
fn a_hundred_on_the_normal_pool_and_the_rest_on_the_elastic_one() {
    let words = words();
    let web = workload(words.web(), 150);
    let ws = spread(
        words.web(),
        vec![subset("a", count(100)), subset("b", None)],
    );
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    ask_named(&mut server, &web, 0..90);
    assert_eq!(by_subset(&server), [("a".into(), 90)]);
    ask_named(&mut server, &web, 90..150);
    assert_eq!(by_subset(&server), [("a".into(), 100), ("b".into(), 50)]);
    for (k, expected) in [
        (120, vec![("a".to_string(), 100), ("b".into(), 20)]),
        (100, vec![("a".into(), 100)]),
        (60, vec![("a".into(), 60)]),
    ] {
        assert_eq!(scaled_in(&server, &words, &web, k), expected);
    }
}

fn adaptive(words: &Words) -> WorkloadSpread {
    let of_pool = |name: &str| Subset {
        required: Some(words.in_pool(name)),
        ..subset(name, None)
    };
    let mut ws = spread(words.web(), vec![of_pool("a"), of_pool("b")]);
    let mut spec = (*ws.spec).clone();
    spec.strategy = Strategy::Adaptive(Adaptive {
        disable_simulation: false,
        critical: Some(Span::from_secs(30)),
        closed_for: None,
    });
    ws.spec = Arc::new(spec);
    ws
}

#[test]
fn elastic_nodes_once_the_normal_ones_are_full_and_pods_that_wait_are_moved_on() {
    let words = words();
    let web = workload(words.web(), 12);
    let mut server = Server::new(&words, adaptive(&words), std::slice::from_ref(&web));
    for (name, pool, cpu) in [("n0", "a", 8_000), ("n1", "b", 100_000)] {
        server.tell(Input::NodeSet(Box::new(node(&words, name, pool, cpu))));
    }
    ask_named(&mut server, &web, 0..12);
    assert_eq!(
        by_subset(&server),
        [("a".into(), 8), ("b".into(), 4)],
        "by simulation"
    );
    assert_eq!(
        scaled_in(&server, &words, &web, 9),
        [("a".into(), 8), ("b".into(), 1)]
    );

    // One pod of the normal pool stays Pending nevertheless, for longer than 30 s.
    let mut desk = Desk::new(&words, server.ws.clone(), std::slice::from_ref(&web));
    desk.add(pending(&web, "late", "a", 29));
    desk.run();
    assert!(desk.deleted.is_empty());
    desk.pass(2);
    assert_eq!(desk.deleted, ["late"]);
    let closed = desk.ws.clone();
    for after in [0, 300] {
        desk.pass(after);
        let mut server = Server::new(&words, closed.clone(), std::slice::from_ref(&web));
        server.tell(Input::SpreadSet(Box::new(desk.ws.clone())));
        server.ws = desk.ws.clone();
        for (name, pool, cpu) in [("n0", "a", 8_000), ("n1", "b", 100_000)] {
            server.tell(Input::NodeSet(Box::new(node(&words, name, pool, cpu))));
        }
        ask_named(&mut server, &web, 20..21);
        assert_eq!(by_subset(&server), [("b".into(), 1)], "{after} s later");
        let choice = server.answer(20).choice.as_ref().expect("a choice");
        check(&server, choice);
    }
    desk.pass(1);
    assert_eq!(desk.overall(), ["a 0/-1 open", "b 0/-1 open"]);
}

/// I2 and I6 of a choice that changed nothing in the ledger.
fn check(server: &Server, choice: &Choice) {
    let rows = strew_workloadspread::choose::first_rows(&server.ws.spec, 12);
    invariants::earlier_ones_are_full(&server.ws.status, &rows, choice).expect("I2");
    invariants::replacement_goes_last(&server.ws.status, &rows, choice).expect("I6");
}

#[test]
fn three_zones_in_the_ratio_of_one_to_one_to_three() {
    let words = words();
    for (total, expected) in [
        (5, [1, 1, 3]),
        (10, [2, 2, 6]),
        (20, [4, 4, 12]),
        (7, [2, 2, 3]),
    ] {
        let web = workload(words.web(), total);
        let subsets = vec![
            subset("a", percent(20)),
            subset("b", percent(20)),
            subset("c", percent(60)),
        ];
        let ws = spread(words.web(), subsets);
        let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
        ask_named(&mut server, &web, 0..total as u64);
        let counts: Vec<usize> = server.by_subset().into_values().collect();
        assert_eq!(counts, expected, "of {total}");
    }
}

#[test]
fn each_architecture_gets_its_own_patch() {
    let words = words();
    let web = workload(words.web(), 5);
    let patched = |name: &str, max, id| Subset {
        patch: Some(PatchId(id)),
        ..subset(name, max)
    };
    let ws = spread(
        words.web(),
        vec![patched("a", count(3), 1), patched("b", None, 2)],
    );
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    ask_named(&mut server, &web, 0..5);
    let patches: Vec<_> = server
        .answers
        .values()
        .map(|answer| match &answer.verdict {
            Verdict::Inject(injection) => injection.subset().patch,
            other => panic!("{other:?}"),
        })
        .collect();
    let (x86, arm) = (Some(PatchId(1)), Some(PatchId(2)));
    assert_eq!(patches, [x86, x86, x86, arm, arm]);
}

#[test]
fn a_dry_run_is_answered_and_does_nothing_else() {
    let words = words();
    let web = workload(words.web(), 5);
    let ws = spread(words.web(), vec![subset("a", count(3))]);
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    let mut request = create(1, asked(&web, Some("p1"), Labels::default()), None);
    request.dry_run = true;
    server.ask(request);
    let effects: Vec<Effect> =
        std::iter::from_fn(|| server.machine.poll_effect(&mut NoPatches)).collect();
    invariants::dry_run_changes_nothing(&effects).expect("I8");
}

#[test]
fn checks_find_what_they_are_for() {
    let of = |pairs: &[(&str, i64)]| -> BTreeMap<Arc<str>, i64> {
        pairs.iter().map(|&(name, n)| (name.into(), n)).collect()
    };
    assert!(invariants::same_totals(&of(&[("a", 2)]), &of(&[("a", 1), ("b", 1)])).is_err());
    assert!(invariants::keeps_the_dearest([(100, false), (-100, true)].into_iter()).is_err());
    assert!(invariants::dry_run_changes_nothing(&[]).is_err());
    let words = words();
    let ws = spread(words.web(), vec![subset("a", count(1)), subset("b", None)]);
    let rows = strew_workloadspread::choose::first_rows(&ws.spec, 1);
    let skipping = Choice {
        steps: Vec::new(),
        place: Some(1),
    };
    assert!(invariants::earlier_ones_are_full(&ws.status, &rows, &skipping).is_err());
    let pods = [(("r".into(), "a".into()), 2)].into();
    assert!(invariants::within_limits(&ws.spec, 1, &pods).is_err());
    let drifted = ledger(vec![row("a", 1)]);
    assert!(invariants::ledger_is_true(&drifted, &ws.status).is_err());
    let mut closed = vec![row("a", 1), row("b", -1)];
    closed[0].schedulable = Some(strew_workloadspread::Schedulable {
        holds: false,
        since: secs(1),
    });
    let nowhere = Choice::default();
    assert!(invariants::replacement_goes_last(&ws.status, &closed, &nowhere).is_err());
    let stray = strew_workloadspread::Marker {
        workload_spread: "ws".into(),
        subset: "gone".into(),
        uid: None,
    };
    assert!(invariants::marker_is_sound(&ws.spec, "ws", &stray).is_err());
}

#[test]
fn a_pod_and_the_ledger_are_explained() {
    let words = words();
    let web = workload(words.web(), 5);
    let mut drifted = row("a", 3);
    drifted.creating.insert("p9".into(), secs(NOW - 10));
    drifted.deleting.insert("p0".into(), secs(NOW - 5));
    let mut ws = spread(words.web(), vec![subset("a", count(1)), subset("b", None)]);
    ws.status = ledger(vec![drifted]);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
    for (name, subset) in [("p0", Some("a")), ("p1", Some("a")), ("p2", Some("gone"))] {
        desk.add(pod(&web, name, subset));
    }
    let explain = |desk: &Desk, name: &str| {
        let standings = desk.machine.explain_pods(&ws_key(), &mut NoPatches);
        let mut standings = standings.expect("no paths").into_iter();
        let found = standings.find(|(pod, _)| &*pod.name == name);
        found.expect("a pod of the target").1
    };
    let first = explain(&desk, "p0");
    assert_eq!(
        (first.subset, first.is_latest),
        (Membership::Marked(0), true)
    );
    let surplus = CostGround::Surplus {
        position: 0,
        max: 1,
    };
    assert_eq!(
        (first.cost, first.cost_stands),
        (Some((-100, surplus)), None)
    );
    let kept = CostGround::Within { position: 0 };
    assert_eq!(explain(&desk, "p1").cost, Some((200, kept)));
    let orphan = explain(&desk, "p2");
    assert_eq!(
        (orphan.subset, orphan.cost),
        (Membership::Orphan, Some((-300, CostGround::Orphan)))
    );

    let checks = |desk: &Desk| {
        let checks = desk
            .machine
            .check_ledger(desk.now, &ws_key(), &mut NoPatches);
        checks.expect("no paths")
    };
    let before = checks(&desk);
    assert_eq!(before.len(), 4, "two rows of the revision, two overall");
    let a = &before[0];
    assert_eq!((&*a.subset, a.max, a.agrees()), ("a", 1, false));
    let truth = a.truth.as_ref().expect("a row");
    assert_eq!((truth.replicas, truth.missing), (2, 0));
    let open = [
        (Entry::Creating, "p9".into(), secs(NOW + 20)),
        (Entry::Deleting, "p0".into(), secs(NOW + 10)),
    ];
    assert_eq!(a.open, open);
    desk.run();
    assert!(
        checks(&desk).iter().all(|c| c.agrees()),
        "a sync makes it true"
    );
}
