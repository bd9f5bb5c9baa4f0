//! Which costs make an order, with as few writes as possible.

use std::collections::{BTreeSet, VecDeque};

use strew_spread::DomainIdx;
use strew_spread::removal::{Breach, Constraint, Replica, breaches, order};

/// The difference between two costs when all are written: room for pods in between.
const STEP: i32 = 1_000;

/// A pod of a ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// For each constraint the domain in which it is counted; `None` if it is not counted.
    pub domains: Box<[Option<DomainIdx>]>,
    /// The place of its stage, which decides before its cost.
    pub stage: u32,
    /// True if it is on a node. Pods on no node get no cost: no rule can tell them apart.
    pub is_assigned: bool,
    /// The cost that strew wrote.
    pub cost: Option<i32>,
}

impl Candidate {
    /// The cost that a ReplicaSet's controller sees.
    fn effective(&self) -> i32 {
        self.cost.unwrap_or(0)
    }
}

/// The costs to write, by index; the pod that goes first comes first. Empty if the present costs are as good as any.
///
/// Of three ways that with the fewest writes is taken that leads to the best order: none; costs for pods without one;
/// all costs, of which as many stay as can.
///
/// A pod without a cost counts as 0, and the first costs are negative: as long as not all are written, the pods that go
/// first have theirs.
pub fn costs(constraints: &[Constraint], pods: &[Candidate]) -> Vec<(usize, i32)> {
    let replica = |pod: &Candidate| Replica {
        domains: pod.domains.clone(),
        stage: pod.stage,
        preference: pod.cost.map_or(i64::MAX, i64::from),
    };
    let replicas: Vec<Replica> = pods.iter().map(replica).collect();
    let ideal = order(constraints, &replicas);
    let best = breaches(constraints, &replicas, ideal.iter().copied());
    if let Some(present) = present_order(pods) {
        let mut after = breaches(constraints, &replicas, present)
            .into_iter()
            .zip(&best);
        if after.all(|(breach, best)| breach.is_within(*best)) {
            return Vec::new();
        }
    }
    let inserted = inserted(constraints, &replicas, pods, &ideal, &best);
    written(pods, &inserted.unwrap_or(ideal))
}

/// The pods with costs in their order, each one without a cost where it is needed first; `None` if no such order is as
/// good as the best one, or if costs are equal.
fn inserted(
    constraints: &[Constraint],
    replicas: &[Replica],
    pods: &[Candidate],
    ideal: &[usize],
    best: &[Breach],
) -> Option<Vec<usize>> {
    let mut constraints = constraints.to_vec();
    let (mut with, mut without): (Vec<usize>, VecDeque<usize>) = Default::default();
    for &index in ideal {
        match pods[index].cost {
            Some(_) => with.push(index),
            None => without.push_back(index),
        }
    }
    let key = |index: &usize| (pods[*index].stage, pods[*index].cost);
    with.sort_by_key(key);
    if with.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])) {
        return None;
    }
    let mut with: VecDeque<usize> = with.into();
    let mut order = Vec::with_capacity(pods.len());
    for best in best {
        let is_good = |index: usize| {
            let after = breaches(&constraints, replicas, [index]);
            after.first().is_some_and(|after| after.is_within(*best))
        };
        let stages = [&with, &without].map(|of| of.front().map(|&index| pods[index].stage));
        let stage = stages.into_iter().flatten().min()?;
        let is_next = |index: &usize| pods[*index].stage == stage;
        let found = match with
            .front()
            .copied()
            .filter(is_next)
            .filter(|i| is_good(*i))
        {
            Some(_) => with.pop_front()?,
            None => without.remove(first_good(&without, pods, is_next, is_good)?)?,
        };
        remove(&mut constraints, &pods[found].domains);
        order.push(found);
    }
    Some(order)
}

/// The place of the first pod that may go next and after which all is as good as it can be. Of pods that are alike, one
/// is tried.
fn first_good(
    without: &VecDeque<usize>,
    pods: &[Candidate],
    is_next: impl Fn(&usize) -> bool,
    is_good: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut tried: BTreeSet<&[Option<DomainIdx>]> = BTreeSet::new();
    let mut candidates = without
        .iter()
        .enumerate()
        .filter(|(_, index)| is_next(index));
    let found = candidates.find(|(_, index)| {
        let is_new = tried.insert(&pods[**index].domains);
        is_new && is_good(**index)
    });
    found.map(|(place, _)| place)
}

