//! The objects of the hub: clusters, sets, bindings, scores, decisions.
//!
//! A [`Hub`] takes facts in any order and answers which clusters a placement can choose from. It decides nothing.

pub mod ledger;
mod sweep;
pub(crate) mod topologies;

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use strew_model::{Interner, Symbol, index_type};

use ledger::Ledger;
use topologies::{Source, Topologies};

use crate::facts::cluster::ClusterFact;
use crate::facts::cluster_set::{CLUSTER_SET_LABEL, ClusterSetFact, SetSelector};
use crate::facts::placement::PlacementFact;
use crate::facts::scores::ScoresFact;

index_type! {
    /// A cluster's row. The name keeps it until a sweep that finds no such cluster.
    pub struct ClusterIdx;
}

/// A cluster and the sets it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct ClusterRow {
    /// `None` while the cluster does not exist.
    pub(crate) fact: Option<ClusterFact>,
    /// The sets that select it, in the order of their arrival.
    pub(crate) sets: SetNames,
}

/// Names of sets. Most clusters are in one or two.
pub(crate) type SetNames = SmallVec<[Symbol; 3]>;

/// All facts of placement.
#[derive(Debug, Clone)]
pub struct Hub {
    /// The strings of all facts.
    pub names: Interner,
    set_label: Symbol,
    clusters: Vec<ClusterRow>,
    /// By [`ClusterIdx`]: the clusters' names, and which clusters have taints. Walks over all clusters of a placement
    /// read these, since rows are far apart in memory.
    cluster_names: Vec<Symbol>,
    tainted: FixedBitSet,
    by_name: FxHashMap<Symbol, ClusterIdx>,
    free: Vec<ClusterIdx>,
    /// The existing clusters, by name.
    order: Vec<ClusterIdx>,
    sets: IndexMap<Symbol, ClusterSetFact, FxBuildHasher>,
    /// By namespace: the names of bindings.
    bindings: IndexMap<Symbol, Vec<Symbol>, FxBuildHasher>,
    scores: FxHashMap<(Symbol, Symbol), ScoresFact>,
    /// The topology of each cluster under the keys that placements spread over.
    pub(crate) topologies: Topologies,
    /// The decisions of all placements.
    pub ledger: Ledger,
}

/// The candidates of a placement. Source: spec/placement §2.2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// True if any binding in the namespace has an existing set.
    pub bound: bool,
    /// The sets that are bound and asked for, by name.
    pub eligible: Vec<Symbol>,
    /// The clusters of these sets that are not being deleted, by name.
    pub clusters: Arc<[ClusterIdx]>,
    /// A set with an unknown selector, and the selector's type: the placement cannot be decided.
    pub broken: Option<(Symbol, Arc<str>)>,
}

impl Hub {
    /// An empty hub.
    pub fn new(mut names: Interner) -> Self {
        Self {
            set_label: names.intern(CLUSTER_SET_LABEL),
            names,
            clusters: Vec::new(),
            cluster_names: Vec::new(),
            tainted: FixedBitSet::new(),
            by_name: FxHashMap::default(),
            free: Vec::new(),
            order: Vec::new(),
            sets: IndexMap::default(),
            bindings: IndexMap::default(),
            scores: FxHashMap::default(),
            topologies: Topologies::default(),
            ledger: Ledger::default(),
        }
    }

    /// Sets a cluster. Returns its row and the previous fact.
    pub fn set_cluster(&mut self, fact: ClusterFact) -> (ClusterIdx, Option<ClusterFact>) {
        let idx = self.row_of(fact.name);
        if self.clusters[idx.index()].fact.is_none() {
            let place = self.place_of(fact.name);
            self.order.insert(place, idx);
        }
        let sets = self.sets_of(&fact);
        self.topologies.set(idx, &fact);
        self.tainted.set(idx.index(), !fact.taints.is_empty());
        let row = &mut self.clusters[idx.index()];
        row.sets = sets;
        (idx, row.fact.replace(fact))
    }

    /// Begins to keep the topologies of clusters under these keys.
    pub(crate) fn follow(&mut self, keys: &[Source]) {
        let rows = self.clusters.iter().enumerate();
        let clusters = rows.filter_map(|(i, row)| Some((ClusterIdx::from(i), row.fact.as_ref()?)));
        self.topologies.follow(keys, clusters);
    }

