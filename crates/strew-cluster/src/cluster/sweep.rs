//! Frees memory that is no longer used: classes without pods, and everything made for them.
//!
//! Pods come and go far more often than the number of classes grows, so nothing is freed in between. When as much is
//! new as the last sweep left, one pass frees everything that is unused. This costs a constant number of steps per new
//! class, and keeps memory within twice of what is used. Rows are reused under other indexes.
//!
//! The owner of the cluster has the caches, so it drives the sweep: [`begin_sweep`](Cluster::begin_sweep) frees
//! classes, the caches drop what belonged to these and [touch](Cluster::touch_census) what they still read, and
//! [`end_sweep`](Cluster::end_sweep) frees what was not touched, and strings that are not marked.

use rustc_hash::FxHashSet;
use strew_model::{Holds, Marks};

use super::Cluster;
use crate::census::{CensusId, CensusKey, TallyId};
use crate::class::ClassId;
use crate::eligibility::EligibilityId;
use crate::topology::KeyId;

/// The number of new strings that counts as one new class for the next sweep.
const STRINGS_PER_CLASS: usize = 8;

/// When the next sweep is due.
#[derive(Debug, Clone, Default)]
pub(super) struct Sweeping {
    number: u64,
    /// The number of classes and terms that the last sweep left.
    left: usize,
}

/// A sweep in progress: caches must touch what they still read before it ends.
#[derive(Debug)]
pub struct Sweep {
    moment: u64,
    columns: FxHashSet<KeyId>,
    tallies: FxHashSet<TallyId>,
}

impl Sweep {
    /// Marks a tally as read.
    pub fn touch_tally(&mut self, tally: TallyId) {
        self.tallies.insert(tally);
    }

    /// Marks a column of a topology key as read.
    pub fn touch_column(&mut self, key: KeyId) {
        self.columns.insert(key);
    }
}

/// The numbers of kept values by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Strings.
    pub strings: usize,
    /// Pod classes.
    pub classes: usize,
    /// Censuses.
    pub censuses: usize,
    /// Columns of topology keys.
    pub columns: usize,
    /// Rules of eligibility.
    pub rules: usize,
}

impl Cluster {
    /// The numbers of kept values by kind.
    pub fn kept(&self) -> Kept {
        Kept {
            strings: self.names.len(),
            classes: self.tables.len(),
            censuses: self.censuses.iter().count(),
            columns: self.topology.len(),
            rules: self.eligible.len(),
        }
    }

    /// The number of sweeps begun. A plan from before a sweep is valid only if it was renewed in it.
    pub fn sweeps(&self) -> u64 {
        self.sweeping.number
    }

    /// True if as much is new as the last sweep left, and at least `min` classes and terms, or 8 times as many strings.
    #[inline]
    pub fn is_sweep_due(&self, min: usize) -> bool {
        self.tables.new_since_sweep() >= self.sweeping.left.max(min)
            || self
                .names
                .is_sweep_due(min.saturating_mul(STRINGS_PER_CLASS))
    }

    /// Frees every class without pods, except those of `kept`, with the label sets and specs that only it used.
    pub fn begin_sweep(&mut self, kept: &FxHashSet<ClassId>) -> Sweep {
        self.sweeping.number += 1;
        self.tables.sweep(kept);
        let mut dropped = Vec::new();
        if self.topology.is_stale() {
            // Domains get new numbers, so counts by domain are invalid.
            self.censuses.drop_where(|_| true, &mut dropped);
            self.topology.retain(|_| false);
        }
        self.forget_censuses(&dropped);
        Sweep {
            moment: self.censuses.clock(),
            columns: FxHashSet::default(),
            tallies: FxHashSet::default(),
        }
    }

    /// Frees the censuses, tallies and columns that were not touched since the sweep began, and every string that
    /// neither the cluster nor `mark` marks.
    pub fn end_sweep(&mut self, sweep: Sweep, mark: impl FnOnce(&mut Marks)) {
        let Sweep {
            moment,
            mut columns,
            tallies,
        } = sweep;
        let mut dropped: Vec<CensusId> = Vec::new();
        self.censuses.drop_unused_since(moment, &mut dropped);
        self.forget_censuses(&dropped);
        self.censuses.retain_tallies(&tallies);
        let mut rules: FxHashSet<EligibilityId> = FxHashSet::default();
        for (_, census) in self.censuses.iter() {
            debug_assert!(self.is_good(census.key()), "{:?}", census.key());
            for tally in census.tallies() {
                columns.insert(tally.key.key);
                rules.insert(tally.key.eligibility);
            }
        }
        self.topology.retain(|key| columns.contains(&key));
        self.eligible.retain(|rule| rules.contains(&rule));
        let mut marks = self.names.marks();
        self.mark(&mut marks);
        mark(&mut marks);
        self.names.sweep(&marks);
        self.sweeping.left = self.tables.weight_in_all();
    }

    /// True if the label sets and affinities of a census still exist.
    fn is_good(&self, key: &CensusKey) -> bool {
        let tables = &self.tables;
        match *key {
            CensusKey::Spread { .. } => true,
            CensusKey::Wanted { affinity, .. } | CensusKey::Unwanted { affinity, .. } => {
                tables.has_affinity(affinity)
            }
            CensusKey::Unwelcome { labels, .. } => tables.has_labels(labels),
            CensusKey::Preference {
                labels, affinity, ..
            } => tables.has_labels(labels) && tables.has_affinity(affinity),
        }
    }
}

impl Holds for Cluster {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        let Self {
            names: _,
            nodes,
            // Its keys are the names of the rows.
            node_by_name: _,
            nodes_free: _,
            nodes_present: _,
            order,
            topology,
            images,
            owners,
            volumes,
            namespaces,
            tables,
            pods,
            pod_by_uid: _,
            priorities: _,
            censuses,
            eligible,
            usage: _,
            structure: _,
            weighed: _,
            sweeping: _,
        } = self;
        nodes.as_slice().mark(marks);
        order.mark(marks);
        topology.mark(marks);
        images.mark(marks);
        owners.mark(marks);
        volumes.mark(marks);
        for (name, labels) in namespaces {
            name.mark(marks);
            labels.mark(marks);
        }
        tables.mark(marks);
        for (_, pod) in pods.iter() {
            pod.history.nominated.mark(marks);
        }
        for (_, census) in censuses.iter() {
            census.key().mark(marks);
        }
        eligible.mark(marks);
    }
}
