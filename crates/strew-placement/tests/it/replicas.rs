//! Replicas divided over clusters, against every way to divide them. Source: spec/placement §3.11.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use strew_model::{Instant, Labels, Prng, Selector};
use strew_placement::NoCel;
use strew_placement::facts::cluster::{Amounts, ClusterFact};
use strew_placement::facts::decision::{DecisionFact, Replicas};
use strew_placement::facts::placement::{
    AddOnCoordinate, DivideBy, Division, PlacementSpec, ReplicaWeight, SortBy,
};
use strew_placement::facts::scores::ScoresFact;
use strew_placement::machine::Input;

use crate::hub::Live;
use crate::world::{HubWithPlacement, policy};

/// All ways to divide `total` into `parts`, each at least `min`.
fn ways(total: u32, parts: usize, min: u32) -> Vec<Vec<u32>> {
    match parts {
        0 if total == 0 => vec![Vec::new()],
        0 => Vec::new(),
        parts => (min..=total)
            .flat_map(|first| {
                let rest = ways(total - first, parts - 1, min);
                rest.into_iter().map(move |mut way| {
                    way.insert(0, first);
                    way
                })
            })
            .collect(),
    }
}

/// The way that is nearest to exact shares; of equal ones, the one that gives more to the larger weight, then to the
/// first.
fn nearest(total: u32, weights: &[i64]) -> Vec<u32> {
    let sum: i64 = weights.iter().sum();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&i| (Reverse(weights[i]), i));
    let distance = |way: &Vec<u32>| -> i64 {
        let each = way.iter().zip(weights);
        each.map(|(&part, &w)| (i64::from(part) * sum - i64::from(total) * w).pow(2))
            .sum()
    };
    let key = |way: &Vec<u32>| {
        let by_weight: Vec<u32> = order.iter().map(|&i| way[i]).collect();
        (distance(way), Reverse(by_weight))
    };
    ways(total, weights.len(), 0)
        .into_iter()
        .min_by_key(key)
        .expect("there is one")
}

/// The rule: as few clusters as possible, the ones with the smallest weights, get the minimum, so that exact shares of
/// the rest suffice.
fn expected(total: u32, weights: &[i64], min: u32) -> Vec<u32> {
    let level = weights.iter().all(|&w| w <= 0);
    let weights: Vec<i64> = weights
        .iter()
        .map(|&w| if level { 1 } else { w.max(0) })
        .collect();
    let mut lightest: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0).collect();
    lightest.sort_by_key(|&i| (weights[i], Reverse(i)));
    let min = min.min(total / lightest.len() as u32);
    for n in 0..lightest.len() {
        let (fixed, free) = lightest.split_at(n);
        let mut free = free.to_vec();
        free.sort_unstable();
        let of_free: Vec<i64> = free.iter().map(|&i| weights[i]).collect();
        let shares = nearest(total - min * n as u32, &of_free);
        if shares.iter().all(|&share| share >= min) {
            let mut parts = vec![0; weights.len()];
            fixed.iter().for_each(|&i| parts[i] = min);
            free.iter()
                .zip(shares)
                .for_each(|(&i, share)| parts[i] = share);
            return parts;
        }
    }
    panic!("the heaviest gets what is left, and that suffices");
}

fn weights(entries: Vec<ReplicaWeight>, default: i64) -> DivideBy {
    DivideBy::Weights {
        entries: entries.into(),
        default,
    }
}

/// Replicas by cluster, as the placement of a world divides them.
fn parts(world: &HubWithPlacement) -> BTreeMap<String, u32> {
    let parts = world.decide().parts.expect("they are divided").clusters;
    let part = parts.iter().map(|p| (world.text(p.cluster), p.replicas));
    part.collect()
}

#[test]
fn parts_are_the_nearest_whole_numbers() {
    for seed in 0..600 {
        let mut dice = Prng::new(seed);
        let n = dice.between(1, 5) as usize;
        let drawn: Vec<i64> = (0..n).map(|_| dice.between(0, 5) as i64).collect();
        let (total, min) = (dice.between(0, 9) as u32, dice.between(0, 3) as u32);
        let mut world = HubWithPlacement::new();
        let mut entries = Vec::new();
        for (i, &weight) in drawn.iter().enumerate() {
            world.cluster(&i.to_string(), 0, &[&format!("id={i}")]);
            let (key, value) = (world.name("id"), world.name(&i.to_string()));
            entries.push(ReplicaWeight {
                labels: Selector::of_labels([(key, value)]),
                claims: Selector::all_of(vec![]),
                weight,
            });
        }
        world.placement.spec.replicas = Ok(Some(Division {
            total,
            by: weights(entries, 7),
            min_per_cluster: min,
        }));
        let parts: Vec<u32> = parts(&world).into_values().collect();
        let told = format!("seed {seed}: {total} by {drawn:?}, at least {min}");
        assert_eq!(parts, expected(total, &drawn, min), "{told}");
        assert_eq!(parts.iter().sum::<u32>(), total, "{told}");
    }
}

