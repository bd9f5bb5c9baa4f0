//! Pods without a marker are adopted by the nodes that they are on: spec/workloadspread §5.4, §9.2.

use std::sync::Arc;

use strew_model::{Effect, Interner, Labels, Symbol, Taint, Toleration, TolerationOperator};
use strew_workloadspread::admission::RequestId;
use strew_workloadspread::controller::Input;
use strew_workloadspread::controller::assign::score;
use strew_workloadspread::{Marked, Marker, PatchId, PodPatcher, Subset};

use crate::desk::*;
use crate::world::*;

/// Patches that are applied already to the pods named here.
struct InEffect(&'static [&'static str]);

impl PodPatcher for InEffect {
    fn candidate(
        &mut self,
        _: &mut Interner,
        _: RequestId,
        pod: &strew_cluster::PodFact,
        _: &Subset,
    ) -> Option<strew_cluster::PodFact> {
        Some(pod.clone())
    }

    fn is_in_effect(&mut self, pod_uid: &str, _: PatchId) -> bool {
        self.0.contains(&pod_uid)
    }
}

fn node_of(desk: &mut Desk, words: &Words, name: &str, pool: &str, taints: Box<[Taint]>) {
    let labels = Labels::new(vec![(words.pool, words.of(pool))]);
    desk.tell(Input::NodeSet(words.of(name), labels, taints));
}

fn taint(words: &Words) -> Taint {
    Taint {
        key: words.of("x"),
        value: Symbol::default(),
        effect: Effect::PreferNoSchedule,
    }
}

fn tolerates(words: &Words) -> Toleration {
    Toleration {
        key: Some(words.of("x")),
        operator: TolerationOperator::Exists,
        value: Symbol::default(),
        effect: None,
    }
}

/// A pod without a marker (it was Pending when the WorkloadSpread came, or the webhook was away) is adopted when it
/// gets a node that is a free place's: the webhook would give that place to another pod.
#[test]
fn a_pod_without_a_marker_takes_a_free_place_as_soon_as_it_has_a_node() {
    let words = words();
    let mut deployment = workload(words.target(words.deployment, "web"), 3);
    deployment.template = None;
    let mut rs = workload(words.target(words.replica_set, "web-1"), 3);
    rs.controller = Some(controller(&deployment));
    let subsets = vec![
        Subset {
            required: Some(words.in_pool("a")),
            ..subset("a", count(2))
        },
        Subset {
            required: Some(words.in_pool("b")),
            ..subset("b", None)
        },
    ];
    let ws = spread(deployment.key.target, subsets);
    let mut desk = Desk::new(&words, ws, &[deployment, rs.clone()]);
    node_of(&mut desk, &words, "n1", "a", Box::default());
    let mut stranger = pod(&rs, "p0", None);
    stranger.node = None;
    desk.add(stranger.clone());
    desk.run();
    assert_eq!(desk.overall(), ["a 0/2", "b 0/-1"]);
    stranger.node = Some(words.of("n1"));
    desk.add(stranger);
    desk.run();
    assert_eq!(desk.overall(), ["a 1/1", "b 0/-1"]);
    let adopted = desk.pods.values().next().expect("the pod is there");
    assert_eq!(adopted.marker.marker().map(|m| &*m.subset), Some("a"));

    // It is counted off when it goes.
    desk.lose("p0");
    desk.run();
    assert_eq!(desk.overall(), ["a 0/2", "b 0/-1"]);
}

