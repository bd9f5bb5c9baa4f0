//! Censuses: counts of pods per node, kept current, with derived tallies per domain.
//!
//! One mechanism serves everything that counts pods: topology spread, affinity, anti-affinity and preferences differ
//! only in what a pod of a class counts ([`CensusKey`]).

mod weighing;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_model::{Holds, Marks, Selector, Symbol, index_type};
use strew_spread::{DomainIdx, Tally};

use crate::class::{AffinityId, LabelsId};
use crate::eligibility::{EligibilityId, EligibleNodes};
use crate::index::NodeIdx;
use crate::topology::{EMPTY_DOMAIN, KeyId, Topology};
pub(crate) use weighing::Weighing;

index_type! {
    /// The id of a census.
    pub struct CensusId;
}

/// The id of a tally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TallyId {
    /// The census.
    pub census: CensusId,
    /// The index among the census's tallies.
    pub place: u32,
}

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CensusKey {
    /// Pods of a namespace that a selector matches and that do not terminate (spec/scheduler §1.4).
    Spread {
        /// The incoming pod's namespace.
        namespace: Symbol,
        /// The constraint's selector with match label keys merged; never empty.
        selector: Selector,
    },
    /// Pods that match all required affinity terms of a pod in `namespace` (spec/scheduler §3.10, A).
    Wanted {
        /// The incoming pod's namespace.
        namespace: Symbol,
        /// Its affinity.
        affinity: AffinityId,
    },
    /// Pods that match one required anti-affinity term of a pod in `namespace` (spec/scheduler §3.10, N).
    Unwanted {
        /// The incoming pod's namespace.
        namespace: Symbol,
        /// Its affinity.
        affinity: AffinityId,
        /// The index of the required anti-affinity term.
        term: u32,
    },
    /// Required anti-affinity terms with this topology key, of existing pods, that match an incoming pod
    /// (spec/scheduler §3.10, E).
    Unwelcome {
        /// The terms' topology key.
        key: Symbol,
        /// The incoming pod's namespace.
        namespace: Symbol,
        /// The incoming pod's labels.
        labels: LabelsId,
    },
    /// Weights of preferences with this topology key, in both directions, between an incoming pod and existing ones
    /// (spec/scheduler §3.10, T).
    Preference {
        /// The terms' topology key.
        key: Symbol,
        /// The incoming pod's namespace.
        namespace: Symbol,
        /// The incoming pod's labels.
        labels: LabelsId,
        /// The incoming pod's affinity.
        affinity: AffinityId,
        /// The weight of a required affinity term of an existing pod.
        hard_weight: i32,
        /// True if preferred terms of existing pods are ignored.
        ignore_existing: bool,
    },
}

/// The key of a derived tally: the topology key, and the nodes that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TallyKey {
    /// The topology key.
    pub key: KeyId,
    /// The nodes that count.
    pub eligibility: EligibilityId,
    /// True if nodes without the label count in the domain of the empty value.
    pub missing_as_empty: bool,
}

/// A tally per domain of one topology key.
#[derive(Debug, Clone)]
pub struct DomainTally {
    /// Its key.
    pub key: TallyKey,
    /// The counts.
    pub tally: Tally,
}

/// Counts per node for a [`CensusKey`], and the tallies derived from them.
#[derive(Debug, Clone)]
pub struct Census {
    key: CensusKey,
    per_node: Vec<i32>,
    /// `None` if the index is free.
    tallies: Vec<Option<DomainTally>>,
    last_used: u64,
}

impl Census {
    /// What is counted.
    pub fn key(&self) -> &CensusKey {
        &self.key
    }

    /// Per node; nodes that do not exist (any more) may still have pods.
    #[inline]
    pub fn per_node(&self) -> &[i32] {
        &self.per_node
    }

    /// The tallies derived from it.
    pub fn tallies(&self) -> impl Iterator<Item = &DomainTally> {
        self.tallies.iter().flatten()
    }

    fn bytes(&self) -> usize {
        let tallies: usize = self.tallies().map(|t| t.tally.bytes()).sum();
        4 * self.per_node.capacity() + tallies
    }

    fn grow(&mut self, nodes: usize) {
        if self.per_node.len() < nodes {
            self.per_node.resize(nodes, 0);
        }
    }
}

