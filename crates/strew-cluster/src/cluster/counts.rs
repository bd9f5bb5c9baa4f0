//! Columns, eligibility, censuses and tallies, created when a decision first needs them.

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashSet;
use strew_model::Symbol;
use strew_spread::{DomainIdx, Tally};

use super::Cluster;
use crate::census::{Census, CensusId, CensusKey, TallyId, TallyKey, Weighing};
use crate::class::{AffinityId, ClassId};
use crate::eligibility::{Eligibility, EligibilityId};
use crate::index::NodeIdx;
use crate::topology::{EMPTY_DOMAIN, KeyId};

impl Cluster {
    /// The column of a topology key, made if it is new.
    pub fn ensure_column(&mut self, key: Symbol) -> KeyId {
        let rows = self
            .nodes
            .iter()
            .map(|n| n.fact.as_ref().map(|f| &f.labels));
        self.topology.ensure(key, rows)
    }

    /// The nodes that a rule admits, computed if the rule is new.
    pub fn ensure_eligibility(&mut self, rule: Eligibility) -> EligibilityId {
        if let Some(id) = self.eligible.find(&rule) {
            return id;
        }
        let mut nodes = FixedBitSet::with_capacity(self.nodes.len());
        for (i, row) in self.nodes.iter().enumerate() {
            nodes.set(i, rule.admits(row, &self.tables, &self.names));
        }
        self.eligible.add(rule, nodes)
    }

    /// A census, counted if it is new. Ids from before an eviction are invalid: see [`evicted`](Self::evicted).
    pub fn ensure_census(&mut self, key: CensusKey) -> CensusId {
        if let Some(id) = self.censuses.find(&key) {
            return id;
        }
        let mut counted: Vec<(ClassId, i32)> = Vec::new();
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        self.weighed += self.tables.populated().len() as u64;
        for (id, class) in self.tables.populated() {
            counted.extend(weighing.weigh(&key, class).map(|count| (id, count)));
        }
        let census = self.censuses.start(key, self.nodes.len());
        for (class, count) in counted {
            let class = self.tables.class_mut(class);
            class.counted_in.push((census, count));
            self.censuses.count_initial(census, &class.members, count);
        }
        let mut dropped = Vec::new();
        self.censuses.evict(&mut dropped);
        self.forget_censuses(&dropped);
        census
    }

    /// True if a pod of a class matches all required terms of its own affinity.
    pub fn finds_itself(&self, affinity: AffinityId, class: ClassId) -> bool {
        let class = self.tables.class(class);
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        let wanted = CensusKey::Wanted {
            namespace: class.key.namespace,
            affinity,
        };
        weighing.weigh(&wanted, class).is_some()
    }

    /// A tally of a census, derived if it is new.
    pub fn ensure_tally(&mut self, census: CensusId, key: TallyKey) -> TallyId {
        self.censuses
            .tally(census, key, &self.eligible, &self.topology)
    }

    /// A census.
    ///
    /// # Panics
    /// It was evicted.
    #[inline]
    pub fn census(&self, id: CensusId) -> &Census {
        self.censuses.get(id)
    }

    /// A tally.
    ///
    /// # Panics
    /// Its census was evicted.
    #[inline]
    pub fn tally(&self, id: TallyId) -> &Tally {
        &self.censuses.tally_of(id).tally
    }

    /// The nodes that a tally counts.
    pub fn tally_nodes(&self, id: TallyId) -> &FixedBitSet {
        self.eligible
            .nodes(self.censuses.tally_of(id).key.eligibility)
    }

    /// The domain in which a tally counts the pods of a node; `None` if it does not count them.
    ///
    /// # Panics
    /// Its census was evicted.
    pub fn domain_in(&self, tally: TallyId, node: NodeIdx) -> Option<DomainIdx> {
        if !self.tally_nodes(tally).contains(node.index()) {
            return None;
        }
        let of = self.censuses.tally_of(tally);
        let domain = self.column(of.key.key).domain(node);
        domain.or(of.tally.exists(EMPTY_DOMAIN).then_some(EMPTY_DOMAIN))
    }

    /// Marks a census as used, so that it is not evicted next.
    #[inline]
    pub fn touch_census(&mut self, id: CensusId) {
        self.censuses.touch(id);
    }

    /// Censuses used from now on are not evicted before the next call, so that everything that one decision needs
    /// stays.
    pub fn pin_censuses(&mut self) {
        self.censuses.pin_from_now();
    }

    /// How often a class was weighed for a census: the work that new classes and new censuses caused.
    pub fn weighed(&self) -> u64 {
        self.weighed
    }

    /// The number of evicted censuses: ids are valid while this stays the same.
    pub fn evicted(&self) -> u64 {
        self.censuses.evicted()
    }

    /// Sets the largest size of all censuses together, in bytes. The default is 64 MiB.
    pub fn set_census_bytes_max(&mut self, bytes_max: usize) {
        self.censuses.set_bytes_max(bytes_max);
    }

    pub(super) fn forget_censuses(&mut self, dropped: &[CensusId]) {
        if dropped.is_empty() {
            return;
        }
        let dropped: FxHashSet<CensusId> = dropped.iter().copied().collect();
        self.tables
            .recount(|counted_in| counted_in.retain(|(census, _)| !dropped.contains(census)));
    }
}
