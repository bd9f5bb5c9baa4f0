//! The prioritizers' scores, nominally -100 to 100. Source: spec/placement §2.4.

use std::fmt;

use strew_model::{Instant, Interner};

use crate::facts::cluster::Amounts;
use crate::facts::placement::AddOnCoordinate;
use crate::hub::ledger::Others;
use crate::hub::{ClusterIdx, Hub};

/// The best score, and the worst one negated.
pub(crate) const SCORE_MAX: i64 = 100;

/// The sources of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prioritizer {
    /// Clusters that fewer decisions of other placements name.
    Balance,
    /// Clusters that the placement holds already.
    Steady,
    /// Clusters with more allocatable CPU.
    AllocatableCpu,
    /// Clusters with more allocatable memory.
    AllocatableMemory,
    /// An add-on's score.
    AddOn(AddOnCoordinate),
}

impl Prioritizer {
    /// Its name, as in upstream's debug answer.
    pub fn name(self, names: &Interner) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| match self {
            Self::Balance => f.write_str("Balance"),
            Self::Steady => f.write_str("Steady"),
            Self::AllocatableCpu => f.write_str("ResourceAllocatableCPU"),
            Self::AllocatableMemory => f.write_str("ResourceAllocatableMemory"),
            Self::AddOn(add_on) => {
                let (resource, score) = (names.text(add_on.resource), names.text(add_on.score));
                write!(f, "AddOn/{resource}/{score}")
            }
        })
    }
}

/// The inputs of prioritizers, besides the hub.
pub(crate) struct Scoring<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) now: Instant,
    /// The decisions of all other placements; `None` if Balance does not count.
    pub(crate) others: Option<&'a Others>,
    /// By [`ClusterIdx`]: true if the placement holds the cluster.
    pub(crate) decided: &'a fixedbitset::FixedBitSet,
}

/// The scores of a list of clusters, in its order, with notes.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    /// `None` if the cluster has no score.
    pub(crate) values: Vec<Option<i64>>,
    /// The number of clusters whose scores have expired.
    pub(crate) expired: Vec<ClusterIdx>,
    /// The time at which the next score expires.
    pub(crate) until: Option<Instant>,
}

impl Scoring<'_> {
    /// The scores of `prioritizer` for each of `clusters`.
    pub(crate) fn score(&self, prioritizer: Prioritizer, clusters: &[ClusterIdx]) -> Scores {
        match prioritizer {
            Prioritizer::Balance => self.balance(clusters),
            Prioritizer::Steady => {
                let steady = |&idx: &ClusterIdx| {
                    Some(SCORE_MAX * i64::from(self.decided.contains(idx.index())))
                };
                Scores::of(clusters.iter().map(steady).collect())
            }
            Prioritizer::AllocatableCpu => self.allocatable(clusters, |c| c.cpu),
            Prioritizer::AllocatableMemory => self.allocatable(clusters, |c| c.memory),
            Prioritizer::AddOn(add_on) => self.add_on(add_on, clusters),
        }
    }

    fn balance(&self, clusters: &[ClusterIdx]) -> Scores {
        let Some(others) = self.others else {
            return Scores::of(vec![None; clusters.len()]);
        };
        let of_count = |count: u32| match count {
            0 => SCORE_MAX,
            // The cast rounds toward zero.
            count => 2 * (100.0 * (0.5 - f64::from(count) / f64::from(others.max))) as i64,
        };
        let name = |&idx: &ClusterIdx| self.hub.name(idx);
        let counts = clusters.iter().map(|idx| others.count(name(idx)));
        Scores::of(counts.map(|count| Some(of_count(count))).collect())
    }

    fn allocatable(
        &self,
        clusters: &[ClusterIdx],
        resource: impl Fn(&crate::facts::cluster::ClusterFact) -> Amounts,
    ) -> Scores {
        let amount = |&idx: &ClusterIdx| {
            let amounts = resource(self.hub.cluster(idx)?);
            amounts.capacity.and(amounts.allocatable)
        };
        let amounts: Vec<Option<i64>> = clusters.iter().map(amount).collect();
        let known = || amounts.iter().flatten().copied();
        let (min, max) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        let score = |amount: i64| match min == max {
            true => SCORE_MAX,
            false => {
                // Exact below 2^53, which is eight pebibytes.
                let share = (amount as f64 - min as f64) / (max as f64 - min as f64);
                ((share - 0.5) * 2.0 * 100.0) as i64
            }
        };
        Scores::of(amounts.into_iter().map(|a| a.map(score)).collect())
    }

    fn add_on(&self, add_on: AddOnCoordinate, clusters: &[ClusterIdx]) -> Scores {
        let mut scores = Scores::default();
        for &idx in clusters {
            let fact = self.hub.scores(self.hub.name(idx), add_on.resource);
            let mut value = 0;
            if let Some(fact) = fact {
                if fact.expired(self.now) {
                    scores.expired.push(idx);
                } else {
                    value = i64::from(fact.value(add_on.score).unwrap_or(0));
                    scores.until = scores.until.into_iter().chain(fact.valid_until).min();
                }
            }
            scores.values.push(Some(value));
        }
        scores
    }
}

impl Scores {
    fn of(values: Vec<Option<i64>>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }
}
