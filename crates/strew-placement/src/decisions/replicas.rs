//! Replicas divided over the selected clusters. Source: spec/placement §3.11.

use std::cmp::Reverse;

use strew_model::{Instant, Interner, Symbol};

use super::slices::Slice;
use crate::facts::cluster::ClusterFact;
use crate::facts::decision::Replicas;
use crate::facts::placement::{DivideBy, Division};
use crate::hub::Hub;
use crate::schedule::Pick;

/// The largest weight that may be written.
const WEIGHT_MAX: i64 = 1000;

/// The replicas of all selected clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// In the order of selection.
    pub clusters: Vec<Part>,
    /// The last time at which these weights hold; `None`: until an input changes.
    pub until: Option<Instant>,
}

/// The replicas of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The cluster.
    pub cluster: Symbol,
    /// The number that its part is computed from: a weight, a score, thousandths of a CPU, bytes. Never negative.
    pub weight: i64,
    /// The number of replicas.
    pub replicas: u32,
}

/// Checks the weights of a division.
///
/// # Errors
/// A weight that is out of range.
pub fn check(division: &Division) -> Result<(), String> {
    let DivideBy::Weights { entries, default } = &division.by else {
        return Ok(());
    };
    let mut written = entries.iter().map(|entry| entry.weight).chain([*default]);
    match written.find(|weight| !(0..=WEIGHT_MAX).contains(weight)) {
        Some(weight) => Err(format!("replica weight is {weight}, not 0..{WEIGHT_MAX}")),
        None => Ok(()),
    }
}

/// Divides the replicas over the selected clusters.
pub(crate) fn divide(hub: &Hub, now: Instant, division: &Division, picks: &[Pick]) -> Parts {
    let mut until: Option<Instant> = None;
    let weight = |pick: &Pick| match division.by {
        DivideBy::AddOn(add_on) => {
            let scores = hub.scores(pick.cluster, add_on.resource);
            let scores = scores.filter(|scores| !scores.expired(now));
            until = until
                .into_iter()
                .chain(scores.and_then(|s| s.valid_until))
                .min();
            let score = scores.and_then(|scores| scores.value(add_on.score));
            i64::from(score.unwrap_or(0)).max(0)
        }
        _ => hub
            .cluster(pick.idx)
            .map_or(0, |cluster| self::weight(division, cluster)),
    };
    let weights: Vec<i64> = picks.iter().map(weight).collect();
    // Of equal numbers, the cluster whose name comes first is served first.
    let mut by_name: Vec<usize> = (0..picks.len()).collect();
    by_name.sort_by(|&a, &b| {
        let name = |i: usize| hub.names.text(picks[i].cluster);
        name(a).cmp(name(b))
    });
    let sorted: Vec<i64> = by_name.iter().map(|&i| weights[i]).collect();
    let shares = shares(division.total, &sorted, division.min_per_cluster);
    let mut replicas = vec![0; picks.len()];
    for (&i, share) in by_name.iter().zip(shares) {
        replicas[i] = share;
    }
    let parts = picks.iter().zip(weights).zip(replicas);
    let part = |((pick, weight), replicas): ((&Pick, i64), u32)| Part {
        cluster: pick.cluster,
        weight,
        replicas,
    };
    Parts {
        clusters: parts.map(part).collect(),
        until,
    }
}

/// The number that a cluster's part is computed from, as far as the cluster itself has it; 0 if it is a score.
pub(crate) fn weight(division: &Division, cluster: &ClusterFact) -> i64 {
    let weight = match &division.by {
        DivideBy::Weights { entries, default } => {
            let mut entries = entries.iter();
            let found = entries.find(|entry| {
                entry.labels.matches(&cluster.labels) && entry.claims.matches(&cluster.claims)
            });
            found.map_or(*default, |entry| entry.weight)
        }
        DivideBy::AllocatableCpu => cluster.cpu.allocatable.unwrap_or(0),
        DivideBy::AllocatableMemory => cluster.memory.allocatable.unwrap_or(0),
        DivideBy::AddOn(_) => 0,
    };
    weight.max(0)
}

/// Whole parts of `total` in the ratio of the weights, which are not negative; if all weights are 0, the parts are
/// equal. The parts add up to `total`. Units lost by rounding down go to the largest remainders; of equal remainders to
/// the larger weight, then to the first. A weight above 0 gets at least `min`, or less if `total` is too small for
/// that.
pub(crate) fn shares(total: u32, weights: &[i64], min: u32) -> Vec<u32> {
    let is_level = weights.iter().all(|&weight| weight <= 0);
    let weight = |i: usize| match is_level {
        true => 1,
        false => weights[i].max(0) as u128,
    };
    let mut shares = vec![0; weights.len()];
    let mut left: Vec<usize> = (0..weights.len()).filter(|&i| weight(i) > 0).collect();
    if left.is_empty() {
        return shares;
    }
    let min = min.min(total / u32::try_from(left.len()).unwrap_or(u32::MAX));
    let mut total = total;
    loop {
        let sum: u128 = left.iter().map(|&i| weight(i)).sum();
        let product = |i: usize| u128::from(total) * weight(i);
        for &i in &left {
            // At most `total`.
            shares[i] = (product(i) / sum) as u32;
        }
        let given: u32 = left.iter().map(|&i| shares[i]).sum();
        let mut order = left.clone();
        order.sort_by_key(|&i| (Reverse(product(i) % sum), Reverse(weight(i)), i));
        for &i in order.iter().take((total - given) as usize) {
            shares[i] += 1;
        }
        let (enough, few): (Vec<usize>, Vec<usize>) = left.iter().partition(|&&i| shares[i] >= min);
        if few.is_empty() {
            return shares;
        }
        for &i in &few {
            shares[i] = min;
            total -= min;
        }
        left = enough;
    }
}

/// Writes into each slice the parts of its clusters.
pub(crate) fn attach(parts: &Parts, slices: &mut [Slice], names: &Interner) {
    for slice in slices
        .iter_mut()
        .filter(|slice| !slice.decisions.is_empty())
    {
        let is_here = |part: &&Part| slice.decisions.iter().any(|d| d.cluster == part.cluster);
        let here = parts.clusters.iter().filter(is_here);
        let mut here: Vec<(Symbol, u32)> = here.map(|part| (part.cluster, part.replicas)).collect();
        here.sort_by(|a, b| names.text(a.0).cmp(names.text(b.0)));
        slice.replicas = Replicas::Parts(here.into());
    }
}
