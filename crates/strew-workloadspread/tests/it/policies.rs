//! Requests of users beyond Kruise: limits over all revisions, rollouts of CloneSets that keep them, Jobs that survive
//! rescheduling, and policies for pods without room.

use std::sync::Arc;

use strew_model::{Labels, Span};
use strew_workloadspread::admission::{Denial, Verdict};
use strew_workloadspread::controller::Effect;
use strew_workloadspread::{
    Adaptive, LimitScope, NoPatches, Spec, Strategy, TargetRef, WhenNoRoom, WorkloadFact,
    WorkloadSpread,
};

use crate::desk::*;
use crate::world::*;

const IGNORED: &str = "versionIgnored";

fn with(mut ws: WorkloadSpread, change: impl FnOnce(&mut Spec)) -> WorkloadSpread {
    change(Arc::make_mut(&mut ws.spec));
    ws
}

/// A Deployment whose ReplicaSet of revision v2 is the latest, and both.
fn rollout(words: &Words) -> [WorkloadFact; 3] {
    let deployment = workload(words.target(words.deployment, "web"), 4);
    let set = |name: &str, hash: &str, revision| {
        let mut set = workload(words.target(words.replica_set, name), 4);
        set.controller = Some(controller(&deployment));
        set.template_hash = Some(words.of(hash));
        set.revision = Some(revision);
        set
    };
    let sets = [set("web-1", "v1", 1), set("web-2", "v2", 2)];
    let [old, new] = sets;
    [deployment, old, new]
}

#[test]
fn a_limit_over_all_revisions_is_kept_while_a_rollout_goes_on() {
    let words = words();
    let facts = rollout(&words);
    let [deployment, old, new] = &facts;
    let subsets = vec![subset("a", count(2)), subset("b", None)];
    let ws = with(spread(deployment.key.target, subsets), |spec| {
        spec.limit_scope = LimitScope::Workload;
    });
    let mut desk = Desk::new(&words, ws, &facts);
    let of = |owner, name: &str, hash: &str, subset| {
        let mut pod = pod(owner, name, Some(subset));
        pod.labels = Labels::new(vec![(words.hash, words.of(hash))]);
        pod
    };
    for (name, at) in [("p0", "a"), ("p1", "a"), ("p2", "b")] {
        desk.add(of(old, name, "v1", at));
    }
    desk.add(of(new, "n0", "v2", "b"));
    desk.run();
    assert_eq!(desk.rows(IGNORED), ["a 2/0", "b 2/-1"]);
    // The old revision leaves its first subset first, so that the new one finds room there.
    let costs = ["p0", "p1", "p2", "n0"].map(|name| desk.cost(name).to_owned());
    assert_eq!(costs, ["100", "100", "200", "100"]);

    let mut server = Server::new(&words, desk.ws.clone(), &facts);
    let labels = Labels::new(vec![(words.hash, words.of("v2"))]);
    server.ask(create(1, asked(new, Some("n1"), labels.clone()), None));
    server.run();
    assert_eq!(server.subset(1).as_deref(), Some("b"), "the first is full");
    assert_eq!(
        server.now,
        secs(1000),
        "and it waits for no news in a rollout"
    );

    desk.lose("p0");
    desk.run();
    let mut server = Server::new(&words, desk.ws.clone(), &facts);
    server.ask(create(1, asked(new, Some("n1"), labels), None));
    server.run();
    assert_eq!(server.subset(1).as_deref(), Some("a"));
    let Verdict::Inject(injection) = &server.answer(1).verdict else {
        panic!("it has a subset");
    };
    assert_eq!(injection.cost, Some(200));
}

#[test]
fn a_clone_set_is_counted_by_revision_on_request() {
    let mut words = words();
    let mut web = workload(words.web(), 4);
    let [old, new] = ["web-v1", "web-v2"].map(|name| words.names.intern(name));
    let label = words.names.intern("controller-revision-hash");
    web.revisions = Some([old, new]);
    let rows = |desk: &Desk, revision| desk.rows(revision).join(", ");
    for (scope, expected, costs) in [
        (
            LimitScope::Kind,
            [(IGNORED, "a 2/1, b 1/-1"), ("v1", ""), ("v2", "")],
            ["200", "100", "200"],
        ),
        (
            LimitScope::Revision,
            [
                (IGNORED, ""),
                ("v1", "a 1/2, b 1/-1"),
                ("v2", "a 1/2, b 0/-1"),
            ],
            ["100", "200", "200"],
        ),
    ] {
        let ws = spread(words.web(), vec![subset("a", count(3)), subset("b", None)]);
        let ws = with(ws, |spec| spec.limit_scope = scope);
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
        for (name, hash, at) in [("p0", old, "a"), ("p1", old, "b"), ("n0", new, "a")] {
            let mut pod = pod(&web, name, Some(at));
            pod.labels = Labels::new(vec![(label, hash)]);
            desk.add(pod);
        }
        desk.run();
        for (revision, expected) in expected {
            assert_eq!(rows(&desk, revision), expected, "{scope:?}");
        }
        let found = ["p0", "p1", "n0"].map(|name| desk.cost(name).to_owned());
        assert_eq!(found, costs, "{scope:?}");
    }
}

