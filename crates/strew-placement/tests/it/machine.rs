//! The machine: writes, conditions, events, time. Texts of spec/placement §2.7, §2.9, §2.13, §3.7.

use strew_model::{Instant, Selector, well_known};
use strew_placement::facts::cluster::{ClusterTaint, TaintEffect};
use strew_placement::facts::placement::{
    ClusterToleration, DecisionGroup, GroupSize, OnMisconfigured, PlacementSpec, SortBy,
    SpreadTerm, TolerationOperator, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::facts::scores::ScoresFact;
use strew_placement::facts::status::ConditionType::{Misconfigured, Satisfied, SpreadSatisfied};
use strew_placement::machine::Input;

use crate::hub::Live;
use crate::world::{add_on, policy};

/// `n` clusters from `c000` on, with labels.
fn live(n: usize, labels: &[(&str, &str)]) -> Live {
    let mut live = Live::new();
    for i in 0..n {
        let fact = live.cluster(&format!("c{i:03}"), labels);
        live.tell(Input::ClusterSet(fact));
    }
    live
}

fn number(n: i32) -> PlacementSpec {
    PlacementSpec {
        number_of_clusters: Some(n),
        ..PlacementSpec::default()
    }
}

/// The groups of a status: index, name, clusters.
fn groups(live: &Live) -> Vec<(u32, String, u32)> {
    let placement = live.placements.values().next().expect("it is there");
    let groups = placement.status.groups.iter();
    groups
        .map(|g| (g.index, live.text(g.name), g.clusters))
        .collect()
}

#[test]
fn a_new_decision_makes_three_events_and_two_writes() {
    let mut live = live(2, &[]);
    live.place("p", number(1));
    assert_eq!(live.rest(), 2);
    assert_eq!(
        live.events,
        [
            "DecisionCreate Decision p-decision-1 is created with placement p in namespace ns",
            "DecisionUpdate Decision p-decision-1 is updated with placement p in namespace ns",
            "ScoreUpdate c000:100 c001:100 ",
        ]
    );
    assert_eq!(live.held("p"), ["c000"]);
    let satisfied = live.condition("p", Satisfied).unwrap();
    assert_eq!(
        satisfied,
        "True AllDecisionsScheduled All cluster decisions scheduled"
    );
    let configured = live.condition("p", Misconfigured).unwrap();
    assert_eq!(
        configured,
        "False Succeedconfigured Placement configurations check pass"
    );
    assert_eq!(live.condition("p", SpreadSatisfied), None);
}

#[test]
fn conditions_say_what_upstream_says() {
    let mut live = live(2, &[]);
    live.place("p", number(3));
    live.rest();
    let not_all = "False NotAllDecisionsScheduled 1 cluster decisions unscheduled";
    assert_eq!(live.condition("p", Satisfied).unwrap(), not_all);
    live.place("p", number(0));
    live.rest();
    let none =
        "False NoManagedClusterMatched No ManagedCluster matches any of the cluster predicate";
    assert_eq!(live.condition("p", Satisfied).unwrap(), none);
    let other = live.name("other");
    live.place(
        "p",
        PlacementSpec {
            cluster_sets: [other].into(),
            ..number(1)
        },
    );
    live.rest();
    let none =
        "False NoIntersection None of ManagedClusterSets [other] is bound to placement namespace";
    assert_eq!(live.condition("p", Satisfied).unwrap(), none);
    live.place("p", number(1));
    for i in 0..2 {
        let name = live.name(&format!("c{i:03}"));
        live.tell(Input::ClusterGone(name));
    }
    live.rest();
    let empty = "False AllManagedClusterSetsEmpty All ManagedClusterSets [all] have no member ManagedCluster";
    assert_eq!(live.condition("p", Satisfied).unwrap(), empty);
    let (namespace, name) = (live.name("ns"), live.name("all"));
    live.tell(Input::BindingGone { namespace, name });
    live.rest();
    let unbound = "False NoManagedClusterSetBindings No valid ManagedClusterSetBindings found in placement namespace";
    assert_eq!(live.condition("p", Satisfied).unwrap(), unbound);
    assert_eq!(
        groups(&live),
        [(0, String::new(), 0)],
        "one empty PlacementDecision stays"
    );
    assert_eq!(live.decisions.len(), 1);
}

#[test]
fn what_makes_no_sense_is_told_in_exact_words() {
    let mut live = live(2, &[]);
    let toleration = |key, operator, value| ClusterToleration {
        key,
        operator,
        value,
        effect: None,
        seconds: None,
    };
    let (key, value) = (live.name("key1"), live.name("value1"));
    let tolerates = |toleration| PlacementSpec {
        tolerations: [toleration].into(),
        ..number(1)
    };
    let prioritized = |mode: &str, entries: &[_]| PlacementSpec {
        prioritizers: policy(mode, entries),
        ..number(1)
    };
    let built_in =
        |name: &str| strew_placement::facts::placement::ScoreCoordinate::BuiltIn(name.into());
    let zone = live.name("zone");
    let term = |kind: TopologyKeyType| SpreadTerm {
        key: zone,
        key_type: kind,
        max_skew: 1,
        when: WhenUnsatisfiable::ScheduleAnyway,
        weights: None,
        groups: Default::default(),
    };
    let spread = |terms: &[SpreadTerm]| PlacementSpec {
        spread: terms.into(),
        ..number(1)
    };
    let label = || term(TopologyKeyType::Label);
    let mut nothing_named = policy("", &[(built_in("Steady"), 1)]);
    nothing_named.configurations[0].coordinate = None;
    let grouped = |size| {
        let mut spec = number(1);
        spec.groups.size = size;
        spec
    };
    for (spec, expected) in [
        (number(-1), ":numberOfClusters must not be negative"),
        (number(i32::MIN), ":numberOfClusters must not be negative"),
        (
            tolerates(toleration(
                None,
                TolerationOperator::Equal,
                well_known::EMPTY,
            )),
            "TaintToleration:If the key is empty, operator must be Exists.",
        ),
        (
            tolerates(toleration(Some(key), TolerationOperator::Exists, value)),
            "TaintToleration:If the operator is Exists, the value should be empty.",
        ),
        (
            PlacementSpec {
                predicates: Err("compilation failed: x".into()),
                ..number(1)
            },
            "Predicate:compilation failed: x",
        ),
        (
            prioritized("Some", &[]),
            ":incorrect prioritizer policy mode: Some",
        ),
        (
            prioritized("Exact", &[(built_in("Best"), 1)]),
            ":incorrect builtin prioritizer: Best",
        ),
        (
            PlacementSpec {
                prioritizers: nothing_named,
                ..number(1)
            },
            ":scoreCoordinate field is required",
        ),
        (
            prioritized(
                "",
                &[(
                    strew_placement::facts::placement::ScoreCoordinate::AddOn(None),
                    1,
                )],
            ),
            ":addOn should not be empty",
        ),
        (
            spread(&[label(), label()]),
            "Spread:spreadConstraints[1]: duplicate topologyKey zone of type Label",
        ),
        (
            spread(&[term(TopologyKeyType::Unknown("Name".into()))]),
            "Spread:spreadConstraints[0]: unknown topologyKeyType: Name",
        ),
        (
            grouped(GroupSize::NotAPercentage("ten".into())),
            ":ten invalid type: string is not a percentage",
        ),
    ] {
        live.place("p", number(2));
        live.rest();
        assert_eq!(live.held("p").len(), 2);
        live.place(
            "p",
            PlacementSpec {
                on_misconfigured: OnMisconfigured::Keep,
                ..spec.clone()
            },
        );
        live.rest();
        assert_eq!(live.held("p").len(), 2, "kept on request: {expected}");
        live.place("p", spec);
        live.rest();
        let condition = live.condition("p", Misconfigured).unwrap();
        assert_eq!(condition, format!("True Misconfigured {expected}"));
        assert_eq!(
            live.held("p").len(),
            0,
            "emptied, as upstream does: {expected}"
        );
    }
    for spec in [
        number(i32::MAX),
        prioritized("Exact", &[(built_in("Best"), 0)]),
        prioritized(
            "Exact",
            &[
                (built_in("Steady"), i32::MAX),
                (built_in("Balance"), i32::MIN),
            ],
        ),
        grouped(GroupSize::Count(-3)),
        spread(&[label(), term(TopologyKeyType::Claim)]),
    ] {
        live.place("p", spec);
        live.rest();
        let condition = live.condition("p", Misconfigured).unwrap();
        assert_eq!(
            condition,
            "False Succeedconfigured Placement configurations check pass"
        );
    }
}

#[test]
fn decision_groups_are_cut_by_name_and_numbered_through() {
    for (n, size, canaries, expected) in [
        (10, GroupSize::Percent(100), None, vec![(0, "", 10)]),
        (101, GroupSize::Percent(100), None, vec![(0, "", 101)]),
        (
            4,
            GroupSize::Count(1),
            Some(2),
            vec![(0, "canary", 1), (1, "canary", 1), (2, "", 1), (3, "", 1)],
        ),
        (
            4,
            GroupSize::Percent(25),
            Some(2),
            vec![(0, "canary", 1), (1, "canary", 1), (2, "", 1), (3, "", 1)],
        ),
        (
            3,
            GroupSize::Percent(25),
            None,
            vec![(0, "", 1), (1, "", 1), (2, "", 1)],
        ),
        (3, GroupSize::Count(0), Some(0), vec![(0, "", 3)]),
        (0, GroupSize::Count(2), Some(0), vec![(0, "", 0)]),
    ] {
        let mut live = live(n, &[]);
        let (canary, tier) = (live.name("canary"), live.name("tier"));
        for i in 0..canaries.unwrap_or(0) {
            let fact = live.cluster(&format!("c{i:03}"), &[("tier", "canary")]);
            live.tell(Input::ClusterSet(fact));
        }
        let mut spec = PlacementSpec::default();
        spec.groups.size = size;
        if canaries.is_some() {
            spec.groups.groups = Ok([DecisionGroup {
                name: canary,
                labels: Selector::of_labels([(tier, canary)]),
                claims: Selector::all_of(vec![]),
            }]
            .into());
        }
        live.place("p", spec);
        live.rest();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(i, n, c)| (i, n.to_owned(), c))
            .collect();
        assert_eq!(groups(&live), expected);
        assert_eq!(live.rest(), 0, "nothing is written twice");
    }
}

