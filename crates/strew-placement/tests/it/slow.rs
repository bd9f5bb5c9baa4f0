//! A slow selector that computes everything again for each pick, from the list of clusters.
//!
//! Source: spec/placement §3.4, §3.7, §3.8, §3.10.

use std::collections::{BTreeMap, BTreeSet};

use strew_model::Prng;
use strew_placement::facts::placement::{GroupBounds, TopologyWeights};

use crate::world::HubWithPlacement;

/// A tuple of values, from the first term down.
type Tuple = Vec<String>;

#[derive(Debug, Clone)]
pub(crate) struct Term {
    hard: bool,
    max_skew: i64,
    weights: Option<BTreeMap<String, i64>>,
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
}

/// Clusters are named by their positions.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) terms: Vec<Term>,
    pub(crate) clusters: Vec<Vec<Option<String>>>,
    priors: Vec<i64>,
    pub(crate) n: Option<usize>,
    spread: i64,
}

const KEYS: [&str; 3] = ["provider", "region", "zone"];

impl Case {
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Prng::new(seed);
        let n = dice.between(1, 10) as usize;
        let levels = dice.between(1, 3) as usize;
        let asked = dice.chance(3, 4).then(|| dice.between(0, 8) as usize);
        let missing = dice.chance(1, 3);
        let mut terms = Vec::new();
        for _ in 0..levels {
            let weighted = dice.chance(1, 5);
            let weights = weighted.then(|| {
                let weight = |v: u64| (v.to_string(), dice.between(0, 3) as i64);
                (0..3).map(weight).collect()
            });
            let max = dice.chance(1, 2).then(|| dice.between(1, 3) as i64);
            let min = dice.chance(1, 3).then(|| {
                let most = max
                    .unwrap_or(4)
                    .min(asked.filter(|&n| n > 0).unwrap_or(4) as i64);
                dice.between(1, most as u64) as i64
            });
            terms.push(Term {
                hard: dice.chance(1, 2),
                max_skew: dice.between(1, 2) as i64,
                weights,
                min,
                max,
            });
        }
        let value = |dice: &mut Prng| {
            let absent = missing && dice.chance(1, 6);
            (!absent).then(|| dice.between(0, 3).to_string())
        };
        Self {
            terms,
            clusters: (0..n)
                .map(|_| (0..levels).map(|_| value(&mut dice)).collect())
                .collect(),
            priors: (0..n).map(|_| dice.between(0, 200) as i64 - 100).collect(),
            n: asked,
            spread: dice.between(0, 3) as i64 - 1,
        }
    }

    pub(crate) fn world(&self) -> HubWithPlacement {
        let mut world = HubWithPlacement::new();
        for (i, values) in self.clusters.iter().enumerate() {
            let pair =
                |(key, value): (&&str, &Option<String>)| Some(format!("{key}={}", value.as_ref()?));
            let labels: Vec<String> = KEYS.iter().zip(values).filter_map(pair).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            world.cluster(&i.to_string(), self.priors[i] as i32, &labels);
        }
        let text = |(key, t): (&&str, &Term)| {
            let kind = if t.hard { "hard" } else { "soft" };
            format!("{key} {kind} {}", t.max_skew)
        };
        let terms: Vec<String> = KEYS.iter().zip(&self.terms).map(text).collect();
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        let mut world = world.weight(self.spread as i32).spread(&terms);
        for (i, term) in self.terms.iter().enumerate() {
            let values = |weights: &BTreeMap<String, i64>| {
                let values = weights.iter().map(|(v, &w)| (world.name(v), w)).collect();
                TopologyWeights { values, default: 1 }
            };
            let weights = term.weights.as_ref().map(values);
            let written = &mut world.placement.spec.spread[i];
            written.weights = weights;
            written.groups = GroupBounds {
                min: term.min,
                max: term.max,
            };
        }
        world.placement.spec.number_of_clusters = self.n.map(|n| n as i32);
        world
    }

    fn weight(&self, level: usize, value: &str) -> i64 {
        let weights = self.terms[level].weights.as_ref();
        weights.map_or(1, |weights| weights.get(value).copied().unwrap_or(1))
    }

    pub(crate) fn eligible(&self) -> Vec<usize> {
        let is = |&c: &usize| {
            let mut values = self.clusters[c].iter().enumerate();
            values.all(|(level, value)| match value {
                _ if !self.terms[level].hard => true,
                None => false,
                Some(value) => self.weight(level, value) > 0,
            })
        };
        (0..self.clusters.len()).filter(is).collect()
    }

    /// The values of a cluster, down to the first key that it lacks.
    fn tuple(&self, cluster: usize) -> Tuple {
        let values = self.clusters[cluster].iter();
        values.map_while(Clone::clone).collect()
    }

    /// The topology of a cluster at a level; `None` if it is in none.
    fn at(&self, cluster: usize, level: usize) -> Option<Tuple> {
        let tuple = self.tuple(cluster);
        (tuple.len() > level).then(|| tuple[..=level].to_vec())
    }

    pub(crate) fn used(&self, picks: &[usize], level: usize) -> BTreeSet<Tuple> {
        let all = picks.iter();
        all.filter_map(|&c| self.at(c, level)).collect()
    }

    fn count(&self, picks: &[usize], tuple: &Tuple) -> i64 {
        let here = |&&c: &&usize| self.tuple(c).starts_with(tuple);
        picks.iter().filter(here).count() as i64
    }

    /// True if a cluster is picked, or its topology is not closed.
    fn is_alive(&self, picks: &[usize], cluster: usize) -> bool {
        let shut = |level: usize| {
            let used = self.used(picks, level);
            let is_full = self.terms[level]
                .max
                .is_some_and(|max| used.len() as i64 >= max);
            let own = self.at(cluster, level);
            is_full && own.is_some_and(|own| !used.contains(&own))
        };
        !(0..self.terms.len()).any(shut)
    }

    /// The topologies of one parent that are compared with each other. `open`: only those that still have a free
    /// cluster.
    fn siblings(&self, picks: &[usize], parent: &[String], open: bool) -> BTreeSet<Tuple> {
        let eligible = self.eligible();
        let counts = |&&c: &&usize| self.is_alive(picks, c) && !(open && picks.contains(&c));
        let alive = eligible.iter().filter(counts);
        let all = alive.filter_map(|&c| self.at(c, parent.len()));
        all.filter(|tuple| tuple.starts_with(parent)).collect()
    }

    /// True if a hard limit excludes a cluster.
    fn is_over(&self, picks: &[usize], cluster: usize) -> bool {
        let after: Vec<usize> = picks.iter().copied().chain([cluster]).collect();
        let over = |level: usize| {
            let Some(own) = self.at(cluster, level).filter(|_| self.terms[level].hard) else {
                return false;
            };
            let siblings = self.siblings(picks, &own[..level], false);
            let shares = siblings
                .iter()
                .map(|t| (self.count(&after, t), self.weight(level, &t[level])));
            let shares = shares.filter(|&(_, weight)| weight > 0);
            let Some((c, w)) = shares.min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))) else {
                return false;
            };
            let fair = (self.weight(level, &own[level]) * c + w - 1) / w;
            self.count(&after, &own) - fair > self.terms[level].max_skew
        };
        (0..self.terms.len()).any(over)
    }

    /// The largest number of clusters that siblings hold together, if none holds more than its room.
    fn reach(&self, level: usize, rooms: &[(i64, i64)]) -> i64 {
        let least = rooms.iter().filter(|(_, weight)| *weight > 0);
        let least = least.min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
        let held = |&(room, weight): &(i64, i64)| match least.filter(|_| self.terms[level].hard) {
            Some((c, w)) => room.min((weight * c + w - 1) / w + self.terms[level].max_skew),
            None => room,
        };
        rooms.iter().map(held).sum()
    }

    /// The largest number of clusters in a topology and all below it.
    fn room(&self, tuple: &Tuple) -> i64 {
        let eligible = self.eligible();
        let own = eligible
            .iter()
            .filter(|&&c| self.tuple(c) == *tuple)
            .count() as i64;
        if tuple.len() == self.terms.len() {
            return own;
        }
        let below: BTreeSet<Tuple> = eligible
            .iter()
            .filter_map(|&c| self.at(c, tuple.len()))
            .filter(|t| t.starts_with(tuple))
            .collect();
        let rooms: Vec<(i64, i64)> = below
            .iter()
            .map(|t| (self.room(t), self.weight(tuple.len(), &t[tuple.len()])))
            .collect();
        own + self.reach(tuple.len(), &rooms)
    }

    /// The largest number of clusters in these topologies of a level and outside of any.
    fn most(&self, level: usize, chosen: &BTreeSet<Tuple>) -> i64 {
        let outside = self
            .eligible()
            .iter()
            .filter(|&&c| self.at(c, level).is_none())
            .count();
        let mut rooms: BTreeMap<Tuple, Vec<(i64, i64)>> = BTreeMap::new();
        for tuple in chosen {
            let room = (self.room(tuple), self.weight(level, &tuple[level]));
            rooms.entry(tuple[..level].to_vec()).or_default().push(room);
        }
        outside as i64
            + rooms
                .values()
                .map(|rooms| self.reach(level, rooms))
                .sum::<i64>()
    }

    /// True if picking a cluster would open a topology that is too small.
    fn is_too_small(&self, picks: &[usize], cluster: usize) -> bool {
        let too_small = |level: usize| {
            let (Some(max), Some(n)) = (self.terms[level].max, self.n) else {
                return false;
            };
            let used = self.used(picks, level);
            let Some(own) = self.at(cluster, level).filter(|own| !used.contains(own)) else {
                return false;
            };
            let alive = self
                .eligible()
                .into_iter()
                .filter(|&c| self.is_alive(picks, c));
            let others: BTreeSet<Tuple> = alive.filter_map(|c| self.at(c, level)).collect();
            let others: Vec<Tuple> = others.difference(&used).cloned().collect();
            let more = (max as usize - used.len()).min(others.len());
            let (mut best, mut with_own) = (0, 0);
            for bits in (0..1u32 << others.len()).filter(|b| b.count_ones() as usize == more) {
                let chosen = (0..others.len()).filter(|i| bits >> i & 1 == 1);
                let chosen: BTreeSet<Tuple> = chosen.map(|i| others[i].clone()).collect();
                let most = self.most(level, &used.union(&chosen).cloned().collect());
                best = best.max(most);
                if chosen.contains(&own) {
                    with_own = with_own.max(most);
                }
            }
            with_own < best.min(n as i64)
        };
        (0..self.terms.len()).any(too_small)
    }

    /// The levels whose minimum needs all remaining picks.
    fn demands(&self, picks: &[usize]) -> Vec<usize> {
        let Some(left) = self.n.map(|n| n - picks.len()) else {
            return Vec::new();
        };
        let demands = |&level: &usize| {
            let needed = self.terms[level].min.unwrap_or(0) - self.used(picks, level).len() as i64;
            needed > 0 && left as i64 <= needed
        };
        (0..self.terms.len()).filter(demands).collect()
    }

    fn opens(&self, picks: &[usize], cluster: usize, level: usize) -> bool {
        let own = self.at(cluster, level);
        own.is_some_and(|own| !self.used(picks, level).contains(&own))
    }

    /// The score of a topology, 0 to 63.
    fn score(&self, picks: &[usize], tuple: &Tuple) -> i64 {
        let level = tuple.len() - 1;
        let eligible = self.eligible();
        let mut free = eligible
            .iter()
            .filter(|&&c| !picks.contains(&c) && self.is_alive(picks, c));
        let last_resort = self.spread >= 0 && free.any(|&c| self.tuple(c).len() == level);
        let siblings = self.siblings(picks, &tuple[..level], true);
        let weight = |t: &Tuple| self.weight(level, &t[level]);
        let weighted = self.terms[level].weights.is_some();
        let has_weightless = siblings.iter().any(|t| weight(t) == 0);
        let lowest = i64::from(last_resort || has_weightless);
        if weight(tuple) == 0 {
            return 0;
        }
        // Twice the count and one, over the weight: with a common denominator.
        let common: i64 = siblings.iter().map(weight).filter(|&w| w > 0).product();
        let load = |t: &Tuple| match weighted {
            true => (2 * self.count(picks, t) + 1) * common / weight(t),
            false => self.count(picks, t),
        };
        let loads: Vec<i64> = siblings
            .iter()
            .filter(|t| weight(t) > 0)
            .map(load)
            .collect();
        let (min, max) = (loads.iter().min().copied(), loads.iter().max().copied());
        let (min, max) = (min.unwrap_or(0), max.unwrap_or(0));
        let score = if max > min {
            63 * (max - load(tuple)) / (max - min)
        } else {
            0
        };
        score.max(lowest)
    }

    fn raw(&self, picks: &[usize], cluster: usize) -> i64 {
        let levels = self.terms.len();
        let placed = |level: usize| {
            let tuple = self.at(cluster, level)?;
            Some(self.score(picks, &tuple) << (6 * (levels - 1 - level)))
        };
        (0..levels).filter_map(placed).sum()
    }

    /// The picks, one at a time.
    pub(crate) fn select(&self) -> Vec<usize> {
        let mut picks = Vec::new();
        while self.n.is_none_or(|n| picks.len() < n) {
            let eligible = self.eligible().into_iter();
            let free: Vec<usize> = eligible
                .filter(|c| !picks.contains(c) && self.is_alive(&picks, *c))
                .filter(|&c| !self.is_over(&picks, c) && !self.is_too_small(&picks, c))
                .collect();
            let mut demands = self.demands(&picks);
            let offered = loop {
                let offered = free.iter().copied();
                let offered: Vec<usize> = offered
                    .filter(|&c| demands.iter().all(|&level| self.opens(&picks, c, level)))
                    .collect();
                let soft = demands.iter().rposition(|&level| !self.terms[level].hard);
                match soft {
                    Some(soft) if offered.is_empty() => drop(demands.remove(soft)),
                    _ => break offered,
                }
            };
            let raws: Vec<i64> = offered.iter().map(|&c| self.raw(&picks, c)).collect();
            let (min, max) = (raws.iter().min().copied(), raws.iter().max().copied());
            let (Some(min), Some(max)) = (min, max) else {
                break;
            };
            let total = |&(c, raw): &(usize, i64)| {
                let normalized = if max > min {
                    200 * (raw - min) / (max - min) - 100
                } else {
                    0
                };
                (
                    self.spread * normalized + self.priors[c],
                    std::cmp::Reverse(c),
                )
            };
            let best = offered.into_iter().zip(raws).max_by_key(total);
            picks.extend(best.map(|(c, _)| c));
        }
        picks
    }

    /// True if a selection keeps all bounds and limits.
    pub(crate) fn holds(&self, picks: &[usize]) -> bool {
        let within = |level: usize| {
            let term = &self.terms[level];
            let used = self.used(picks, level).len() as i64;
            let missing = (term.min.unwrap_or(0) - used).max(0);
            let kept = match self.n.filter(|_| term.hard) {
                Some(n) => picks.len() as i64 <= (n as i64 - missing).max(0),
                None => true,
            };
            let eligible = self.eligible();
            let nodes: BTreeSet<Tuple> =
                eligible.iter().filter_map(|&c| self.at(c, level)).collect();
            let is_level = !term.hard
                || nodes.iter().all(|own| {
                    let siblings = self.siblings(picks, &own[..level], false);
                    let shares = siblings
                        .iter()
                        .map(|t| (self.count(picks, t), self.weight(level, &t[level])));
                    let least = shares
                        .filter(|s| s.1 > 0)
                        .min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
                    least.is_none_or(|(c, w)| {
                        let fair = (self.weight(level, &own[level]) * c + w - 1) / w;
                        self.count(picks, own) - fair <= term.max_skew
                    })
                });
            kept && is_level && term.max.is_none_or(|max| used <= max)
        };
        (0..self.terms.len()).all(within)
    }

    /// True if the rule about small topologies is tried with the best choice of them, not only by size.
    pub(crate) fn is_plain(&self) -> bool {
        let bounded = |(level, term): (usize, &Term)| {
            term.max.is_none() || !term.hard || level == 0 && term.weights.is_none()
        };
        self.terms.iter().enumerate().all(bounded)
    }
}
