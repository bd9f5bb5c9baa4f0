//! Small instances against brute force: limits hold after every pick, and no selection within them is larger.
//!
//! Source: spec/placement §3.5, last paragraph; here with up to three levels, ratio weights and missing keys.

use std::collections::BTreeMap;

use strew_model::Prng;
use strew_placement::facts::placement::TopologyWeights;

use crate::world::HubWithPlacement;

/// A term, for the oracle.
struct Term {
    key: &'static str,
    hard: bool,
    max_skew: i64,
    /// Weights by value; `None` if there are none.
    weights: Option<BTreeMap<String, i64>>,
}

/// An instance: terms, and the values of each cluster by level.
struct Instance {
    terms: Vec<Term>,
    clusters: Vec<Vec<Option<String>>>,
    priors: Vec<i32>,
    n: Option<usize>,
    spread: i32,
}

const KEYS: [&str; 3] = ["provider", "region", "zone"];

impl Instance {
    fn random(seed: u64) -> Self {
        let mut dice = Prng::new(seed);
        let levels = dice.between(1, 3) as usize;
        let (missing, ratios) = (dice.chance(1, 3), dice.chance(1, 3));
        let mut terms = Vec::new();
        for key in &KEYS[..levels] {
            let weight = |v: u64, dice: &mut Prng| (v.to_string(), dice.between(0, 4) as i64);
            let weighted = ratios && dice.chance(2, 3);
            let weights = weighted.then(|| (0..3).map(|v| weight(v, &mut dice)).collect());
            terms.push(Term {
                key,
                hard: dice.chance(2, 3),
                max_skew: dice.between(1, 2) as i64,
                weights,
            });
        }
        let n = dice.between(1, 9) as usize;
        let value = |dice: &mut Prng| {
            let absent = missing && dice.chance(1, 6);
            (!absent).then(|| dice.between(0, 2).to_string())
        };
        let clusters = (0..n)
            .map(|_| (0..levels).map(|_| value(&mut dice)).collect())
            .collect();
        Self {
            terms,
            clusters,
            priors: (0..n).map(|_| dice.between(0, 200) as i32 - 100).collect(),
            n: dice.chance(1, 2).then(|| dice.between(0, 9) as usize),
            spread: *dice.pick(&[-2, 0, 2]),
        }
    }

    fn world(&self) -> HubWithPlacement {
        let mut world = HubWithPlacement::new();
        for (i, (values, &prior)) in self.clusters.iter().zip(&self.priors).enumerate() {
            let pair =
                |(key, value): (&&str, &Option<String>)| Some(format!("{key}={}", value.as_ref()?));
            let labels: Vec<String> = KEYS.iter().zip(values).filter_map(pair).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            world.cluster(&i.to_string(), prior, &labels);
        }
        let kind = |hard| if hard { "hard" } else { "soft" };
        let text = |t: &Term| format!("{} {} {}", t.key, kind(t.hard), t.max_skew);
        let terms: Vec<String> = self.terms.iter().map(text).collect();
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        let mut world = world.weight(self.spread).spread(&terms);
        for (i, term) in self.terms.iter().enumerate() {
            let Some(weights) = &term.weights else {
                continue;
            };
            let values = weights.iter().map(|(v, &w)| (world.name(v), w)).collect();
            world.placement.spec.spread[i].weights = Some(TopologyWeights { values, default: 1 });
        }
        match self.n {
            Some(n) => world.number(n as i32),
            None => world,
        }
    }

    fn weight(&self, level: usize, value: &str) -> i64 {
        let weights = self.terms[level].weights.as_ref();
        weights.map_or(1, |w| w.get(value).copied().unwrap_or(1))
    }

    fn eligible(&self, cluster: usize) -> bool {
        let values = self.clusters[cluster].iter().enumerate();
        let mut hard = values.filter(|&(level, _)| self.terms[level].hard);
        hard.all(|(level, value)| value.as_ref().is_some_and(|v| self.weight(level, v) > 0))
    }

    /// The tuples that a cluster belongs to, from the first level down to the first key that it lacks.
    fn tuples(&self, cluster: usize) -> Vec<Vec<&str>> {
        let values = self.clusters[cluster].iter();
        let values: Vec<&str> = values.map_while(|v| v.as_deref()).collect();
        (1..=values.len())
            .map(|depth| values[..depth].to_vec())
            .collect()
    }

    /// True if a selection keeps all hard limits of spec/placement §3.4 and §3.8.
    fn holds(&self, selected: &[usize]) -> bool {
        let mut counts: BTreeMap<Vec<&str>, i64> = BTreeMap::new();
        for cluster in (0..self.clusters.len()).filter(|&c| self.eligible(c)) {
            for tuple in self.tuples(cluster) {
                *counts.entry(tuple).or_default() += i64::from(selected.contains(&cluster));
            }
        }
        counts.iter().all(|(tuple, &count)| {
            let (level, parent) = (tuple.len() - 1, &tuple[..tuple.len() - 1]);
            let weight = |tuple: &[&str]| self.weight(level, tuple[level]);
            let siblings = counts.iter();
            let siblings =
                siblings.filter(|(t, _)| t.len() == tuple.len() && t.starts_with(parent));
            let shares = siblings
                .filter(|(t, _)| weight(t) > 0)
                .map(|(t, &c)| (c, weight(t)));
            let Some((c, w)) = shares.min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))) else {
                return true;
            };
            let fair = (weight(tuple) * c + w - 1) / w;
            !self.terms[level].hard || count - fair <= self.terms[level].max_skew
        })
    }

    /// The size of the largest selection within the limits.
    fn largest(&self) -> usize {
        let eligible: Vec<usize> = (0..self.clusters.len())
            .filter(|&c| self.eligible(c))
            .collect();
        let subset = |bits: u32| -> Vec<usize> {
            let chosen = (0..eligible.len()).filter(|i| bits >> i & 1 == 1);
            chosen.map(|i| eligible[i]).collect()
        };
        let all = (0..1u32 << eligible.len()).map(subset);
        all.filter(|s| self.holds(s))
            .map(|s| s.len())
            .max()
            .unwrap_or(0)
    }
}

/// The number of instances: enough to meet every kind, few enough for every run of the tests.
const INSTANCES: u64 = 1_500;

#[test]
fn limits_hold_at_every_prefix_and_no_selection_is_larger() {
    let mut limited = 0;
    let instances = std::env::var("STREW_INSTANCES")
        .ok()
        .and_then(|n| n.parse().ok());
    for seed in 0..instances.unwrap_or(INSTANCES) {
        let instance = Instance::random(seed);
        let picks: Vec<usize> = instance
            .world()
            .picks()
            .iter()
            .map(|p| p.parse().expect("it is there"))
            .collect();
        for end in 0..=picks.len() {
            assert!(
                instance.holds(&picks[..end]),
                "seed {seed}: {:?}",
                &picks[..end]
            );
        }
        let (largest, asked) = (
            instance.largest(),
            instance.n.unwrap_or(instance.clusters.len()),
        );
        assert_eq!(picks.len(), largest.min(asked), "seed {seed}: {picks:?}");
        limited += usize::from(largest < asked.min(instance.clusters.len()));
    }
    assert!(limited > 100, "limits matter in some: {limited}");
}