#[test]
fn tolerated_taints_run_out() {
    let mut live = Live::new();
    let (key1, key2) = (live.name("key1"), live.name("key2"));
    let taint = |key, secs| ClusterTaint {
        key,
        value: well_known::EMPTY,
        effect: TaintEffect::NoSelect,
        added: Some(Instant::from_secs(secs)),
    };
    // I30 of the specification.
    for (name, taint) in [
        ("c1", Some(taint(key1, 1_000))),
        ("c2", Some(taint(key2, 1_000))),
        ("c3", Some(taint(key1, 940))),
        ("c4", None),
    ] {
        let mut fact = live.cluster(name, &[]);
        fact.taints = taint.into_iter().collect();
        live.tell(Input::ClusterSet(fact));
    }
    let toleration = |key, secs| ClusterToleration {
        key: Some(key),
        operator: TolerationOperator::Exists,
        value: well_known::EMPTY,
        effect: None,
        seconds: Some(secs),
    };
    let tolerations = [toleration(key1, 10), toleration(key2, 20)].into();
    live.place(
        "p",
        PlacementSpec {
            tolerations,
            ..number(4)
        },
    );
    live.rest();
    assert_eq!(live.held("p"), ["c1", "c2", "c4"]);
    live.wait(9);
    assert_eq!(live.held("p").len(), 3);
    live.wait(1);
    assert_eq!(live.held("p"), ["c2", "c4"]);
    live.wait(10);
    assert_eq!(live.held("p"), ["c4"]);
}

