//! Bounds on the number of topologies. Source: spec/placement §3.10.

use strew_placement::facts::placement::{GroupBounds, Rebalance};
use strew_placement::facts::status::ConditionReason;
use strew_placement::{Exclusion, Verdict, conditions};

use crate::slow::Case;
use crate::world::HubWithPlacement;

fn cases() -> impl Iterator<Item = (u64, Case)> {
    let asked = std::env::var("STREW_INSTANCES").ok();
    let n = asked.and_then(|n| n.parse().ok()).unwrap_or(1_000);
    (0..n).map(|seed| (seed, Case::random(seed)))
}

fn picks(case: &Case) -> Vec<usize> {
    let picks = case.world().picks();
    picks
        .iter()
        .map(|p| p.parse().expect("it is there"))
        .collect()
}

#[test]
fn every_pick_is_that_of_the_slow_selector() {
    let (mut compared, mut bounded) = (0, 0);
    for (seed, case) in cases().filter(|(_, case)| case.is_plain()) {
        let picks = picks(&case);
        assert_eq!(picks, case.select(), "seed {seed}: {case:#?}");
        let mut unbounded = case;
        for term in &mut unbounded.terms {
            (term.min, term.max) = (None, None);
        }
        compared += 1;
        bounded += usize::from(unbounded.select() != picks);
    }
    assert!(
        bounded * 5 > compared,
        "bounds matter: {bounded} of {compared}"
    );
}

#[test]
fn bounds_and_limits_hold_at_every_prefix() {
    for (seed, case) in cases() {
        let picks = picks(&case);
        for end in 0..=picks.len() {
            assert!(
                case.holds(&picks[..end]),
                "seed {seed}: {:?} {case:#?}",
                &picks[..end]
            );
        }
    }
}

/// With one term: no selection within the bounds is larger, and the minimum is reached if it can be.
#[test]
fn no_selection_within_the_bounds_is_larger() {
    let mut n_cases = 0;
    for (seed, mut case) in cases() {
        case.terms.truncate(1);
        case.clusters
            .iter_mut()
            .for_each(|values| values.truncate(1));
        let (true, Some(n)) = (case.is_plain(), case.n) else {
            continue;
        };
        n_cases += 1;
        let picks = picks(&case);
        let eligible = case.eligible();
        let subset = |bits: u32| -> Vec<usize> {
            let chosen = (0..eligible.len()).filter(|i| bits >> i & 1 == 1);
            chosen.map(|i| eligible[i]).collect()
        };
        let all = (0..1u32 << eligible.len()).map(subset);
        let held = all.filter(|s| s.len() <= n && case.holds(s));
        let largest = held.map(|s| s.len()).max().unwrap_or(0);
        assert_eq!(picks.len(), largest, "seed {seed}: {picks:?} {case:#?}");
        let there = case.used(&eligible, 0).len();
        let wanted = case.terms[0].min.unwrap_or(0) as usize;
        let used = case.used(&picks, 0).len();
        assert!(
            used >= wanted.min(there).min(n),
            "seed {seed}: {picks:?} {case:#?}"
        );
    }
    assert!(n_cases > 200, "{n_cases} cases");
}

/// Three regions: a with 1 cluster, b and c with 5 each.
fn regions(term: &str, min: Option<i64>, max: Option<i64>, n: i32) -> HubWithPlacement {
    let mut world = HubWithPlacement::new();
    for (region, size) in [("a", 1), ("b", 5), ("c", 5)] {
        for i in 0..size {
            world.cluster(&format!("{region}{i}"), 0, &[&format!("region={region}")]);
        }
    }
    let mut world = world.weight(2).spread(&[term]).number(n);
    world.placement.spec.spread[0].groups = GroupBounds { min, max };
    world
}

/// The number of selected clusters in each region.
fn counts(world: &HubWithPlacement) -> [usize; 3] {
    let picks = world.picks();
    ["a", "b", "c"].map(|region| picks.iter().filter(|p| p.starts_with(region)).count())
}

#[test]
fn a_small_region_is_used_only_where_it_leaves_enough() {
    for (term, max, n, expected) in [
        ("region soft 1", 3, 6, [1, 3, 2]),
        ("region soft 1", 2, 6, [1, 5, 0]),
        ("region soft 1", 2, 7, [0, 4, 3]),
        ("region soft 1", 1, 1, [1, 0, 0]),
        ("region soft 1", 1, 2, [0, 2, 0]),
        // With `maxGroups` 1: region a has one cluster, each other region could hold two.
        ("region hard 1", 2, 3, [1, 2, 0]),
        ("region hard 1", 2, 4, [0, 2, 2]),
        ("region hard 1", 2, 10, [0, 5, 5]),
        // The request cannot be met: as many as possible are selected.
        ("region hard 1", 1, 11, [0, 5, 0]),
    ] {
        let world = regions(term, None, Some(max), n);
        assert_eq!(counts(&world), expected, "{term}, maxGroups {max}, n = {n}");
    }
}

