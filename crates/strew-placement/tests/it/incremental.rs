//! Deciding only the placements that a fact can change gives the same result as deciding all of them.

use strew_model::{Instant, Prng, Selector, well_known};
use strew_placement::NoCel;
use strew_placement::facts::cluster::{Amounts, ClusterFact, ClusterTaint, TaintEffect};
use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
use strew_placement::facts::placement::{
    AddOnCoordinate, ClusterPredicates, ClusterToleration, DecisionGroup, DivideBy, Division,
    GroupBounds, PlacementSpec, ReplicaWeight, ScoreCoordinate, SpreadTerm, TolerationOperator,
    TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::facts::scores::ScoresFact;
use strew_placement::facts::status::ConditionType;
use strew_placement::machine::Input;

use crate::hub::Live;
use crate::world::{add_on, policy};

/// A random cluster, with taints.
fn cluster(live: &mut Live, dice: &mut Prng) -> Input {
    let name = format!("c{}", dice.between(0, 7));
    if dice.chance(1, 8) {
        return Input::ClusterGone(live.name(&name));
    }
    let value = |dice: &mut Prng| dice.between(0, 2).to_string();
    let (zone, tier, set, noise) = (value(dice), value(dice), value(dice), value(dice));
    let labels = [
        ("zone", zone.as_str()),
        ("tier", &tier),
        ("cluster.open-cluster-management.io/clusterset", &set),
        ("noise", &noise),
    ];
    let mut fact = live.cluster(&name, &labels[dice.between(0, 1) as usize..]);
    if dice.chance(1, 3) {
        let effects = [
            TaintEffect::NoSelect,
            TaintEffect::PreferNoSelect,
            TaintEffect::NoSelectIfNew,
        ];
        fact.taints = [ClusterTaint {
            key: live.name("tainted"),
            value: well_known::EMPTY,
            effect: *dice.pick(&effects),
            added: dice.chance(2, 3).then_some(live.now),
        }]
        .into();
    }
    fact.cpu = Amounts {
        allocatable: Some(dice.between(1, 3) as i64),
        capacity: Some(3),
    };
    fact.deleting = dice.chance(1, 10);
    Input::ClusterSet(fact)
}

fn placement(live: &mut Live, dice: &mut Prng) -> PlacementSpec {
    let (tier, zone) = (live.name("tier"), live.name("zone"));
    let value = live.name(&dice.between(0, 2).to_string());
    let mut spec = PlacementSpec {
        number_of_clusters: dice.chance(2, 3).then(|| dice.between(0, 5) as i32),
        ..PlacementSpec::default()
    };
    if dice.chance(1, 2) {
        spec.predicates = Ok([ClusterPredicates {
            labels: Selector::of_labels([(tier, value)]),
            ..ClusterPredicates::default()
        }]
        .into());
    }
    if dice.chance(1, 4) {
        spec.cluster_sets = [value].into();
    }
    let spreads = dice.chance(1, 2);
    if spreads {
        let hard = dice.chance(1, 2);
        spec.spread = [SpreadTerm {
            key: zone,
            key_type: TopologyKeyType::Label,
            max_skew: 1,
            when: match hard {
                true => WhenUnsatisfiable::DoNotSchedule,
                false => WhenUnsatisfiable::ScheduleAnyway,
            },
            weights: None,
            groups: Default::default(),
        }]
        .into();
    }
    if dice.chance(1, 2) {
        spec.tolerations = [ClusterToleration {
            key: Some(live.name("tainted")),
            operator: TolerationOperator::Exists,
            value: well_known::EMPTY,
            effect: None,
            seconds: dice.chance(1, 2).then_some(20),
        }]
        .into();
    }
    if dice.chance(1, 3) {
        spec.groups.groups = Ok([DecisionGroup {
            name: zone,
            labels: Selector::of_labels([(zone, value)]),
            claims: Selector::all_of(vec![]),
        }]
        .into());
    }
    let demo = live.name("demo");
    let mut entries = vec![
        (add_on(demo, demo), 1),
        (ScoreCoordinate::BuiltIn("Steady".into()), 1),
    ];
    // Upstream does not wait for the end of a toleration of clusters that are not held. With a spread, strew does.
    if spreads || spec.tolerations.is_empty() {
        entries.push((ScoreCoordinate::BuiltIn("ResourceAllocatableCPU".into()), 1));
    }
    spec.prioritizers = policy("Exact", &entries);
    if spreads && dice.chance(1, 2) {
        spec.spread[0].groups = GroupBounds {
            min: dice.chance(1, 2).then_some(1),
            max: Some(dice.between(1, 2) as i64),
        };
    }
    let entry = ReplicaWeight {
        labels: Selector::of_labels([(tier, value)]),
        claims: Selector::all_of(vec![]),
        weight: 3,
    };
    let by = match dice.between(0, 2) {
        0 => DivideBy::AllocatableCpu,
        1 => DivideBy::AddOn(AddOnCoordinate {
            resource: demo,
            score: demo,
        }),
        _ => DivideBy::Weights {
            entries: [entry].into(),
            default: 1,
        },
    };
    spec.replicas = Ok(dice.chance(1, 2).then_some(Division {
        total: dice.between(0, 20) as u32,
        by,
        min_per_cluster: dice.between(0, 1) as u32,
    }));
    spec
}

/// One random fact, or a pause.
fn step(live: &mut Live, dice: &mut Prng) {
    match dice.between(0, 9) {
        0..=4 => {
            let input = cluster(live, dice);
            live.tell(input);
        }
        5 => {
            let name = live.name(&dice.between(0, 2).to_string());
            let input = match dice.between(0, 3) {
                0 => Input::ClusterSetGone(name),
                1 => Input::BindingSet {
                    namespace: live.name("ns"),
                    name,
                },
                2 => Input::BindingGone {
                    namespace: live.name("ns"),
                    name: live.name("all"),
                },
                _ => Input::ClusterSetSet(ClusterSetFact {
                    name,
                    selector: SetSelector::Exclusive,
                }),
            };
            live.tell(input);
        }
        6 => {
            let (cluster, name) = (
                live.name(&format!("c{}", dice.between(0, 7))),
                live.name("demo"),
            );
            let until = dice
                .chance(1, 2)
                .then(|| Instant::from_secs(live.now.secs() + 15));
            live.tell(Input::ScoresSet(ScoresFact {
                cluster,
                name,
                values: [(name, dice.between(0, 200) as i32 - 100)].into(),
                valid_until: until,
            }));
        }
        7 => live.wait(dice.between(1, 30)),
        _ => {
            let spec = placement(live, dice);
            let name = format!("p{}", dice.between(0, 2));
            live.place(&name, spec);
        }
    }
}

#[test]
fn a_machine_that_starts_anew_finds_nothing_to_change() {
    let (mut writes, mut steps) = (0, 0);
    for seed in 0..150 {
        let mut dice = Prng::new(seed);
        let mut live = Live::new();
        for _ in 0..40 {
            step(&mut live, &mut dice);
            writes += live.rest();
            steps += 1;
            let mut fresh = live.restarted();
            let effect = fresh.poll_effect(&NoCel);
            assert_eq!(effect, None, "seed {seed}, step {steps}");
        }
    }
    assert!(
        writes > steps / 4,
        "something happens: {writes} writes in {steps} steps"
    );
}

#[test]
fn a_label_that_nobody_reads_runs_nobody() {
    let mut live = Live::new();
    for i in 0..4 {
        let fact = live.cluster(&format!("c{i}"), &[("tier", "1")]);
        live.tell(Input::ClusterSet(fact));
    }
    let tier = live.name("tier");
    for (i, value) in ["1", "2", "3"].iter().enumerate() {
        let value = live.name(value);
        let spec = PlacementSpec {
            predicates: Ok([ClusterPredicates {
                labels: Selector::of_labels([(tier, value)]),
                ..ClusterPredicates::default()
            }]
            .into()),
            ..PlacementSpec::default()
        };
        live.place(&format!("p{i}"), spec);
    }
    live.rest();
    for (labels, runs) in [
        (Some(vec![("tier", "1"), ("noise", "1")]), 0),
        (Some(vec![("tier", "2"), ("noise", "1")]), 2),
        (Some(vec![("tier", "9")]), 1),
        (Some(vec![("tier", "8")]), 0),
        // It leaves, and comes back.
        (None, 0),
        (Some(vec![("tier", "8")]), 0),
        (Some(vec![("tier", "3")]), 1),
        (None, 1),
        (Some(vec![("tier", "3")]), 1),
    ] {
        let before = live.machine.counters().decided;
        let name = live.name("c0");
        let input = match &labels {
            Some(labels) => Input::ClusterSet(live.cluster("c0", labels)),
            None => Input::ClusterGone(name),
        };
        live.tell(input);
        live.rest();
        // A placement's own writes run no placement.
        assert_eq!(live.machine.counters().decided - before, runs, "{labels:?}");
    }
}

/// A placement without candidates says so in its status: the last cluster that goes changes all placements, and so does
/// the first that comes.
#[test]
fn a_set_that_becomes_empty_is_seen_by_placements_that_no_cluster_passed() {
    let mut live = Live::new();
    let nowhere = live.name("nowhere");
    let labels = Selector::of_labels([(nowhere, nowhere)]);
    let predicates = ClusterPredicates {
        labels,
        ..ClusterPredicates::default()
    };
    let spec = PlacementSpec {
        predicates: Ok([predicates].into()),
        ..PlacementSpec::default()
    };
    live.place("p", spec);
    live.rest();
    let names = ["c0", "c1"].map(|name| live.name(name));
    let come = names.map(|name| Input::ClusterSet(ClusterFact::named(name)));
    let go = names.map(Input::ClusterGone);
    let (empty, unmatched) = ("AllManagedClusterSetsEmpty", "NoManagedClusterMatched");
    let expected = [unmatched, unmatched, unmatched, empty];
    for (input, reason) in come.into_iter().chain(go).zip(expected) {
        live.tell(input);
        live.rest();
        let condition = live.condition("p", ConditionType::Satisfied);
        let condition = condition.expect("it is there");
        assert!(condition.contains(reason), "{condition}");
    }
}
