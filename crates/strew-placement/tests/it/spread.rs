//! The worked example and the vectors of spec/placement §3.5, number by number, and the rules of §3.7.

use strew_placement::explain::{self, Detail};
use strew_placement::facts::placement::{
    Rebalance, ScoreCoordinate, TopologyKeyType, TopologyWeights,
};
use strew_placement::{Exclusion, LimitedBy, NoCel, Verdict};

use crate::world::{HubWithPlacement, NOW, policy};

/// The OCM spread proposal, "Implementation Example".
const EXAMPLE: &str = "
    c1 50 region=us-east zone=1a
    c2 50 region=us-east zone=1a
    c3  0 region=us-east zone=1b
    c4  0 region=us-west zone=w1a
    c5 50 region=us-west zone=w1a";

fn example(n: i32) -> HubWithPlacement {
    let world = HubWithPlacement::new().clusters(EXAMPLE).weight(2);
    world.spread(&["region soft 1", "zone hard 1"]).number(n)
}

/// A pick as text: the counts, the excluded clusters, the scores of the others, the pick.
fn picture(world: &HubWithPlacement, pick: usize) -> String {
    let report = &world.explain().picks[pick];
    let mut lines = Vec::new();
    for (tuple, count) in &report.counts {
        let tuple: Vec<String> = tuple.iter().map(|&v| world.text(v)).collect();
        lines.push(format!("({}) {count}", tuple.join(", ")));
    }
    lines.sort();
    for &(cluster, key, by) in &report.excluded {
        let (cluster, key) = (world.text(cluster), world.text(key));
        let Exclusion::MaxSkew(check) = by else {
            panic!("{by:?}");
        };
        lines.push(format!(
            "{cluster} excluded by {key}: {}",
            strew_placement::explain::sum(check)
        ));
    }
    for score in &report.scores {
        lines.push(format!(
            "{} {:?} {} {} {}",
            world.text(score.cluster),
            score.levels,
            score.spread,
            score.normalized,
            score.total
        ));
    }
    lines.push(format!("-> {}", world.text(report.picked)));
    lines.join("\n")
}

#[test]
fn the_worked_example_of_the_proposal_number_by_number() {
    let world = example(5);
    let none_yet = "(us-east) 0\n(us-east, 1a) 0\n(us-east, 1b) 0\n(us-west) 0\n(us-west, w1a) 0";
    assert_eq!(
        picture(&world, 0),
        format!(
            "{none_yet}\nc1 [0, 0] 0 0 50\nc2 [0, 0] 0 0 50\nc3 [0, 0] 0 0 0\nc4 [0, 0] 0 0 0\nc5 [0, 0] 0 0 50\n-> c1"
        )
    );
    assert_eq!(
        picture(&world, 1),
        "(us-east) 1\n(us-east, 1a) 1\n(us-east, 1b) 0\n(us-west) 0\n(us-west, w1a) 0\n\
         c2 excluded by zone: 1 there + 1 this cluster - 0 in the emptiest topology = 2 > maxSkew 1\n\
         c3 [0, 63] 63 -100 -200\n\
         c4 [63, 0] 4032 100 200\n\
         c5 [63, 0] 4032 100 250\n\
         -> c5"
    );
    assert_eq!(
        picture(&world, 2),
        "(us-east) 1\n(us-east, 1a) 1\n(us-east, 1b) 0\n(us-west) 1\n(us-west, w1a) 1\n\
         c2 excluded by zone: 1 there + 1 this cluster - 0 in the emptiest topology = 2 > maxSkew 1\n\
         c3 [0, 63] 63 100 200\n\
         c4 [0, 0] 0 -100 -200\n\
         -> c3"
    );
    assert_eq!(
        picture(&world, 3),
        "(us-east) 2\n(us-east, 1a) 1\n(us-east, 1b) 1\n(us-west) 1\n(us-west, w1a) 1\n\
         c2 [0, 0] 0 -100 -150\n\
         c4 [63, 0] 4032 100 200\n\
         -> c4"
    );
    assert_eq!(world.picks(), ["c1", "c5", "c3", "c4", "c2"]);
    assert_eq!(example(2).picks(), ["c1", "c5"]);
}