#[test]
fn large_numbers_add_up() {
    let mut world = HubWithPlacement::new();
    for name in ["a", "b", "c"] {
        world.cluster(name, 0, &[]);
        let mut fact = ClusterFact::named(world.name(name));
        fact.memory.allocatable = Some(i64::MAX);
        world.hub.set_cluster(fact);
    }
    world.placement.spec.replicas = Ok(Some(Division {
        total: u32::MAX,
        by: DivideBy::AllocatableMemory,
        min_per_cluster: u32::MAX,
    }));
    let parts = parts(&world);
    assert_eq!(
        parts.values().map(|&n| u64::from(n)).sum::<u64>(),
        u64::from(u32::MAX)
    );
    assert_eq!(parts.values().max(), parts.values().min());
}

#[test]
fn a_weight_out_of_range_is_misconfigured() {
    let mut world = HubWithPlacement::new().clusters("a 0");
    for (default, expected) in [
        (-1, "replica weight is -1, not 0..1000"),
        (1001, "replica weight is 1001, not 0..1000"),
    ] {
        world.placement.spec.replicas = Ok(Some(Division {
            total: 1,
            by: weights(Vec::new(), default),
            min_per_cluster: 0,
        }));
        let strew_placement::Code::Misconfigured(problem) = world.decide().code else {
            panic!("{default}");
        };
        assert_eq!(problem.to_string(), format!("Replicas:{expected}"));
    }
}

// === the machine ===

fn division(total: u32, by: DivideBy) -> PlacementSpec {
    PlacementSpec {
        replicas: Ok(Some(Division {
            total,
            by,
            min_per_cluster: 0,
        })),
        prioritizers: policy("Exact", &[]),
        ..PlacementSpec::default()
    }
}

fn cluster(live: &mut Live, name: &str, cpu: i64) {
    let mut fact = live.cluster(name, &[]);
    fact.cpu = Amounts {
        allocatable: Some(cpu),
        capacity: Some(cpu),
    };
    live.tell(Input::ClusterSet(fact));
}

/// The annotations of the decisions of all placements: `a=1 b=2`, object by object.
fn written(live: &Live) -> Vec<String> {
    let told = |replicas: &Replicas| match replicas {
        Replicas::Absent => "-".to_owned(),
        Replicas::Unreadable => "?".to_owned(),
        Replicas::Parts(parts) => {
            let part = parts.iter().map(|&(c, n)| format!("{}={n}", live.text(c)));
            part.collect::<Vec<_>>().join(" ")
        }
    };
    live.decisions
        .values()
        .map(|fact| told(&fact.replicas))
        .collect()
}

fn score(live: &mut Live, cluster: &str, value: i32, valid_until: Option<Instant>) {
    let (cluster, room) = (live.name(cluster), live.name("room"));
    live.tell(Input::ScoresSet(ScoresFact {
        cluster,
        name: room,
        values: [(room, value)].into(),
        valid_until,
    }));
}

#[test]
fn parts_follow_scores_and_their_end() {
    let mut live = Live::new();
    cluster(&mut live, "a", 1);
    cluster(&mut live, "b", 1);
    score(&mut live, "a", 10, None);
    score(&mut live, "b", 30, None);
    let room = live.name("room");
    let by = AddOnCoordinate {
        resource: room,
        score: room,
    };
    live.place("p", division(8, DivideBy::AddOn(by)));
    live.rest();
    assert_eq!(written(&live), ["a=2 b=6"]);
    assert_eq!(live.rest(), 0);
    let until = Instant::from_secs(live.now.secs() + 10);
    score(&mut live, "a", 30, Some(until));
    live.rest();
    assert_eq!(written(&live), ["a=4 b=4"]);
    score(&mut live, "b", -5, None);
    live.rest();
    assert_eq!(written(&live), ["a=8 b=0"], "less than nothing is nothing");
    score(&mut live, "b", 10, None);
    live.rest();
    assert_eq!(written(&live), ["a=6 b=2"]);
    live.wait(10);
    assert_eq!(written(&live), ["a=6 b=2"], "the last moment counts");
    live.wait(1);
    assert_eq!(written(&live), ["a=0 b=8"]);
    let (b, room) = (live.name("b"), live.name("room"));
    live.tell(Input::ScoresGone {
        cluster: b,
        name: room,
    });
    live.rest();
    assert_eq!(
        written(&live),
        ["a=4 b=4"],
        "nobody has a score: all are equal"
    );
}