impl DomainTally {
    #[inline]
    fn domain(&self, node: NodeIdx, topology: &Topology) -> Option<DomainIdx> {
        let domain = topology.column(self.key.key).domain(node);
        domain.or(self.key.missing_as_empty.then_some(EMPTY_DOMAIN))
    }

    fn change(&mut self, node: NodeIdx, delta: i32, eligible: &EligibleNodes, topology: &Topology) {
        if eligible.contains(self.key.eligibility, node)
            && let Some(domain) = self.domain(node, topology)
        {
            self.tally.add(domain, delta);
        }
    }
}

/// The censuses in use, bounded in bytes. The one unused for longest is dropped first, and counted again when it is
/// needed.
#[derive(Debug, Clone)]
pub(crate) struct Censuses {
    slots: Vec<Option<Census>>,
    by_key: FxHashMap<CensusKey, CensusId>,
    free: Vec<CensusId>,
    clock: u64,
    bytes_max: usize,
    /// Censuses started since the last check of the budget.
    unbudgeted: usize,
    /// The number of censuses visited for the budget so far.
    #[cfg(test)]
    looked_at: usize,
    evicted: u64,
    /// Increases with each census that is started or dropped.
    version: u64,
    /// Censuses used after this moment stay, whatever the budget says.
    pinned_from: u64,
}