/// Clusters of each kind, with their numbers: `4 region=us-east zone=1a`.
fn kinds(kinds: &[&str]) -> HubWithPlacement {
    let mut world = HubWithPlacement::new();
    for (i, kind) in kinds.iter().enumerate() {
        let mut words = kind.split(' ');
        let n: usize = words
            .next()
            .expect("it is there")
            .parse()
            .expect("it is there");
        let labels: Vec<&str> = words.collect();
        for k in 0..n {
            world.cluster(&format!("{}{k:03}", (b'a' + i as u8) as char), 0, &labels);
        }
    }
    world.weight(2)
}

/// The number of picked clusters of each kind.
fn counts(world: &HubWithPlacement, kinds: usize) -> Vec<usize> {
    let picks = world.picks();
    let of = |kind| {
        picks
            .iter()
            .filter(|p| p.as_bytes()[0] == b'a' + kind as u8)
            .count()
    };
    (0..kinds).map(of).collect()
}

#[test]
fn use_case_2_two_zones_get_two_each() {
    let world = kinds(&["4 zone=1a", "4 zone=1b"])
        .spread(&["zone soft 1"])
        .number(4);
    assert_eq!(counts(&world, 2), [2, 2]);
}

#[test]
fn use_case_3_a_hard_limit_leaves_one_unscheduled() {
    let zones = ["3 zone=1a", "1 zone=1b"];
    let one = kinds(&zones).spread(&["zone hard 1"]).number(4);
    assert_eq!((counts(&one, 2), one.decide().unscheduled), (vec![2, 1], 1));
    let two = kinds(&zones).spread(&["zone hard 2"]).number(4);
    assert_eq!((counts(&two, 2), two.decide().unscheduled), (vec![3, 1], 0));
}

#[test]
fn use_case_4_regions_first_then_zones() {
    let fleet = [
        "4 region=us-east zone=1a",
        "4 region=us-east zone=1b",
        "4 region=us-west zone=w",
    ];
    let expected = [
        [1, 0, 0],
        [1, 0, 1],
        [1, 1, 1],
        [1, 1, 2],
        [2, 1, 2],
        [2, 1, 3],
        [2, 2, 3],
        [2, 2, 4],
    ];
    for (n, expected) in (1..).zip(expected) {
        let world = kinds(&fleet)
            .spread(&["region soft 1", "zone soft 1"])
            .number(n);
        assert_eq!(counts(&world, 3), expected, "n = {n}");
    }
    let hard = kinds(&fleet).spread(&["region hard 1", "zone hard 1"]);
    assert_eq!(counts(&hard, 3), [3, 2, 4], "9 of 12");
    assert_eq!(hard.decide().unscheduled, 0, "all that may be selected are");
}

#[test]
fn an_exhausted_zone_does_not_flatten_the_others() {
    for (n, expected) in [(11, [1, 5, 5]), (31, [1, 15, 15]), (53, [1, 26, 26])] {
        for seed in 0..20u64 {
            let mut dice = strew_model::Prng::new(seed);
            let mut world = HubWithPlacement::new();
            for (zone, clusters) in [("a", 1), ("b", 26), ("c", 26)] {
                for k in 0..clusters {
                    let prior = dice.between(0, 40) as i32 - 20;
                    let label = format!("zone={zone}");
                    world.cluster(&format!("{zone}{k:03}"), prior, &[&label]);
                }
            }
            let world = world.weight(2).spread(&["zone soft 1"]).number(n);
            assert_eq!(counts(&world, 3), expected, "n = {n}, seed {seed}");
        }
    }
}