#[test]
fn a_job_keeps_a_pod_that_it_would_count_as_failed() {
    let words = words();
    for (ignores_disruption, expected) in [(false, &[][..]), (true, &["p0"])] {
        let mut job = workload(words.target(words.job, "web"), 2);
        job.ignores_disruption = ignores_disruption;
        let subsets = vec![subset("a", None), subset("b", None)];
        let ws = with(spread(job.key.target, subsets), |spec| {
            let critical = Some(Span::from_secs(30));
            let adaptive = Adaptive {
                critical,
                ..Adaptive::default()
            };
            spec.strategy = Strategy::Adaptive(adaptive);
        });
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&job));
        desk.add(pending(&job, "p0", "a", 31));
        desk.run();
        assert_eq!(desk.deleted, expected);
        assert!(
            desk.overall()[0].ends_with("closed"),
            "either way the next pod goes on"
        );
    }
}

#[test]
fn a_pod_without_room_passes_waits_or_is_refused() {
    let words = words();
    let web = workload(words.web(), 3);
    for (policy, is_expected) in [
        (
            WhenNoRoom::Unconstrained,
            (|v| matches!(v, Verdict::Untouched(_))) as fn(&Verdict) -> bool,
        ),
        (WhenNoRoom::Pending, |v| matches!(v, Verdict::Gate)),
        (WhenNoRoom::Reject, |v| {
            matches!(v, Verdict::Deny(Denial::NoRoom))
        }),
    ] {
        let ws = with(spread(words.web(), vec![subset("a", count(1))]), |spec| {
            spec.when_no_room = policy;
        });
        let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
        for id in 1..3 {
            let name = format!("p{id}");
            server.ask(create(
                id,
                asked(&web, Some(&name), Labels::default()),
                None,
            ));
        }
        server.run();
        let verdict = &server.answer(2).verdict;
        assert!(is_expected(verdict), "{policy:?}: {verdict:?}");
    }
}

#[test]
fn a_pod_that_waits_is_replaced_when_there_is_room() {
    let words = words();
    let web = workload(words.web(), 3);
    let ws = with(spread(words.web(), vec![subset("a", count(1))]), |spec| {
        spec.when_no_room = WhenNoRoom::Pending;
    });
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
    desk.add(pod(&web, "p0", Some("a")));
    for name in ["p1", "p2"] {
        let mut gated = pending(&web, name, "a", 5);
        (gated.marker, gated.unschedulable, gated.gated) = (Default::default(), false, true);
        desk.add(gated);
    }
    desk.run();
    assert_eq!(desk.deleted, [""; 0], "there is no room");
    desk.change(|ws| Arc::make_mut(&mut ws.spec).subsets[0].max_replicas = count(2));
    desk.run();
    assert_eq!(desk.deleted, ["p1"], "one place, one pod");
    // While there are fewer pods than asked for, its replacement is on its way.
    desk.change(|ws| Arc::make_mut(&mut ws.spec).subsets[0].max_replicas = count(3));
    let more = desk.machine.poll_effect(&mut NoPatches);
    assert!(!matches!(more, Some(Effect::DeletePod { .. })), "{more:?}");
}

/// Before, they waited without end when the annotation was removed.
#[test]
fn pods_that_wait_are_replaced_when_none_is_to_wait_any_more() {
    let words = words();
    let web = workload(words.web(), 2);
    for (policy, expected) in [
        (WhenNoRoom::Pending, vec![]),
        (WhenNoRoom::Reject, vec![]),
        (WhenNoRoom::Unconstrained, vec!["p1".to_owned()]),
    ] {
        let ws = with(spread(words.web(), vec![subset("a", count(1))]), |spec| {
            spec.when_no_room = policy;
        });
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
        desk.add(pod(&web, "p0", Some("a")));
        let mut gated = pending(&web, "p1", "a", 5);
        (gated.marker, gated.unschedulable, gated.gated) = (Default::default(), false, true);
        desk.add(gated);
        desk.run();
        assert_eq!(desk.deleted, expected, "{policy:?}");
    }
}

