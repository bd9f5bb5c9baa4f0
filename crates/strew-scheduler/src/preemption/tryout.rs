//! Evaluates filters with pods added to or removed from a node, without changing the cluster.
//!
//! The row of the node and the tallies that filters read are copied; pods are added to and removed from the copies. As
//! upstream, a filter that PreFilter skipped is not run with added pods either (spec/scheduler §2.3).

use strew_cluster::{ClassId, Cluster, NodeIdx, NodeRow, PodIdx};
use strew_model::Symbol;

use crate::cycle::Cycle;
use crate::plugins::{
    inter_pod_affinity, node_ports, node_resources_fit, node_volume_limits, pod_topology_spread,
    volume_restrictions,
};
use crate::profile::{Compat, PluginId};
use crate::status::{Reason, Refusal};

/// Copies of the tallies of a class, for one node after the other.
pub(crate) struct Tryout<'a> {
    cx: Cycle<'a>,
    class: ClassId,
    spread: pod_topology_spread::update::Trial,
    /// `None`: PreFilter has skipped the plugin, and it stays skipped.
    affinity: Option<inter_pod_affinity::Trial>,
}

/// A node with changed pods. When it is dropped, the tallies are reset.
pub(crate) struct TriedNode<'t, 'a> {
    tryout: &'t mut Tryout<'a>,
    node: NodeIdx,
    row: NodeRow,
    changes: Vec<(ClassId, i32)>,
}

impl<'a> Tryout<'a> {
    pub(crate) fn new(cx: Cycle<'a>, class: ClassId) -> Self {
        let asks_affinity = !cx.plan.affinity.filter_is_skipped(cx.cluster);
        Self {
            cx,
            class,
            spread: pod_topology_spread::update::Trial::new(cx.cluster, &cx.plan.spread),
            affinity: asks_affinity
                .then(|| inter_pod_affinity::Trial::new(cx.cluster, &cx.plan.affinity)),
        }
    }

    pub(crate) fn cluster(&self) -> &'a Cluster {
        self.cx.cluster
    }

    /// Begins with a node as it is.
    pub(crate) fn on(&mut self, node: NodeIdx) -> TriedNode<'_, 'a> {
        TriedNode {
            row: self.cx.cluster.node(node).clone(),
            tryout: self,
            node,
            changes: Vec::new(),
        }
    }

    fn count(&mut self, node: NodeIdx, other: ClassId, delta: i32) {
        let Cycle { cluster, plan, .. } = self.cx;
        self.spread
            .update(cluster, &plan.spread, self.class, other, node, delta);
        if let Some(affinity) = &mut self.affinity {
            affinity.update(cluster, other, node, delta);
        }
    }
}

impl TriedNode<'_, '_> {
    /// Adds a pod.
    pub(crate) fn add(&mut self, pod: PodIdx) {
        let cluster = self.tryout.cluster();
        self.row.try_with(pod, cluster);
        self.change(cluster.pod(pod).class, 1);
    }

    /// Removes a pod.
    pub(crate) fn remove(&mut self, pod: PodIdx) {
        let cluster = self.tryout.cluster();
        self.row.try_without(pod, cluster);
        self.change(cluster.pod(pod).class, -1);
    }

    fn change(&mut self, class: ClassId, delta: i32) {
        self.tryout.count(self.node, class, delta);
        self.changes.push((class, delta));
    }

    /// Why the node refuses the pod, with these nominated pods or without them; it must pass both times. Source:
    /// spec/scheduler §2.6.
    pub(crate) fn refusal(&mut self, nominated: &[PodIdx]) -> Option<Refusal> {
        match nominated {
            [] => self.plain_refusal(),
            _ => self
                .refusal_beside(nominated)
                .or_else(|| self.plain_refusal()),
        }
    }

    /// Why the node refuses the pod with these nominated pods added.
    pub(crate) fn refusal_beside(&mut self, nominated: &[PodIdx]) -> Option<Refusal> {
        nominated.iter().for_each(|&pod| self.add(pod));
        let refusal = self.plain_refusal();
        nominated.iter().for_each(|&pod| self.remove(pod));
        refusal
    }

    fn plain_refusal(&self) -> Option<Refusal> {
        let filters = &self.tryout.cx.profile.filters;
        filters.iter().find_map(|&plugin| self.filter(plugin))
    }

    /// The rules of [`Cycle::filter`], with counts from the copies.
    fn filter(&self, plugin: PluginId) -> Option<Refusal> {
        let tryout = &*self.tryout;
        let Cycle {
            cluster,
            plan,
            spec,
            volumes,
            ..
        } = tryout.cx;
        match plugin {
            PluginId::NodePorts => {
                let allowed = node_ports::allows(&self.row, &spec.host_ports);
                (!allowed).then(|| Refusal::unschedulable(plugin, Reason::Ports))
            }
            PluginId::NodeResourcesFit => {
                node_resources_fit::filter(cluster, &self.row, &plan.requests)
            }
            PluginId::PodTopologySpread => tryout.spread.filter(cluster, &plan.spread, self.node),
            PluginId::InterPodAffinity => {
                let affinity = tryout.affinity.as_ref()?;
                affinity.filter(cluster, &plan.affinity, self.node)
            }
            PluginId::VolumeRestrictions => match volumes.in_use {
                0 => None,
                in_use => volume_restrictions::filter(in_use + self.mentions(&volumes.once_pod)),
            },
            PluginId::NodeVolumeLimits => {
                node_volume_limits::filter(cluster, &self.row, &volumes.attachments)
            }
            // Removing pods does not affect these.
            PluginId::SchedulingGates
            | PluginId::NodeUnschedulable
            | PluginId::NodeName
            | PluginId::TaintToleration
            | PluginId::NodeAffinity
            | PluginId::VolumeBinding
            | PluginId::VolumeZone
            | PluginId::DynamicResources
            | PluginId::NodeDeclaredFeatures
            | PluginId::GangScheduling
            | PluginId::NodeResourcesBalancedAllocation
            | PluginId::ImageLocality
            | PluginId::SelectorSpread => tryout.cx.filter(plugin, self.node),
        }
    }

    /// The number of uses of these claims that were added, less those removed.
    fn mentions(&self, once_pod: &[Symbol]) -> i32 {
        let Tryout { cx, class, .. } = &*self.tryout;
        let own = cx.cluster.tables().class(*class).key.namespace;
        let namespace = (cx.profile.compat == Compat::Strew).then_some(own);
        let of = |class| volume_restrictions::mentions(cx.cluster, once_pod, namespace, class);
        self.changes.iter().map(|&(class, n)| n * of(class)).sum()
    }
}

impl Drop for TriedNode<'_, '_> {
    fn drop(&mut self) {
        for &(class, delta) in self.changes.iter().rev() {
            self.tryout.count(self.node, class, -delta);
        }
    }
}
