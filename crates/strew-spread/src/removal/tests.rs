use super::*;

/// xorshift64*, for draws that a seed repeats: this crate has no dependency.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

/// A small cluster: zones with nodes, replicas on nodes, others' replicas that are counted too.
struct RandomReplicas {
    constraints: Vec<Constraint>,
    replicas: Vec<Replica>,
}

fn draw(draws: &mut Draws, n_constraints: usize, n_max: usize) -> RandomReplicas {
    let n_zones = 2 + draws.below(2);
    let zones: Vec<u32> = (0..n_zones as u32)
        .flat_map(|zone| vec![zone; 1 + draws.below(2)])
        .collect();
    let mut constraint = |of_node: &dyn Fn(usize) -> u32| {
        let mut tally = Tally::default();
        for node in 0..zones.len() {
            tally.add_place(DomainIdx(of_node(node)));
        }
        let limit = Limit {
            max_skew: 1 + draws.below(2) as i32,
            min_domains: 1 + draws.below(n_zones + 1) as i32,
        };
        Constraint {
            limit,
            tally,
            is_hard: true,
        }
    };
    let by_zone = |node: usize| zones[node];
    let by_node = |node: usize| node as u32;
    let mut constraints = vec![constraint(&by_zone), constraint(&by_node)];
    constraints.truncate(n_constraints);
    let domains = |node: usize| {
        let both = [by_zone(node), by_node(node)];
        both.into_iter().take(n_constraints).map(DomainIdx)
    };
    for _ in 0..draws.below(3) {
        let others = domains(draws.below(zones.len()))
            .map(Some)
            .collect::<Vec<_>>();
        add(&mut constraints, &others, 1);
    }
    let n = 1 + draws.below(n_max);
    let mut replica = |index: usize| {
        // Some nodes do not count.
        let is_counted = draws.below(12) > 0;
        let domains = domains(draws.below(zones.len())).map(|domain| is_counted.then_some(domain));
        Replica {
            domains: domains.collect(),
            stage: 0,
            preference: index as i64,
        }
    };
    let replicas: Vec<Replica> = (0..n).map(&mut replica).collect();
    for replica in &replicas {
        add(&mut constraints, &replica.domains, 1);
    }
    RandomReplicas {
        constraints,
        replicas,
    }
}

impl RandomReplicas {
    /// By number of removals: the breach of each choice of as many replicas, by a bit per replica.
    fn of_each_choice(&self) -> Vec<Breach> {
        let after = |choice: usize| {
            let mut constraints = self.constraints.clone();
            let gone = self.replicas.iter().enumerate();
            for (_, replica) in gone.filter(|(index, _)| choice >> index & 1 == 1) {
                remove(&mut constraints, &replica.domains);
            }
            Breach::of(&constraints)
        };
        (0..1 << self.replicas.len()).map(after).collect()
    }

    /// True if some order of `n` removals breaks nothing after any of them, by trying all.
    fn has_order(&self, of_choice: &[Breach], n: usize) -> bool {
        let mut reached = vec![false; of_choice.len()];
        reached[0] = of_choice[0].is_none();
        for choice in 0..of_choice.len() {
            if !reached[choice] {
                continue;
            }
            if choice.count_ones() as usize == n {
                return true;
            }
            for index in 0..self.replicas.len() {
                let next = choice | 1 << index;
                reached[next] |= of_choice[next].is_none();
            }
        }
        false
    }

    fn n_constraints(&self) -> usize {
        self.constraints.len()
    }
}

fn is_permutation(order: &[usize], n: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..n)
}

#[test]
fn wherever_an_order_keeps_all_constraints_it_is_found() {
    let mut draws = Draws(7);
    let (mut n_possible, mut n_random_holds) = ([0; 3], [0; 3]);
    for round in 0..2_000 {
        let world = draw(&mut draws, 1 + round % 2, 8);
        let n = world.replicas.len();
        let of_choice = world.of_each_choice();
        if !world.has_order(&of_choice, n) {
            continue;
        }
        let order = order(&world.constraints, &world.replicas);
        assert!(is_permutation(&order, n), "round {round}: {order:?}");
        let after = breaches(&world.constraints, &world.replicas, order.iter().copied());
        assert!(
            after.iter().all(|breach| breach.is_none()),
            "round {round}: {order:?} breaks {after:?}"
        );
        let mut random: Vec<usize> = (0..n).collect();
        for place in (1..n).rev() {
            random.swap(place, draws.below(place + 1));
        }
        let by_chance = breaches(&world.constraints, &world.replicas, random);
        let index = world.n_constraints();
        n_possible[index] += 1;
        n_random_holds[index] += usize::from(by_chance.iter().all(|breach| breach.is_none()));
    }
    assert_eq!((n_possible, n_random_holds), ([0, 433, 279], [0, 372, 231]));
}