    /// Removes a cluster. Returns its row and the fact.
    pub fn remove_cluster(&mut self, name: Symbol) -> Option<(ClusterIdx, ClusterFact)> {
        let idx = *self.by_name.get(&name)?;
        let fact = self.clusters[idx.index()].fact.take()?;
        self.clusters[idx.index()].sets.clear();
        let place = self.place_of(name);
        self.order.remove(place);
        Some((idx, fact))
    }

    /// Sets a ClusterSet. Returns true if it changed.
    pub fn set_cluster_set(&mut self, fact: ClusterSetFact) -> bool {
        let before = self.sets.insert(fact.name, fact.clone());
        let changed = before.as_ref() != Some(&fact);
        if changed {
            self.recompute_membership();
        }
        changed
    }

    /// Removes a ClusterSet. Returns true if it existed.
    pub fn remove_cluster_set(&mut self, name: Symbol) -> bool {
        let was = self.sets.shift_remove(&name).is_some();
        if was {
            self.recompute_membership();
        }
        was
    }

    /// Adds the binding of this name. Returns true if it is new.
    pub fn set_binding(&mut self, namespace: Symbol, name: Symbol) -> bool {
        let bindings = self.bindings.entry(namespace).or_default();
        let new = !bindings.contains(&name);
        if new {
            bindings.push(name);
        }
        new
    }

    /// Removes the binding of this name. Returns true if it existed.
    pub fn remove_binding(&mut self, namespace: Symbol, name: Symbol) -> bool {
        let Some(bindings) = self.bindings.get_mut(&namespace) else {
            return false;
        };
        let before = bindings.len();
        bindings.retain(|&b| b != name);
        let was = bindings.len() < before;
        if bindings.is_empty() {
            self.bindings.shift_remove(&namespace);
        }
        was
    }

    /// Sets the scores of a cluster. Returns true if they changed.
    pub fn set_scores(&mut self, fact: ScoresFact) -> bool {
        let key = (fact.cluster, fact.name);
        let before = self.scores.insert(key, fact);
        before.as_ref() != self.scores.get(&key)
    }

    /// Removes the scores of a cluster. Returns true if they existed.
    pub fn remove_scores(&mut self, cluster: Symbol, name: Symbol) -> bool {
        self.scores.remove(&(cluster, name)).is_some()
    }

    /// The AddOnPlacementScore `name` of a cluster.
    pub(crate) fn scores(&self, cluster: Symbol, name: Symbol) -> Option<&ScoresFact> {
        self.scores.get(&(cluster, name))
    }

    /// The fact of a cluster; `None` if it does not exist.
    pub(crate) fn cluster(&self, idx: ClusterIdx) -> Option<&ClusterFact> {
        self.clusters[idx.index()].fact.as_ref()
    }

    /// The row of a cluster, which may be gone.
    pub(crate) fn row(&self, idx: ClusterIdx) -> &ClusterRow {
        &self.clusters[idx.index()]
    }

    /// The name of a cluster, which may be gone.
    pub(crate) fn name(&self, idx: ClusterIdx) -> Symbol {
        self.cluster_names[idx.index()]
    }

    /// True if a cluster has a taint. May be true for a cluster that is gone.
    pub(crate) fn is_tainted(&self, idx: ClusterIdx) -> bool {
        self.tainted.contains(idx.index())
    }

    /// The row of the cluster of this name; `None` if no fact ever named it.
    pub(crate) fn find(&self, name: Symbol) -> Option<ClusterIdx> {
        self.by_name.get(&name).copied()
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.clusters.len()
    }

