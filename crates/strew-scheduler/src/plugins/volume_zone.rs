//! VolumeZone: a volume with zone or region labels needs a node with the same labels.
//!
//! Source: upstream `volumezone/volume_zone.go`, v1.36.3; spec/scheduler §3.12.

use strew_cluster::{Cluster, NodeFact};
use strew_model::{Symbol, well_known};

use super::pod_volumes::{BoundVolume, Looked};
use crate::profile::PluginId;
use crate::status::{Reason, Refusal};

/// The compared labels.
pub const LABELS: [Symbol; 4] = [
    well_known::ZONE_BETA,
    well_known::REGION_BETA,
    well_known::ZONE,
    well_known::REGION,
];

/// The volume of each claim must exist, since its labels are needed. Generic ephemeral volumes are not checked.
pub(crate) fn pre_filter(cluster: &Cluster, claims: &[Looked<'_>]) -> Option<Reason> {
    let volume_of = |looked: &Looked<'_>| looked.fact.and_then(|fact| fact.volume);
    let named = claims.iter().filter(|looked| !looked.is_ephemeral());
    let mut volumes = named.filter_map(volume_of);
    let missing = volumes.find(|&name| cluster.volumes().volume(name).is_none())?;
    Some(Reason::VolumeMissing(missing))
}

/// A node without any of the labels takes every volume; otherwise each label of a volume must match. If the node lacks
/// a label from before v1.17, its successor is compared.
pub(crate) fn filter(node: &NodeFact, bound: &[BoundVolume]) -> Option<Refusal> {
    LABELS.iter().find_map(|&key| node.labels.get(key))?;
    let zoned = bound.iter().filter(|volume| volume.zoned);
    let volumes = zoned.filter_map(|volume| volume.fact.as_deref());
    let mut zones = volumes.flat_map(|fact| fact.zones.iter());
    let apart = |(key, values): &&(Symbol, Box<[Symbol]>)| {
        value_on(node, *key).is_none_or(|value| !values.contains(&value))
    };
    zones.find(apart)?;
    let plugin = PluginId::VolumeZone;
    Some(Refusal::unresolvable(plugin, Reason::VolumeZone))
}

/// The node's value that a volume's label is compared with.
pub(crate) fn value_on(node: &NodeFact, key: Symbol) -> Option<Symbol> {
    let today = match key {
        well_known::ZONE_BETA => well_known::ZONE,
        well_known::REGION_BETA => well_known::REGION,
        key => key,
    };
    node.labels.get(key).or_else(|| node.labels.get(today))
}