impl Censuses {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            by_key: FxHashMap::default(),
            free: Vec::new(),
            clock: 0,
            bytes_max,
            unbudgeted: 0,
            #[cfg(test)]
            looked_at: 0,
            evicted: 0,
            version: 0,
            pinned_from: 0,
        }
    }

    /// The number of dropped censuses: ids kept elsewhere are valid while it stays the same.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// While this stays the same, a class without pods is counted in the same censuses.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    pub(crate) fn find(&mut self, key: &CensusKey) -> Option<CensusId> {
        let id = self.by_key.get(key).copied()?;
        self.touch(id);
        Some(id)
    }

    /// Marks a census as used.
    #[inline]
    pub(crate) fn touch(&mut self, id: CensusId) {
        self.clock += 1;
        if let Some(census) = &mut self.slots[id.index()] {
            census.last_used = self.clock;
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: CensusId) -> &Census {
        self.slots[id.index()]
            .as_ref()
            .expect("a census is used only until the next eviction")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CensusId, &Census)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(i, c)| Some((CensusId::from(i), c.as_ref()?)))
    }

    /// Starts a census of `nodes` nodes, all 0.
    pub(crate) fn start(&mut self, key: CensusKey, nodes: usize) -> CensusId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            CensusId::from(self.slots.len() - 1)
        });
        self.version += 1;
        self.unbudgeted += 1;
        self.by_key.insert(key.clone(), id);
        self.slots[id.index()] = Some(Census {
            key,
            per_node: vec![0; nodes],
            tallies: Vec::new(),
            last_used: 0,
        });
        self.touch(id);
        id
    }

    /// Counts `count` on a node, in a census without tallies.
    #[inline]
    pub(crate) fn count_initial(
        &mut self,
        id: CensusId,
        members: &[(crate::index::PodIdx, NodeIdx)],
        count: i32,
    ) {
        let census = self.slots[id.index()].as_mut().expect("just started");
        debug_assert!(census.tallies.is_empty());
        for &(_, node) in members {
            census.per_node[node.index()] += count;
        }
    }

    /// Replaces the counts per node of a census without tallies.
    pub(crate) fn adopt(&mut self, id: CensusId, per_node: Vec<i32>) {
        let census = self.slots[id.index()].as_mut().expect("just started");
        debug_assert!(census.tallies.is_empty());
        census.per_node = per_node;
    }

    /// A tally of a census, derived if it is new.
    pub(crate) fn tally(
        &mut self,
        id: CensusId,
        key: TallyKey,
        eligible: &EligibleNodes,
        topology: &Topology,
    ) -> TallyId {
        let census = self.slots[id.index()]
            .as_mut()
            .expect("a census is used only until the next eviction");
        let is_it = |t: &Option<DomainTally>| t.as_ref().is_some_and(|t| t.key == key);
        if let Some(place) = census.tallies.iter().position(is_it) {
            return TallyId {
                census: id,
                place: place as u32,
            };
        }
        let mut derived = DomainTally {
            key,
            tally: Tally::default(),
        };
        derived.fill(&census.per_node, eligible, topology);
        let free = census.tallies.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            census.tallies.push(None);
            census.tallies.len() - 1
        });
        census.tallies[place] = Some(derived);
        TallyId {
            census: id,
            place: place as u32,
        }
    }

    #[inline]
    pub(crate) fn tally_of(&self, id: TallyId) -> &DomainTally {
        self.get(id.census).tallies[id.place as usize]
            .as_ref()
            .expect("a tally is used only while a plan holds it")
    }

    /// Adds (or, with a negative `delta`, removes) one pod on a node.
    #[inline]
    pub(crate) fn count(
        &mut self,
        id: CensusId,
        node: NodeIdx,
        delta: i32,
        eligible: &EligibleNodes,
        topology: &Topology,
    ) {
        let census = self.slots[id.index()]
            .as_mut()
            .expect("classes forget evicted censuses");
        census.per_node[node.index()] += delta;
        for tally in census.tallies.iter_mut().flatten() {
            tally.change(node, delta, eligible, topology);
        }
    }

    /// Removes a node from all tallies, before it changes.
    pub(crate) fn detach_node(
        &mut self,
        node: NodeIdx,
        eligible: &EligibleNodes,
        topology: &Topology,
    ) {
        for census in self.slots.iter_mut().flatten() {
            let there = census.per_node.get(node.index()).copied().unwrap_or(0);
            for tally in census.tallies.iter_mut().flatten() {
                tally.change(node, -there, eligible, topology);
                if eligible.contains(tally.key.eligibility, node)
                    && let Some(domain) = tally.domain(node, topology)
                {
                    tally.tally.remove_place(domain);
                }
            }
        }
    }

    /// Adds a node to all tallies that count it, after it changed.
    pub(crate) fn attach_node(
        &mut self,
        node: NodeIdx,
        nodes: usize,
        eligible: &EligibleNodes,
        topology: &Topology,
    ) {
        for census in self.slots.iter_mut().flatten() {
            census.grow(nodes);
            let there = census.per_node[node.index()];
            for tally in census.tallies.iter_mut().flatten() {
                if eligible.contains(tally.key.eligibility, node)
                    && let Some(domain) = tally.domain(node, topology)
                {
                    tally.tally.add_place(domain);
                }
                tally.change(node, there, eligible, topology);
            }
        }
    }

    /// Makes room for new nodes.
    pub(crate) fn grow(&mut self, nodes: usize) {
        for census in self.slots.iter_mut().flatten() {
            census.grow(nodes);
        }
    }

    /// Censuses used from now on stay until the next call.
    pub(crate) fn pin_from_now(&mut self) {
        self.pinned_from = self.clock;
    }

    /// Drops the censuses that were unused for longest until the rest fits the budget, except pinned ones.
    ///
    /// The size is summed again only when a sixteenth of the censuses is new, so the budget may be exceeded by as much:
    /// one pod may need thousands of censuses, and each of them must not visit all others.
    pub(crate) fn evict(&mut self, dropped: &mut Vec<CensusId>) {
        if self.unbudgeted * 16 < self.by_key.len() {
            return;
        }
        self.unbudgeted = 0;
        #[cfg(test)]
        {
            self.looked_at += self.by_key.len();
        }
        let mut bytes: usize = self.slots.iter().flatten().map(Census::bytes).sum();
        if bytes <= self.bytes_max {
            return;
        }
        let others = self.iter().filter(|(_, c)| c.last_used <= self.pinned_from);
        let mut others: Vec<(u64, CensusId)> = others.map(|(id, c)| (c.last_used, id)).collect();
        others.sort_unstable();
        for (_, oldest) in others {
            if bytes <= self.bytes_max {
                return;
            }
            bytes -= self.drop_census(oldest);
            self.evicted += 1;
            dropped.push(oldest);
        }
    }

    /// Drops every census for which `which` returns true.
    pub(crate) fn drop_where(
        &mut self,
        which: impl Fn(&CensusKey) -> bool,
        dropped: &mut Vec<CensusId>,
    ) {
        let meant = self.iter().filter(|(_, c)| which(&c.key));
        let ids: Vec<CensusId> = meant.map(|(id, _)| id).collect();
        for id in ids {
            self.drop_census(id);
            self.evicted += 1;
            dropped.push(id);
        }
    }

    /// The present moment, for [`drop_unused_since`](Self::drop_unused_since).
    pub(crate) fn clock(&self) -> u64 {
        self.clock
    }

    /// Drops the tallies that are not among `kept`.
    pub(crate) fn retain_tallies(&mut self, kept: &FxHashSet<TallyId>) {
        for (i, slot) in self.slots.iter_mut().enumerate() {
            let tallies = slot.iter_mut().flat_map(|census| &mut census.tallies);
            for (place, tally) in tallies.enumerate() {
                let (census, place) = (CensusId::from(i), place as u32);
                if !kept.contains(&TallyId { census, place }) {
                    *tally = None;
                }
            }
        }
    }

    /// Drops every census that was not used after a moment, or refers to freed values.
    pub(crate) fn drop_unused_since(&mut self, moment: u64, dropped: &mut Vec<CensusId>) {
        let unused = self.iter().filter(|(_, c)| c.last_used <= moment);
        let ids: Vec<CensusId> = unused.map(|(id, _)| id).collect();
        for id in ids {
            self.drop_census(id);
            dropped.push(id);
        }
    }

    fn drop_census(&mut self, id: CensusId) -> usize {
        let census = self.slots[id.index()].take().expect("listed a moment ago");
        self.by_key.remove(&census.key);
        self.free.push(id);
        self.version += 1;
        census.bytes()
    }
}

