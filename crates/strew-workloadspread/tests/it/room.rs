//! Simulated scheduling: spec/workloadspread §4.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_cluster::{NodeFact, PodClaim, PodFact, Unsupported};
use strew_model::{Labels, Prng, Symbol};
use strew_scheduler::Profile;
use strew_workloadspread::admission::{Input, Verdict};
use strew_workloadspread::{
    Adaptive, Finding, Fit, Ground, Marked, Marker, Room, Strategy, Subset, WorkloadFact,
    WorkloadSpread,
};

use crate::world::*;

fn adaptive(words: &Words, disable: bool) -> WorkloadSpread {
    let of_pool = |name: &str| Subset {
        required: Some(words.in_pool(name)),
        ..subset(name, None)
    };
    let mut ws = spread(words.web(), vec![of_pool("a"), of_pool("b")]);
    let mut spec = (*ws.spec).clone();
    spec.strategy = Strategy::Adaptive(Adaptive {
        disable_simulation: disable,
        ..Adaptive::default()
    });
    ws.spec = Arc::new(spec);
    ws
}

/// Room for ten pods of 1000m in pool a, and for many in b.
fn server(words: &Words, disable: bool) -> (Server, WorkloadFact) {
    let web = workload(words.web(), 500);
    let mut server = Server::new(words, adaptive(words, disable), std::slice::from_ref(&web));
    for (name, pool, cpu) in [("n0", "a", 6000), ("n1", "a", 4000), ("n2", "b", 1_000_000)] {
        server.tell(Input::NodeSet(Box::new(node(words, name, pool, cpu))));
    }
    (server, web)
}

fn ask(server: &mut Server, web: &WorkloadFact, id: u64, named: bool) {
    let name = format!("p{id}");
    let pod = asked(web, named.then_some(name.as_str()), Labels::default());
    server.ask(create(id, pod, Some(pod_fact(&name, 1000))));
}

fn counts(server: &Server) -> Vec<(String, usize)> {
    server.by_subset().into_iter().collect()
}

#[test]
fn room_for_ten_takes_ten_of_five_hundred_at_once() {
    let words = words();
    for named in [true, false] {
        let (mut server, web) = server(&words, false);
        for id in 0..500 {
            ask(&mut server, &web, id, named);
        }
        server.run();
        assert_eq!(counts(&server), [("a".into(), 10), ("b".into(), 490)]);
        assert_eq!(server.writes, 0, "unlimited subsets leave no entries");
    }
}

#[test]
fn without_simulation_everything_goes_to_the_first_subset() {
    let words = words();
    let (mut server, web) = server(&words, true);
    for id in 0..20 {
        ask(&mut server, &web, id, true);
    }
    server.run();
    assert_eq!(counts(&server), [("a".into(), 20)]);
}

fn see(server: &mut Server, uid: &str, name: &str, subset: &str, on: Option<Symbol>) {
    let mut fact = pod_fact(uid, 1000);
    fact.name = name.into();
    fact.node = on;
    let marker = Marker {
        workload_spread: "ws".into(),
        subset: subset.into(),
        uid: None,
    };
    fact.spec.node_affinity.terms = None;
    server.tell(Input::PodSet(Box::new(fact), Some(marker)));
}

#[test]
fn a_pod_holds_its_place_once_from_admission_to_node() {
    let words = words();
    for named in [true, false] {
        let (mut server, web) = server(&words, false);
        for id in 0..4 {
            ask(&mut server, &web, id, named);
        }
        server.run();
        assert_eq!(server.machine.room().unseen(), 4);
        // Two are seen unbound, then bound; the others are not seen yet.
        for id in 0..2 {
            let name = format!("p{id}");
            see(&mut server, &format!("u{id}"), &name, "a", None);
        }
        assert_eq!(server.machine.room().unseen(), 2);
        for id in 0..2 {
            let name = format!("p{id}");
            see(
                &mut server,
                &format!("u{id}"),
                &name,
                "a",
                Some(words.of("n0")),
            );
        }
        for id in 10..30 {
            ask(&mut server, &web, id, named);
        }
        server.run();
        assert_eq!(counts(&server), [("a".into(), 10), ("b".into(), 14)]);
        assert!(server.machine.room().cluster().audit().is_ok());
    }
}

