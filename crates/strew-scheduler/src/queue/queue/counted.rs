//! The queue's metrics.

use std::collections::BTreeMap;

use strew_cluster::PodIdx;
use strew_model::Instant;

use super::{Gate, Place, Queue};
use crate::profile::PluginId;
use crate::queue::Context;

/// The progress of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of attempts.
    pub(crate) attempts: u32,
    /// When it first became ready.
    pub(crate) ready_since: Instant,
    /// True if its last attempt was only for its age.
    pub(crate) flushed: bool,
}

impl Queue {
    /// The progress of a pod in the queue, or being bound.
    pub(crate) fn progress(&self, pod: PodIdx) -> Option<Progress> {
        let entry = self.entries.get(&pod)?;
        Some(Progress {
            attempts: entry.attempts,
            ready_since: entry.ready_since?,
            flushed: entry.flushed,
        })
    }

    /// How many pods wait because a plugin rejected them, by plugin and profile index. A pod that several plugins
    /// rejected counts for each.
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

    /// Queue, event and number of the pods that entered the queue for it.
    pub(crate) fn incoming(&self) -> impl Iterator<Item = (&'static str, String, u64)> {
        self.incoming.counted()
    }

    /// The number of events kept for pods in flight, by label, and the number of these pods.
    pub(crate) fn in_flight(&self) -> (BTreeMap<String, usize>, usize) {
        self.in_flight.counted()
    }
}
