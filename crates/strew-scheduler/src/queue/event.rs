//! Events that can make a waiting pod schedulable, and the plugins that registered for them.
//!
//! Source: spec/scheduler §4.3, and the events of each plugin in §1.13 and §3.

use std::ops::BitOr;
use std::rc::Rc;

use smallvec::SmallVec;
use strew_cluster::{ClassId, Cluster, NodeFact};
use strew_model::{Holds, Marks, Symbol};

use crate::profile::PluginId;

/// The changes of an object, as bits in kube-scheduler's order, which decides which events match a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actions(u32);

impl Actions {
    /// It was created.
    pub const ADD: Self = Self(1);
    /// It was deleted.
    pub const DELETE: Self = Self(1 << 1);
    /// A node's allocatable changed.
    pub const NODE_ALLOCATABLE: Self = Self(1 << 2);
    /// A node's labels changed.
    pub const NODE_LABEL: Self = Self(1 << 3);
    /// A node's taints changed, or it is no longer cordoned.
    pub const NODE_TAINT: Self = Self(1 << 4);
    /// A pod's labels changed.
    pub const POD_LABEL: Self = Self(1 << 8);
    /// A pod's requests decreased.
    pub const POD_SCALE_DOWN: Self = Self(1 << 9);
    /// A pod got more tolerations.
    pub const POD_TOLERATION: Self = Self(1 << 10);
    /// A pod's last scheduling gate was removed.
    pub const POD_GATES_ELIMINATED: Self = Self(1 << 11);
    /// All bits of updates; bits 5 to 7 and 12 are node conditions, annotations, declared features and generated
    /// claims, for which no plugin here registers.
    pub const UPDATE: Self = Self(0b1_1111_1111_1100);

    /// The index of the bit, if only one is set.
    pub(crate) fn single(self) -> Option<usize> {
        self.0
            .is_power_of_two()
            .then(|| self.0.trailing_zeros() as usize)
    }

    /// True if an event with these actions matches a registration: bits overlap, and none is beyond the registered
    /// ones.
    pub fn match_registered(self, registered: Self) -> bool {
        self.0 & registered.0 != 0 && self.0 <= registered.0
    }
}

impl BitOr for Actions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The kind of an event's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A node.
    Node,
    /// A pod on a node.
    AssignedPod,
    /// A pod that waits.
    WaitingPod,
    /// A PersistentVolumeClaim.
    Claim,
    /// A PersistentVolume.
    Volume,
    /// A StorageClass.
    StorageClass,
    /// A CSINode: the volume limits of a node's drivers.
    AttachLimits,
}

/// A pod in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodView {
    /// Its class.
    pub class: ClassId,
    /// True if it is on a node.
    pub bound: bool,
    /// True if it is nominated to one.
    pub nominated: bool,
}

/// The old and the new object; the old one is absent after a creation, the new one after a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A node.
    Node(Option<Rc<NodeFact>>, Option<Rc<NodeFact>>),
    /// A pod.
    Pod(Option<PodView>, Option<PodView>),
    /// A claim.
    Claim {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// True if it has a controller, as the claim of a generic ephemeral volume has its pod.
        owned: bool,
    },
    /// A volume.
    Volume {
        /// True if its zone and region labels changed.
        rezoned: bool,
    },
    /// A storage class.
    StorageClass {
        /// True if its claims wait for their first pod.
        waits: bool,
    },
    /// A node's limits.
    AttachLimits {
        /// True if one of them increased.
        grew: bool,
    },
}

/// A change in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The kind of the object.
    pub resource: Resource,
    /// The changes.
    pub actions: Actions,
    /// The object.
    pub subject: Subject,
}

impl Event {
    /// A node was created.
    pub fn node_added(node: Rc<NodeFact>) -> Self {
        Self::node(Actions::ADD, None, Some(node))
    }

    /// A node was deleted.
    pub fn node_deleted(node: Rc<NodeFact>) -> Self {
        Self::node(Actions::DELETE, Some(node), None)
    }

    fn node(actions: Actions, old: Option<Rc<NodeFact>>, new: Option<Rc<NodeFact>>) -> Self {
        Self {
            resource: Resource::Node,
            actions,
            subject: Subject::Node(old, new),
        }
    }

    /// The events of a changed node, one for each changed aspect, in kube-scheduler's order.
    pub fn of_node_update(old: &Rc<NodeFact>, new: &Rc<NodeFact>) -> SmallVec<[Self; 4]> {
        let facets = [
            (old.unschedulable && !new.unschedulable, Actions::NODE_TAINT),
            (
                old.allocatable != new.allocatable || old.pods_max != new.pods_max,
                Actions::NODE_ALLOCATABLE,
            ),
            (old.labels != new.labels, Actions::NODE_LABEL),
            (old.taints != new.taints, Actions::NODE_TAINT),
        ];
        let changed = facets.into_iter().filter(|(changed, _)| *changed);
        changed
            .map(|(_, actions)| Self::node(actions, Some(old.clone()), Some(new.clone())))
            .collect()
    }