#[test]
fn what_is_never_seen_lets_go_after_half_a_minute() {
    let words = words();
    let (mut server, web) = server(&words, false);
    for id in 0..10 {
        ask(&mut server, &web, id, true);
    }
    server.run();
    server.now = secs(1029);
    ask(&mut server, &web, 100, true);
    server.run();
    assert_eq!(server.subset(100).as_deref(), Some("b"));
    server.now = secs(1030);
    ask(&mut server, &web, 101, true);
    server.run();
    assert_eq!(server.subset(101).as_deref(), Some("a"));
}

#[test]
fn a_pod_that_goes_gives_its_place_to_one_that_waits_first() {
    let words = words();
    let (mut server, web) = server(&words, false);
    // Eleven marked pods wait in pool a: one of them finds no node.
    for id in 0..11 {
        let mut fact = pod_fact(&format!("u{id}"), 1000);
        fact.spec.node_affinity.terms = Some([words.in_pool("a")].into());
        let Marked::As(marker) = marked("a") else {
            panic!("a marker");
        };
        server.tell(Input::PodSet(Box::new(fact), Some(marker)));
    }
    ask(&mut server, &web, 1, true);
    server.run();
    assert_eq!(server.subset(1).as_deref(), Some("b"));
    server.tell(Input::PodGone("u0".into()));
    ask(&mut server, &web, 2, true);
    server.run();
    assert_eq!(
        server.subset(2).as_deref(),
        Some("b"),
        "the eleventh has the place"
    );
    server.tell(Input::PodGone("u1".into()));
    ask(&mut server, &web, 3, true);
    server.run();
    assert_eq!(server.subset(3).as_deref(), Some("a"));
}

/// Only simulated scheduling takes pods from the queues. A pod that finds no node stays queued for the next request.
#[test]
fn pods_that_waited_and_are_gone_leave_the_queues() {
    let words = words();
    let (mut server, web) = server(&words, false);
    let wait = |server: &mut Server, uid: &str| {
        let mut fact = pod_fact(uid, 7000);
        fact.spec.node_affinity.terms = Some([words.in_pool("a")].into());
        let Marked::As(marker) = marked("a") else {
            panic!("a marker");
        };
        server.tell(Input::PodSet(Box::new(fact), Some(marker)));
    };
    for asks in [false, true] {
        for id in 0..400 {
            let uid = format!("u{id}");
            wait(&mut server, &uid);
            if asks {
                ask(&mut server, &web, id, true);
                server.run();
            }
            server.tell(Input::PodGone(uid.into()));
        }
        let queued = server.machine.room().queued();
        assert!(queued < 200, "{queued}, {asks}");
    }
}

#[test]
fn unmarked_unbound_pods_hold_nothing() {
    let words = words();
    let (mut server, web) = server(&words, false);
    for id in 0..20 {
        let fact = pod_fact(&format!("u{id}"), 1000);
        server.tell(Input::PodSet(Box::new(fact), None));
    }
    ask(&mut server, &web, 1, true);
    server.run();
    assert_eq!(server.subset(1).as_deref(), Some("a"));
}

#[test]
fn a_virtual_node_takes_any_number() {
    let mut words = words();
    let kubelet = (
        words.names.intern("type"),
        words.names.intern("virtual-kubelet"),
    );
    let (mut server, web) = server(&words, false);
    let mut fact = node(&words, "n3", "a", 0);
    fact.labels = fact.labels.with([kubelet]);
    server.tell(Input::NodeSet(Box::new(fact)));
    for id in 0..30 {
        ask(&mut server, &web, id, true);
    }
    server.run();
    assert_eq!(counts(&server), [("a".into(), 30)]);
}

