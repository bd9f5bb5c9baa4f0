//! Deletion costs, number by number: the example of Kruise's article and spec/workloadspread §5.5, §9.2.

use std::sync::Arc;

use strew_model::Labels;
use strew_workloadspread::admission::Verdict;
use strew_workloadspread::controller::Input;
use strew_workloadspread::{MaxReplicas, Phase, Pod, Subset, TemplateId};

use crate::desk::*;
use crate::world::*;

fn desk(subsets: Vec<Subset>, pods: &[(&str, usize)]) -> Desk {
    let words = words();
    let web = workload(words.web(), 10);
    let mut desk = Desk::new(
        &words,
        spread(words.web(), subsets),
        std::slice::from_ref(&web),
    );
    for (subset, n) in pods {
        for i in 0..*n {
            desk.add(pod(&web, &format!("{subset}-{i:03}"), Some(subset)));
        }
    }
    desk.run();
    desk
}

fn limit(desk: &mut Desk, place: usize, max: Option<MaxReplicas>) {
    desk.change(|ws| {
        let mut spec = (*ws.spec).clone();
        spec.subsets[place].max_replicas = max;
        ws.spec = Arc::new(spec);
    });
    desk.run();
}

#[test]
fn the_seeds_example_holds_number_by_number() {
    let subsets = vec![subset("subset-a", count(8)), subset("subset-b", None)];
    let mut desk = desk(subsets, &[("subset-a", 8), ("subset-b", 2)]);
    assert_eq!(desk.costs(), counts(&[("200", 8), ("100", 2)]));
    limit(&mut desk, 0, count(5));
    assert_eq!(desk.costs(), counts(&[("200", 5), ("-100", 3), ("100", 2)]));
    // Deleting by cost: the surplus, then b, then a.
    let mut order: Vec<(i32, &str)> = Vec::new();
    for pod in desk.pods.values() {
        let cost = pod.cost.as_deref().unwrap().parse().unwrap();
        order.push((
            cost,
            if pod.name.starts_with("subset-a") {
                "a"
            } else {
                "b"
            },
        ));
    }
    order.sort();
    let order: String = order.into_iter().map(|(_, subset)| subset).collect();
    assert_eq!(order, "aaabbaaaaa");
}

#[test]
fn three_subsets_of_twenty_pods_each() {
    let subsets = vec![
        subset("a", count(10)),
        subset("b", count(10)),
        subset("c", None),
    ];
    let desk = desk(subsets, &[("a", 20), ("b", 20), ("c", 20)]);
    let expected = [
        ("300", 10),
        ("-100", 10),
        ("200", 10),
        ("-200", 10),
        ("100", 20),
    ];
    assert_eq!(desk.costs(), counts(&expected));
}

#[test]
fn limits_and_surplus_of_one_subset() {
    type Case = (Option<MaxReplicas>, usize, &'static [(&'static str, usize)]);
    let cases: [Case; 6] = [
        (count(3), 3, &[("100", 3)]),
        (count(3), 2, &[("100", 2)]),
        (None, 5, &[("100", 5)]),
        (count(1), 3, &[("-100", 2), ("100", 1)]),
        (count(0), 2, &[("-100", 2)]),
        (percent(33), 5, &[("100", 4), ("-100", 1)]),
    ];
    for (max, n, expected) in cases {
        let desk = desk(vec![subset("a", max)], &[("a", n)]);
        assert_eq!(desk.costs(), counts(expected), "{n} pods, {max:?}");
    }
}

#[test]
fn the_surplus_is_whoever_is_worth_least() {
    let words = words();
    let web = workload(words.web(), 10);
    type Change = fn(&mut Pod);
    let changes: [(&str, Change); 7] = [
        ("no node", |p| p.node = None),
        ("pending", |p| p.phase = Phase::Pending),
        ("unknown", |p| p.phase = Phase::Unknown),
        ("not ready", |p| p.ready_since = None),
        ("ready for a shorter time", |p| {
            p.ready_since = Some(secs(7_000))
        }),
        ("restarted", |p| p.restarts = 1),
        ("younger", |p| p.created = secs(5_500)),
    ];
    // Each is worth less than all after it, so with room for k the last k stay.
    for kept in 0..=7 {
        let ws = spread(words.web(), vec![subset("a", count(kept as u32 + 1))]);
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&web));
        desk.add(pod(&web, "p9", Some("a")));
        for (i, (_, change)) in changes.iter().enumerate() {
            // Names are in the opposite order, so that order of the list plays no part.
            let mut worse = pod(&web, &format!("p{}", 8 - i), Some("a"));
            change(&mut worse);
            desk.add(worse);
        }
        desk.run();
        assert_eq!(desk.cost("p9"), "100");
        for (i, (what, _)) in changes.iter().enumerate() {
            let expected = if i >= 7 - kept { "100" } else { "-100" };
            assert_eq!(
                desk.cost(&format!("p{}", 8 - i)),
                expected,
                "{what}, {kept} kept"
            );
        }
    }
}

