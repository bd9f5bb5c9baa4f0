//! The queue's metrics.

use std::collections::BTreeMap;

use strew_cluster::PodIdx;
use strew_model::Instant;

use super::{Gate, Place, Queue};
use crate::profile::PluginId;
use crate::queue::Context;

/// How far a pod came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How often it was tried.
    pub(crate) attempts: u32,
    /// When it was first ready to be tried.
    pub(crate) ready_since: Instant,
    /// Whether it was tried last for its age only.
    pub(crate) flushed: bool,
}

impl Queue {
    /// How far a pod came that is here, or being bound.
    pub(crate) fn progress(&self, pod: PodIdx) -> Option<Progress> {
        let entry = self.entries.get(&pod)?;
        Some(Progress {
            attempts: entry.attempts,
            ready_since: entry.ready_since?,
            flushed: entry.flushed,
        })
    }

    /// How many pods wait because a plugin rejected them, by the place of their profile. A pod that several rejected
    /// counts for each.
    pub(crate) fn unschedulable_by(&self, cx: Context<'_>) -> BTreeMap<(PluginId, usize), usize> {
        let mut pods = BTreeMap::new();
        #[allow(clippy::iter_over_hash_type, reason = "counts have no order")]
        for entry in self.entries.values() {
            let mut plugins = match entry.place {
                Place::InFlight | Place::Binding => continue,
                _ => entry.rejected_by,
            };
            if entry.place == Place::Gated(Gate::SchedulingGates) {
                plugins.insert(PluginId::SchedulingGates);
            }
            let Some(place) = cx.profiles.place(cx.cluster, entry.class) else {
                continue;
            };
            for plugin in plugins.iter() {
                *pods.entry((plugin, place)).or_default() += 1;
            }
        }
        pods
    }

    /// Queue, event and number of the pods that came into it by that.
    pub(crate) fn incoming(&self) -> impl Iterator<Item = (&'static str, String, u64)> {
        self.incoming.counted()
    }

    /// How many events are kept for pods in flight, by label, and how many such pods there are.
    pub(crate) fn in_flight(&self) -> (BTreeMap<String, usize>, usize) {
        self.in_flight.counted()
    }
}
