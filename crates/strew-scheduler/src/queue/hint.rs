//! Queueing hints: the plugin that refused a pod decides whether an event can help it.
//!
//! A hint is evaluated once per class, not per pod: pods of one class do not differ in anything that a hint reads.

use strew_cluster::{ClassId, Cluster, PodClaim, SpreadConstraint};

use super::event::{Actions, Event, Hint, PluginSet, PodView, Resource, Subject};
use crate::plugins::pod_topology_spread::{Effective, hint as spread};
use crate::plugins::{
    inter_pod_affinity, node_affinity, node_ports, node_resources_fit, node_unschedulable,
    node_volume_limits, taint_toleration, volume_restrictions,
};
use crate::profile::PluginId;
use crate::profiles::Profiles;

/// The inputs of hints.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The cluster, with the event applied.
    pub cluster: &'a Cluster,
    /// The profiles.
    pub profiles: &'a Profiles,
}

/// Evaluates hints, and caches what is expensive to find.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// By row of the classes.
    hard: Vec<Option<Hard>>,
}

/// The hard spread constraints of a class, for a version of services and controllers.
#[derive(Debug)]
struct Hard {
    class: ClassId,
    version: u64,
    constraints: Box<[SpreadConstraint]>,
}

impl Hints {
    /// True if one of these plugins, which refused pods of a class and registered for such events, wants a retry.
    /// `own`: the event is about the waiting pod itself.
    pub(crate) fn should_retry(
        &mut self,
        cx: Context<'_>,
        asked: PluginSet,
        class: ClassId,
        event: &Event,
        own: bool,
    ) -> bool {
        let ask = |plugin| self.ask(cx, plugin, class, event, own) == Hint::Queue;
        asked.listening().any(ask)
    }

    /// The hint of one plugin.
    pub(crate) fn ask(
        &mut self,
        cx: Context<'_>,
        plugin: PluginId,
        class: ClassId,
        event: &Event,
        own: bool,
    ) -> Hint {
        let tables = cx.cluster.tables();
        let spec_id = tables.class(class).key.spec;
        let spec = tables.spec(spec_id);
        match &event.subject {
            Subject::Node(old, new) => {
                let (old, new) = (old.as_deref(), new.as_deref());
                match plugin {
                    PluginId::NodeUnschedulable => node_unschedulable::hint_after_node(new),
                    PluginId::TaintToleration => {
                        taint_toleration::hint_after_node(&spec.tolerations, old, new)
                    }
                    PluginId::NodeAffinity => match cx.profiles.of_class(cx.cluster, class) {
                        Some(profile) => {
                            let affinity = tables.parts(spec_id).node_affinity;
                            let added = &profile.added_affinity;
                            node_affinity::hint_after_node(cx.cluster, added, affinity, old, new)
                        }
                        None => Hint::Skip,
                    },
                    PluginId::NodeResourcesFit => {
                        node_resources_fit::hint_after_node(&spec.requests, old, new)
                    }
                    PluginId::PodTopologySpread => {
                        spread::after_node(self.hard(cx, class), old, new)
                    }
                    PluginId::InterPodAffinity => {
                        inter_pod_affinity::hint::after_node(cx.cluster, class, old, new)
                    }
                    // These registered without a hint, or not for nodes: always worth a retry.
                    PluginId::SchedulingGates
                    | PluginId::NodeName
                    | PluginId::NodePorts
                    | PluginId::VolumeRestrictions
                    | PluginId::NodeVolumeLimits
                    | PluginId::VolumeBinding
                    | PluginId::VolumeZone
                    | PluginId::DynamicResources
                    | PluginId::NodeDeclaredFeatures
                    | PluginId::GangScheduling
                    | PluginId::NodeResourcesBalancedAllocation
                    | PluginId::ImageLocality
                    | PluginId::SelectorSpread => Hint::Queue,
                }
            }
            Subject::Pod(old, new) => {
                self.ask_about_pod(cx, plugin, class, event, (*old, *new), own)
            }
            Subject::Claim {
                namespace,
                name,
                owned,
            } => {
                // VolumeRestrictions and VolumeZone ignore generic ephemeral volumes. A class does not show which of
                // its pods an ephemeral claim belongs to: it may belong to any of them.
                let looks_at_all =
                    matches!(plugin, PluginId::NodeVolumeLimits | PluginId::VolumeBinding);
                let names_it = |used: &PodClaim| match used.named {
                    Some(claim) => claim == *name,
                    None => looks_at_all && *owned,
                };
                let of_namespace = tables.class(class).key.namespace == *namespace;
                Hint::queue_if(of_namespace && spec.claims.iter().any(names_it))
            }
            Subject::Volume { rezoned } => Hint::queue_if(
                *rezoned || plugin != PluginId::VolumeZone || event.actions == Actions::ADD,
            ),
            Subject::StorageClass { waits } => {
                Hint::queue_if(*waits || plugin != PluginId::VolumeZone)
            }
            Subject::AttachLimits { grew } => {
                Hint::queue_if(*grew || event.actions == Actions::ADD)
            }
        }
    }