#[test]
fn scores_expire_and_say_so() {
    let mut live = live(3, &[]);
    let demo = live.name("demo");
    for (i, value) in [(0, 80), (1, 90), (2, 100)] {
        let cluster = live.name(&format!("c{i:03}"));
        live.tell(Input::ScoresSet(ScoresFact {
            cluster,
            name: demo,
            values: [(demo, value)].into(),
            valid_until: (i == 2).then_some(Instant::from_secs(1_010)),
        }));
    }
    let prioritizers = policy("Exact", &[(add_on(demo, demo), 1)]);
    live.place(
        "p",
        PlacementSpec {
            prioritizers,
            ..number(2)
        },
    );
    live.rest();
    assert_eq!(live.held("p"), ["c001", "c002"]);
    live.wait(10);
    assert_eq!(live.held("p"), ["c001", "c002"], "the last moment counts");
    live.events.clear();
    live.wait(1);
    assert_eq!(live.held("p"), ["c000", "c001"]);
    assert_eq!(
        live.events[0],
        "Warning DecisionUpdate Decision p-decision-1 is updated with placement p in namespace ns: \
         AddOnPlacementScores c002/demo expired in plugin AddOn/demo/demo"
    );
}

#[test]
fn scores_alone_are_written_once_in_a_while() {
    let mut live = live(2, &[]);
    let demo = live.name("demo");
    let score = |live: &mut Live, value| {
        let cluster = live.name("c001");
        live.tell(Input::ScoresSet(ScoresFact {
            cluster,
            name: demo,
            values: [(demo, value)].into(),
            valid_until: None,
        }));
        live.rest()
    };
    let prioritizers = policy("Exact", &[(add_on(demo, demo), 1)]);
    let spec = PlacementSpec {
        prioritizers,
        sort_by: SortBy::Score,
        ..PlacementSpec::default()
    };
    live.place("p", spec);
    live.rest();
    let scores = |live: &Live| -> Vec<(String, i64)> {
        let decisions = live.decisions.values().next().unwrap().decisions.iter();
        decisions
            .map(|d| (live.text(d.cluster), d.score.unwrap()))
            .collect()
    };
    assert_eq!(
        scores(&live),
        [("c000".to_owned(), 0), ("c001".to_owned(), 0)]
    );
    assert_eq!(score(&mut live, 50), 0, "within a minute of the last");
    live.wait(59);
    assert_eq!(scores(&live)[0].1, 0);
    live.wait(1);
    assert_eq!(
        scores(&live),
        [("c001".to_owned(), 50), ("c000".to_owned(), 0)]
    );
}

