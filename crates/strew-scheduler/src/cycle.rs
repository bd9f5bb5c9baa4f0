//! PreFilter and Filter: the state that all plugins share in one decision.

use strew_cluster::{ClassId, Cluster, NodeIdx, PodSpec};

use crate::columns::Columns;
#[cfg(test)]
use crate::filters;
use crate::metrics::Point;
use crate::metrics::meter::Meter;
use crate::plan::ClassPlan;
use crate::plugins::{
    inter_pod_affinity, node_affinity, node_ports, node_resources_fit, node_unschedulable,
    pod_topology_spread,
    pod_volumes::{PodVolumes, VolumePlugin},
    taint_toleration, unsupported,
};
use crate::preemption::nominations::{NO_EFFECTS, NominationEffects};
use crate::profile::{PluginId, Profile};
use crate::refusals::Refusals;
use crate::status::{Reason, Refusal};
use crate::workers::Workers;

/// The inputs of every plugin in one decision.
#[derive(Clone, Copy)]
pub(crate) struct Cycle<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) profile: &'a Profile,
    pub(crate) plan: &'a ClassPlan,
    pub(crate) spec: &'a PodSpec,
    /// The pod's volumes, looked up.
    pub(crate) volumes: &'a PodVolumes,
    /// Where the search begins, in the order of nodes.
    pub(crate) start: usize,
    /// The effects of nominations.
    pub(crate) effects: &'a NominationEffects,
}

/// The result of PreFilter.
pub(crate) enum Search {
    Nodes(Option<Vec<NodeIdx>>),
    Refused(Refusal),
}