    /// A pod is on a node now.
    pub fn pod_added(new: PodView) -> Self {
        Self::pod(Resource::AssignedPod, Actions::ADD, None, Some(new))
    }

    /// A pod is no longer on its node, or no longer nominated, which frees as much.
    pub fn pod_deleted(old: PodView) -> Self {
        Self::pod(Resource::AssignedPod, Actions::DELETE, Some(old), None)
    }

    fn pod(
        resource: Resource,
        actions: Actions,
        old: Option<PodView>,
        new: Option<PodView>,
    ) -> Self {
        Self {
            resource,
            actions,
            subject: Subject::Pod(old, new),
        }
    }

    /// The events of a changed pod, one for each changed aspect in kube-scheduler's order; if none changed, a general
    /// update, for which no plugin here registers.
    pub fn of_pod_update(cluster: &Cluster, old: PodView, new: PodView) -> SmallVec<[Self; 4]> {
        let resource = match new.bound {
            true => Resource::AssignedPod,
            false => Resource::WaitingPod,
        };
        let tables = cluster.tables();
        let (before, after) = (&tables.class(old.class).key, &tables.class(new.class).key);
        let (was, is) = (tables.spec(before.spec), tables.spec(after.spec));
        let same_spec = before.spec == after.spec;
        let facets = [
            (before.labels != after.labels, Actions::POD_LABEL),
            (
                !same_spec && shrank(&was.used, &is.used),
                Actions::POD_SCALE_DOWN,
            ),
            (
                !was.gates.is_empty() && is.gates.is_empty(),
                Actions::POD_GATES_ELIMINATED,
            ),
            (
                was.tolerations.len() != is.tolerations.len(),
                Actions::POD_TOLERATION,
            ),
        ];
        let changed = facets.into_iter().filter(|(changed, _)| *changed);
        let event = |actions| Self::pod(resource, actions, Some(old), Some(new));
        let mut events: SmallVec<[Self; 4]> = changed.map(|(_, actions)| event(actions)).collect();
        if events.is_empty() {
            events.push(event(Actions::UPDATE));
        }
        events
    }

    /// A storage object was created (`is_new`) or changed.
    pub fn of_storage(resource: Resource, is_new: bool, subject: Subject) -> Self {
        let actions = match is_new {
            true => Actions::ADD,
            false => Actions::UPDATE,
        };
        Self {
            resource,
            actions,
            subject,
        }
    }

    /// The plugins that registered for such an event.
    pub fn listeners(&self) -> PluginSet {
        let listens = |&plugin: &PluginId| {
            let registered = Registered::of(plugin);
            let actions = match self.resource {
                Resource::Node => registered.node,
                Resource::AssignedPod | Resource::WaitingPod => registered.pod,
                Resource::Claim => registered.claim,
                Resource::Volume => registered.volume,
                Resource::StorageClass => registered.storage_class,
                Resource::AttachLimits => registered.attach_limits,
            };
            self.actions.match_registered(actions)
        };
        PluginId::ALL.into_iter().filter(listens).collect()
    }
}

impl Event {
    /// The classes of its pods.
    pub(crate) fn classes(&self) -> impl Iterator<Item = ClassId> {
        let shown = match &self.subject {
            Subject::Pod(old, new) => [*old, *new],
            _ => [None, None],
        };
        shown.into_iter().flatten().map(|pod| pod.class)
    }
}

impl Holds for Event {
    fn mark(&self, marks: &mut Marks) {
        match &self.subject {
            Subject::Node(old, new) => {
                for node in [old, new].into_iter().flatten() {
                    node.mark(marks);
                }
            }
            Subject::Claim {
                namespace,
                name,
                owned: _,
            } => (*namespace, *name).mark(marks),
            Subject::Pod(..)
            | Subject::Volume { .. }
            | Subject::StorageClass { .. }
            | Subject::AttachLimits { .. } => {}
        }
    }
}

/// True if a request decreased.
fn shrank(old: &strew_model::Resources, new: &strew_model::Resources) -> bool {
    let scalars = old.scalars().iter();
    old.cpu_milli > new.cpu_milli
        || old.memory > new.memory
        || old.ephemeral_storage > new.ephemeral_storage
        || { scalars }.any(|&(name, amount)| amount > new.scalar(name))
}

const NONE: Actions = Actions(0);

const fn either(a: Actions, b: Actions) -> Actions {
    Actions(a.0 | b.0)
}

/// The actions that a plugin registered for. Source: upstream `EventsToRegister` of each, v1.36.3.
///
/// Actions that do not affect strew's decisions are left out: allowed topologies, capacities, drivers, attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registered {
    node: Actions,
    pod: Actions,
    claim: Actions,
    volume: Actions,
    storage_class: Actions,
    attach_limits: Actions,
}

impl Registered {
    const NOTHING: Self = Self {
        node: NONE,
        pod: NONE,
        claim: NONE,
        volume: NONE,
        storage_class: NONE,
        attach_limits: NONE,
    };