/// Kruise's suite, "one subset =2": pods that found no room in any subset have no deletion cost when it looks.
#[test]
fn a_pod_without_a_marker_that_takes_no_free_place_waits_for_the_next_sync() {
    let words = words();
    let web = workload(words.web(), 6);
    let limited = |name, limit| Subset {
        required: Some(words.in_pool(name)),
        ..subset(name, limit)
    };
    let subsets = vec![limited("a", count(1)), limited("b", None)];
    let ws = spread(words.web(), subsets);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
    for (node, pool) in [("n0", "a"), ("n1", "b"), ("n2", "c")] {
        node_of(&mut desk, &words, node, pool, Box::default());
    }
    desk.add(pod(&web, "p0", Some("a")));
    desk.run();
    assert_eq!(desk.overall(), ["a 1/0", "b 0/-1"]);
    let synced = desk.machine.counters().synced;
    let on = |name, node| {
        let mut pod = pod(&web, name, None);
        pod.node = Some(words.of(node));
        pod
    };
    // In a full subset, in an unlimited one, in none, without a node, and one that goes.
    for (name, node) in [
        ("full", "n0"),
        ("open", "n1"),
        ("none", "n2"),
        ("gone", "n2"),
    ] {
        let mut unbound = on(name, node);
        unbound.node = None;
        desk.add(unbound);
        desk.add(on(name, node));
    }
    let mut unbound = on("unbound", "n0");
    unbound.node = None;
    desk.add(unbound);
    desk.lose("gone");
    desk.pass(29);
    assert_eq!(desk.machine.counters().synced, synced);
    assert_eq!(desk.costs(), counts(&[("200", 1), ("-", 4)]));
    desk.pass(1);
    assert_eq!(desk.overall(), ["a 2/0", "b 1/-1"]);
    let expected = [("200", 1), ("-100", 1), ("100", 1), ("-300", 2)];
    assert_eq!(desk.costs(), counts(&expected));

    // A place becomes free: the next pod on such a node takes it at once.
    for name in ["p0", "full"] {
        desk.lose(name);
        desk.run();
    }
    desk.add(on("late", "n0"));
    desk.run();
    assert_eq!(desk.overall(), ["a 1/0", "b 1/-1"]);
    assert_eq!(desk.cost("late"), "200");
}

#[test]
fn pods_that_were_there_before_are_adopted_by_their_node() {
    let words = words();
    let web = workload(words.web(), 10);
    let mut a = Subset {
        required: Some(words.in_pool("a")),
        patch: Some(PatchId(7)),
        ..subset("a", count(5))
    };
    a.tolerations = [tolerates(&words)].into();
    let b = Subset {
        required: Some(words.in_pool("b")),
        ..subset("b", None)
    };
    for ignored in [false, true] {
        let mut ws = spread(words.web(), vec![a.clone(), b.clone()]);
        ws.ignore_patch_of_existing = ignored;
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
        node_of(&mut desk, &words, "n0", "a", [taint(&words)].into());
        node_of(&mut desk, &words, "n1", "b", Box::default());
        node_of(&mut desk, &words, "n2", "c", Box::default());
        let foreign = Marked::As(Marker {
            workload_spread: "other".into(),
            subset: "a".into(),
            uid: None,
        });
        for (name, node, marker) in [
            ("a0", "n0", Marked::No),
            ("a1", "n0", Marked::No),
            ("a2", "n0", foreign.clone()),
            ("a3", "n0", foreign),
            ("a4", "n0", marked("a")),
            ("a5", "n0", marked("a")),
            ("b0", "n1", marked("b")),
            ("b1", "n1", marked("b")),
            ("c0", "n2", Marked::Unreadable),
            ("d0", "n0", marked("gone")),
        ] {
            let mut pod = pod(&web, name, None);
            pod.node = Some(words.of(node));
            pod.marker = marker;
            desk.add(pod);
        }
        desk.run_with(&mut InEffect(&[]));
        assert_eq!(desk.overall(), ["a 6/0", "b 2/-1"]);
        let expected = [("200", 5), ("-100", 1), ("100", 2), ("-300", 2)];
        assert_eq!(
            desk.costs(),
            counts(&expected),
            "two orphans below -200, one surplus"
        );
        assert_eq!(desk.patches_of, if ignored { vec![] } else { vec![7; 4] });
        assert_eq!(desk.pods["uid-d0"].marker, marked("gone"), "left alone");
    }
}

