//! Pods that wait for an event, by rejecting plugin and by class.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use strew_cluster::{ClassId, PodIdx};

use super::event::PluginSet;

type ByClass = IndexMap<ClassId, Vec<PodIdx>, FxBuildHasher>;

/// The unschedulable pods. An event visits only the groups that it may concern.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    groups: IndexMap<PluginSet, ByClass, FxBuildHasher>,
    len: usize,
}

impl Waiting {
    /// Adds a pod, and returns its slot in its group.
    pub fn push(&mut self, rejected_by: PluginSet, class: ClassId, pod: PodIdx) -> u32 {
        let by_class = self.groups.entry(rejected_by).or_default();
        let group = by_class.entry(class).or_default();
        group.push(pod);
        self.len += 1;
        group.len() as u32 - 1
    }

    /// Removes a pod. Returns the pod that has its slot now, if one does.
    pub fn remove(&mut self, rejected_by: PluginSet, class: ClassId, slot: u32) -> Option<PodIdx> {
        let by_class = self.groups.get_mut(&rejected_by)?;
        let group = by_class.get_mut(&class)?;
        group.swap_remove(slot as usize);
        self.len -= 1;
        let moved = group.get(slot as usize).copied();
        if group.is_empty() {
            by_class.swap_remove(&class);
        }
        moved
    }

    /// Removes whole groups of pods: those whose plugins listen, and for which `should_retry` returns true.
    pub fn drain(
        &mut self,
        listeners: PluginSet,
        mut should_retry: impl FnMut(PluginSet, ClassId) -> bool,
    ) -> Vec<PodIdx> {
        let mut drained = Vec::new();
        for (&rejected_by, by_class) in &mut self.groups {
            if rejected_by.and(listeners).is_empty() {
                continue;
            }
            by_class.retain(|&class, pods| {
                let out = should_retry(rejected_by, class);
                if out {
                    drained.append(pods);
                }
                !out
            });
        }
        self.len -= drained.len();
        drained
    }

    /// How many pods there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
