//! What placement has done, counted: for metrics. Source: spec/placement §2.12.
//!
//! Durations are between the instants that [`handle`](super::Placer::handle) is told: what writes took, and how long a
//! change waited. Time that deciding itself takes is seen by nobody in here; a world that wants it counted tells
//! [`Tick`](super::Input::Tick) with its clock before it polls on. What CEL takes, whoever answers for
//! [`ClusterPredicate`](crate::ClusterPredicate) can measure: it is asked once for each cluster and selector.

use strew_model::{Instant, Span};

use crate::decisions::writes::WriteKind;

/// Counts since the machine was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Placements that were decided, whatever came of it: what incremental work is measured by.
    pub decided: u64,
    /// Of these, such as make no sense.
    pub misconfigured: u64,
    /// Of these, such as came with a warning.
    pub warned: u64,
    /// How often clusters were selected: more often than decided where a result was tried until it stood.
    pub runs: u64,
    /// Placements that could not be decided, because a set cannot be read.
    pub unreadable: u64,
    /// PlacementDecisions that were made.
    pub created: u64,
    /// PlacementDecisions that were changed.
    pub updated: u64,
    /// PlacementDecisions that were deleted.
    pub deleted: u64,
    /// Statuses that were written.
    pub statuses: u64,
    /// Writes that met another world than they were made for: to be decided anew.
    pub conflicts: u64,
    /// Writes that failed, or that nobody knows of: to be tried again.
    pub failed: u64,
    /// From the change that made a placement's decision necessary to the begin of its writes.
    pub scheduling: Durations,
    /// From there to the end of its writes, or to the one that failed.
    pub binding: Durations,
}

impl Counters {
    /// The writes that began then have come to their end.
    pub(super) fn bound(&mut self, since: Option<Instant>, now: Instant) {
        if let Some(since) = since {
            self.binding.add(now.since(since));
        }
    }

    /// A PlacementDecision was written.
    pub(super) fn written(&mut self, kind: WriteKind) {
        match kind {
            WriteKind::Create => self.created += 1,
            WriteKind::Update => self.updated += 1,
            WriteKind::Delete => self.deleted += 1,
        }
    }
}

/// How many placements stand how; each counts once, where it stands first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// They make no sense.
    pub misconfigured: usize,
    /// They have fewer clusters than they ask for, or none, or are not decided yet.
    pub short: usize,
    /// They have enough, and are spread otherwise than they ask for.
    pub skewed: usize,
    /// All is as asked for.
    pub satisfied: usize,
}

/// How long something took, as a histogram has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durations {
    /// How often.
    pub count: u64,
    /// All of it together.
    pub sum: Span,
    /// How often it took no longer than each of [`Durations::BOUNDS`]; `count` is that of all.
    pub within: [u64; Self::BOUNDS.len()],
}

impl Durations {
    /// Upstream's buckets: a microsecond, and ten times the one before, to a thousand seconds.
    pub const BOUNDS: [Span; 10] = {
        let mut bounds = [Span(1_000); 10];
        let mut i = 1;
        while i < bounds.len() {
            bounds[i] = Span(bounds[i - 1].0 * 10);
            i += 1;
        }
        bounds
    };

    pub(super) fn add(&mut self, took: Span) {
        self.count += 1;
        self.sum = Span(self.sum.0.saturating_add(took.0));
        for (within, bound) in self.within.iter_mut().zip(Self::BOUNDS) {
            *within += u64::from(took <= bound);
        }
    }
}
