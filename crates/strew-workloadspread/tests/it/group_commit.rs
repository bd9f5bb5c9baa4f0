//! One write for many requests, conflicts, and answers that must not come too early.

use strew_model::{Labels, Span};
use strew_workloadspread::NoPatches;
use strew_workloadspread::admission::{
    Denial, Effect, Input, Limits, Outcome, RequestId, Untouched, Verdict,
};

use crate::admission::with_rows;
use crate::world::*;

fn server() -> (Server, strew_workloadspread::WorkloadFact) {
    let words = words();
    let web = workload(words.web(), 10);
    let ws = spread(words.web(), vec![subset("a", count(3)), subset("b", None)]);
    (Server::new(&words, ws, std::slice::from_ref(&web)), web)
}

fn ask_for(
    server: &mut Server,
    web: &strew_workloadspread::WorkloadFact,
    ids: std::ops::Range<u64>,
) {
    for i in ids {
        let name = format!("p{i}");
        server.ask(create(i, asked(web, Some(&name), Labels::default()), None));
    }
}

#[test]
fn a_burst_shares_one_write_and_waits_for_it() {
    let (mut server, web) = server();
    ask_for(&mut server, &web, 0..100);
    let Some(Effect::WriteStatus { id, version, .. }) = server.machine.poll_effect(&mut NoPatches)
    else {
        panic!("the write comes first");
    };
    assert!(
        server.machine.poll_effect(&mut NoPatches).is_none(),
        "nobody is answered before it"
    );
    // Requests that come in the meantime wait for the next batch, which uses the result of this write.
    ask_for(&mut server, &web, 100..110);
    assert!(server.machine.poll_effect(&mut NoPatches).is_none());
    server.tell(Input::Outcome(id, Outcome::Written(version + 1)));
    server.run();
    assert_eq!(
        server.writes, 0,
        "the second batch overflows, which needs no write"
    );
    let counts: Vec<_> = server.by_subset().into_iter().collect();
    assert_eq!(counts, [("a".into(), 3), ("b".into(), 107)]);
}

#[test]
fn conflicts_are_tried_again_three_times_and_then_refused() {
    for (conflicts, answered) in [(1, true), (3, true), (4, false)] {
        let (mut server, web) = server();
        server.conflicts = conflicts;
        ask_for(&mut server, &web, 0..1);
        server.run();
        let answer = server.answer(0);
        match &answer.verdict {
            Verdict::Inject(injection) => {
                assert!(answered);
                assert_eq!(
                    (&*injection.marker.subset, answer.conflicts),
                    ("a", conflicts as u32)
                );
            }
            Verdict::Deny(why) => assert_eq!((*why, answered), (Denial::Conflicts(4), false)),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.writes, usize::from(answered));
        let pauses = [0, 10, 60, 310];
        let passed = server.now.since(secs(1000)).0 / 1_000_000;
        let expected = pauses[conflicts.min(3)];
        assert!(
            (expected..=expected * 11 / 10).contains(&passed),
            "{passed} ms"
        );
    }
}