#[test]
fn what_is_closed_holds_nobody_back() {
    // c is closed: its count of 0 is no minimum for the others.
    let world = regions("region hard 1", None, Some(2), 10);
    let decided = world.decide();
    let report = decided.spread.expect("it is there");
    assert_eq!((report.skews[0].1, report.groups[0].used), (0, 2));
    assert_eq!(report.too_few(), None);
}

#[test]
fn bounds_are_told_by_condition_and_verdicts() {
    let reason = |world: &HubWithPlacement| {
        let schedule = world.decide();
        let report = schedule.spread.as_ref().expect("it is there");
        let (status, reason, message) = conditions::spread(report, &world.hub.names);
        (status, reason, message.to_string())
    };
    let limited = regions("region soft 1", None, Some(2), 11);
    let (status, why, message) = reason(&limited);
    assert_eq!((status, why), (false, ConditionReason::SpreadLimited));
    assert_eq!(
        message,
        "10 of 11 selected: region maxGroups 2 allows no more; blocked 1 cluster, 0 lack a topology key"
    );
    let verdicts = limited.explain().verdicts;
    let region = verdicts[0].1.clone();
    let Verdict::Excluded(_, by) = region else {
        panic!("{region:?}");
    };
    assert_eq!(by, Exclusion::MaxGroups(2));
    for (term, selected, message) in [
        ("region soft 1", 6, "region has 3 groups, minGroups 4"),
        (
            "region hard 9",
            5,
            "region has 3 groups, minGroups 4; 5 of 6 selected",
        ),
    ] {
        let short = regions(term, Some(4), None, 6);
        assert_eq!(short.picks().len(), selected, "{term}");
        let expected = (
            false,
            ConditionReason::SpreadTooFewGroups,
            message.to_owned(),
        );
        assert_eq!(reason(&short), expected);
    }
    let none = regions("region hard 1", Some(2), None, 0);
    assert!(reason(&none).0, "nothing is asked for");
}

/// Priors and a negative weight prefer one region; the last picks are reserved for other regions.
#[test]
fn picks_are_kept_for_regions_that_are_still_missing() {
    let mut world = regions("region soft 1", Some(3), None, 5).weight(-2);
    world.placement.spec.spread[0].groups.min = Some(3);
    assert_eq!(counts(&world).iter().filter(|&&n| n > 0).count(), 3);
    world.placement.spec.spread[0].groups.min = Some(2);
    assert_eq!(counts(&world).iter().filter(|&&n| n > 0).count(), 2);
}

#[test]
fn survivors_stay_within_the_maximum_and_regardless_of_the_minimum() {
    let held: Vec<String> = ["a0", "b0", "c0"].map(str::to_owned).into();
    let mut world = regions("region soft 1", None, Some(2), 3);
    world.placement.spec.rebalance = Rebalance::Never;
    world.hold(&held);
    assert_eq!(counts(&world).iter().filter(|&&n| n > 0).count(), 2);
    let mut world = regions("region hard 1", Some(2), None, 3);
    world.placement.spec.rebalance = Rebalance::Never;
    world.hold(&["b0", "b1", "b2"].map(str::to_owned));
    assert_eq!(counts(&world), [0, 3, 0]);
}

#[test]
fn the_term_wins_over_the_annotation() {
    let mut world = regions("region soft 1", None, None, 6);
    let region = world.name("region");
    let bounds = |min, max| GroupBounds { min, max };
    world.placement.spec.topology_groups = Ok([(region, bounds(None, Some(1)))].into());
    assert_eq!(counts(&world), [0, 5, 0]);
    world.placement.spec.spread[0].groups = bounds(Some(2), Some(2));
    assert_eq!(counts(&world), [1, 5, 0]);
}

#[test]
fn bounds_that_contradict_are_misconfigured() {
    for (min, max, n, message) in [
        (Some(0), None, 6, "minGroups must be at least 1"),
        (None, Some(0), 6, "maxGroups must be at least 1"),
        (None, Some(-3), 6, "maxGroups must be at least 1"),
        (Some(3), Some(2), 6, "minGroups 3 is more than maxGroups 2"),
        (
            Some(7),
            None,
            6,
            "minGroups 7 is more than numberOfClusters 6",
        ),
    ] {
        let world = regions("region soft 1", min, max, n);
        let strew_placement::Code::Misconfigured(problem) = world.decide().code else {
            panic!("{min:?} {max:?} {n}");
        };
        assert_eq!(
            problem.to_string(),
            format!("Spread:spreadConstraints[0]: {message}")
        );
    }
}