    fn ask_about_pod(
        &mut self,
        cx: Context<'_>,
        plugin: PluginId,
        class: ClassId,
        event: &Event,
        (old, new): (Option<PodView>, Option<PodView>),
        own: bool,
    ) -> Hint {
        let tables = cx.cluster.tables();
        let spec_of = |class: ClassId| tables.spec(tables.class(class).key.spec);
        let spec = spec_of(class);
        let elsewhere = event.resource != Resource::WaitingPod;
        match plugin {
            PluginId::SchedulingGates => Hint::queue_if(own && spec.gates.is_empty()),
            PluginId::NodeUnschedulable => match own {
                true => node_unschedulable::hint_after_own_tolerations(&spec.tolerations),
                false => Hint::Skip,
            },
            PluginId::TaintToleration => Hint::queue_if(own),
            PluginId::NodePorts => match old {
                Some(gone) if elsewhere => {
                    let freed = &spec_of(gone.class).host_ports;
                    node_ports::hint_after_pod_gone(&spec.host_ports, freed)
                }
                _ => Hint::Skip,
            },
            PluginId::VolumeRestrictions => match old {
                Some(gone) if elsewhere => {
                    let waiting = (tables.class(class).key.namespace, spec);
                    volume_restrictions::hint_after_pod_gone(cx.cluster, waiting, gone)
                }
                _ => Hint::Skip,
            },
            PluginId::NodeVolumeLimits => match old {
                Some(gone) if elsewhere => {
                    node_volume_limits::hint_after_pod_gone(spec_of(gone.class))
                }
                _ => Hint::Skip,
            },
            PluginId::NodeResourcesFit => match (old, new) {
                _ if event.actions == Actions::DELETE => Hint::queue_if(elsewhere),
                _ if own => Hint::Queue,
                (Some(old), Some(new)) if elsewhere => {
                    let (old, new) = (spec_of(old.class), spec_of(new.class));
                    node_resources_fit::hint_after_scale_down(&spec.requests, &old.used, &new.used)
                }
                _ => Hint::Skip,
            },
            PluginId::PodTopologySpread => {
                let hard = self.hard(cx, class);
                // Hints distinguish the waiting pod from others by uid; here that is known already.
                let waiting = spread::Waiting {
                    uid: "waiting",
                    namespace: tables.class(class).key.namespace,
                    hard,
                };
                let shown = |pod: PodView| {
                    let key = &tables.class(pod.class).key;
                    spread::Other {
                        uid: if own { waiting.uid } else { "" },
                        namespace: key.namespace,
                        labels: tables.labels(key.labels),
                        tolerations: &tables.spec(key.spec).tolerations,
                        placed: pod.bound || pod.nominated,
                    }
                };
                spread::after_pod(waiting, old.map(shown), new.map(shown))
            }
            PluginId::InterPodAffinity => match (own, elsewhere) {
                (true, _) => Hint::Queue,
                (false, true) => {
                    let (old, new) = (old.map(|p| p.class), new.map(|p| p.class));
                    inter_pod_affinity::hint::after_pod(cx.cluster, class, old, new)
                }
                (false, false) => Hint::Skip,
            },
            PluginId::NodeName
            | PluginId::NodeAffinity
            | PluginId::VolumeBinding
            | PluginId::VolumeZone
            | PluginId::DynamicResources
            | PluginId::NodeDeclaredFeatures
            | PluginId::GangScheduling
            | PluginId::NodeResourcesBalancedAllocation
            | PluginId::ImageLocality
            | PluginId::SelectorSpread => Hint::Skip,
        }
    }

    /// The hard spread constraints of a class.
    fn hard(&mut self, cx: Context<'_>, class: ClassId) -> &[SpreadConstraint] {
        let version = cx.cluster.owners().version();
        if self.hard.len() <= class.index() {
            self.hard.resize_with(class.index() + 1, || None);
        }
        let slot = &mut self.hard[class.index()];
        let is_good = |of: &Hard| (of.class, of.version) == (class, version);
        if !slot.as_ref().is_some_and(is_good) {
            let profile = cx.profiles.of_class(cx.cluster, class);
            let all = profile.map(|p| Effective::of(cx.cluster, p, class).constraints);
            let hard = all.into_iter().flatten().filter(|c| c.hard);
            *slot = Some(Hard {
                class,
                version,
                constraints: hard.collect(),
            });
        }
        slot.as_ref().map_or(&[], |of| &of.constraints)
    }

    /// Clears the cache; it is filled again when needed.
    pub(crate) fn sweep(&mut self) {
        self.hard = Vec::new();
    }
}
