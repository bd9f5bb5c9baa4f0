//! The effects of facts about storage, and the events that they cause for waiting pods. Source: spec/scheduler §3.12,
//! §4.3.
//!
//! An unchanged fact causes no event, and neither does a deletion, which helps no pod.

use strew_cluster::{AttachLimits, ClaimFact, StorageClassFact, VolumeFact};
use strew_model::Symbol;

use super::scheduler::Scheduler;
use crate::queue::{Event, Resource, Subject};

impl Scheduler {
    pub(super) fn set_claim(&mut self, namespace: Symbol, name: Symbol, claim: Option<ClaimFact>) {
        let is_new = self.cluster.volumes().claim((namespace, name)).is_none();
        let owned = claim.as_ref().map(|claim| claim.owner.is_some());
        if self.cluster.set_claim(namespace, name, claim)
            && let Some(owned) = owned
        {
            let subject = Subject::Claim {
                namespace,
                name,
                owned,
            };
            self.on_event(&Event::of_storage(Resource::Claim, is_new, subject));
        }
    }

    pub(super) fn set_volume(&mut self, name: Symbol, volume: Option<VolumeFact>) {
        let old = self.cluster.volumes().volume(name).cloned();
        let zones = volume.as_ref().map(|v| v.zones.clone());
        if self.cluster.set_volume(name, volume) && zones.is_some() {
            let rezoned = old.as_ref().map(|v| &v.zones) != zones.as_ref();
            let subject = Subject::Volume { rezoned };
            self.on_event(&Event::of_storage(Resource::Volume, old.is_none(), subject));
        }
    }

    pub(super) fn set_storage_class(&mut self, name: Symbol, class: Option<StorageClassFact>) {
        let is_new = self.cluster.volumes().class(name).is_none();
        let waits = class.as_ref().map(|class| class.waits);
        if self.cluster.set_storage_class(name, class)
            && let Some(waits) = waits
        {
            let subject = Subject::StorageClass { waits };
            self.on_event(&Event::of_storage(Resource::StorageClass, is_new, subject));
        }
    }

    pub(super) fn set_attach_limits(&mut self, node: Symbol, limits: Option<AttachLimits>) {
        let old = self.cluster.volumes().known_limits(node).cloned();
        let new = limits.clone();
        if self.cluster.set_attach_limits(node, limits)
            && let Some(new) = new
        {
            let before = |driver| {
                let known = old.iter().flat_map(|limits| limits.iter());
                let same = known.copied().find(|&(other, _)| other == driver);
                same.map_or(0, |(_, limit)| limit)
            };
            let grew = new.iter().any(|&(driver, limit)| limit > before(driver));
            let subject = Subject::AttachLimits { grew };
            self.on_event(&Event::of_storage(
                Resource::AttachLimits,
                old.is_none(),
                subject,
            ));
        }
    }
}
