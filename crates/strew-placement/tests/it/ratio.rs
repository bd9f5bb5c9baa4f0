//! Spread by ratio: spec/placement §3.8, use case 5 of the OCM spread proposal.

use strew_placement::facts::placement::TopologyWeights;

use crate::world::HubWithPlacement;

/// Six clusters in each of two regions, weighted 2 to 1.
fn regions(term: &str, n: i32, east: i64, west: i64) -> HubWithPlacement {
    let mut world = HubWithPlacement::new();
    for region in ["us-east", "us-west"] {
        for k in 0..6 {
            world.cluster(&format!("{region}-{k}"), 0, &[&format!("region={region}")]);
        }
    }
    let mut world = world.weight(2).spread(&[term]).number(n);
    let weights = [("us-east", east), ("us-west", west)];
    let weights = weights.map(|(value, weight)| (world.name(value), weight));
    world.placement.spec.spread[0].weights = Some(TopologyWeights {
        values: weights.into(),
        default: 1,
    });
    world
}

fn counts(world: &HubWithPlacement) -> (usize, usize) {
    let picks = world.picks();
    let east = picks.iter().filter(|p| p.starts_with("us-east")).count();
    (east, picks.len() - east)
}

#[test]
fn two_thirds_east_one_third_west_at_every_size() {
    let expected = [
        (1, 0),
        (1, 1),
        (2, 1),
        (3, 1),
        (3, 2),
        (4, 2),
        (5, 2),
        (5, 3),
        (6, 3),
    ];
    for term in ["region soft 1", "region hard 1"] {
        for (n, expected) in (1..).zip(expected) {
            assert_eq!(counts(&regions(term, n, 2, 1)), expected, "{term}, n = {n}");
        }
    }
}

#[test]
fn equal_weights_are_no_weights() {
    for n in 1..=12 {
        let mut plain = regions("region hard 1", n, 1, 1);
        let weighted = plain.picks();
        for weight in [2, 7, 1000] {
            assert_eq!(
                regions("region hard 1", n, weight, weight).picks(),
                weighted
            );
        }
        plain.placement.spec.spread[0].weights = None;
        assert_eq!(plain.picks(), weighted);
    }
}

#[test]
fn the_term_wins_over_the_annotation() {
    let mut world = regions("region soft 1", 6, 2, 1);
    let (region, east) = (world.name("region"), world.name("us-east"));
    let annotated = TopologyWeights {
        values: [(east, 5)].into(),
        default: 1,
    };
    world.placement.spec.topology_weights = Ok([(region, annotated)].into());
    assert_eq!(counts(&world), (4, 2));
    world.placement.spec.spread[0].weights = None;
    assert_eq!(counts(&world), (5, 1));
}

#[test]
fn weight_nothing_is_a_last_resort_or_not_eligible() {
    assert_eq!(counts(&regions("region soft 1", 5, 1, 0)), (5, 0));
    assert_eq!(counts(&regions("region soft 1", 8, 1, 0)), (6, 2));
    assert_eq!(
        counts(&regions("region soft 1", 5, 0, 1)),
        (0, 5),
        "whatever the names"
    );
    let hard = regions("region hard 1", 8, 1, 0);
    assert_eq!(counts(&hard), (6, 0));
    assert_eq!(hard.decide().spread.unwrap().limited.unwrap().blocked, 6);
}
