//! Counters for metrics. Source: spec/placement §2.12.
//!
//! Durations are measured between the times given to [`handle`](super::PlacementMachine::handle): the time of writes, and the
//! wait of a change. The machine cannot see the time that deciding itself takes; to have it counted, send a
//! [`Tick`](super::Input::Tick) with the present time before polling again. An implementation of
//! [`ClusterPredicate`](crate::ClusterPredicate) can measure CEL: it is called once per cluster and selector.

use strew_model::{Instant, Span};

use crate::decisions::writes::WriteKind;

/// Counts since the machine was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Decisions on placements, whatever their results: the measure of incremental work.
    pub decided: u64,
    /// Of these, decisions on invalid specifications.
    pub misconfigured: u64,
    /// Of these, decisions with a warning.
    pub warned: u64,
    /// Runs of the selection: more than decisions, because a run is repeated until its result is stable.
    pub runs: u64,
    /// Placements that could not be decided, because a set cannot be read.
    pub unreadable: u64,
    /// PlacementDecisions created.
    pub created: u64,
    /// PlacementDecisions changed.
    pub updated: u64,
    /// PlacementDecisions deleted.
    pub deleted: u64,
    /// Statuses written.
    pub statuses: u64,
    /// Writes refused because the object had changed; the placement is decided again.
    pub conflicts: u64,
    /// Writes that failed, or whose outcome is unknown; they are retried.
    pub failed: u64,
    /// From the change that requires a decision to the first write.
    pub scheduling: Durations,
    /// From the first write to the last one, or to the one that failed.
    pub binding: Durations,
}

impl Counters {
    /// Ends the writes that began at this time.
    pub(super) fn bound(&mut self, since: Option<Instant>, now: Instant) {
        if let Some(since) = since {
            self.binding.add(now.since(since));
        }
    }

    /// Counts a write of a PlacementDecision.
    pub(super) fn written(&mut self, kind: WriteKind) {
        match kind {
            WriteKind::Create => self.created += 1,
            WriteKind::Update => self.updated += 1,
            WriteKind::Delete => self.deleted += 1,
        }
    }
}

/// Placements by state. Each counts once, in the first state that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlacementCounts {
    /// The specification is invalid.
    pub misconfigured: usize,
    /// They have fewer clusters than they ask for, or none, or are not decided yet.
    pub short: usize,
    /// They have enough clusters, which are not spread as asked for.
    pub skewed: usize,
    /// They have what they ask for.
    pub satisfied: usize,
}

/// Durations, as a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durations {
    /// The number of durations.
    pub count: u64,
    /// Their sum.
    pub sum: Span,
    /// The number of durations up to each of [`Durations::BOUNDS`]; `count` includes longer ones.
    pub within: [u64; Self::BOUNDS.len()],
}

impl Durations {
    /// Upstream's bounds: a microsecond, then ten times the previous one, up to a thousand seconds.
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