#[test]
fn pods_that_do_not_count_get_no_cost_and_take_no_place() {
    let words = words();
    let web = workload(words.web(), 10);
    let mut desk = Desk::new(
        &words,
        spread(words.web(), vec![subset("a", count(1))]),
        std::slice::from_ref(&web),
    );
    let mut going = pod(&web, "p0", Some("a"));
    going.deleting = true;
    let mut failed = pod(&web, "p4", Some("a"));
    failed.phase = Phase::Failed;
    for pod in [going, failed] {
        desk.add(pod);
    }
    for name in ["p1", "p2", "p3"] {
        desk.add(pod(&web, name, Some("a")));
    }
    desk.run();
    let costs = ["p0", "p1", "p2", "p3", "p4"].map(|name| desk.cost(name));
    assert_eq!(costs, ["-", "-100", "-100", "100", "-"]);
}

#[test]
fn an_old_revision_drains_from_its_first_subset() {
    let words = words();
    let deployment = {
        let mut d = workload(words.target(words.deployment, "web"), 10);
        d.template = Some(TemplateId(2));
        d
    };
    let rs = |name: &str, hash: &str, template: u64, revision: i64| {
        let mut rs = workload(words.target(words.replica_set, name), 5);
        rs.controller = Some(controller(&deployment));
        rs.template = Some(TemplateId(u128::from(template)));
        rs.template_hash = Some(words.of(hash));
        rs.revision = Some(revision);
        rs
    };
    let (old, new) = (rs("web-1", "v1", 1, 1), rs("web-2", "v2", 2, 2));
    for edited in [false, true] {
        let mut deployment = deployment.clone();
        if edited {
            // Paused with an edited template: no ReplicaSet has it; the newest counts as the latest (F6).
            deployment.template = Some(TemplateId(3));
        }
        let ws = spread(
            deployment.key.target,
            vec![subset("a", count(3)), subset("b", None)],
        );
        let mut desk = Desk::new(&words, ws, &[deployment, old.clone(), new.clone()]);
        for (owner, hash) in [(&old, "v1"), (&new, "v2")] {
            for (subset, n) in [("a", 3), ("b", 2)] {
                for i in 0..n {
                    let mut pod = pod(owner, &format!("{hash}{subset}{i}"), Some(subset));
                    pod.labels = Labels::new(vec![(words.hash, words.of(hash))]);
                    desk.add(pod);
                }
            }
        }
        desk.run();
        assert_eq!(desk.overall(), ["a 6/0", "b 4/-1"]);
        assert_eq!(desk.rows("v1"), ["a 3/0", "b 2/-1"]);
        assert_eq!(desk.rows("v2"), ["a 3/0", "b 2/-1"]);
        let costs = ["v1a0", "v1b0", "v2a0", "v2b0"].map(|name| desk.cost(name));
        assert_eq!(costs, ["100", "200", "200", "100"]);
    }
}

#[test]
fn pods_of_a_replica_set_on_its_own_are_the_latest() {
    let words = words();
    let rs = workload(words.target(words.replica_set, "web"), 3);
    let ws = spread(
        rs.key.target,
        vec![subset("a", count(2)), subset("b", None)],
    );
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&rs));
    for (name, subset) in [("p0", "a"), ("p1", "a"), ("p2", "b")] {
        desk.add(pod(&rs, name, Some(subset)));
    }
    desk.run();
    assert_eq!(
        ["p0", "p1", "p2"].map(|p| desk.cost(p)),
        ["200", "200", "100"]
    );
}

#[test]
fn kinds_that_do_not_look_at_costs_get_none() {
    let words = words();
    for kind in [words.job, words.stateful_set] {
        let owner = workload(words.target(kind, "web"), 3);
        let ws = spread(
            owner.key.target,
            vec![subset("a", count(2)), subset("b", None)],
        );
        let mut desk = Desk::new(&words, ws, std::slice::from_ref(&owner));
        desk.add(pod(&owner, "p0", Some("a")));
        desk.run();
        assert_eq!(desk.cost("p0"), "-");
        assert_eq!(desk.overall(), ["a 1/1", "b 0/-1"]);
    }
}

#[test]
fn a_minimum_outlives_what_is_only_within_limits() {
    let mut subsets = vec![subset("a", count(4)), subset("b", None)];
    subsets[1].min_replicas = 1;
    let desk = desk(subsets, &[("a", 4), ("b", 3)]);
    assert_eq!(desk.costs(), counts(&[("200", 4), ("100", 2), ("300", 1)]));
}

