//! Several workloads that are spread together, by the labels of their pods: limits hold over the sum.

use std::sync::Arc;

use strew_model::{Labels, Selector};
use strew_workloadspread::controller::Input;
use strew_workloadspread::{
    LimitScope, MaxReplicas, Spec, Targets, WorkloadFact, WorkloadSpread, admission,
};

use crate::desk::*;
use crate::world::*;

const IGNORED: &str = "versionIgnored";

fn labels(words: &Words, value: &str) -> Labels {
    Labels::new(vec![(words.of("x"), words.of(value))])
}

/// A Deployment whose pods have the label x, and its only ReplicaSet.
fn deployment(words: &Words, name: &str, x: &str, replicas: i64) -> [WorkloadFact; 2] {
    let mut deployment = workload(words.target(words.deployment, name), replicas);
    deployment.pod_labels = Some(labels(words, x));
    let mut set = workload(words.target(words.replica_set, name), replicas);
    set.controller = Some(controller(&deployment));
    // Each has a revision of its own.
    set.template_hash = Some(words.of(if name == "web" { "v1" } else { "v2" }));
    set.revision = Some(1);
    [deployment, set]
}

/// `web` by its name, together with all workloads whose pods have the label x = a.
fn together(words: &Words, max: Option<MaxReplicas>) -> WorkloadSpread {
    let target = words.target(words.deployment, "web");
    let mut ws = spread(target, vec![subset("a", max), subset("b", None)]);
    let spec: &mut Spec = Arc::make_mut(&mut ws.spec);
    spec.also = Some(Selector::of_labels([(words.of("x"), words.of("a"))]));
    spec.limit_scope = LimitScope::Workload;
    ws
}

fn of(words: &Words, hash: &str) -> Labels {
    Labels::new(vec![(words.hash, words.of(hash))])
}

#[test]
fn a_limit_holds_over_the_pods_of_all() {
    let words = words();
    let [web, web_set] = deployment(&words, "web", "b", 4);
    let [api, api_set] = deployment(&words, "a", "a", 3);
    let [other, other_set] = deployment(&words, "c", "b", 3);
    let facts = [&web, &web_set, &api, &api_set, &other, &other_set].map(Clone::clone);
    let mut server = Server::new(&words, together(&words, count(3)), &facts);
    let mut id = 0;
    for (set, hash) in [(&web_set, "v1"), (&api_set, "v2"), (&other_set, "v2")] {
        for _ in 0..2 {
            id += 1;
            let name = format!("p{id}");
            let pod = asked(set, Some(&name), of(&words, hash));
            server.ask(create(id, pod, None));
        }
    }
    server.run();
    let subsets = [1, 2, 3, 4, 5, 6].map(|id| server.subset(id));
    let subsets = subsets.each_ref().map(|s| s.as_deref());
    let expected = [Some("a"), Some("a"), Some("a"), Some("b"), None, None];
    assert_eq!(subsets, expected, "the last is of neither");
    assert_eq!(
        server.ledger(IGNORED),
        ["a m0 c[p1,p2,p3] d[]", "b m-1 c[] d[]"]
    );
}

#[test]
fn shares_are_of_the_sum_and_each_has_its_latest_revision() {
    let words = words();
    let [web, web_set] = deployment(&words, "web", "b", 4);
    let [api, api_set] = deployment(&words, "a", "a", 4);
    let facts = [&web, &web_set, &api, &api_set].map(Clone::clone);
    let mut desk = Desk::new(&words, together(&words, percent(50)), &facts);
    for (set, hash, names) in [
        (&web_set, "v1", [("w0", "a"), ("w1", "a"), ("w2", "b")]),
        (&api_set, "v2", [("p0", "a"), ("p1", "b"), ("p2", "b")]),
    ] {
        for (name, at) in names {
            let mut pod = pod(set, name, Some(at));
            pod.labels = of(&words, hash);
            desk.add(pod);
        }
    }
    desk.run();
    // Half of eight.
    assert_eq!(desk.rows(IGNORED), ["a 3/1", "b 3/-1"]);
    assert!(
        desk.costs().keys().all(|cost| !cost.starts_with('-')),
        "none is old"
    );

    // Another label excludes it; the old label includes it again.
    let mut renamed = api.clone();
    renamed.pod_labels = Some(labels(&words, "b"));
    desk.tell(Input::WorkloadSet(Box::new(renamed)));
    desk.run();
    assert_eq!(desk.rows(IGNORED), ["a 2/0", "b 1/-1"]);
    desk.tell(Input::WorkloadSet(Box::new(api)));
    desk.run();
    assert_eq!(desk.rows(IGNORED), ["a 3/1", "b 3/-1"]);
    // A new pod of it triggers a sync.
    let mut more = pod(&api_set, "p9", Some("a"));
    more.labels = of(&words, "v2");
    desk.add(more);
    desk.run();
    assert_eq!(desk.rows(IGNORED), ["a 4/0", "b 3/-1"]);
}

#[test]
fn the_older_has_the_pods_that_two_select() {
    let words = words();
    let [web, web_set] = deployment(&words, "web", "b", 2);
    let [api, api_set] = deployment(&words, "a", "a", 2);
    let facts = [&web, &web_set, &api, &api_set].map(Clone::clone);
    let mut old = together(&words, count(1));
    old.created = secs(10);
    let mut young = spread(words.target(words.deployment, "a"), vec![subset("b", None)]);
    young.key.name = "young".into();
    young.uid = "young-uid".into();
    young.created = secs(20);
    let mut desk = Desk::new(&words, young.clone(), &facts);
    desk.tell(Input::SpreadSet(Box::new(old.clone())));
    desk.add(pod(&api_set, "p0", Some("a")));
    desk.run();
    let outranked = desk.ws.status.outranked.as_ref().expect("it says so");
    assert_eq!(&*outranked.by, "ws");
    let mut server = Server::new(&words, old, &facts);
    server.tell(admission::Input::SpreadSet(Box::new(young)));
    server.ask(create(
        1,
        asked(&api_set, Some("p1"), Labels::default()),
        None,
    ));
    server.run();
    let of = server.answer(1).spread.as_ref().expect("it is handled");
    assert_eq!(&*of.name, "ws");
}

#[test]
fn what_others_control_is_not_selected() {
    let words = words();
    let [web, mut web_set] = deployment(&words, "web", "a", 2);
    web_set.pod_labels = Some(labels(&words, "a"));
    let [mut api, _] = deployment(&words, "a", "a", 5);
    let mut workloads = strew_workloadspread::workloads::Workloads::default();
    for fact in [&web, &web_set, &api] {
        workloads.set(fact.clone());
    }
    let ws = together(&words, None);
    let n_targets = |targets: Targets<'_>| targets.iter().count();
    assert_eq!(
        n_targets(workloads.targets_of(&ws)),
        2,
        "no ReplicaSet of a Deployment"
    );
    api.deleting = true;
    workloads.set(api.clone());
    assert_eq!(n_targets(workloads.targets_of(&ws)), 1);
    workloads.remove(api.key);
    assert_eq!(workloads.of_namespace(ws.key.namespace).count(), 2);
}
