//! Constraints of workloads with what they count, and how far a cluster is from keeping them.

use rustc_hash::FxHashMap;
use strew_cluster::{CensusId, Cluster, KeyId, OwnerRef, SpreadConstraint, TallyId};
use strew_model::Symbol;
use strew_spread::Limit;

/// A constraint of a workload's pods, with its counts.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The namespace of its pods.
    pub namespace: Symbol,
    /// The controller of its pods.
    pub owner: Option<OwnerRef>,
    /// The constraint.
    pub constraint: SpreadConstraint,
    /// Its index in the spec, or in the defaults.
    pub index: usize,
    /// Whether it is a default of the profile.
    pub is_default: bool,
    /// True if the profile disables this part of the plugin: then it has no effect.
    pub is_off: bool,
    /// The namespaces and controllers of further pods with a constraint that counts the same pods on the same nodes,
    /// with the same limit.
    pub shared: Vec<(Symbol, Option<OwnerRef>)>,
    pub(crate) key: KeyId,
    pub(crate) tally: TallyId,
}

/// How far a cluster is from what is asked for: the less, the better. Hard constraints come before soft ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Measure {
    /// The pods that wait for the scheduler.
    pub pending: usize,
    /// The sum over all hard constraints of the pods that must change their domain until its skew is at most maxSkew.
    pub hard: u64,
    /// The same of the soft ones.
    pub soft: u64,
}

impl Measure {
    /// The sum to which a constraint belongs.
    pub(crate) fn of(&mut self, rule: &Rule) -> &mut u64 {
        match rule.constraint.hard {
            true => &mut self.hard,
            false => &mut self.soft,
        }
    }
}

impl Rule {
    /// Its numbers.
    pub fn limit(&self) -> Limit {
        Limit {
            max_skew: self.constraint.max_skew,
            min_domains: self.constraint.min_domains.unwrap_or(1),
        }
    }

    /// The least number of pods that must change their domain until it is kept.
    pub(crate) fn moves(&self, cluster: &Cluster) -> u64 {
        self.limit().moves(cluster.tally(self.tally))
    }

    /// The namespaces and controllers of the pods that have it.
    pub fn owners(&self) -> impl Iterator<Item = (Symbol, Option<OwnerRef>)> + '_ {
        let own = (self.namespace, self.owner);
        std::iter::once(own).chain(self.shared.iter().copied())
    }

    /// Those that have an effect; of those that count the same pods on the same nodes with the same limit the first one,
    /// which is [shared](Self::shared) by the others.
    pub(crate) fn distinct(rules: Vec<Self>, cluster: &Cluster) -> Vec<Self> {
        type Counted = (CensusId, KeyId, Limit, bool);
        let mut seen: FxHashMap<Counted, Vec<usize>> = FxHashMap::default();
        let mut distinct: Vec<Self> = Vec::new();
        for rule in rules.into_iter().filter(|rule| !rule.is_off) {
            let hard = rule.constraint.hard;
            let alike = seen
                .entry((rule.tally.census, rule.key, rule.limit(), hard))
                .or_default();
            let counts_the_same = |other: &&usize| {
                let tally = distinct[**other].tally;
                tally == rule.tally || cluster.tally_nodes(tally) == cluster.tally_nodes(rule.tally)
            };
            match alike.iter().find(counts_the_same).copied() {
                Some(first) => {
                    let owner = (rule.namespace, rule.owner);
                    let first = &mut distinct[first];
                    if first.owners().all(|known| known != owner) {
                        first.shared.push(owner);
                    }
                }
                None => {
                    alike.push(distinct.len());
                    distinct.push(rule);
                }
            }
        }
        distinct
    }
}
