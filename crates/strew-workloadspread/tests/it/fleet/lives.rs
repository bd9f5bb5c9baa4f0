//! Runs of fleets, from seeds.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::Prng;
use strew_workloadspread::{MaxReplicas, Subset, invariants};

use super::Fleet;
use super::settings::{Settings, drawn_settings};
use crate::world::*;

fn drawn(dice: &mut Prng) -> Vec<Subset> {
    let n = dice.between(2, 4) as usize;
    let last_unlimited = dice.chance(2, 3);
    let name = |i: usize| ["a", "b", "c", "x"][i];
    (0..n)
        .map(|i| match i + 1 == n && last_unlimited {
            true => subset(name(i), None),
            false => subset(name(i), count(dice.between(0, 6) as u32)),
        })
        .collect()
}

#[test]
fn limits_hold_and_the_ledger_heals_whatever_happens() {
    let (answered, conflicts) = under_faults(|_| Settings::hasty());
    assert!(
        answered > 3_000 && conflicts > 300,
        "{answered} answers, {conflicts} conflicts"
    );
    for settings in [|_: &mut Prng| Settings::production(), drawn_settings] {
        let (answered, conflicts) = under_faults(settings);
        assert!(
            answered > 3_000 && conflicts > 100,
            "{answered} answers, {conflicts} conflicts"
        );
    }
}

/// The number of answered requests, and of writes that met a conflict.
fn under_faults(settings: impl Fn(&mut Prng) -> Settings) -> (usize, u32) {
    let (mut answered, mut conflicts) = (0, 0);
    for seed in 0..60 {
        let mut dice = Prng::new(seed);
        let settings = settings(&mut Prng::new(seed ^ 0x5e77));
        let subsets = drawn(&mut dice);
        let replicas = dice.between(1, 3) as usize;
        let mut fleet = Fleet::new(settings, seed, subsets, replicas);
        for _ in 0..400 {
            fleet.step();
        }
        fleet.calm_down();
        fleet.check_truth();
        answered += fleet.answered;
        conflicts += fleet.conflicts;
    }
    (answered, conflicts)
}

/// The plain model: one after the other, each into the first subset that is not full.
fn serial(subsets: &[Subset], n: i64) -> BTreeMap<Arc<str>, i64> {
    let mut left = n;
    let mut totals = BTreeMap::new();
    for subset in subsets {
        let max = match subset.max_replicas {
            Some(MaxReplicas::Count(max)) => i64::from(max),
            _ => i64::MAX,
        };
        let takes = left.min(max);
        left -= takes;
        totals.insert(subset.name.clone(), takes);
    }
    totals
}

#[test]
fn concurrent_admissions_fill_subsets_as_serial_ones_do() {
    for settings in [Settings::hasty(), Settings::production()] {
        filled_as_serially(settings);
    }
}

fn filled_as_serially(settings: Settings) {
    for seed in 0..40 {
        let mut dice = Prng::new(1_000 + seed);
        let subsets = drawn(&mut dice);
        let replicas = dice.between(1, 4) as usize;
        let n = dice.between(1, 60);
        let mut fleet = Fleet::new(settings, seed, subsets.clone(), replicas);
        fleet.calm = true;
        for _ in 0..n {
            fleet.ask_create();
            if dice.chance(1, 3) {
                fleet.poll();
                let at = dice.index(replicas);
                fleet.carry_out_one(at);
            }
        }
        fleet.calm_down();
        let mut totals: BTreeMap<Arc<str>, i64> = BTreeMap::new();
        for known in fleet.pods.values() {
            if let Some(marker) = known.pod.marker.marker() {
                *totals.entry(marker.subset.clone()).or_default() += 1;
            }
        }
        let serial = serial(&subsets, n as i64);
        invariants::same_totals(&serial, &totals).expect("I7");
        fleet.check_truth();
    }
}