#[test]
fn ordinals_count_from_the_first_one() {
    let words = words();
    let mut set = workload(words.target(words.stateful_set, "web"), 4);
    set.first_ordinal = 5;
    let subsets = vec![subset("a", count(2)), subset("b", None)];
    let ws = spread(set.key.target, subsets);
    let mut server = Server::new(&words, ws, std::slice::from_ref(&set));
    for (id, name) in [(5, "web-5"), (6, "web-6"), (7, "web-7"), (8, "web-8")] {
        server.ask(create(id, asked(&set, Some(name), Labels::default()), None));
    }
    server.run();
    let subsets = [5, 6, 7, 8].map(|id| server.subset(id));
    let subsets = subsets.each_ref().map(|s| s.as_deref());
    assert_eq!(subsets, [Some("a"), Some("a"), Some("b"), Some("b")]);
    assert_eq!(server.now, secs(1000), "without a wait for news");
}

/// Kruise's StatefulSet skips them.
#[test]
fn reserved_ordinals_are_not_counted() {
    let words = words();
    let mut set = workload(words.target(words.stateful_set, "web"), 4);
    // 1 and 3, and ranges that overlap or lie outside.
    set.reserved_ordinals = [(3, 3), (1, 1), (3, 4), (90, 99)].into();
    let subsets = vec![subset("a", count(2)), subset("b", None)];
    let ws = spread(set.key.target, subsets);
    let mut server = Server::new(&words, ws, std::slice::from_ref(&set));
    for (id, name) in [(1, "web-0"), (2, "web-2"), (3, "web-5"), (4, "web-6")] {
        server.ask(create(id, asked(&set, Some(name), Labels::default()), None));
    }
    server.run();
    let subsets = [1, 2, 3, 4].map(|id| server.subset(id));
    let subsets = subsets.each_ref().map(|s| s.as_deref());
    assert_eq!(subsets, [Some("a"), Some("a"), Some("b"), Some("b")]);
    assert_eq!(server.now, secs(1000), "without a wait for news");
    assert_eq!(set.n_reserved(0, 100), 13);
    assert_eq!(set.n_reserved(2, 4), 1);
}

/// A controller of another kind may read costs; only its users know that.
#[test]
fn pods_of_custom_kinds_have_costs_where_that_is_asked_for() {
    let words = words();
    let target = TargetRef {
        kind: words.of("x"),
        ..words.web()
    };
    let web = workload(target, 3);
    let custom = |costs| {
        let subsets = vec![subset("a", count(1)), subset("b", None)];
        with(spread(target, subsets), |spec| {
            spec.any_kind = true;
            spec.deletion_costs = costs;
        })
    };
    for (asked_for, expected) in [
        (false, counts(&[("-", 3)])),
        (true, counts(&[("200", 1), ("-100", 1), ("100", 1)])),
    ] {
        let mut desk = Desk::new(&words, custom(asked_for), std::slice::from_ref(&web));
        for (name, at) in [("p0", "a"), ("p1", "a"), ("p2", "b")] {
            desk.add(pod(&web, name, Some(at)));
        }
        desk.run();
        assert_eq!(desk.costs(), expected);
        let mut server = Server::new(&words, custom(asked_for), std::slice::from_ref(&web));
        server.ask(create(1, asked(&web, Some("n1"), Labels::default()), None));
        server.run();
        let Verdict::Inject(injection) = &server.answer(1).verdict else {
            panic!("{:?}", server.answer(1).verdict);
        };
        assert_eq!(injection.cost, asked_for.then_some(200));
    }
}

#[test]
fn a_pod_moves_back_one_at_a_time_when_an_earlier_subset_has_room() {
    let words = words();
    let web = workload(words.web(), 3);
    let ws = with(
        spread(words.web(), vec![subset("a", count(2)), subset("b", None)]),
        |spec| {
            spec.move_back = Some(Span::from_secs(60));
        },
    );
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
    let new = |name: &str, subset, age: u64| {
        let mut pod = pod(&web, name, Some(subset));
        pod.created = secs(NOW - age);
        pod
    };
    desk.add(new("p0", "b", 100));
    desk.add(new("p1", "b", 90));
    let mut last = new("p2", "a", 10);
    last.ready_since = None;
    desk.add(last.clone());
    desk.run();
    assert_eq!(desk.deleted, [""; 0], "one is not ready");
    last.ready_since = Some(secs(NOW));
    desk.add(last);
    desk.pass(49);
    assert_eq!(desk.deleted, [""; 0], "the last change is not long ago");
    // Only time triggers it: that the pod became ready does not.
    desk.pass(11);
    assert_eq!(desk.deleted, ["p1"], "the youngest, for one place");
    desk.pass(600);
    assert_eq!(desk.deleted, ["p1"], "its replacement is on its way");
    let mut there = new("p3", "a", 0);
    there.created = desk.now;
    desk.add(there);
    desk.pass(600);
    assert_eq!(desk.deleted, ["p1"], "the first is full");
}