impl DomainTally {
    /// Counts from the per-node counts: a plain recount, in one pass over the nodes.
    fn fill(&mut self, per_node: &[i32], eligible: &EligibleNodes, topology: &Topology) {
        let column = topology.column(self.key.key);
        // Sums first, then places: so each domain enters the levels once.
        let mut sums = vec![0i32; column.len()];
        let mut places = vec![0u32; column.len()];
        for node in eligible
            .nodes(self.key.eligibility)
            .ones()
            .map(NodeIdx::from)
        {
            if let Some(domain) = self.domain(node, topology) {
                sums[domain.index()] += per_node.get(node.index()).copied().unwrap_or(0);
                places[domain.index()] += 1;
            }
        }
        self.tally = Tally::of_counts(sums, places);
    }
}

impl Holds for CensusKey {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Spread {
                namespace,
                selector,
            } => {
                namespace.mark(marks);
                selector.mark(marks);
            }
            Self::Wanted { namespace, .. } | Self::Unwanted { namespace, .. } => {
                namespace.mark(marks);
            }
            Self::Unwelcome { key, namespace, .. } | Self::Preference { key, namespace, .. } => {
                (*key, *namespace).mark(marks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use strew_model::Interner;

    use super::*;

    fn term(namespace: Symbol, term: u32) -> CensusKey {
        CensusKey::Unwanted {
            namespace,
            affinity: AffinityId::from(strew_model::index::RawId::first(0)),
            term,
        }
    }

    /// A pod with 9,000 terms made the scheduler walk 40 million censuses, and probes wait for a second.
    #[test]
    fn thousands_of_censuses_are_not_each_looked_at_for_every_other() {
        const N: u32 = 10_000;
        let namespace = Interner::new().intern("a");
        let mut censuses = Censuses::new(usize::MAX);
        let mut dropped = Vec::new();
        for number in 0..N {
            censuses.start(term(namespace, number), 1);
            censuses.evict(&mut dropped);
        }
        assert_eq!(dropped, []);
        assert!(
            censuses.looked_at < 40 * N as usize,
            "{}",
            censuses.looked_at
        );
    }

    #[test]
    fn the_oldest_censuses_go_and_the_budget_is_exceeded_by_a_sixteenth_at_most() {
        let namespace = Interner::new().intern("a");
        let mut censuses = Censuses::new(100 * 4);
        let mut dropped = Vec::new();
        for number in 0..1_000 {
            censuses.start(term(namespace, number), 1);
            censuses.pin_from_now();
            censuses.evict(&mut dropped);
            assert!(censuses.iter().count() <= 100 + 100 / 16 + 1);
        }
        let mut kept: Vec<u64> = censuses.iter().map(|(_, c)| c.last_used).collect();
        kept.sort_unstable();
        let newest: Vec<u64> = (1_001 - kept.len() as u64..1_001).collect();
        assert_eq!(kept, newest);
        assert_eq!(censuses.evicted(), dropped.len() as u64);
    }
}