/// Pods of three subsets by their costs, the first to go first, as letters.
fn victims(desk: &Desk) -> String {
    let mut order: Vec<(i32, char)> = Vec::new();
    for pod in desk.pods.values() {
        let cost = pod.cost.as_deref().and_then(|cost| cost.parse().ok());
        let subset = pod.name.chars().next();
        order.extend(cost.zip(subset));
    }
    order.sort();
    order.into_iter().map(|(_, subset)| subset).collect()
}

fn thirds() -> Vec<Subset> {
    vec![
        subset("a", percent(20)),
        subset("b", percent(20)),
        subset("c", percent(60)),
    ]
}

/// Use case 3 of the document that introduced WorkloadSpread: the ratio also holds when scaling down.
#[test]
fn shares_are_kept_whatever_number_goes() {
    let desk = desk(thirds(), &[("a", 2), ("b", 2), ("c", 6)]);
    assert_eq!(desk.costs().len(), 10, "no two pods have the same cost");
    let order = victims(&desk);
    let left = |gone: usize| ["a", "b", "c"].map(|s| order[gone..].matches(s).count());
    assert_eq!(left(0), [2, 2, 6]);
    assert_eq!(left(3), [2, 2, 3]);
    assert_eq!(left(4), [2, 1, 3]);
    assert_eq!(left(5), [1, 1, 3]);
    assert_eq!(left(8), [1, 1, 0]);
    // Surplus goes first: the limits of 5 are 1, 1 and 3.
    let web = workload(words().web(), 5);
    let mut late = Desk::new(
        &words(),
        spread(words().web(), thirds()),
        std::slice::from_ref(&web),
    );
    for (subset, n) in [("a", 2), ("b", 2), ("c", 6)] {
        for i in 0..n {
            late.add(pod(&web, &format!("{subset}-{i}"), Some(subset)));
        }
    }
    late.run();
    let expected = [
        ("-100", 1),
        ("-200", 1),
        ("-300", 3),
        ("999999", 1),
        ("999998", 1),
        ("999997", 1),
        ("999996", 1),
        ("999995", 1),
    ];
    assert_eq!(late.costs(), counts(&expected));
}

/// A ReplicaSet may delete pods while costs of a lower total are being written: the pods that stay have kept their
/// costs.
#[test]
fn a_lower_limit_leaves_the_costs_of_those_who_stay() {
    let mut desk = desk(thirds(), &[("a", 2), ("b", 2), ("c", 6)]);
    // The pods of the first turns have become the least valuable ones by all other criteria.
    let mut pods: Vec<Pod> = desk.pods.values().cloned().collect();
    let turn = |pod: &Pod| {
        -pod.cost
            .as_deref()
            .map_or(0, |cost| cost.parse().unwrap_or(0))
    };
    pods.sort_by_key(turn);
    for (i, pod) in pods.iter_mut().enumerate() {
        pod.restarts = 10 - i as i32;
        desk.add(pod.clone());
    }
    desk.run();
    desk.tell(Input::WorkloadSet(Box::new(workload(words().web(), 5))));
    desk.run();
    for before in &pods {
        let now = &desk.pods[&before.uid].cost;
        let is_kept = now.as_deref().is_some_and(|cost| !cost.starts_with('-'));
        assert!(!is_kept || *now == before.cost, "{}: {now:?}", before.name);
    }
    assert_eq!(victims(&desk)[5..].matches('c').count(), 3);
}

#[test]
fn a_pod_that_goes_changes_the_cost_of_one_other() {
    let mut desk = desk(thirds(), &[("a", 2), ("b", 2), ("c", 6)]);
    let before = desk.costs();
    let written = desk.machine.counters().costs;
    desk.lose("c-002");
    desk.add(pod(&workload(words().web(), 10), "c-900", Some("c")));
    desk.run();
    assert_eq!(desk.costs(), before);
    assert_eq!(
        desk.machine.counters().costs - written,
        1,
        "that of the new pod"
    );
    desk.lose("c-001");
    desk.run();
    assert_eq!(
        desk.machine.counters().costs - written,
        2,
        "the last one moves up"
    );
}