impl<'a> Cycle<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        profile: &'a Profile,
        plan: &'a ClassPlan,
        class: ClassId,
        volumes: &'a PodVolumes,
        start: usize,
    ) -> Self {
        let tables = cluster.tables();
        let spec = tables.spec(tables.class(class).key.spec);
        Self {
            cluster,
            profile,
            plan,
            spec,
            volumes,
            start,
            effects: &NO_EFFECTS,
        }
    }

    pub(crate) fn pre_filter(self) -> Search {
        let narrowed = match node_affinity::narrow(&self.spec.node_affinity) {
            Ok(narrowed) => narrowed,
            Err(refusal) => return Search::Refused(refusal),
        };
        let outright = unsupported::refuse(self.spec).or_else(|| self.volumes.refused.clone());
        if let Some(refusal) = outright {
            return Search::Refused(refusal);
        }
        // A name without a node is in PreFilter's result too, but no node is checked for it.
        let present = |name| {
            let node = self.cluster.find_node(name)?;
            self.cluster.node_position(node).map(|_| node)
        };
        Search::Nodes(narrowed.map(|names| {
            let mut named: Vec<NodeIdx> = names.into_iter().filter_map(present).collect();
            // Upstream iterates over a map here, in random order; strew uses the order of all nodes.
            named.sort_unstable_by_key(|&node| self.cluster.node_position(node));
            named
        }))
    }

    /// True if a node passes the filters that depend on other pods. Call it only for nodes that admit and fit the pod.
    pub(crate) fn passes_counts(self, node: NodeIdx) -> bool {
        pod_topology_spread::filter::filter(self.cluster, &self.plan.spread, node).is_none()
            && inter_pod_affinity::filter(self.cluster, &self.plan.affinity, node).is_none()
    }

    /// The number of feasible nodes at which a search stops. Source: spec/scheduler §2.4, step 5.
    fn nodes_to_find(self, nodes: usize) -> usize {
        const NODES_MIN: usize = 100;
        let Some(percentage) = self.profile.percentage_of_nodes_to_score else {
            return nodes;
        };
        if nodes < NODES_MIN {
            return nodes;
        }
        if self.profile.scores.is_empty() {
            return 1;
        }
        let percentage = match percentage {
            0 => (50usize.saturating_sub(nodes / 125)).max(5),
            given => usize::from(given),
        };
        (nodes * percentage / 100).max(NODES_MIN).min(nodes)
    }

    /// True if hard spread constraints are all that looks at other nodes than the one in question: neither the pod's
    /// affinity nor the anti-affinity of others does, nor volumes.
    pub(crate) fn spread_decides_alone(self) -> bool {
        self.plan.affinity.filter_is_skipped(self.cluster) && !self.volumes.asks_nodes()
    }

    /// The reason of each node that did not pass, in the order of nodes.
    pub(crate) fn refusals(self, narrowed: Option<&[NodeIdx]>) -> Refusals {
        let own = self.effects.denied();
        let narrower = PluginId::NodeAffinity;
        let of_node = |&node: &NodeIdx| {
            let refusal = match (narrowed, own) {
                (Some(named), own) if !named.contains(&node) => Some(match own {
                    Some((own, refusal)) if own == node => refusal.clone(),
                    Some((_, refusal)) if refusal.plugin != narrower => {
                        let reason = Reason::NarrowedOutBeside(narrower, refusal.plugin);
                        Refusal::unresolvable(narrower, reason)
                    }
                    _ => Refusal::unresolvable(narrower, Reason::NarrowedOut(narrower)),
                }),
                _ => {
                    let barred = self.effects.bars(node).cloned();
                    barred.or_else(|| self.first_refusal(node))
                }
            };
            refusal.map(|refusal| (node, refusal))
        };
        let nodes = self.cluster.node_order().iter();
        nodes.filter_map(of_node).collect()
    }

    /// The refusals of all plugins that refuse a node. For a node that the narrowed search excludes, that comes first.
    pub(crate) fn all_refusals(self, narrowed: Option<&[NodeIdx]>, node: NodeIdx) -> Vec<Refusal> {
        let past = narrowed.is_some_and(|named| !named.contains(&node));
        let reason = Reason::NarrowedOut(PluginId::NodeAffinity);
        let first = past.then(|| Refusal::unresolvable(PluginId::NodeAffinity, reason));
        let plugins = self.profile.filters.iter().copied();
        let others = plugins.filter(|&p| !(past && p == PluginId::NodeAffinity));
        first
            .into_iter()
            .chain(others.filter_map(|plugin| self.filter(plugin, node)))
            .collect()
    }

    /// The refusal of the first plugin that refuses a node.
    pub(crate) fn first_refusal(self, node: NodeIdx) -> Option<Refusal> {
        self.profile
            .filters
            .iter()
            .find_map(|&plugin| self.filter(plugin, node))
    }

    pub(crate) fn filter(self, plugin: PluginId, node: NodeIdx) -> Option<Refusal> {
        let (cluster, spec) = (self.cluster, self.spec);
        let row = cluster.node(node);
        let fact = row.fact()?;
        let unless =
            |allowed: bool, reason| (!allowed).then(|| Refusal::unresolvable(plugin, reason));
        let volumes = |plugin| self.volumes.filter(cluster, plugin, node);
        match plugin {
            PluginId::NodeUnschedulable => unless(
                node_unschedulable::allows(fact, &spec.tolerations),
                Reason::Cordoned,
            ),
            PluginId::TaintToleration => unless(
                taint_toleration::allows(fact, &spec.tolerations),
                Reason::UntoleratedTaint,
            ),
            PluginId::NodeAffinity
                if !node_affinity::added_allows(cluster, &self.profile.added_affinity, fact) =>
            {
                Some(Refusal::unresolvable(plugin, Reason::AddedAffinity))
            }
            PluginId::NodeAffinity => {
                let allowed = node_affinity::allows(cluster, self.plan.node_affinity, fact);
                unless(allowed, Reason::NodeAffinity)
            }
            PluginId::NodePorts => {
                let allowed = node_ports::allows(row, &spec.host_ports);
                (!allowed).then(|| Refusal::unschedulable(plugin, Reason::Ports))
            }
            PluginId::NodeResourcesFit => {
                node_resources_fit::filter(cluster, row, &self.plan.requests)
            }
            PluginId::PodTopologySpread => {
                pod_topology_spread::filter::filter(cluster, &self.plan.spread, node)
            }
            PluginId::InterPodAffinity => {
                inter_pod_affinity::filter(cluster, &self.plan.affinity, node)
            }
            PluginId::VolumeRestrictions => volumes(VolumePlugin::Restrictions),
            PluginId::NodeVolumeLimits => volumes(VolumePlugin::Limits),
            PluginId::VolumeBinding => volumes(VolumePlugin::Binding),
            PluginId::VolumeZone => volumes(VolumePlugin::Zone),
            #[cfg(test)]
            filters::toy::PLUGIN => filters::toy::refuses(cluster, node)
                .then(|| Refusal::unschedulable(plugin, Reason::Ports)),
            // Gated pods are not tried, and pods with a node name are bound. Needs for dynamic resources and groups are
            // refused before any node is checked. The last three plugins only score.
            PluginId::SchedulingGates
            | PluginId::NodeName
            | PluginId::DynamicResources
            | PluginId::GangScheduling
            | PluginId::NodeResourcesBalancedAllocation
            | PluginId::ImageLocality
            | PluginId::SelectorSpread => None,
            #[cfg(not(test))]
            PluginId::NodeDeclaredFeatures => None,
        }
    }

    /// Filter plugins that PreFilter skips for this pod.
    pub(crate) fn skipped_filters(self) -> Vec<PluginId> {
        let skipped = |&plugin: &PluginId| match plugin {
            PluginId::NodeAffinity => {
                self.spec.node_affinity.is_none() && self.profile.added_affinity.required.is_none()
            }
            PluginId::NodePorts => self.spec.host_ports.is_empty(),
            PluginId::PodTopologySpread => self.plan.spread.hard.is_empty(),
            PluginId::InterPodAffinity => self.plan.affinity.filter_is_skipped(self.cluster),
            PluginId::VolumeRestrictions => self.volumes.skips(VolumePlugin::Restrictions),
            PluginId::NodeVolumeLimits => self.volumes.skips(VolumePlugin::Limits),
            PluginId::VolumeBinding => self.volumes.skips(VolumePlugin::Binding),
            PluginId::VolumeZone => self.volumes.skips(VolumePlugin::Zone),
            PluginId::DynamicResources | PluginId::NodeDeclaredFeatures => true,
            PluginId::SchedulingGates
            | PluginId::NodeUnschedulable
            | PluginId::NodeName
            | PluginId::TaintToleration
            | PluginId::NodeResourcesFit
            | PluginId::GangScheduling
            | PluginId::NodeResourcesBalancedAllocation
            | PluginId::ImageLocality
            | PluginId::SelectorSpread => false,
        };
        self.profile
            .filters
            .iter()
            .copied()
            .filter(skipped)
            .collect()
    }
}