#[test]
fn equal_zone_names_in_two_regions_are_two_topologies() {
    let fleet = ["3 region=e zone=1", "3 region=w zone=1"];
    let world = kinds(&fleet)
        .spread(&["region soft 9", "zone hard 1"])
        .number(6);
    assert_eq!(counts(&world, 2), [3, 3]);
    assert_eq!(world.decide().spread.expect("it is there").topologies, 2);
}

#[test]
fn a_cluster_without_the_key_of_a_hard_term_is_not_eligible_and_of_a_soft_one_is() {
    let fleet = "
        a 0 region=e zone=1
        b 0 region=e
        c 0 zone=1";
    let with = |terms: &[&str]| {
        HubWithPlacement::new()
            .clusters(fleet)
            .weight(2)
            .spread(terms)
    };
    assert_eq!(
        with(&["region soft 1", "zone soft 1"]).picks(),
        ["a", "b", "c"]
    );
    let hard = with(&["region hard 1"]);
    assert_eq!(hard.picks(), ["a", "b"]);
    let names = &hard.hub.names;
    let verdicts = hard.explain().verdicts;
    assert_eq!(
        verdicts[2].1,
        Verdict::LacksTopologyKey(names.get("region").expect("it is there"))
    );
    // The tuple of c ends before the region, so no limit of a zone applies to it, but it has the hard key.
    let below = with(&["region soft 1", "zone hard 1"]);
    assert_eq!(below.picks(), ["a", "c"]);
}

#[test]
fn a_term_reads_its_own_source_only() {
    let mut world = HubWithPlacement::new()
        .clusters("a 0 zone=1\nb 0 zone=2")
        .spread(&["zone hard 1"]);
    assert_eq!(world.picks().len(), 2);
    world.placement.spec.spread[0].key_type = TopologyKeyType::Claim;
    assert_eq!(world.picks().len(), 0, "nobody has a claim zone");
}

#[test]
fn a_region_that_is_gone_no_longer_holds_the_minimum() {
    let mut world = kinds(&["3 zone=1a", "1 zone=1b"])
        .spread(&["zone hard 1"])
        .number(4);
    assert_eq!(counts(&world, 2), [2, 1]);
    let gone = world.name("b000");
    world.hub.remove_cluster(gone);
    assert_eq!(counts(&world, 2), [3, 0]);
}

#[test]
fn a_hard_limit_holds_whatever_the_weight_and_a_negative_weight_packs() {
    let fleet = ["4 zone=1a", "4 zone=1b"];
    for (weight, terms, expected) in [
        (0, "zone hard 1", [2, 2]),
        (0, "zone soft 1", [4, 0]),
        (-2, "zone soft 1", [4, 0]),
        (-2, "zone hard 2", [3, 1]),
        (2, "zone soft 1", [2, 2]),
    ] {
        let world = kinds(&fleet).weight(weight).spread(&[terms]).number(4);
        assert_eq!(counts(&world, 2), expected, "{weight} {terms}");
    }
}

#[test]
fn surviving_decisions_stay_where_rebalancing_is_off() {
    let fleet = ["4 zone=1a", "4 zone=1b"];
    let mut world = kinds(&fleet).spread(&["zone hard 1"]).number(4);
    world.hold(&["a000", "a001", "a002"].map(str::to_owned));
    assert_eq!(counts(&world, 2), [2, 2], "the surplus goes at once");
    world.placement.spec.rebalance = Rebalance::Never;
    assert_eq!(counts(&world, 2), [3, 1]);
    let report = world.decide().spread.expect("it is there");
    assert_eq!(report.skews[0].1, 2);
    assert_eq!(
        report.exceeded.expect("it is there").there,
        3,
        "a broken limit is reported, not healed"
    );
    let fewer = world.number(2);
    assert_eq!(counts(&fewer, 2), [2, 0], "not more than are asked for");
}