#[test]
fn a_spread_that_goes_during_a_conflict_leaves_its_pods_as_they_are() {
    let (mut server, web) = server();
    ask_for(&mut server, &web, 0..2);
    let Some(Effect::WriteStatus { id, .. }) = server.machine.poll_effect(&mut NoPatches) else {
        panic!("the write comes first");
    };
    server.tell(Input::Outcome(id, Outcome::Conflict));
    server.now = server.machine.next_wake().unwrap();
    server.tell(Input::Tick);
    let Some(Effect::ReadSpread { id, .. }) = server.machine.poll_effect(&mut NoPatches) else {
        panic!("the pause is over");
    };
    server.tell(Input::Outcome(id, Outcome::Gone));
    server.run();
    for i in 0..2 {
        let verdict = &server.answer(i).verdict;
        assert!(
            matches!(verdict, Verdict::Untouched(Untouched::SpreadGone)),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_write_that_fails_or_is_lost_refuses_who_waits_for_it() {
    for lost in [false, true] {
        let (mut server, web) = server();
        ask_for(&mut server, &web, 0..2);
        let Some(Effect::WriteStatus { id, .. }) = server.machine.poll_effect(&mut NoPatches)
        else {
            panic!("the write comes first");
        };
        match lost {
            false => server.tell(Input::Outcome(id, Outcome::Failed)),
            true => {
                server.now = server.machine.next_wake().unwrap();
                assert_eq!(server.now, secs(1010));
                server.tell(Input::Tick);
            }
        }
        server.run();
        let expected = if lost { Denial::Lost } else { Denial::Failed };
        for i in 0..2 {
            let verdict = &server.answer(i).verdict;
            assert!(
                matches!(verdict, Verdict::Deny(why) if *why == expected),
                "{verdict:?}"
            );
        }
        // An outcome that came too late is ignored.
        server.tell(Input::Outcome(id, Outcome::Written(99)));
        server.answers.clear();
        ask_for(&mut server, &web, 5..6);
        server.run();
        assert_eq!(server.subset(5).as_deref(), Some("a"));
    }
}

/// The first write of the server, which the API server does not answer.
fn unanswered(server: &mut Server, outcome: Outcome, is_stored: bool) {
    let Some(Effect::WriteStatus { id, status, .. }) = server.machine.poll_effect(&mut NoPatches)
    else {
        panic!("the write comes first");
    };
    if is_stored {
        server.ws.version += 1;
        server.ws.status = status;
    }
    server.tell(Input::Outcome(id, outcome));
}

#[test]
fn a_write_without_an_answer_is_tried_again_while_the_review_waits() {
    for (outcome, is_stored) in [
        (Outcome::Unsent, false),
        (Outcome::Lost, false),
        (Outcome::Lost, true),
    ] {
        let (mut server, web) = server();
        // The API server has given one of the pods its name.
        ask_for(&mut server, &web, 0..1);
        server.ask(create(1, asked(&web, None, Labels::default()), None));
        unanswered(&mut server, outcome.clone(), is_stored);
        server.run();
        let subsets = [0, 1].map(|i| server.subset(i));
        assert_eq!(subsets, [Some("a".into()), Some("a".into())], "{outcome:?}");
        let Verdict::Inject(injection) = &server.answer(1).verdict else {
            panic!("it has a subset");
        };
        assert_eq!(injection.marker.uid.as_deref(), Some("fresh-1"));
        let row = &server.ws.status.rows(&injected_revision(&server))[0];
        assert_eq!((row.missing, row.creating.len()), (1, 2), "{outcome:?}");
        assert_eq!(server.writes, usize::from(!is_stored));
    }
}

fn injected_revision(server: &Server) -> std::sync::Arc<str> {
    server.answer(0).revision.clone().expect("it has one")
}

#[test]
fn a_read_without_an_answer_is_tried_again_until_the_review_is_too_old() {
    let (mut server, web) = server();
    ask_for(&mut server, &web, 0..1);
    unanswered(&mut server, Outcome::Unsent, false);
    let mut n_reads = 0;
    while server.machine.waiting() > 0 {
        server.now = server.machine.next_wake().expect("a pause");
        server.tell(Input::Tick);
        while let Some(effect) = server.machine.poll_effect(&mut NoPatches) {
            match effect {
                Effect::ReadSpread { id, .. } => {
                    n_reads += 1;
                    server.tell(Input::Outcome(id, Outcome::Failed));
                }
                Effect::Answer(answer) => {
                    assert!(matches!(answer.verdict, Verdict::Deny(Denial::Failed)));
                }
                Effect::WriteStatus { .. } => panic!("the object is read first"),
            }
        }
    }
    assert!((18..=20).contains(&n_reads), "{n_reads} reads");
    assert!(server.now >= secs(1002), "{:?}", server.now);
}

/// Before, each review waited 2 s for its refusal while another replica could have answered.
#[test]
fn a_replica_that_is_cut_off_for_long_refuses_at_once_and_tries_again_when_it_is_back() {
    let (mut server, web) = server();
    let refused_after = |server: &mut Server, i: u64| {
        ask_for(server, &web, i..i + 1);
        let began = server.now;
        let waits = server.machine.waiting();
        while server.machine.waiting() == waits {
            while let Some(effect) = server.machine.poll_effect(&mut NoPatches) {
                match effect {
                    Effect::ReadSpread { id, .. } => {
                        server.tell(Input::Outcome(id, Outcome::Failed));
                    }
                    Effect::WriteStatus { id, .. } => {
                        server.tell(Input::Outcome(id, Outcome::Unsent));
                    }
                    Effect::Answer(answer) => {
                        assert!(matches!(answer.verdict, Verdict::Deny(Denial::Failed)));
                        return server.now.since(began);
                    }
                }
            }
            server.now = server.machine.next_wake().expect("a pause");
            server.tell(Input::Tick);
        }
        panic!("it has an answer");
    };
    assert!(refused_after(&mut server, 0) >= Span::from_secs(2));
    server.now = server.now + Span::from_secs(2);
    assert_eq!(refused_after(&mut server, 1), Span(0));
    // It is back: one broken connection is no refusal.
    ask_for(&mut server, &web, 2..3);
    server.run();
    assert_eq!(server.subset(2).as_deref(), Some("a"));
    ask_for(&mut server, &web, 3..4);
    unanswered(&mut server, Outcome::Unsent, false);
    server.run();
    assert_eq!(server.subset(3).as_deref(), Some("a"));
}

#[test]
fn a_deletion_that_may_be_in_the_ledger_passes() {
    for (outcome, why) in [
        (Outcome::Lost, None),
        (Outcome::Failed, Some(Denial::Failed)),
    ] {
        let words = words();
        let web = workload(words.web(), 10);
        let ws = spread(words.web(), vec![subset("a", count(3)), subset("b", None)]);
        let mut full = row("a", 0);
        full.replicas = 3;
        let ws = with_rows(ws, vec![full, row("b", -1)]);
        let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
        let pod = asked(&web, Some("p1"), Labels::default());
        server.ask(delete(1, pod, "a"));
        // Behind the deletion, into the place that it frees.
        ask_for(&mut server, &web, 2..3);
        let Some(Effect::WriteStatus { id, .. }) = server.machine.poll_effect(&mut NoPatches)
        else {
            panic!("the write comes first");
        };
        // So late that the write is not tried again.
        server.now = secs(1002);
        server.tell(Input::Outcome(id, outcome.clone()));
        server.run();
        let deleted = &server.answer(1).verdict;
        match why {
            None => assert!(matches!(deleted, Verdict::Counted), "{deleted:?}"),
            Some(why) => assert!(
                matches!(deleted, Verdict::Deny(is) if *is == why),
                "{deleted:?}"
            ),
        }
        let created = &server.answer(2).verdict;
        assert!(matches!(created, Verdict::Deny(_)), "{created:?}");
    }
}

#[test]
fn an_answer_is_repeated_for_the_same_pod() {
    let (mut server, web) = server();
    ask_for(&mut server, &web, 0..3);
    server.run();
    let again = create(50, asked(&web, Some("p1"), Labels::default()), None);
    server.ask(again);
    server.run();
    assert_eq!(
        server.subset(50).as_deref(),
        Some("a"),
        "although the subset is full"
    );
    assert_eq!(server.writes, 1);
}

#[test]
fn a_call_that_was_given_up_is_not_decided_on_any_more() {
    let (mut server, web) = server();
    ask_for(&mut server, &web, 0..1);
    let Some(Effect::WriteStatus { id, version, .. }) = server.machine.poll_effect(&mut NoPatches)
    else {
        panic!("the write comes first");
    };
    // A deletion comes while the write is under way, and its client gives up and asks another replica.
    let pod = asked(&web, Some("old"), Labels::default());
    server.ask(delete(7, pod, "a"));
    ask_for(&mut server, &web, 1..2);
    server.tell(Input::GivenUp(RequestId(7)));
    assert_eq!(server.machine.waiting(), 2);
    server.ws.version += 1;
    server.tell(Input::Outcome(id, Outcome::Written(version + 1)));
    server.run();
    assert!(!server.answers.contains_key(&RequestId(7)));
    let rows = server.ws.status.rows("versionIgnored");
    assert!(rows[0].deleting.is_empty(), "{rows:?}");
    assert!(server.answers.contains_key(&RequestId(1)));
    // A decided request is not taken back.
    server.tell(Input::GivenUp(RequestId(1)));
    assert_eq!(server.machine.waiting(), 0);
}

/// Pods that come fast share writes, and none waits for long; pods that come slowly do not wait.
#[test]
fn who_comes_fast_is_gathered_and_who_comes_slowly_is_not() {
    // Milliseconds between two of a hundred pods, the number of writes, and the longest wait of a pod.
    for (gap_ms, written, waited_ms) in [(10, 100..=100, 4), (3, 8..=20, 52), (1, 5..=14, 24)] {
        let words = words();
        let web = workload(words.web(), 1_000);
        let ws = spread(words.web(), vec![subset("a", count(1_000))]);
        let limits = Limits {
            gather_within: Span::from_millis(80),
            ..alone()
        };
        let mut server = Server::with(&words, ws, std::slice::from_ref(&web), limits);
        let (mut writes, mut waited) = (0, 0);
        let mut asked_at = Vec::new();
        let mut under_way = None;
        for ms in 0..10_000u64 {
            server.now = secs(1000) + Span::from_millis(ms);
            if ms % gap_ms == 0 && asked_at.len() < 100 {
                let i = asked_at.len() as u64;
                asked_at.push(ms);
                ask_for(&mut server, &web, i..i + 1);
            }
            server.tell(Input::Tick);
            // A write takes four milliseconds.
            if let Some((id, version, _)) =
                under_way.take_if(|(_, _, due): &mut (_, _, u64)| *due <= ms)
            {
                server.tell(Input::Outcome(id, Outcome::Written(version + 1)));
            }
            while let Some(effect) = server.machine.poll_effect(&mut NoPatches) {
                match effect {
                    Effect::WriteStatus { id, version, .. } => {
                        writes += 1;
                        under_way = Some((id, version, ms + 4));
                    }
                    Effect::Answer(answer) => {
                        let since = asked_at[answer.request.0 as usize];
                        waited = waited.max(ms - since);
                    }
                    Effect::ReadSpread { .. } => panic!("nobody else writes"),
                }
            }
        }
        assert_eq!(server.machine.waiting(), 0);
        assert!(written.contains(&writes), "{gap_ms} ms: {writes} writes");
        assert!(waited <= waited_ms, "{gap_ms} ms: {waited} ms");
    }
}