#[test]
fn a_preferred_node_counts_more_than_a_patch_in_effect_and_that_more_than_room() {
    let words = words();
    let web = workload(words.web(), 10);
    let preferring = |weight| Subset {
        preferred: [(weight, words.in_pool("a"))].into(),
        patch: Some(PatchId(1)),
        ..subset("s", count(5))
    };
    let mut strict = preferring(100);
    strict.required = Some(words.in_pool("b"));
    let plain = |pod: &str| {
        let mut p = pod_on(&web, &words, pod);
        p.tolerations = Box::default();
        p
    };
    let node = (
        Labels::new(vec![(words.pool, words.of("a"))]),
        Box::default(),
    );
    let tainted = (node.0.clone(), [taint(&words)].into());
    let mut in_effect = InEffect(&["uid-p0"]);
    for (name, node, subset, quota, expected) in [
        ("p0", &node, preferring(100), 0, Some(10_010)),
        ("p0", &node, preferring(100), 1, Some(10_011)),
        ("p1", &node, preferring(100), 0, Some(10_000)),
        ("p0", &node, preferring(0), 0, Some(10)),
        ("p0", &node, strict, 0, None),
        ("p0", &tainted, preferring(100), 0, None),
    ] {
        let pod = plain(name);
        let at = (words.of("n0"), node);
        let got = score(&pod, at, &subset, quota, &words.names, &mut in_effect);
        assert_eq!(got, expected);
    }
}

fn pod_on(
    web: &strew_workloadspread::WorkloadFact,
    words: &Words,
    name: &str,
) -> strew_workloadspread::Pod {
    let mut pod = pod(web, name, None);
    pod.node = Some(words.of("n0"));
    pod
}

#[test]
fn ties_go_to_the_earlier_subset_and_a_full_one_yields() {
    let words = words();
    let web = workload(words.web(), 10);
    let subsets = vec![subset("a", count(2)), subset("b", None)];
    let mut desk = Desk::new(
        &words,
        spread(words.web(), subsets),
        std::slice::from_ref(&web),
    );
    node_of(&mut desk, &words, "n0", "a", Box::default());
    for i in 0..5 {
        desk.add(pod_on(&web, &words, &format!("p{i}")));
    }
    let mut unbound = pod_on(&web, &words, "p7");
    unbound.node = None;
    desk.add(unbound);
    desk.run();
    assert_eq!(desk.overall(), ["a 2/0", "b 3/-1"]);
    assert_eq!(desk.cost("p7"), "-300", "without a node nobody can tell");
}

#[test]
fn who_owns_the_pods_depends_on_the_kind() {
    let words = words();
    let deployment = workload(words.target(words.deployment, "web"), 3);
    let mut rs = workload(words.target(words.replica_set, "web-1"), 0);
    rs.controller = Some(controller(&deployment));
    let mut gone = rs.clone();
    gone.key = workload(words.target(words.replica_set, "web-2"), 0).key;
    gone.uid = "gone".into();
    gone.deleting = true;
    let ws = spread(deployment.key.target, vec![subset("a", count(9))]);
    let mut desk = Desk::new(&words, ws, &[deployment.clone(), rs.clone(), gone.clone()]);
    desk.add(pod(&rs, "p0", Some("a")));
    desk.add(pod(&gone, "p1", Some("a")));
    desk.add(pod(&deployment, "p2", Some("a")));
    desk.run();
    assert_eq!(desk.overall(), ["a 1/8"], "only those of live ReplicaSets");
    // No replicas asked for: the pod that still exists counts nevertheless.
    let mut none = deployment.clone();
    none.replicas = Some(0);
    desk.tell(Input::WorkloadSet(Box::new(none)));
    desk.run();
    assert_eq!(desk.overall(), ["a 1/8"]);
    desk.lose("p0");
    desk.run();
    assert_eq!(desk.overall(), ["a 0/9"]);
    let finished = Arc::clone(&desk.ws.status);
    assert!(finished.versioned.is_empty());
}