fn remove(constraints: &mut [Constraint], domains: &[Option<DomainIdx>]) {
    for (constraint, domain) in constraints.iter_mut().zip(domains) {
        if let Some(domain) = domain {
            constraint.tally.add(*domain, -1);
        }
    }
}

/// The costs to write so that pods go in this order, each within its stage.
fn written(pods: &[Candidate], order: &[usize]) -> Vec<(usize, i32)> {
    let assigned = order
        .iter()
        .copied()
        .filter(|&index| pods[index].is_assigned);
    let assigned: Vec<usize> = assigned.collect();
    let before: Vec<Option<i32>> = assigned.iter().map(|&index| pods[index].cost).collect();
    let wanted = increasing(&before);
    let all = assigned.into_iter().zip(before).zip(wanted);
    all.filter(|((_, before), wanted)| *before != Some(*wanted))
        .map(|((index, _), wanted)| (index, wanted))
        .collect()
}

/// The order in which a ReplicaSet's controller deletes these pods; `None` if something else than costs decides between
/// pods that are not alike.
fn present_order(pods: &[Candidate]) -> Option<Vec<usize>> {
    let key = |index: usize| (pods[index].stage, pods[index].effective());
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_key(|&index| key(index));
    let is_clear = |pair: &[usize]| {
        let [a, b] = [pair[0], pair[1]];
        key(a) != key(b) || pods[a].domains == pods[b].domains
    };
    order.windows(2).all(is_clear).then_some(order)
}

/// Costs that increase from pod to pod, of which as many as possible are those from before.
fn increasing(before: &[Option<i32>]) -> Vec<i32> {
    let kept = longest_increasing(before);
    fill(before, &kept).unwrap_or_else(|| {
        let n = before.len() as i32;
        (0..n)
            .map(|place| (place - n).saturating_mul(STEP))
            .collect()
    })
}

/// The costs with new ones between those that are kept; `None` if there is no room.
fn fill(before: &[Option<i32>], kept: &[usize]) -> Option<Vec<i32>> {
    let first = *kept.first()?;
    let cost = |place: usize| before[place].map(i64::from);
    let mut filled = Vec::with_capacity(before.len());
    let of_first = cost(first)?;
    filled.extend((0..first).map(|place| of_first - i64::from(STEP) * (first - place) as i64));
    for (nth, &place) in kept.iter().enumerate() {
        let low = cost(place)?;
        let next = kept.get(nth + 1).copied();
        let n_new = next.unwrap_or(before.len()) - place - 1;
        let n_parts = n_new as i64 + 1;
        let high = match next {
            Some(next) => cost(next)?,
            None => low + i64::from(STEP) * n_parts,
        };
        if high - low < n_parts {
            return None;
        }
        filled.push(low);
        filled.extend((1..n_parts).map(|part| low + (high - low) * part / n_parts));
    }
    filled
        .into_iter()
        .map(|cost| i32::try_from(cost).ok())
        .collect()
}

