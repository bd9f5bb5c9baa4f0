//! The topology of each cluster under the keys that placements spread over. It is read when the cluster changes, not in
//! every run of every placement.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use strew_model::Symbol;

use super::ClusterIdx;
use crate::facts::cluster::ClusterFact;

/// A topology key, and true if it names a claim.
pub(crate) type Source = (Symbol, bool);

/// The values of a cluster, level by level.
pub(crate) type Tuple = SmallVec<[Option<Symbol>; 4]>;

/// The largest number of lists of keys that are followed. Placements with other keys read the topologies in each run.
const KEYS_MAX: usize = 64;

/// The tuples of all clusters, for each list of keys that a placement spreads over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topologies {
    by_keys: BTreeMap<Vec<Source>, Column>,
}

/// The tuples of all clusters under one list of keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Column {
    /// By [`ClusterIdx`]: the index of its tuple.
    of: Vec<u32>,
    /// The tuples, some of which may be unused.
    tuples: Vec<Tuple>,
    known: FxHashMap<Tuple, u32>,
}

/// The value of a cluster, read from the key's source only.
pub(crate) fn value(cluster: &ClusterFact, (key, from_claims): Source) -> Option<Symbol> {
    match from_claims {
        true => cluster.claims.get(key),
        false => cluster.labels.get(key),
    }
}

impl Topologies {
    /// The column of these keys; `None` if they are not followed.
    pub(crate) fn column(&self, keys: &[Source]) -> Option<&Column> {
        self.by_keys.get(keys)
    }

    /// Begins to follow a list of keys, unless it is followed already or there are too many.
    pub(crate) fn follow<'c>(
        &mut self,
        keys: &[Source],
        clusters: impl Iterator<Item = (ClusterIdx, &'c ClusterFact)>,
    ) {
        if self.by_keys.contains_key(keys) || self.by_keys.len() >= KEYS_MAX {
            return;
        }
        let mut column = Column::default();
        clusters.for_each(|(idx, cluster)| column.set(keys, idx, cluster));
        self.by_keys.insert(keys.to_vec(), column);
    }

    /// Stops following all keys. Deciding a placement begins to follow its keys again.
    pub(super) fn clear(&mut self) {
        self.by_keys.clear();
    }

    /// Reads the tuples of a changed cluster.
    pub(super) fn set(&mut self, idx: ClusterIdx, cluster: &ClusterFact) {
        for (keys, column) in &mut self.by_keys {
            column.set(keys, idx, cluster);
        }
    }
}

impl Column {
    fn set(&mut self, keys: &[Source], idx: ClusterIdx, cluster: &ClusterFact) {
        let tuple: Tuple = keys.iter().map(|&source| value(cluster, source)).collect();
        let tuples = &mut self.tuples;
        let number = *self.known.entry(tuple).or_insert_with_key(|tuple| {
            tuples.push(tuple.clone());
            tuples.len() as u32 - 1
        });
        if self.of.len() <= idx.index() {
            self.of.resize(idx.index() + 1, 0);
        }
        self.of[idx.index()] = number;
    }

    /// The number of tuples.
    pub(crate) fn len(&self) -> usize {
        self.tuples.len()
    }

    /// The index of a cluster's tuple, and the tuple.
    pub(crate) fn tuple(&self, idx: ClusterIdx) -> (usize, &Tuple) {
        let number = self.of[idx.index()] as usize;
        (number, &self.tuples[number])
    }
}
