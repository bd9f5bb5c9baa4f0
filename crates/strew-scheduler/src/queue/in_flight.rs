//! Events that arrive while a pod is being scheduled. Source: spec/scheduler §4.2, §4.3.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use strew_cluster::PodIdx;

use super::event::Event;
use super::incoming::Cause;

/// An event, and the waiting pod that it is about, if any.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) event: Event,
    pub(crate) own: Option<PodIdx>,
}

/// The events since the earliest pod in flight was popped. Empty while no pod is in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    events: VecDeque<Logged>,
    /// The number of the first of `events`.
    first: u64,
    /// For each pod, the number of the first event after its pop.
    popped: FxHashMap<PodIdx, u64>,
}

impl InFlight {
    pub(crate) fn start(&mut self, pod: PodIdx) {
        let head = self.first + self.events.len() as u64;
        self.popped.insert(pod, head);
    }

    pub(crate) fn note(&mut self, event: &Event, own: Option<PodIdx>) {
        if !self.popped.is_empty() {
            let event = event.clone();
            self.events.push_back(Logged { event, own });
        }
    }

    /// Ends the flight of a pod. Returns the events since it was popped.
    pub(crate) fn finish(&mut self, pod: PodIdx) -> Vec<Logged> {
        let Some(from) = self.popped.remove(&pod) else {
            return Vec::new();
        };
        let skip = (from - self.first) as usize;
        let seen = self.events.range(skip..).cloned().collect();
        // A minimum does not depend on the order.
        #[allow(clippy::iter_over_hash_type, reason = "a minimum has no order")]
        let earliest = self.popped.values().copied().min();
        let keep_from = earliest.unwrap_or(self.first + self.events.len() as u64);
        while self.first < keep_from {
            self.events.pop_front();
            self.first += 1;
        }
        seen
    }

    /// The kept events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().map(|logged| &logged.event)
    }

    /// The number of kept events by label, and the number of pods in flight.
    pub(crate) fn counted(&self) -> (BTreeMap<String, usize>, usize) {
        let mut events = BTreeMap::new();
        for logged in &self.events {
            *events
                .entry(Cause::event(&logged.event).label())
                .or_default() += 1;
        }
        (events, self.popped.len())
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }
}