#[test]
fn limits_are_reported_with_who_is_blocked_and_who_lacks_a_key() {
    let mut world = kinds(&["3 zone=1a", "1 zone=1b"])
        .spread(&["zone hard 1"])
        .number(6);
    world.cluster("z", 0, &[]);
    let report = world.decide().spread.expect("it is there");
    let limited = report.limited.expect("it is there");
    assert_eq!((report.selected, report.asked), (3, 6));
    assert_eq!(
        (limited.by, limited.blocked, limited.lacking),
        (LimitedBy::MaxSkew(1), 1, 1)
    );
    let verdicts = world.explain().verdicts;
    let Verdict::Excluded(_, Exclusion::MaxSkew(check)) = &verdicts[2].1 else {
        panic!("{verdicts:?}");
    };
    assert_eq!((check.there, check.skew()), (2, 2));
}

/// Enough clusters are found, although the limit excluded one from the last pick: no cluster was better than it.
#[test]
fn a_cluster_that_a_limit_excluded_is_not_said_to_have_lost_to_others() {
    // Of two equal clusters the first is taken; then comes the other zone, and after that both may hold one more.
    let even = kinds(&["2 zone=1a", "1 zone=1b"])
        .spread(&["zone hard 1"])
        .number(2);
    let sum = "1 there + 1 this cluster - 0 in the emptiest topology = 2 > maxSkew 1";
    let better = "better";
    for (world, expected) in [
        (
            example(2),
            vec![
                ("c1", "0"),
                ("c2", sum),
                ("c3", better),
                ("c4", better),
                ("c5", "1"),
            ],
        ),
        (even, vec![("a000", "0"), ("a001", sum), ("b000", "1")]),
    ] {
        let told = world
            .explain()
            .verdicts
            .into_iter()
            .map(|(cluster, verdict)| {
                let told = match verdict {
                    Verdict::Selected(rank) => rank.to_string(),
                    Verdict::Excluded(_, Exclusion::MaxSkew(check)) => {
                        strew_placement::explain::sum(check).to_string()
                    }
                    Verdict::NotNeeded => better.to_owned(),
                    verdict => panic!("{verdict:?}"),
                };
                (world.text(cluster), told)
            });
        let told: Vec<_> = told.collect();
        let told: Vec<_> = told.iter().map(|(c, t)| (&**c, &**t)).collect();
        assert_eq!(told, expected);
    }
}

#[test]
fn an_explanation_stays_within_bounds() {
    for (clusters, picks) in [(300, 200), (3_000, 68)] {
        let half = clusters / 2;
        let fleet = [format!("{half} zone=1a"), format!("{half} zone=1b")];
        let fleet: Vec<&str> = fleet.iter().map(String::as_str).collect();
        let world = kinds(&fleet).spread(&["zone soft 1"]).number(250);
        let told = world.explain().picks;
        assert_eq!(
            told.len(),
            picks,
            "200 picks, or 200,000 scores and those of one pick"
        );
    }
}

/// The text of the condition about the spread.
fn told(world: &HubWithPlacement) -> String {
    let spread = world.decide().spread.expect("there are terms");
    let (_, reason, message) = strew_placement::conditions::spread(&spread, &world.hub.names);
    format!("{}: {message}", reason.name())
}

/// Issue 32, keyless.json: ties went by name, and edge-1 to edge-3 came before zone b.
#[test]
fn clusters_without_the_key_of_a_soft_term_come_last() {
    let edges = "edge-1 0\nedge-2 0\nedge-3 0\n";
    let zones = "za-1 0 zone=za\nza-2 0 zone=za\nzb-1 0 zone=zb\nzb-2 0 zone=zb";
    let world = HubWithPlacement::new().clusters(&format!("{edges}{zones}"));
    let world = world.weight(2).spread(&["zone soft 1"]).number(5);
    assert_eq!(world.picks(), ["za-1", "zb-1", "za-2", "zb-2", "edge-1"]);
    assert_eq!(
        told(&world),
        "SpreadSatisfied: 5 clusters over 2 topologies, max skew zone 0; 1 lacks zone"
    );
    // A prioritizer may still prefer one: the term is a preference.
    let world = HubWithPlacement::new().clusters(&format!("edge-1 500\n{zones}"));
    let world = world.weight(2).spread(&["zone soft 1"]).number(1);
    assert_eq!(world.picks(), ["edge-1"]);
}

