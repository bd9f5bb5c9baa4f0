//! The sizes of a Deployment's ReplicaSets: arithmetic only.
//!
//! Source: spec/controllers §2.3, §2.5.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use strew_wire::rolling::{self, Rolling};

/// The upper and lower limit of a Deployment's pods during a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `spec.replicas`
    pub replicas: i64,
    /// The number of pods above `replicas`.
    pub surge: i64,
    /// The number of pods that may be unavailable.
    pub unavailable: i64,
}

impl Limits {
    /// The limits of a Deployment; with the strategy Recreate both are 0.
    pub fn of(spec: &DeploymentSpec) -> Self {
        let replicas = i64::from(spec.replicas.unwrap_or(1));
        let none = Rolling {
            surge: 0,
            unavailable: 0,
        };
        Self::with(rolling::of_deployment(spec).unwrap_or(none), replicas)
    }

    fn with(rolling: Rolling, replicas: i64) -> Self {
        Self {
            replicas,
            surge: rolling.surge,
            unavailable: rolling.unavailable.min(replicas),
        }
    }

    /// The least number of available pods.
    pub fn available_min(self) -> i64 {
        self.replicas - self.unavailable
    }

    /// The largest number of pods.
    pub fn total_max(self) -> i64 {
        self.replicas + self.surge
    }
}

/// The numbers of a ReplicaSet that its size depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sized {
    /// `spec.replicas`
    pub size: i64,
    /// `status.availableReplicas`
    pub available: i64,
}

/// The size of the new ReplicaSet, if all sets together should have `total` pods.
pub fn new_size(limits: Limits, total: i64, size: i64) -> i64 {
    if size >= limits.replicas {
        return limits.replicas;
    }
    let room = limits.total_max() - total;
    match room > 0 {
        true => size + room.min(limits.replicas - size),
        false => size,
    }
}

/// The shrinking of old ReplicaSets in order of creation: steps of index and new size.
///
/// First unavailable pods are removed, then those that are not needed to stay above the lower limit.
pub fn shrink(limits: Limits, new: Sized, old: &[Sized]) -> Vec<(usize, i64)> {
    let mut steps = Vec::new();
    let total = new.size + old.iter().map(|set| set.size).sum::<i64>();
    let mut spare = total - limits.available_min() - (new.size - new.available);
    if spare <= 0 {
        return steps;
    }
    let mut sizes: Vec<i64> = old.iter().map(|set| set.size).collect();
    for (index, set) in old.iter().enumerate() {
        if set.available > set.size {
            // Its status is older than its last resize; upstream waits for a newer one too.
            return steps;
        }
        let less = spare.min(set.size - set.available);
        if less > 0 {
            spare -= less;
            sizes[index] -= less;
            steps.push((index, sizes[index]));
        }
    }
    let available = new.available + old.iter().map(|set| set.available).sum::<i64>();
    let mut room = available - limits.available_min();
    for (index, size) in sizes.iter().enumerate() {
        let less = room.min(*size);
        if less > 0 {
            room -= less;
            steps.push((index, size - less));
        }
    }
    steps
}

/// A ReplicaSet with pods, in a Deployment that was scaled during a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// `spec.replicas`, not 0.
    pub size: i64,
    /// The annotation `max-replicas`: the largest number of pods when the set got its size; `None` if it is missing.
    pub total_max: Option<i64>,
}

/// The proportional sizes, in the order of the sets, which is the order of creation. `n_present`: the Deployment's
/// `status.replicas`.
pub fn proportional(limits: Limits, sets: &[Share], n_present: i64) -> Vec<i64> {
    let allowed = match limits.replicas > 0 {
        true => limits.total_max(),
        false => 0,
    };
    let to_add = allowed - sets.iter().map(|set| set.size).sum::<i64>();
    let mut sizes: Vec<i64> = sets.iter().map(|set| set.size).collect();
    if to_add == 0 {
        return sizes;
    }
    let mut order: Vec<usize> = (0..sets.len()).collect();
    match to_add > 0 {
        true => order.sort_by_key(|&i| (Reverse(sets[i].size), Reverse(i))),
        false => order.sort_by_key(|&i| (Reverse(sets[i].size), i)),
    }
    let mut added = 0;
    for &index in &order {
        let fraction = fraction(limits, sets[index], n_present);
        let left = to_add - added;
        let share = match to_add > 0 {
            true => fraction.min(left),
            false => fraction.max(left),
        };
        let share = if left == 0 { 0 } else { share };
        sizes[index] += share;
        added += share;
    }
    if let Some(&largest) = order.first() {
        sizes[largest] = (sizes[largest] + to_add - added).max(0);
    }
    sizes
}

