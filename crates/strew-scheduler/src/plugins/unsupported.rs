//! Needs that strew does not implement: claims that wait for their first pod, disks without a claim, dynamic resources,
//! pod groups.
//!
//! Such a pod stays Pending with a reason that says so. It is never placed as if it did not have the need
//! (spec/scheduler §3.12, §3.13, §3.17).

use strew_cluster::{PodSpec, Unsupported};

use crate::profile::PluginId;
use crate::status::{Code, Reason, Refusal};

/// PreFilter: the first need that is not implemented, reported as the plugin that would handle it.
pub fn refuse(spec: &PodSpec) -> Option<Refusal> {
    let need = spec.unsupported.first()?;
    let plugin = match need {
        Unsupported::UnboundClaim(..) | Unsupported::UnattendedClaim(..) => PluginId::VolumeBinding,
        Unsupported::ExclusiveDisk(_) => PluginId::VolumeRestrictions,
        Unsupported::CountedDisk(_) => PluginId::NodeVolumeLimits,
        Unsupported::ResourceClaim(_) => PluginId::DynamicResources,
        Unsupported::PodGroup(_) => PluginId::GangScheduling,
        Unsupported::BadSelector(_) => PluginId::PodTopologySpread,
    };
    let code = match need {
        Unsupported::BadSelector(_) => Code::Error,
        _ => Code::UnschedulableAndUnresolvable,
    };
    let reasons = spec
        .unsupported
        .iter()
        .cloned()
        .map(Reason::Unsupported)
        .collect();
    Some(Refusal {
        plugin,
        code,
        reasons,
    })
}
