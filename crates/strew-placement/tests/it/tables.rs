//! Upstream's own unit tables: spec/placement §5.2.

use strew_model::{Instant, Selector, Symbol, well_known};
use strew_placement::facts::cluster::{Amounts, ClusterFact, ClusterTaint, TaintEffect};
use strew_placement::facts::placement::{
    CelId, CelSelector, ClusterPredicates, ClusterToleration, ScoreCoordinate, TolerationOperator,
};
use strew_placement::facts::scores::ScoresFact;
use strew_placement::{Code, Verdict, explain};

use crate::world::{HubWithPlacement, NOW, add_on, policy};

fn three() -> HubWithPlacement {
    HubWithPlacement::new().clusters("cluster1 0\ncluster2 0\ncluster3 0")
}

/// The scores of one prioritizer, by name of cluster.
fn scores(world: &mut HubWithPlacement, coordinate: ScoreCoordinate) -> Vec<i64> {
    world.placement.spec.prioritizers = policy("Exact", &[(coordinate, 1)]);
    let prioritizers = world.explain().prioritizers;
    prioritizers[0]
        .scores
        .iter()
        .map(|&(_, score)| score)
        .collect()
}

fn built_in(name: &str) -> ScoreCoordinate {
    ScoreCoordinate::BuiltIn(name.into())
}