/// The growth of a set that keeps its proportion; rounded, halves away from zero.
fn fraction(limits: Limits, set: Share, n_present: i64) -> i64 {
    if limits.replicas == 0 {
        return -set.size;
    }
    let before = set.total_max.filter(|max| *max > 0).unwrap_or(n_present);
    if before <= 0 {
        return 0;
    }
    let product = set.size.saturating_mul(limits.total_max());
    product.saturating_mul(2).saturating_add(before) / (2 * before) - set.size
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;

    fn resolved(surge: &IntOrString, unavailable: &IntOrString, replicas: i64) -> Limits {
        Limits::with(rolling::resolved(surge, unavailable, replicas), replicas)
    }

    fn quarter(replicas: i64) -> Limits {
        let quarter = IntOrString::String("25%".to_owned());
        resolved(&quarter, &quarter, replicas)
    }

    fn sets(pairs: &[(i64, i64)]) -> Vec<Sized> {
        let sized = |&(size, available): &(i64, i64)| Sized { size, available };
        pairs.iter().map(sized).collect()
    }

    #[test]
    fn limits_of_the_defaults() {
        for (replicas, surge, unavailable) in [
            (0, 0, 0),
            (1, 1, 0),
            (2, 1, 0),
            (3, 1, 0),
            (4, 1, 1),
            (10, 3, 2),
            (12, 3, 3),
        ] {
            let limits = quarter(replicas);
            assert_eq!(
                (limits.surge, limits.unavailable),
                (surge, unavailable),
                "{replicas}"
            );
        }
    }

    #[test]
    fn limits_that_round_to_nothing_let_one_go() {
        let percent = |p: &str| IntOrString::String(p.to_owned());
        let int = IntOrString::Int;
        for (surge, unavailable, replicas, expected) in [
            (int(0), percent("10%"), 5, (0, 1)),
            (int(0), percent("10%"), 0, (0, 0)),
            (int(0), int(7), 5, (0, 5)),
            (percent("1%"), int(0), 5, (1, 0)),
            (percent("100%"), percent("100%"), 3, (3, 3)),
        ] {
            let limits = resolved(&surge, &unavailable, replicas);
            assert_eq!((limits.surge, limits.unavailable), expected);
        }
    }

    #[test]
    fn the_new_one_grows_into_the_room() {
        // (replicas, total, size, expected)
        for (replicas, total, size, expected) in [
            (10, 10, 0, 3),
            (10, 13, 3, 3),
            (10, 12, 4, 5),
            (10, 8, 9, 10),
            (10, 14, 2, 2),
            (10, 12, 12, 10),
            (0, 5, 0, 0),
        ] {
            assert_eq!(
                new_size(quarter(replicas), total, size),
                expected,
                "{replicas} {total} {size}"
            );
        }
    }

    #[test]
    fn a_rollout_whose_pods_never_start_stops_where_the_limits_say() {
        for (replicas, new, old) in [(10, 5, 8), (3, 1, 3), (4, 2, 3), (1, 1, 1)] {
            let limits = quarter(replicas);
            let (mut is_new, mut is_old) = (0, replicas);
            loop {
                let grown = new_size(limits, is_new + is_old, is_new);
                if grown != is_new {
                    is_new = grown;
                    continue;
                }
                let steps = shrink(limits, sets(&[(is_new, 0)])[0], &sets(&[(is_old, is_old)]));
                let Some(&(_, size)) = steps.last() else {
                    break;
                };
                is_old = size;
            }
            assert_eq!((is_new, is_old), (new, old), "{replicas} replicas");
        }
    }

    #[test]
    fn unavailable_pods_go_first_then_what_can_be_spared() {
        // (replicas, new, old, steps)
        type Row<'a> = (i64, (i64, i64), &'a [(i64, i64)], &'a [(usize, i64)]);
        let table: [Row<'_>; 6] = [
            // After an undo: the bad pods go first.
            (10, (8, 8), &[(5, 0)], &[(0, 0)]),
            // 13 in all, 8 must be available, 3 new ones are not: 2 can be removed.
            (10, (3, 0), &[(10, 10)], &[(0, 8)]),
            (10, (3, 0), &[(10, 9)], &[(0, 9), (0, 8)]),
            (10, (3, 3), &[(4, 4), (6, 6)], &[(0, 0), (1, 5)]),
            (10, (3, 0), &[(8, 8)], &[]),
            // The first one's status is not written yet.
            (10, (3, 3), &[(4, 6), (6, 6)], &[]),
        ];
        for (replicas, new, old, expected) in table {
            assert_eq!(
                shrink(quarter(replicas), sets(&[new])[0], &sets(old)),
                expected
            );
        }
    }

    #[test]
    fn proportions_are_kept() {
        let share = |size, total_max| Share { size, total_max };
        // 9 old and 6 new ones at 12 replicas, scaled to 20 and then to 8.
        let grown = proportional(quarter(20), &[share(9, Some(15)), share(6, Some(15))], 15);
        assert_eq!(grown, [15, 10]);
        let shrunk = proportional(quarter(8), &[share(15, Some(25)), share(10, Some(25))], 25);
        assert_eq!(shrunk, [6, 4]);
        // The remainder goes to the largest; of equal ones to the newest when growing.
        let three = [share(5, Some(15)); 3];
        assert_eq!(proportional(quarter(16), &three, 15), [6, 7, 7]);
        // To 0.
        assert_eq!(proportional(quarter(0), &three, 15), [0, 0, 0]);
        // Without the annotation the present pods count; without these, no proportion is defined.
        assert_eq!(
            proportional(quarter(20), &[share(9, None), share(6, Some(0))], 15),
            [15, 10]
        );
        assert_eq!(
            proportional(quarter(20), &[share(9, None), share(6, None)], 0),
            [19, 6]
        );
        assert_eq!(
            proportional(quarter(12), &[share(9, Some(15)), share(6, Some(15))], 15),
            [9, 6]
        );
    }

    #[test]
    fn large_products_do_not_overflow() {
        let limits = Limits {
            replicas: 100_000,
            surge: 25_000,
            unavailable: 0,
        };
        let share = Share {
            size: 50_000,
            total_max: Some(100_000),
        };
        assert_eq!(proportional(limits, &[share, share], 0), [62_500, 62_500]);
    }
}