    const fn of(plugin: PluginId) -> Self {
        const NODE_LABEL: Actions = either(Actions::ADD, Actions::NODE_LABEL);
        const CHANGES: Actions = either(Actions::ADD, Actions::UPDATE);
        const COMES_OR_GOES: Actions = either(Actions::ADD, Actions::DELETE);
        match plugin {
            PluginId::SchedulingGates => Self {
                pod: Actions::POD_GATES_ELIMINATED,
                ..Self::NOTHING
            },
            PluginId::NodeUnschedulable | PluginId::TaintToleration => Self {
                node: either(Actions::ADD, Actions::NODE_TAINT),
                pod: Actions::POD_TOLERATION,
                ..Self::NOTHING
            },
            PluginId::NodeName => Self {
                node: Actions::ADD,
                ..Self::NOTHING
            },
            PluginId::NodeAffinity => Self {
                node: NODE_LABEL,
                ..Self::NOTHING
            },
            PluginId::NodePorts => Self {
                node: Actions::ADD,
                pod: Actions::DELETE,
                ..Self::NOTHING
            },
            PluginId::NodeResourcesFit => Self {
                node: either(Actions::ADD, Actions::NODE_ALLOCATABLE),
                pod: either(Actions::DELETE, Actions::POD_SCALE_DOWN),
                ..Self::NOTHING
            },
            PluginId::VolumeRestrictions => Self {
                node: Actions::ADD,
                pod: Actions::DELETE,
                claim: Actions::ADD,
                ..Self::NOTHING
            },
            PluginId::NodeVolumeLimits => Self {
                pod: Actions::DELETE,
                claim: Actions::ADD,
                attach_limits: CHANGES,
                ..Self::NOTHING
            },
            PluginId::VolumeBinding | PluginId::VolumeZone => Self {
                node: NODE_LABEL,
                claim: CHANGES,
                volume: CHANGES,
                storage_class: Actions::ADD,
                ..Self::NOTHING
            },
            PluginId::PodTopologySpread => Self {
                node: either(
                    COMES_OR_GOES,
                    either(Actions::NODE_LABEL, Actions::NODE_TAINT),
                ),
                pod: either(
                    COMES_OR_GOES,
                    either(Actions::POD_LABEL, Actions::POD_TOLERATION),
                ),
                ..Self::NOTHING
            },
            PluginId::InterPodAffinity => Self {
                node: NODE_LABEL,
                pod: either(COMES_OR_GOES, Actions::POD_LABEL),
                ..Self::NOTHING
            },
            // DynamicResources and pod groups are not implemented: such a pod is retried only by the flush.
            PluginId::DynamicResources
            | PluginId::NodeDeclaredFeatures
            | PluginId::GangScheduling
            | PluginId::NodeResourcesBalancedAllocation
            | PluginId::ImageLocality
            | PluginId::SelectorSpread => Self::NOTHING,
        }
    }
}

/// A set of plugins, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PluginSet(u32);

impl PluginSet {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The plugins of both sets.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// True if a plugin is in it.
    pub fn contains(self, plugin: PluginId) -> bool {
        self.0 & (1 << plugin as u32) != 0
    }

    /// Adds a plugin.
    pub fn insert(&mut self, plugin: PluginId) {
        self.0 |= 1 << plugin as u32;
    }

    /// The plugins, in the order in which they run.
    pub fn iter(self) -> impl Iterator<Item = PluginId> {
        PluginId::ALL
            .into_iter()
            .filter(move |&plugin| self.contains(plugin))
    }

    /// The plugins that registered for any event, in the order of registration.
    pub(crate) fn listening(self) -> impl Iterator<Item = PluginId> {
        self.iter()
            .filter(|&plugin| Registered::of(plugin) != Registered::NOTHING)
    }
}

impl FromIterator<PluginId> for PluginSet {
    fn from_iter<I: IntoIterator<Item = PluginId>>(plugins: I) -> Self {
        let mut set = Self::default();
        plugins.into_iter().for_each(|plugin| set.insert(plugin));
        set
    }
}

/// The effect of an event on a waiting pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Retry.
    Queue,
    /// The event does not help.
    Skip,
}

impl Hint {
    pub(crate) fn queue_if(yes: bool) -> Self {
        if yes { Self::Queue } else { Self::Skip }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A general update reaches only plugins that registered for every kind of update.
    #[test]
    fn actions_match_by_bits_and_by_number() {
        let labels = Actions::NODE_LABEL;
        let labels_and_taints = either(labels, Actions::NODE_TAINT);
        for (incoming, registered, expected) in [
            (Actions::ADD, Actions::ADD, true),
            (Actions::ADD, Actions::DELETE, false),
            (labels, labels_and_taints, true),
            (labels, either(Actions::ADD, labels), true),
            (Actions::UPDATE, labels_and_taints, false),
            (Actions::UPDATE, Actions::UPDATE, true),
            (Actions::UPDATE, either(Actions::ADD, Actions::UPDATE), true),
            (Actions::NODE_TAINT, labels, false),
        ] {
            assert_eq!(
                incoming.match_registered(registered),
                expected,
                "{incoming:?} {registered:?}"
            );
        }
    }
}