/// The places of a longest strictly increasing selection of costs.
fn longest_increasing(costs: &[Option<i32>]) -> Vec<usize> {
    // By length less one: the place of the smallest last cost of a selection of that length.
    let mut last: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = vec![None; costs.len()];
    for (place, cost) in costs.iter().enumerate() {
        let Some(cost) = *cost else {
            continue;
        };
        let length = last.partition_point(|&place| costs[place].is_some_and(|c| c < cost));
        previous[place] = length.checked_sub(1).map(|before| last[before]);
        match last.get_mut(length) {
            Some(of_length) => *of_length = place,
            None => last.push(place),
        }
    }
    let mut chosen = Vec::with_capacity(last.len());
    let mut at = last.last().copied();
    while let Some(place) = at {
        chosen.push(place);
        at = previous[place];
    }
    chosen.reverse();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use strew_model::Prng;
    use strew_spread::{Limit, Tally};

    fn pod(zone: u32, cost: Option<i32>) -> Candidate {
        Candidate {
            domains: [Some(DomainIdx(zone))].into(),
            stage: 0,
            is_assigned: true,
            cost,
        }
    }

    /// maxSkew 1 over three zones.
    fn constraints(pods: &[Candidate]) -> [Constraint; 1] {
        let mut counts = vec![0; 3];
        for domain in pods.iter().filter_map(|pod| pod.domains[0]) {
            counts[domain.index()] += 1;
        }
        [Constraint {
            limit: Limit {
                max_skew: 1,
                min_domains: 1,
            },
            tally: Tally::of_counts(counts, vec![1; 3]),
            is_hard: true,
        }]
    }

    /// Writes what is wanted, and returns how many writes that were.
    fn write(pods: &mut [Candidate]) -> usize {
        let wanted = costs(&constraints(pods), pods);
        for &(index, cost) in &wanted {
            assert!(pods[index].cost != Some(cost));
            pods[index].cost = Some(cost);
        }
        let present = present_order(pods).unwrap();
        let replicas: Vec<Replica> = pods
            .iter()
            .map(|pod| Replica {
                domains: pod.domains.clone(),
                stage: pod.stage,
                preference: 0,
            })
            .collect();
        let after = breaches(&constraints(pods), &replicas, present);
        assert!(after.iter().all(|breach| breach.is_none()), "{pods:?}");
        wanted.len()
    }

    fn scale_down(pods: &mut Vec<Candidate>, n: usize) {
        for _ in 0..n {
            let first = (0..pods.len()).min_by_key(|&index| pods[index].effective());
            pods.remove(first.unwrap());
        }
    }

    #[test]
    fn a_scale_down_needs_no_further_write() {
        let mut pods: Vec<_> = (0..12).map(|index| pod(index % 3, None)).collect();
        assert_eq!(write(&mut pods), 12);
        assert_eq!(write(&mut pods), 0);
        for _ in 0..3 {
            scale_down(&mut pods, 3);
            assert_eq!(write(&mut pods), 0);
        }
        assert_eq!(pods.len(), 3);
    }

    #[test]
    fn a_new_pod_needs_one_write() {
        let mut pods: Vec<_> = (0..12).map(|index| pod(index % 3, None)).collect();
        write(&mut pods);
        let mut n_writes = 0;
        for index in 0..30 {
            pods.push(pod(index % 3, None));
            n_writes += write(&mut pods);
        }
        assert!((20..=30).contains(&n_writes), "{n_writes}");
    }

    #[test]
    fn a_pod_that_is_lost_and_made_again_needs_one_write_at_most() {
        let mut pods: Vec<_> = (0..300).map(|index| pod(index % 3, None)).collect();
        write(&mut pods);
        let mut n_writes = 0;
        for lost in [7, 90, 204, 150] {
            let again = pod(lost as u32 % 3, None);
            pods[lost] = again;
            n_writes += write(&mut pods);
        }
        assert!(n_writes <= 4, "{n_writes}");
    }

    #[test]
    fn pods_come_and_go_and_all_orders_hold() {
        let mut dice = Prng::new(5);
        let mut pods: Vec<Candidate> = Vec::new();
        let (mut n_writes, mut n_created) = (0, 0);
        for _ in 0..300 {
            if dice.chance(1, 2) {
                for _ in 0..dice.between(1, 5) {
                    let counts = &constraints(&pods)[0].tally;
                    let zone = (0..3).min_by_key(|&zone| counts.count(DomainIdx(zone)));
                    pods.push(pod(zone.unwrap(), None));
                    n_created += 1;
                }
            } else {
                let n = dice.between(0, pods.len() as u64) as usize;
                scale_down(&mut pods, n);
            }
            n_writes += write(&mut pods);
        }
        assert!(n_writes <= n_created, "{n_writes} for {n_created}");
    }

    #[test]
    fn costs_between_others_and_at_the_ends() {
        let table: [(&[Option<i32>], &[i32]); 6] = [
            (&[], &[]),
            (&[None, None], &[-2000, -1000]),
            (&[None, Some(-5), None], &[-1005, -5, 995]),
            (&[Some(-10), None, Some(-4)], &[-10, -7, -4]),
            // No room between: all are new.
            (&[Some(-5), None, Some(-4)], &[-3000, -2000, -1000]),
            (&[Some(-3), Some(-9), Some(-2)], &[-9, -9, -2]),
        ];
        for (before, expected) in table {
            let found = increasing(before);
            if before == [Some(-3), Some(-9), Some(-2)] {
                assert!(found.is_sorted() && found[2] == -2, "{found:?}");
                continue;
            }
            assert_eq!(found, expected, "{before:?}");
        }
    }

    #[test]
    fn pods_on_no_node_and_of_one_domain_need_no_cost() {
        let mut waiting = pod(0, None);
        waiting.domains = [None].into();
        (waiting.stage, waiting.is_assigned) = (0, false);
        let mut pods = vec![waiting.clone(), waiting];
        let mut running = pod(1, None);
        running.stage = 11;
        pods.extend([running.clone(), running]);
        assert_eq!(costs(&constraints(&pods), &pods), []);
    }
}
