//! A patch of a label by which an owner finds its pods is not applied: the owner would create others without end.

use strew_cluster::PodFact;
use strew_model::{Labels, Selector, Symbol};
use strew_workloadspread::admission::Verdict;
use strew_workloadspread::controller::EventKind;
use strew_workloadspread::{
    LabelPatch, Marked, PatchId, Strategy, Subset, WorkloadFact, WorkloadSpread,
};

use crate::desk::{Desk, pod};
use crate::world::{Server, Words, asked, count, create, marked, spread, subset, words, workload};

/// A workload that finds its pods by `x=a`.
fn web(words: &Words) -> WorkloadFact {
    let labels = Labels::new(vec![(words.of("x"), words.of("a"))]);
    WorkloadFact {
        finds: Some(Selector::of_labels(labels.iter())),
        ..workload(words.web(), 10)
    }
}

fn labels(words: &Words) -> Labels {
    Labels::new(vec![
        (words.of("x"), words.of("a")),
        (words.of("pool"), words.of("a")),
    ])
}

/// Two subsets, of which the first has a patch of these labels.
fn patching(words: &Words, replaces: bool, set: &[(Symbol, Option<Symbol>)]) -> WorkloadSpread {
    let patched = Subset {
        patch: Some(PatchId(7)),
        labels: Some(LabelPatch {
            replaces,
            labels: set.into(),
        }),
        required: Some(words.in_pool("a")),
        ..subset("a", count(5))
    };
    let other = Subset {
        required: Some(words.in_pool("b")),
        ..subset("b", None)
    };
    spread(words.web(), vec![patched, other])
}

/// Patches, and whether a pod is still found after each.
fn patches(words: &Words) -> Vec<(WorkloadSpread, bool)> {
    let [x, pool, a, b] = ["x", "pool", "a", "b"].map(|text| words.of(text));
    vec![
        (patching(words, false, &[(x, Some(b))]), false),
        (patching(words, false, &[(x, None)]), false),
        (patching(words, true, &[(pool, Some(b))]), false),
        (patching(words, false, &[(pool, Some(b))]), true),
        (patching(words, false, &[(pool, None)]), true),
        (patching(words, true, &[(x, Some(a))]), true),
    ]
}

#[test]
fn admission_leaves_a_new_pod_the_labels_by_which_it_is_found() {
    let words = words();
    let web = web(&words);
    for (ws, is_found) in patches(&words) {
        let patch = ws.spec.subsets[0].labels.clone();
        let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
        server.ask(create(1, asked(&web, Some("n1"), labels(&words)), None));
        server.flow();
        let Verdict::Inject(injection) = &server.answer(1).verdict else {
            panic!("it gets a subset");
        };
        assert_eq!(
            &*injection.subset().name,
            "a",
            "the pod has its subset all the same"
        );
        assert_eq!(injection.is_patched, is_found, "{patch:?}");
    }
}

/// If no owner is known to find pods by labels, no owner loses them.
#[test]
fn an_owner_that_does_not_find_the_pod_as_it_is_does_not_count() {
    let words = words();
    let (ws, _) = patches(&words).swap_remove(0);
    let unknown = workload(words.web(), 10);
    let other = WorkloadFact {
        finds: Some(Selector::of_labels([(words.of("x"), words.of("c"))])),
        ..unknown.clone()
    };
    for owner in [unknown, other] {
        let mut server = Server::new(&words, ws.clone(), std::slice::from_ref(&owner));
        server.ask(create(1, asked(&owner, Some("n1"), labels(&words)), None));
        server.flow();
        let Verdict::Inject(injection) = &server.answer(1).verdict else {
            panic!("it gets a subset");
        };
        assert!(injection.is_patched);
    }
}

/// If a patch is not applied, simulated scheduling judges the pod without it, and calls no patcher.
#[test]
fn simulated_scheduling_judges_the_pod_that_will_be() {
    let words = words();
    let web = web(&words);
    let (mut ws, _) = patches(&words).swap_remove(0);
    let spec = std::sync::Arc::make_mut(&mut ws.spec);
    spec.strategy = Strategy::Adaptive(Default::default());
    let mut server = Server::new(&words, ws, std::slice::from_ref(&web));
    let node = crate::world::node(&words, "n0", "a", 4_000);
    server.tell(strew_workloadspread::admission::Input::NodeSet(Box::new(
        node,
    )));
    let fact = PodFact {
        labels: labels(&words),
        ..crate::world::pod_fact("n1", 100)
    };
    server.ask(create(
        1,
        asked(&web, Some("n1"), labels(&words)),
        Some(fact),
    ));
    // `NoPatches` merges no patch: with one, the answer would be "unknown".
    server.flow();
    let choice = server.answer(1).choice.as_ref().expect("a choice");
    let ground = format!("{:?}", choice.ground());
    assert!(ground.contains("Node {"), "{ground}");
}

#[test]
fn the_controller_says_which_patch_is_not_applied() {
    let words = words();
    let web = web(&words);
    for (ws, is_found) in patches(&words) {
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
        let mut one = pod(&web, "a0", None);
        (one.labels, one.marker) = (labels(&words), marked("a"));
        desk.add(one);
        desk.run();
        let said: Vec<&str> = desk
            .ws
            .status
            .unpatched
            .keys()
            .map(|name| &**name)
            .collect();
        let expected: &[&str] = if is_found { &[] } else { &["a"] };
        assert_eq!(said, expected);
        let events = desk.events.iter();
        let told = events.filter(|(kind, _)| *kind == EventKind::PatchNotApplied);
        assert_eq!(told.count(), expected.len(), "once");
    }
}

#[test]
fn a_pod_that_is_adopted_keeps_the_labels_by_which_it_is_found() {
    let words = words();
    let web = web(&words);
    for (ws, is_found) in patches(&words) {
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
        let pool = Labels::new(vec![(words.pool, words.of("a"))]);
        let node = (words.of("n0"), pool, Box::default());
        desk.tell(strew_workloadspread::controller::Input::NodeSet(
            node.0, node.1, node.2,
        ));
        let mut one = pod(&web, "a0", None);
        (one.labels, one.marker, one.node) = (labels(&words), Marked::No, Some(words.of("n0")));
        desk.add(one);
        desk.run();
        assert_eq!(desk.pods["uid-a0"].marker, marked("a"), "it is adopted");
        let patched: &[u64] = if is_found { &[7] } else { &[] };
        assert_eq!(desk.patches_of, patched);
    }
}
