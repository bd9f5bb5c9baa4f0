//! NodeVolumeLimits: the number of volumes that a CSI driver attaches to a node, by its CSINode.
//!
//! Volumes that are still attached without a pod (VolumeAttachments) are not counted, unlike upstream. Source: upstream
//! `nodevolumelimits/csi.go`, v1.36.3; spec/scheduler §3.12.

use strew_cluster::volumes::Attachment;
use strew_cluster::{Cluster, NodeRow, PodSpec, Unsupported};

use crate::profile::PluginId;
use crate::queue::event::Hint;
use crate::status::{Reason, Refusal};

/// Checks that a node's drivers can attach these volumes (sorted, without repetitions) beside those of its pods.
///
/// Cost: claims of the node's pods × look-ups; nothing if its drivers have no limit.
pub(crate) fn filter(cluster: &Cluster, row: &NodeRow, new: &[Attachment]) -> Option<Refusal> {
    let volumes = cluster.volumes();
    let limits = volumes.limits(row.name());
    if limits.is_empty() || new.is_empty() {
        return None;
    }
    let claims = row.claims().iter();
    let mut attached: Vec<Attachment> = claims.filter_map(|&c| volumes.attachment(c)).collect();
    attached.sort_unstable();
    attached.dedup();
    let exceeded = |&&(driver, limit): &&(_, i64)| {
        let of_driver = |a: &&Attachment| a.0 == driver;
        let is_new = |a: &&Attachment| attached.binary_search(a).is_err();
        let added = new.iter().filter(of_driver).filter(is_new).count();
        added > 0 && (attached.iter().filter(of_driver).count() + added) as i64 > limit
    };
    limits.iter().find(exceeded)?;
    let plugin = PluginId::NodeVolumeLimits;
    Some(Refusal::unschedulable(plugin, Reason::VolumeLimit))
}

/// After a pod on a node was deleted: worth a retry if it had a volume that may have been counted.
pub(crate) fn hint_after_pod_gone(gone: &PodSpec) -> Hint {
    let is_disk = |need: &Unsupported| {
        matches!(
            need,
            Unsupported::ExclusiveDisk(_) | Unsupported::CountedDisk(_)
        )
    };
    Hint::queue_if(!gone.claims.is_empty() || gone.unsupported.iter().any(is_disk))
}
