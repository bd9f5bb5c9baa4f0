//! How the search asks each filter. One table, which everything that decides reads: a filter that is not in it does not
//! compile, and one that is asked node by node needs nothing more.

use smallvec::SmallVec;
use strew_cluster::PodSpec;

use crate::profile::{PluginId, Profile};

/// How the search asks a filter about nodes, in the order of cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It refuses no node: it refuses the pod before any node is checked, or only scores.
    Never,
    /// By a set of nodes that [`Columns`](crate::columns::Columns) keep for the parts of the spec that it depends on.
    Kept(KeptFilter),
    /// By its own counts, which groups of equal nodes have in common.
    ByCounts,
    /// By the pod's volumes, which are looked up once.
    ByVolumes,
    /// By [`Cycle::filter`](crate::cycle::Cycle::filter), node by node. It is right for every filter; the others are
    /// faster.
    ByNode,
}

/// The filters whose answers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptFilter {
    /// `NodeUnschedulable`.
    Unschedulable,
    /// `TaintToleration`.
    Taints,
    /// `NodeAffinity`.
    NodeAffinity,
    /// `NodeResourcesFit`.
    Room,
}

/// The table.
pub(crate) fn asked(plugin: PluginId) -> Asked {
    match plugin {
        PluginId::NodeUnschedulable => Asked::Kept(KeptFilter::Unschedulable),
        PluginId::TaintToleration => Asked::Kept(KeptFilter::Taints),
        PluginId::NodeAffinity => Asked::Kept(KeptFilter::NodeAffinity),
        PluginId::NodeResourcesFit => Asked::Kept(KeptFilter::Room),
        PluginId::PodTopologySpread | PluginId::InterPodAffinity => Asked::ByCounts,
        PluginId::VolumeRestrictions
        | PluginId::NodeVolumeLimits
        | PluginId::VolumeBinding
        | PluginId::VolumeZone => Asked::ByVolumes,
        PluginId::NodePorts => Asked::ByNode,
        #[cfg(test)]
        toy::PLUGIN if toy::is_set() => Asked::ByNode,
        PluginId::SchedulingGates
        | PluginId::NodeName
        | PluginId::DynamicResources
        | PluginId::NodeDeclaredFeatures
        | PluginId::GangScheduling
        | PluginId::NodeResourcesBalancedAllocation
        | PluginId::ImageLocality
        | PluginId::SelectorSpread => Asked::Never,
    }
}

/// The enabled filters whose answers are kept.
pub(crate) fn kept(profile: &Profile) -> impl Iterator<Item = KeptFilter> {
    profile
        .filters
        .iter()
        .filter_map(|&plugin| match asked(plugin) {
            Asked::Kept(kept) => Some(kept),
            _ => None,
        })
}

/// The enabled filters that are asked node by node for pods with this spec, without those that PreFilter skips.
pub(crate) fn by_node(profile: &Profile, spec: &PodSpec) -> SmallVec<[PluginId; 1]> {
    let is_skipped = |plugin| plugin == PluginId::NodePorts && spec.host_ports.is_empty();
    let all = profile.filters.iter().copied();
    all.filter(|&plugin| asked(plugin) == Asked::ByNode && !is_skipped(plugin))
        .collect()
}

/// A filter that a test adds: a plugin that strew has no rule for refuses nodes.
#[cfg(test)]
pub(crate) mod toy {
    use std::cell::Cell;

    use strew_cluster::{Cluster, NodeIdx};

    use crate::profile::PluginId;

    /// The plugin.
    pub(crate) const PLUGIN: PluginId = PluginId::NodeDeclaredFeatures;

    thread_local! {
        static ONLY: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// From now on it refuses all nodes but this one.
    pub(crate) fn set(only: Option<&'static str>) {
        ONLY.set(only);
    }

    pub(crate) fn is_set() -> bool {
        ONLY.get().is_some()
    }

    pub(crate) fn refuses(cluster: &Cluster, node: NodeIdx) -> bool {
        let name = cluster.names.text(cluster.node(node).name());
        ONLY.get().is_some_and(|only| only != name)
    }
}

#[cfg(test)]
mod tests;