#[test]
fn parts_follow_what_clusters_have() {
    let mut live = Live::new();
    cluster(&mut live, "a", 1000);
    cluster(&mut live, "b", 3000);
    live.place("p", division(4, DivideBy::AllocatableCpu));
    live.rest();
    assert_eq!(written(&live), ["a=1 b=3"]);
    cluster(&mut live, "b", 1000);
    assert_eq!(live.rest(), 1, "the annotation alone");
    assert_eq!(written(&live), ["a=2 b=2"]);
    cluster(&mut live, "c", 2000);
    live.rest();
    assert_eq!(written(&live), ["a=1 b=1 c=2"]);
}

/// A write is two requests, and the watch may report the first before the second is answered. Without care, placements
/// that look at each other's decisions would decide without end (seed 108 of `soak --of placement`).
#[test]
fn half_of_an_own_write_is_no_reason_to_decide_again() {
    type Others = fn(&mut DecisionFact);
    let changes: [(Others, u64); 4] = [
        (|_| {}, 1),
        (|fact| fact.replicas = Replicas::Unreadable, 2),
        (|fact| fact.group.index = Some(7), 2),
        (|fact| fact.decisions = Box::default(), 2),
    ];
    for (others, expected) in changes {
        let mut live = Live::new();
        cluster(&mut live, "a", 1000);
        cluster(&mut live, "b", 3000);
        live.place("p", division(8, DivideBy::AllocatableCpu));
        live.rest();
        let before = live.machine.counters().decided;
        cluster(&mut live, "c", 4000);
        while let Some(effect) = live.machine.poll_effect(&NoCel) {
            live.carry_out_in_halves(effect, others);
        }
        assert_eq!(written(&live), ["a=1 b=3 c=4"]);
        assert_eq!(live.machine.counters().decided - before, expected);
    }
}

#[test]
fn parts_follow_labels_that_weights_name() {
    let mut live = Live::new();
    let (tier, gold) = (live.name("tier"), live.name("gold"));
    let entry = ReplicaWeight {
        labels: Selector::of_labels([(tier, gold)]),
        claims: Selector::all_of(vec![]),
        weight: 3,
    };
    cluster(&mut live, "a", 1);
    cluster(&mut live, "b", 1);
    live.place("p", division(4, weights(vec![entry], 1)));
    live.rest();
    assert_eq!(written(&live), ["a=2 b=2"]);
    let fact = ClusterFact {
        labels: Labels::new(vec![(tier, gold)]),
        ..live.cluster("b", &[])
    };
    live.tell(Input::ClusterSet(fact));
    live.rest();
    assert_eq!(written(&live), ["a=1 b=3"]);
}

/// Each object has the parts of its own clusters, and none if no replicas are asked for.
#[test]
fn objects_have_their_own_parts_and_lose_them() {
    let mut live = Live::new();
    (0..130).for_each(|i| cluster(&mut live, &format!("c{i:03}"), 1));
    let mut spec = division(260, weights(Vec::new(), 1));
    spec.sort_by = SortBy::Score;
    live.place("p", spec.clone());
    live.rest();
    let objects = written(&live);
    assert_eq!(objects.len(), 2);
    assert!(objects[0].starts_with("c000=2 c001=2"), "{}", objects[0]);
    assert!(objects[1].starts_with("c100=2"), "{}", objects[1]);
    let parts = |text: &str| text.split(' ').count();
    assert_eq!((parts(&objects[0]), parts(&objects[1])), (100, 30));
    // Another writer changes it.
    let fact = live.decisions.values_mut().next().expect("it is there");
    (fact.replicas, fact.revision) = (Replicas::Unreadable, fact.revision + 1);
    let fact = fact.clone();
    live.machine.handle(live.now, Input::DecisionSet(fact));
    live.rest();
    assert_eq!(written(&live), objects);
    spec.replicas = Ok(None);
    live.place("p", spec);
    assert_eq!(live.rest(), 2);
    assert_eq!(written(&live), ["-", "-"]);
    assert_eq!(live.rest(), 0);
}