/// Lists the nodes that pass every filter, as many as the profile wants to score: in the order of nodes from the
/// cycle's start on, or in the order in which workers finish them. Returns how far the next search's start moves.
///
/// Cost: nodes × (two bits of a set + one domain per hard constraint); pods are not visited.
pub(crate) fn list_feasible(
    cx: Cycle<'_>,
    columns: &Columns,
    narrowed: Option<&[NodeIdx]>,
    feasible: &mut Vec<NodeIdx>,
    workers: Option<&mut Workers>,
    meter: Option<&mut Meter>,
) -> usize {
    let Cycle { cluster, plan, .. } = cx;
    let (admitted, fits) = (columns.admitted(plan), &columns.shape(plan).fits);
    let asks_affinity = !plan.affinity.filter_is_skipped(cluster);
    let asks_volumes = cx.volumes.asks_nodes();
    let passes = |&node: &NodeIdx| {
        admitted.contains(node.index())
            && fits.contains(node.index())
            && (!asks_volumes || cx.volumes.allow(cluster, cx.profile, node))
            && (!asks_affinity
                || inter_pod_affinity::filter(cluster, &plan.affinity, node).is_none())
            && { plan.by_node.iter() }.all(|&plugin| cx.filter(plugin, node).is_none())
            && cx.effects.bars(node).is_none()
    };
    let own = cx.effects.denied().map(|(own, _)| own);
    let nodes = narrowed.unwrap_or_else(|| cluster.node_order());
    let start = cx.start % nodes.len().max(1);
    feasible.clear();
    let enough = cx.nodes_to_find(nodes.len());
    let (before, from) = nodes.split_at(start);
    let finished = workers.map(|workers| workers.finish_order(nodes.len()));
    let visited = |&place: &u32| nodes[(start + place as usize) % nodes.len()];
    if enough == nodes.len() {
        match finished {
            None => feasible.extend(from.iter().chain(before).copied().filter(passes)),
            Some(order) => feasible.extend(order.iter().map(visited).filter(passes)),
        }
        let begun = meter.as_deref().and_then(Meter::read);
        pod_topology_spread::filter::retain_passing(cluster, &plan.spread, feasible);
        if let Some(meter) = meter {
            meter.asked(PluginId::PodTopologySpread, Point::Filter, begun);
            meter.filtered(cx, nodes.len());
        }
        let apart = own.is_some_and(|own| !nodes.contains(&own));
        return nodes.len() + usize::from(apart);
    }
    // The pod's nominated node has a status if it refused the pod, even if the search does not reach it.
    let mut refused = usize::from(own.is_some());
    let goes_on = |node: NodeIdx| {
        let spread_passes =
            || pod_topology_spread::filter::filter(cluster, &plan.spread, node).is_none();
        match passes(&node) && spread_passes() {
            false => refused += usize::from(own != Some(node)),
            // The node that shows that there are more than enough is not counted.
            true if feasible.len() == enough => return false,
            true => feasible.push(node),
        }
        true
    };
    match finished {
        None => from.iter().chain(before).copied().all(goes_on),
        Some(order) => order.iter().map(visited).all(goes_on),
    };
    if let Some(meter) = meter {
        meter.filtered(cx, feasible.len() + refused);
    }
    feasible.len() + refused
}