/// The zones of a region without such clusters are not worse than those of a region with some.
#[test]
fn clusters_without_a_lower_key_come_after_the_zones_of_every_region() {
    let world = HubWithPlacement::new().clusters(
        "a-0 0 region=a
         a-1 0 region=a zone=x
         b-1 10 region=b zone=y
         c-0 0",
    );
    let world = world.weight(2).spread(&["region soft 1", "zone soft 1"]);
    assert_eq!(world.number(4).picks(), ["b-1", "a-1", "a-0", "c-0"]);
}

/// Issue 32, key-pattern3.json and use5typo.yaml.
#[test]
fn what_no_cluster_has_is_told_by_the_condition() {
    let fleet = "a-1 0 zone=a\na-2 0 zone=a\nb-1 0 zone=b";
    let world = |term| {
        HubWithPlacement::new()
            .clusters(fleet)
            .weight(2)
            .spread(&[term])
            .number(3)
    };
    assert_eq!(
        told(&world("zoen soft 1")),
        "SpreadKeyMissing: no cluster has the label zoen: 3 clusters not spread by it"
    );
    assert_eq!(
        told(&world("zoen hard 1")),
        "SpreadLimited: 0 of 3 selected: 3 clusters without the key of a DoNotSchedule term, zoen first; \
         no cluster has the label zoen"
    );
    let mut weighted = world("zone soft 1");
    let values = [("a", 2), ("d", 3)].map(|(value, weight)| (weighted.name(value), weight));
    weighted.placement.spec.spread[0].weights = Some(TopologyWeights {
        values: values.into(),
        default: 1,
    });
    assert_eq!(
        told(&weighted),
        "SpreadSatisfied: 3 clusters over 2 topologies, max skew zone 0; no cluster has zone=d, which has weight 3"
    );
    assert_eq!(
        told(
            &HubWithPlacement::new()
                .clusters("")
                .weight(2)
                .spread(&["zone soft 1"])
                .number(0)
        ),
        "SpreadSatisfied: 0 clusters over 0 topologies, max skew zone 0"
    );
}

/// The published run assumes its own result: the reason is in the run before.
#[test]
fn an_explanation_has_the_numbers_that_decided_first() {
    let mut world = HubWithPlacement::new().clusters("a-1 0 zone=a\na-2 0 zone=a\nb-1 0 zone=b");
    world.placement.spec.prioritizers =
        policy("Exact", &[(ScoreCoordinate::BuiltIn("Steady".into()), 1)]);
    let mut world = world.spread(&["zone hard 1"]).number(2);
    let explained = world.explain();
    assert_eq!(explained.schedule.runs, 2);
    let numbers: Vec<(String, i64)> = explained
        .selected
        .iter()
        .map(|s| (world.text(s.cluster), s.score))
        .collect();
    assert_eq!(numbers, [("a-1".to_owned(), 0), ("b-1".to_owned(), 0)]);
    world.hold(&["a-2".to_owned(), "b-1".to_owned()]);
    let held = world.explain();
    assert_eq!(held.selected[0].score, 100);
    assert_eq!(world.text(held.selected[0].cluster), "a-2");
    // An outline has the same numbers of the selected clusters, and nothing else.
    let outline = explain::with_detail(&world.hub, NOW, &world.placement, &NoCel, Detail::Outline);
    assert_eq!(outline.selected, held.selected);
    assert_eq!(outline.topologies, held.topologies);
    assert!(outline.picks.is_empty() && outline.verdicts.is_empty());
}