    /// The namespaces in which a set of this name is bound.
    pub(crate) fn namespaces_bound_to(&self, set: Symbol) -> impl Iterator<Item = Symbol> + '_ {
        let all = self.bindings.iter();
        all.filter(move |(_, names)| names.contains(&set))
            .map(|(&namespace, _)| namespace)
    }

    /// The sets that are bound in the placement's namespace and asked for, by name; and true if any set is bound at
    /// all.
    pub(crate) fn eligible(&self, placement: &PlacementFact) -> (bool, Vec<Symbol>) {
        let bound = self.bindings.get(&placement.namespace);
        let exists = |set: &&Symbol| self.sets.contains_key(*set);
        let valid: Vec<Symbol> = bound
            .into_iter()
            .flatten()
            .filter(exists)
            .copied()
            .collect();
        let asked = &placement.spec.cluster_sets;
        let any = !valid.is_empty();
        let wanted = |set: &Symbol| asked.is_empty() || asked.contains(set);
        let mut eligible: Vec<Symbol> = valid.into_iter().filter(wanted).collect();
        eligible.sort_by(|&a, &b| self.names.text(a).cmp(self.names.text(b)));
        (any, eligible)
    }

    /// The candidates of a placement. Source: spec/placement §2.2.
    pub fn candidates(&self, placement: &PlacementFact) -> Candidates {
        let (bound, eligible) = self.eligible(placement);
        let clusters = self.members(&eligible);
        self.candidates_among(bound, eligible, clusters)
    }

    /// As [`candidates`](Self::candidates), if the clusters of the sets are known.
    pub(crate) fn candidates_among(
        &self,
        bound: bool,
        eligible: Vec<Symbol>,
        clusters: Arc<[ClusterIdx]>,
    ) -> Candidates {
        let unreadable = |set: &Symbol| match &self.sets[set].selector {
            SetSelector::Unknown(text) => Some((*set, Arc::clone(text))),
            _ => None,
        };
        let broken = eligible.iter().find_map(unreadable);
        Candidates {
            bound,
            eligible,
            clusters,
            broken,
        }
    }

    /// The clusters of these sets that are not being deleted, by name.
    pub(crate) fn members(&self, sets: &[Symbol]) -> Arc<[ClusterIdx]> {
        if sets.is_empty() {
            return Arc::default();
        }
        let all = self.order.iter().copied();
        all.filter(|&idx| self.is_candidate(idx, sets)).collect()
    }

    /// The position of a cluster in a list sorted by name, or the position at which to insert it.
    pub(crate) fn place_among(
        &self,
        list: &[ClusterIdx],
        cluster: ClusterIdx,
    ) -> Result<usize, usize> {
        let text = |idx: ClusterIdx| self.names.text(self.name(idx));
        let name = text(cluster);
        list.binary_search_by(|&idx| text(idx).cmp(name))
    }

    /// True if a cluster belongs to one of these sets and is not being deleted.
    pub(crate) fn is_candidate(&self, idx: ClusterIdx, eligible: &[Symbol]) -> bool {
        let row = &self.clusters[idx.index()];
        row.fact.as_ref().is_some_and(|fact| !fact.deleting)
            && row.sets.iter().any(|set| eligible.contains(set))
    }

    /// The sets that select such a cluster.
    pub(crate) fn sets_of(&self, fact: &ClusterFact) -> SetNames {
        let exclusive = fact.labels.get(self.set_label);
        let holds = |set: &&ClusterSetFact| match &set.selector {
            SetSelector::Exclusive => exclusive == Some(set.name),
            SetSelector::Labels(selector) => selector.matches(&fact.labels),
            SetSelector::Unknown(_) => false,
        };
        self.sets
            .values()
            .filter(holds)
            .map(|set| set.name)
            .collect()
    }

    fn recompute_membership(&mut self) {
        for idx in 0..self.clusters.len() {
            if let Some(fact) = &self.clusters[idx].fact {
                self.clusters[idx].sets = self.sets_of(fact);
            }
        }
    }

    fn row_of(&mut self, name: Symbol) -> ClusterIdx {
        let (clusters, by_name) = (&mut self.clusters, &mut self.by_name);
        *by_name.entry(name).or_insert_with(|| {
            if let Some(idx) = self.free.pop() {
                self.cluster_names[idx.index()] = name;
                return idx;
            }
            self.cluster_names.push(name);
            self.tainted.grow(clusters.len() + 1);
            clusters.push(ClusterRow {
                fact: None,
                sets: SetNames::new(),
            });
            ClusterIdx::from(clusters.len() - 1)
        })
    }

    /// The position of a cluster of this name in the order, or the position at which to insert it.
    fn place_of(&self, name: Symbol) -> usize {
        let text = self.names.text(name);
        let before = |&idx: &ClusterIdx| self.names.text(self.name(idx)) < text;
        self.order.partition_point(before)
    }
}