#[test]
fn where_nothing_fits_the_first_subset_with_room_keeps_the_pod_waiting_and_says_so() {
    let words = words();
    let (mut server, web) = server(&words, false);
    server.tell(Input::NodeGone(words.of("n2")));
    for id in 0..11 {
        ask(&mut server, &web, id, true);
    }
    server.run();
    assert_eq!(counts(&server), [("a".into(), 11)]);
    let choice = server.answer(10).choice.as_ref().unwrap();
    let findings: Vec<_> = choice
        .steps
        .iter()
        .map(|s| (&*s.subset, &s.finding))
        .collect();
    let [
        ("a", Finding::NoNode(_)),
        ("b", Finding::NoNode(unfit)),
        ("a", Finding::Taken(ground)),
    ] = findings.as_slice()
    else {
        panic!("{findings:?}");
    };
    assert_eq!(*ground, Ground::Fallback { missing: -1 });
    let message = unfit.message(2, server.machine.names());
    assert_eq!(
        message,
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    );
}

#[test]
fn a_conflict_gives_back_what_the_first_attempt_held() {
    let words = words();
    let mut ws = adaptive(&words, false);
    let mut spec = (*ws.spec).clone();
    spec.subsets[0].max_replicas = count(50);
    ws.spec = Arc::new(spec);
    let web = workload(words.web(), 500);
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    for (name, pool, cpu) in [("n0", "a", 10_000), ("n2", "b", 1_000_000)] {
        server.tell(Input::NodeSet(Box::new(node(&words, name, pool, cpu))));
    }
    server.conflicts = 2;
    for id in 0..40 {
        ask(&mut server, &web, id, true);
    }
    server.run();
    assert_eq!(counts(&server), [("a".into(), 10), ("b".into(), 30)]);
    let Verdict::Inject(injection) = &server.answer(0).verdict else {
        panic!("there is room");
    };
    assert_eq!(injection.subset().name, "a".into());
}

/// The cache of pods that found no node never changes an answer: a room that has seen everything come and go answers
/// like one that gets the present facts.
#[test]
fn a_room_with_a_past_answers_as_a_new_one() {
    let words = words();
    let mut answers = [0, 0];
    for seed in 0..20 {
        let mut dice = Prng::new(seed);
        let new = || Room::new(words.names.clone(), vec![Profile::default()]);
        let mut room = new();
        let mut nodes: BTreeMap<String, NodeFact> = BTreeMap::new();
        let mut pods: BTreeMap<String, PodFact> = BTreeMap::new();
        for _ in 0..150 {
            let n = format!("n{}", dice.index(4));
            let uid = format!("u{}", dice.index(12));
            match dice.index(8) {
                0 => {
                    let pool = if dice.chance(1, 2) { "a" } else { "b" };
                    let fact = node(&words, &n, pool, dice.between(1, 5) as i64 * 1000);
                    room.set_node(fact.clone());
                    nodes.insert(n, fact);
                }
                1 if dice.chance(1, 4) => {
                    room.node_gone(words.of(&n));
                    nodes.remove(&n);
                }
                2..=4 => {
                    let mut fact = pod_fact(&uid, dice.between(1, 3) as i64 * 700);
                    fact.node = Some(words.of(&n));
                    room.set_pod(fact.clone(), None);
                    pods.insert(uid, fact);
                }
                5 | 6 => {
                    room.pod_gone(&uid);
                    pods.remove(&uid);
                }
                _ => {}
            }
            let mut asked = pod_fact("asked", dice.between(1, 4) as i64 * 900);
            asked.spec.node_affinity.terms = Some([words.in_pool("a")].into());
            let mut fresh = new();
            nodes.values().for_each(|fact| fresh.set_node(fact.clone()));
            pods.values()
                .for_each(|fact| fresh.set_pod(fact.clone(), None));
            let fits = |fit: Fit| matches!(fit, Fit::Node { .. });
            let expected = fits(fresh.ask(asked.clone()));
            assert_eq!(fits(room.ask(asked)), expected, "seed {seed}");
            answers[usize::from(expected)] += 1;
        }
    }
    assert!(
        answers.iter().all(|&n| n > 500),
        "both answers occur: {answers:?}"
    );
}