#[test]
fn balance_counts_the_decisions_of_others() {
    type Decisions<'a> = &'a [(&'a str, &'a [&'a str])];
    let cases: [(Decisions, [i64; 3]); 6] = [
        (&[], [100, 100, 100]),
        (&[("p", &["cluster1"])], [100, 100, 100]),
        (&[("other", &["cluster1"])], [-100, 100, 100]),
        (
            &[
                ("o1", &["cluster1", "cluster2"]),
                ("o2", &["cluster1", "cluster3"]),
            ],
            [-100, 0, 0],
        ),
        (
            &[
                ("o1", &["cluster1", "cluster2", "cluster3"]),
                ("o2", &["cluster2", "cluster3"]),
                ("o3", &["cluster3"]),
            ],
            [32, -32, -100],
        ),
        // A cluster that is not a candidate counts for the maximum.
        (
            &[("o1", &["gone", "cluster1"]), ("o2", &["gone"])],
            [0, 100, 100],
        ),
    ];
    for (decisions, expected) in cases {
        let mut world = three();
        for (i, (placement, clusters)) in decisions.iter().enumerate() {
            world.decision(&format!("d{i}"), placement, clusters);
        }
        assert_eq!(
            scores(&mut world, built_in("Balance")),
            expected,
            "{decisions:?}"
        );
    }
}

#[test]
fn steady_prefers_what_is_held() {
    let mut world = three();
    assert_eq!(scores(&mut world, built_in("Steady")), [0, 0, 0]);
    world.decision("d1", "p", &["cluster1"]);
    assert_eq!(scores(&mut world, built_in("Steady")), [100, 0, 0]);
    world.decision("d2", "p", &["cluster3"]);
    assert_eq!(scores(&mut world, built_in("Steady")), [100, 0, 100]);
}

#[test]
fn resources_are_scored_between_the_smallest_and_the_largest() {
    for (amounts, expected) in [
        (vec![Some(20), Some(60), Some(100)], vec![-100, 0, 100]),
        (vec![Some(100), Some(100), Some(100)], vec![100, 100, 100]),
        (vec![Some(0), Some(0), Some(0)], vec![100, 100, 100]),
        (vec![None, None, None], vec![]),
        (vec![Some(10), Some(6), Some(2)], vec![100, 0, -100]),
        (vec![Some(10), Some(7), Some(9)], vec![100, -100, 33]),
        (vec![Some(50), Some(90), Some(80)], vec![-100, 100, 50]),
        (vec![Some(50), None, Some(80)], vec![-100, 100]),
    ] {
        for name in ["ResourceAllocatableCPU", "ResourceAllocatableMemory"] {
            let mut world = three();
            for (i, &allocatable) in amounts.iter().enumerate() {
                let amounts = Amounts {
                    allocatable,
                    capacity: allocatable.map(|_| 100),
                };
                let cluster = world.name(&format!("cluster{}", i + 1));
                let mut fact = ClusterFact::named(cluster);
                (fact.cpu, fact.memory) = (amounts, amounts);
                world.hub.set_cluster(fact);
            }
            assert_eq!(
                scores(&mut world, built_in(name)),
                expected,
                "{name} {amounts:?}"
            );
        }
    }
}

#[test]
fn add_on_scores_count_until_they_expire() {
    let of = |values: [Option<i32>; 3], expired: bool| {
        let mut world = three();
        let test = world.name("test");
        for (i, value) in values.into_iter().enumerate() {
            let cluster = world.name(&format!("cluster{}", i + 1));
            let Some(value) = value else { continue };
            world.hub.set_scores(ScoresFact {
                cluster,
                name: test,
                values: [(test, value)].into(),
                valid_until: (i == 0 && expired).then_some(Instant::from_secs(970)),
            });
        }
        let scores = scores(&mut world, add_on(test, test));
        (scores, world.decide().code)
    };
    assert_eq!(of([None; 3], false), (vec![0, 0, 0], Code::Success));
    assert_eq!(
        of([Some(30), None, None], false),
        (vec![30, 0, 0], Code::Success)
    );
    assert_eq!(of([Some(30), Some(40), Some(50)], false).0, [30, 40, 50]);
    let (scores, code) = of([Some(30), Some(40), Some(50)], true);
    assert_eq!(scores, [0, 40, 50]);
    let Code::Warning(problem) = code else {
        panic!("{code:?}")
    };
    assert_eq!(
        &*problem.message,
        "AddOnPlacementScores cluster1/test expired"
    );
}

#[test]
fn a_cluster_passes_if_any_predicate_matches_all_it_asks() {
    let mut world = HubWithPlacement::new().clusters("c1 0 cloud=Amazon\nc2 0 cloud=Azure\nc3 0");
    let (cloud, amazon, azure) = (
        world.name("cloud"),
        world.name("Amazon"),
        world.name("Azure"),
    );
    let labels = |value: Symbol| ClusterPredicates {
        labels: Selector::of_labels([(cloud, value)]),
        ..ClusterPredicates::default()
    };
    let claims = ClusterPredicates {
        claims: Selector::of_labels([(cloud, azure)]),
        ..ClusterPredicates::default()
    };
    let cel = ClusterPredicates {
        cel: Some(CelSelector {
            id: CelId(7),
            scores: Some([].into()),
        }),
        ..labels(amazon)
    };
    for (predicates, expected) in [
        (vec![], vec!["c1", "c2", "c3"]),
        (vec![ClusterPredicates::default()], vec!["c1", "c2", "c3"]),
        (vec![labels(amazon)], vec!["c1"]),
        (vec![labels(amazon), labels(azure)], vec!["c1", "c2"]),
        (vec![claims], vec![]),
        (vec![cel.clone()], vec![]),
        (vec![cel.clone(), labels(azure)], vec!["c2"]),
    ] {
        world.placement.spec.predicates = Ok(predicates.into());
        assert_eq!(world.picks(), expected);
    }
    world.placement.spec.predicates = Ok([cel].into());
    let answer = |id: CelId, _: Symbol| id == CelId(7);
    let explained = explain::explain(&world.hub, NOW, &world.placement, &answer);
    let verdicts: Vec<Verdict> = explained.verdicts.into_iter().map(|(_, v)| v).collect();
    assert_eq!(
        verdicts,
        [
            Verdict::Selected(0),
            Verdict::NoPredicate,
            Verdict::NoPredicate
        ]
    );
}

/// True if a taint of this effect is accepted by a placement with such a toleration: for a new cluster, and for a held
/// one.
#[test]
fn taints_are_tolerated_as_upstream_does() {
    use TaintEffect::{NoSelect, NoSelectIfNew, PreferNoSelect};
    use TolerationOperator::{Equal, Exists, Other};
    let mut world = HubWithPlacement::new().clusters("c 0");
    let (key, other, value) = (world.name("key1"), world.name("key2"), world.name("value1"));
    let empty = well_known::EMPTY;
    let toleration = |key, operator, value, effect| {
        Some(ClusterToleration {
            key,
            operator,
            value,
            effect,
            seconds: None,
        })
    };
    for (effect, toleration, new, held) in [
        (NoSelect, None, false, false),
        (
            NoSelect,
            toleration(Some(key), Equal, value, None),
            true,
            true,
        ),
        (
            NoSelect,
            toleration(Some(key), Equal, empty, None),
            false,
            false,
        ),
        (
            NoSelect,
            toleration(Some(other), Equal, value, None),
            false,
            false,
        ),
        (
            NoSelect,
            toleration(Some(key), Exists, empty, None),
            true,
            true,
        ),
        (
            NoSelect,
            toleration(Some(other), Exists, empty, None),
            false,
            false,
        ),
        (NoSelect, toleration(None, Exists, empty, None), true, true),
        (
            NoSelect,
            toleration(Some(key), Other, value, None),
            false,
            false,
        ),
        (
            NoSelect,
            toleration(Some(key), Exists, empty, Some(NoSelect)),
            true,
            true,
        ),
        (
            NoSelect,
            toleration(Some(key), Exists, empty, Some(NoSelectIfNew)),
            false,
            false,
        ),
        (NoSelectIfNew, None, false, true),
        (
            NoSelectIfNew,
            toleration(Some(key), Exists, empty, None),
            true,
            true,
        ),
        (
            NoSelectIfNew,
            toleration(Some(other), Exists, empty, None),
            false,
            true,
        ),
        (PreferNoSelect, None, true, true),
    ] {
        let taint = ClusterTaint {
            key,
            value,
            effect,
            added: None,
        };
        let cluster = world.name("c");
        world.hub.set_cluster(ClusterFact {
            taints: [taint.clone()].into(),
            ..ClusterFact::named(cluster)
        });
        world.placement.spec.tolerations = toleration.iter().cloned().collect();
        for (is_held, expected) in [(false, new), (true, held)] {
            let decided: &[&str] = if is_held { &["c"] } else { &[] };
            world.decision("d", "p", decided);
            let verdict = world.explain().verdicts.remove(0).1;
            match expected {
                true => assert_eq!(verdict, Verdict::Selected(0), "{effect:?} {toleration:?}"),
                false => assert_eq!(verdict, Verdict::Taint(taint.clone()), "{toleration:?}"),
            }
        }
    }
}

#[test]
fn the_end_of_a_toleration_is_looked_at_again() {
    let mut world = three();
    let key = world.name("key1");
    for (name, age) in [("cluster1", 8), ("cluster2", 9), ("cluster3", 10)] {
        let cluster = world.name(name);
        let added = Some(Instant::from_secs(NOW.secs() - age));
        let (value, effect) = (well_known::EMPTY, TaintEffect::NoSelect);
        world.hub.set_cluster(ClusterFact {
            taints: [ClusterTaint {
                key,
                value,
                effect,
                added,
            }]
            .into(),
            ..ClusterFact::named(cluster)
        });
    }
    world.decision("d", "p", &["cluster1", "cluster2"]);
    world.placement.spec.tolerations = [ClusterToleration {
        key: Some(key),
        operator: TolerationOperator::Exists,
        value: well_known::EMPTY,
        effect: None,
        seconds: Some(10),
    }]
    .into();
    assert_eq!(world.picks(), ["cluster1", "cluster2"]);
    assert_eq!(
        world.decide().later,
        Some(Instant::from_secs(NOW.secs() + 1))
    );
    world.placement.spec.tolerations[0].seconds = Some(i64::MAX);
    assert_eq!(
        (world.picks().len(), world.decide().later),
        (3, None),
        "no overflow"
    );
    world.placement.spec.tolerations[0].seconds = Some(i64::MIN);
    assert_eq!(world.picks().len(), 0);
}

#[test]
fn balance_outweighed_by_steady_and_by_nothing() {
    let mut world = three().number(1);
    world.decision("o1", "other", &["cluster1", "cluster2"]);
    assert_eq!(world.picks(), ["cluster3"]);
    let mut world = three().number(1);
    world.decision("o1", "o1", &["cluster2", "cluster3"]);
    world.decision("o2", "o2", &["cluster1", "cluster2"]);
    world.decision("d", "p", &["cluster3"]);
    assert_eq!(world.picks(), ["cluster3"], "0 + 100 against 0");
}