#[test]
fn a_deleted_decision_comes_back_and_labels_are_set_right() {
    let mut live = live(101, &[]);
    live.place("p", PlacementSpec::default());
    live.rest();
    assert_eq!((live.decisions.len(), live.held("p").len()), (2, 101));
    let key = *live.decisions.keys().next().unwrap();
    live.decisions.remove(&key);
    live.machine.handle(
        live.now,
        Input::DecisionGone {
            namespace: key.0,
            name: key.1,
        },
    );
    live.rest();
    assert_eq!(live.held("p").len(), 101);
    let fact = live.decisions.get_mut(&key).unwrap();
    fact.group.name = None;
    fact.revision += 1_000_000;
    let fact = fact.clone();
    live.machine.handle(live.now, Input::DecisionSet(fact));
    live.events.clear();
    assert_eq!(
        (live.rest(), live.events.len()),
        (1, 0),
        "labels alone make no event"
    );
    assert!(live.decisions[&key].group.name.is_some());
}

#[test]
fn spread_is_reported_and_a_new_limit_makes_an_event() {
    let mut live = Live::new();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")] {
        let fact = live.cluster(name, &[("zone", zone)]);
        live.tell(Input::ClusterSet(fact));
    }
    let zone = live.name("zone");
    let spec = |when, n| PlacementSpec {
        spread: [SpreadTerm {
            key: zone,
            key_type: TopologyKeyType::Label,
            max_skew: 1,
            when,
            weights: None,
            groups: Default::default(),
        }]
        .into(),
        ..number(n)
    };
    live.place("p", spec(WhenUnsatisfiable::DoNotSchedule, 2));
    live.rest();
    let spread = live.condition("p", SpreadSatisfied).unwrap();
    assert_eq!(
        spread,
        "True SpreadSatisfied 2 clusters over 2 topologies, max skew zone 0"
    );
    live.events.clear();
    live.place("p", spec(WhenUnsatisfiable::DoNotSchedule, 4));
    live.rest();
    let limited =
        "3 of 4 selected: zone maxSkew 1 allows no more; blocked 1 cluster, 0 lack a topology key";
    let spread = live.condition("p", SpreadSatisfied).unwrap();
    assert_eq!(spread, format!("False SpreadLimited {limited}"));
    assert_eq!(
        live.events.last().unwrap(),
        &format!("Warning SpreadLimited {limited}")
    );
    let unscheduled = "False NotAllDecisionsScheduled 1 cluster decisions unscheduled";
    assert_eq!(live.condition("p", Satisfied).unwrap(), unscheduled);
    live.place("p", spec(WhenUnsatisfiable::ScheduleAnyway, 4));
    live.rest();
    let spread = live.condition("p", SpreadSatisfied).unwrap();
    assert_eq!(spread, "False SpreadSkewExceeded zone=a has 3, minimum 1");
    live.place("p", number(4));
    live.rest();
    assert_eq!(live.condition("p", SpreadSatisfied), None);
}

#[test]
fn a_lost_write_is_tried_again() {
    let mut live = live(1, &[]);
    live.place("p", number(1));
    let lost = live.machine.poll_effect(&strew_placement::NoCel);
    assert!(lost.is_some());
    assert_eq!(
        live.rest(),
        0,
        "the next write waits for the outcome of the first"
    );
    live.wait(299);
    assert_eq!(live.held("p").len(), 0);
    live.wait(2);
    assert_eq!(live.held("p"), ["c000"]);
}

/// Issue 32: upstream records no event without a note.
#[test]
fn a_decision_without_scores_has_no_event_about_scores() {
    let mut live = live(1, &[]);
    live.place("p", number(1));
    live.rest();
    live.events.clear();
    let name = live.name("c000");
    live.tell(Input::ClusterGone(name));
    live.rest();
    assert_eq!(
        live.events,
        ["DecisionUpdate Decision p-decision-1 is updated with placement p in namespace ns"]
    );
}

/// Issue 32: upstream writes a decision again if another writer gave it a reason.
#[test]
fn a_reason_that_somebody_wrote_is_taken_out() {
    let mut live = live(1, &[]);
    live.place("p", number(1));
    live.rest();
    let fact = live.decisions.values_mut().next().expect("it is there");
    fact.has_reason = true;
    fact.revision += 1_000;
    let fact = fact.clone();
    live.machine.handle(live.now, Input::DecisionSet(fact));
    assert_eq!(live.rest(), 1);
    assert!(live.decisions.values().all(|fact| !fact.has_reason));
    assert_eq!(live.held("p"), ["c000"]);
}