#[test]
fn with_one_constraint_each_number_of_removals_ends_as_well_as_it_can() {
    let mut draws = Draws(11);
    let mut n_uneven = 0;
    for round in 0..1_000 {
        let world = draw(&mut draws, 1, 8);
        let of_choice = world.of_each_choice();
        n_uneven += usize::from(!of_choice[0].is_none());
        let order = order(&world.constraints, &world.replicas);
        let after = breaches(&world.constraints, &world.replicas, order);
        for (k, breach) in after.into_iter().enumerate() {
            let choices = of_choice.iter().enumerate();
            let as_many = choices.filter(|(choice, _)| choice.count_ones() as usize == k + 1);
            let best = as_many.map(|(_, breach)| *breach).min();
            assert_eq!(Some(breach), best, "round {round}: {} removed", k + 1);
        }
    }
    assert!(n_uneven > 200, "{n_uneven}");
}

/// 1,000 scale-downs by a random number of replicas, of workloads as a scheduler spreads them: the numbers of
/// docs/keep.md.
#[test]
fn a_thousand_random_scale_downs() {
    let mut draws = Draws(3);
    let (mut n, mut n_with, mut n_without) = (0, 0, 0);
    while n < 1_000 {
        let n_constraints = 1 + draws.below(2);
        let mut world = draw(&mut draws, n_constraints, 9);
        for constraint in &mut world.constraints {
            constraint.limit.max_skew = 1;
        }
        let k = 1 + draws.below(world.replicas.len());
        if !world.has_order(&world.of_each_choice(), k) {
            continue;
        }
        n += 1;
        let order = order(&world.constraints, &world.replicas);
        let after = breaches(&world.constraints, &world.replicas, order);
        n_with += usize::from(after[k - 1].is_none());
        let mut random: Vec<usize> = (0..world.replicas.len()).collect();
        for place in (1..random.len()).rev() {
            random.swap(place, draws.below(place + 1));
        }
        let by_chance = breaches(&world.constraints, &world.replicas, random);
        n_without += usize::from(by_chance[k - 1].is_none());
    }
    assert_eq!((n_with, n_without), (1_000, 891));
}

#[test]
fn lower_stages_go_first_and_preferences_decide_between_equals() {
    let zone = |zone: u32| -> Box<[Option<DomainIdx>]> { [Some(DomainIdx(zone))].into() };
    let replica = |domains, stage, preference| Replica {
        domains,
        stage,
        preference,
    };
    let replicas = [
        replica(zone(0), 1, 5),
        replica(zone(1), 1, 3),
        replica(zone(0), 1, 4),
        replica(zone(1), 1, 9),
        replica(zone(1), 0, 0),
    ];
    let constraints = [Constraint {
        limit: Limit {
            max_skew: 1,
            min_domains: 1,
        },
        tally: Tally::of_counts(vec![2, 3], vec![1, 1]),
        is_hard: true,
    }];
    assert_eq!(order(&constraints, &replicas), [4, 1, 2, 0, 3]);
    assert_eq!(order(&[], &replicas).len(), 5);
}

#[test]
fn preferences_give_way_to_requirements() {
    // By zone all is even; by rack the replicas of zone 0 stand alone.
    let domains = |zone, rack| [Some(DomainIdx(zone)), Some(DomainIdx(rack))];
    let replicas: Vec<Replica> = [(0, 0), (1, 0), (1, 0), (0, 1)]
        .into_iter()
        .map(|(zone, rack)| Replica {
            domains: domains(zone, rack).into(),
            stage: 0,
            preference: 0,
        })
        .collect();
    let limit = Limit {
        max_skew: 1,
        min_domains: 1,
    };
    let constraints = [
        Constraint {
            limit,
            tally: Tally::of_counts(vec![2, 2], vec![1, 1]),
            is_hard: true,
        },
        Constraint {
            limit,
            tally: Tally::of_counts(vec![3, 1], vec![1, 1]),
            is_hard: false,
        },
    ];
    let order = order(&constraints, &replicas);
    let after = breaches(&constraints, &replicas, order);
    assert!(after.iter().all(|breach| breach.hard == 0), "{after:?}");
    assert_eq!(after[0], Breach::default());
}

#[test]
fn a_thousand_replicas_on_three_hundred_nodes_are_within_the_bound() {
    let n_nodes = 300_u32;
    let domains = |node: u32| [Some(DomainIdx(node % 3)), Some(DomainIdx(node))];
    let replicas: Vec<Replica> = (0..4 * n_nodes)
        .map(|index| Replica {
            domains: domains(index % n_nodes).into(),
            stage: 0,
            preference: 0,
        })
        .collect();
    let constraint = |n: u32, max_skew| Constraint {
        limit: Limit {
            max_skew,
            min_domains: 1,
        },
        tally: Tally::of_counts(vec![0; n as usize], vec![1; n as usize]),
        is_hard: true,
    };
    let mut constraints = [constraint(3, 2), constraint(n_nodes, 1)];
    for replica in &replicas {
        add(&mut constraints, &replica.domains, 1);
    }
    let order = order(&constraints, &replicas);
    let after = breaches(&constraints, &replicas, order);
    assert!(after.iter().all(|breach| breach.is_none()));
}