/// Admission writes the costs that the controller would: the controller has nothing left to write.
#[test]
fn a_new_pod_is_born_with_its_cost() {
    let words = words();
    let mut deployment = workload(words.target(words.deployment, "web"), 10);
    deployment.template = Some(TemplateId(2));
    let rs = |name: &str, hash: &str, template: u64| {
        let mut rs = workload(words.target(words.replica_set, name), 5);
        rs.controller = Some(controller(&deployment));
        rs.template = Some(TemplateId(u128::from(template)));
        rs.template_hash = Some(words.of(hash));
        rs
    };
    let (old, new) = (rs("web-1", "v1", 1), rs("web-2", "v2", 2));
    let job = workload(words.target(words.job, "web"), 3);
    let mut with_minimum = vec![subset("a", count(2)), subset("b", None)];
    with_minimum[1].min_replicas = 1;
    let two = vec![subset("a", count(2)), subset("b", None)];
    let halves = vec![subset("a", percent(50)), subset("b", percent(50))];
    let target = deployment.key.target;
    let cases = [
        (&new, target, &two, ["200", "200", "100"]),
        (&old, target, &two, ["100", "100", "200"]),
        (&new, target, &with_minimum, ["300", "200", "200"]),
        (&new, target, &halves, ["999999", "999997", "999995"]),
        (&old, target, &halves, ["100", "100", "100"]),
        (&job, job.key.target, &two, ["-", "-", "-"]),
    ];
    for (owner, target, subsets, expected) in cases {
        let ws = spread(target, subsets.clone());
        let facts = [deployment.clone(), old.clone(), new.clone(), job.clone()];
        let mut server = Server::with(&words, ws.clone(), &facts, alone());
        let mut desk = Desk::new(&words, ws, &facts);
        let labels = match owner.template_hash {
            Some(hash) => Labels::new(vec![(words.hash, hash)]),
            None => Labels::default(),
        };
        let mut born = Vec::new();
        for id in 0..3 {
            let name = format!("p{id}");
            server.ask(create(id, asked(owner, Some(&name), labels.clone()), None));
            server.run();
            let Verdict::Inject(injection) = &server.answer(id).verdict else {
                panic!("{owner:?}: {id}");
            };
            let cost = injection
                .cost
                .map_or("-".to_owned(), |cost| cost.to_string());
            let mut pod = pod(owner, &name, Some(&injection.marker.subset));
            pod.labels = labels.clone();
            pod.cost = injection.cost.map(|cost| cost.to_string().into());
            desk.add(pod);
            born.push(cost);
        }
        assert_eq!(born, expected);
        desk.run();
        assert_eq!(desk.machine.counters().costs, 0, "{owner:?}");
        assert_eq!(["p0", "p1", "p2"].map(|name| desk.cost(name)), expected);
    }
}

#[test]
fn a_pod_of_a_revision_that_nobody_knows_is_born_without_a_cost() {
    let words = words();
    let deployment = workload(words.target(words.deployment, "web"), 10);
    let ws = spread(deployment.key.target, vec![subset("a", count(2))]);
    let mut server = Server::with(&words, ws, std::slice::from_ref(&deployment), alone());
    server.ask(create(0, asked(&deployment, None, Labels::default()), None));
    server.run();
    let Verdict::Inject(injection) = &server.answer(0).verdict else {
        panic!("there is room");
    };
    assert_eq!(injection.cost, None, "there is no ReplicaSet yet");
}

/// Three pods of a subset of two: the surplus is the pod that is worth least now, not the one when the limit was
/// exceeded.
#[test]
fn the_surplus_follows_readiness() {
    let subsets = vec![subset("a", count(2)), subset("b", None)];
    let mut desk = desk(subsets, &[("a", 3)]);
    let surplus = |desk: &Desk| -> Vec<String> {
        let pods = desk.pods.values();
        let surplus = pods.filter(|pod| pod.cost.as_deref() == Some("-100"));
        surplus.map(|pod| pod.name.to_string()).collect()
    };
    let [first] = &*surplus(&desk) else {
        panic!("one pod is surplus: {:?}", surplus(&desk));
    };
    let other = desk.pods.values().find(|pod| *pod.name != **first);
    let mut other = other.unwrap().clone();
    other.ready_since = None;
    let name = other.name.to_string();
    assert_ne!(&name, first);
    desk.add(other);
    desk.run();
    assert_eq!(surplus(&desk), [name]);
}

/// The same holds for the minimum of a subset, and nothing is synced if no cost depends on it.
#[test]
fn the_minimum_follows_readiness() {
    let mut own = subset("a", count(3));
    own.min_replicas = 1;
    let mut with_minimum = desk(vec![own, subset("b", None)], &[("a", 2)]);
    let mut without = desk(vec![subset("a", count(3)), subset("b", None)], &[("a", 2)]);
    let kept = |desk: &Desk| {
        let pods = desk.pods.values();
        let most = pods.max_by_key(|pod| pod.cost.as_deref().unwrap().parse::<i32>().unwrap());
        most.unwrap().name.to_string()
    };
    let first = kept(&with_minimum);
    for desk in [&mut with_minimum, &mut without] {
        let pod = desk.pods.values().find(|pod| *pod.name == *first);
        let mut pod = pod.unwrap().clone();
        pod.ready_since = None;
        desk.add(pod);
    }
    let before = without.machine.counters().synced;
    with_minimum.run();
    without.run();
    assert_ne!(kept(&with_minimum), first);
    assert_eq!(without.machine.counters().synced, before);
}