#[test]
fn volumes_and_dynamic_resources_count_as_fitting() {
    let words = words();
    let (mut server, web) = server(&words, false);
    let mut fact = pod_fact("p1", 1000);
    let (claim, volume) = (words.of("x"), words.of("v1"));
    fact.spec.claims = [PodClaim {
        volume,
        named: Some(claim),
    }]
    .into();
    fact.spec.unsupported = [Unsupported::ResourceClaim(claim)].into();
    server.ask(create(
        1,
        asked(&web, Some("p1"), Labels::default()),
        Some(fact),
    ));
    server.run();
    assert_eq!(server.subset(1).as_deref(), Some("a"));
    let choice = server.answer(1).choice.as_ref().expect("a choice");
    assert!(matches!(
        choice.ground(),
        Some(Ground::Node {
            is_virtual: false,
            ..
        })
    ));
}

#[test]
fn a_pod_bound_elsewhere_makes_those_that_waited_there_move() {
    let words = words();
    let (mut server, web) = server(&words, false);
    // Pods that wait hold eight of ten places; then another pod takes five of n0's six cores.
    for id in 0..8 {
        ask(&mut server, &web, id, true);
    }
    server.run();
    let mut stranger = pod_fact("stranger", 5000);
    stranger.node = Some(words.of("n0"));
    server.tell(Input::PodSet(Box::new(stranger), None));
    // Five places are left for the eight that wait: none for one more.
    ask(&mut server, &web, 100, true);
    server.run();
    assert_eq!(server.subset(100).as_deref(), Some("b"));
}

/// A WorkloadSpread whose subsets have no nodes, and a cluster of 2,000 nodes.
fn hostile(words: &Words, subsets: Vec<Subset>) -> (Server, WorkloadFact) {
    let mut ws = spread(words.web(), subsets);
    let mut spec = (*ws.spec).clone();
    spec.strategy = Strategy::Adaptive(Adaptive::default());
    ws.spec = Arc::new(spec);
    let web = workload(words.web(), 500);
    let mut server = Server::new(words, ws, std::slice::from_ref(&web));
    for i in 0..2000 {
        let fact = node(words, &format!("n{i}"), "b", 4000);
        server.tell(Input::NodeSet(Box::new(fact)));
    }
    (server, web)
}

/// A pod of 64 terms.
fn of_many_terms(words: &Words, name: &str) -> PodFact {
    let mut fact = pod_fact(name, 1000);
    let preferred = (1..=64).map(|weight| (weight, words.in_pool("c")));
    fact.spec.preferred_nodes = preferred.collect();
    fact
}

/// Before, a review of a WorkloadSpread with 300 such subsets was 300 decisions of the scheduler.
#[test]
fn a_request_has_a_bound_of_work_and_then_the_answer_is_unknown() {
    let words = words();
    let subsets = (0..300).map(|i| Subset {
        required: Some(words.in_pool("a")),
        ..subset(&format!("s{i}"), None)
    });
    let (mut server, web) = hostile(&words, subsets.collect());
    for id in 0..2 {
        let pod = asked(&web, Some(&format!("p{id}")), Labels::default());
        let fact = of_many_terms(&words, &format!("p{id}"));
        server.ask(create(id, pod, Some(fact)));
        server.run();
        let choice = server
            .answer(id)
            .choice
            .as_ref()
            .expect("a subset is chosen");
        let asked = choice.steps.len();
        assert!((100..150).contains(&asked), "{asked} subsets were asked");
        assert_eq!(choice.ground(), Some(&Ground::RoomUnasked { missing: -1 }));
    }
}

/// Before, all requests that waited for a write were decided at once, however long that took.
#[test]
fn requests_that_are_much_work_share_no_write_without_end() {
    let words = words();
    let subsets = vec![
        Subset {
            required: Some(words.in_pool("b")),
            ..subset("first", count(1000))
        },
        subset("rest", None),
    ];
    let (mut server, web) = hostile(&words, subsets);
    for id in 0..300 {
        let name = format!("p{id}");
        let pod = asked(&web, Some(&name), Labels::default());
        server.ask(create(id, pod, Some(of_many_terms(&words, &name))));
    }
    server.run();
    assert_eq!(counts(&server), [("first".into(), 300)]);
    assert!((3..=4).contains(&server.writes), "{} writes", server.writes);
}
