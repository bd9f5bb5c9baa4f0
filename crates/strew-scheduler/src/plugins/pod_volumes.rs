//! The volumes of one pod, looked up once per decision: the findings of PreFilter, and the checks of Filter on each
//! node.
//!
//! Most claims belong to one pod, so nothing is kept between decisions; a pod without claims costs one look at an empty
//! list. Source: spec/scheduler §2.3, §3.12.

use std::sync::Arc;

use smallvec::SmallVec;
use strew_cluster::volumes::{Attachment, ClaimKey, Matching};
use strew_cluster::{ClaimFact, Cluster, NodeIdx, PodClaim, PodIdx, Unsupported, VolumeFact};
use strew_model::Symbol;

use super::{node_volume_limits, volume_binding, volume_restrictions, volume_zone};
use crate::profile::{PluginId, Profile};
use crate::status::{Code, Reason, Refusal};

/// A claim of the pod with its facts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looked<'a> {
    pub(crate) used: PodClaim,
    /// Namespace and name; `None` if no object of that name was ever seen.
    pub(crate) key: Option<ClaimKey>,
    pub(crate) fact: Option<&'a ClaimFact>,
    /// True if it is bound when its first pod is placed.
    pub(crate) waits: bool,
}

/// The volume of a bound claim.
#[derive(Debug, Clone)]
pub(crate) struct BoundVolume {
    /// `None` if it does not exist.
    pub(crate) fact: Option<Arc<VolumeFact>>,
    /// True if `VolumeZone` checks it: false for generic ephemeral volumes.
    pub(crate) zoned: bool,
}

/// What the volume plugins found before any node was checked.
#[derive(Debug, Default)]
pub(crate) struct PodVolumes {
    /// Why the pod is refused as a whole.
    pub(crate) refused: Option<Refusal>,
    /// The ReadWriteOncePod claims of the pod.
    pub(crate) once_pod: SmallVec<[Symbol; 2]>,
    /// The number of them in use on existing nodes.
    pub(crate) in_use: i32,
    /// The volumes of its bound claims, in the order of the spec.
    pub(crate) bound: SmallVec<[BoundVolume; 2]>,
    /// For each claim whose volume is being made, the nodes where another pod of the claim was placed: the volume will
    /// be reachable from these nodes.
    pub(crate) binding: SmallVec<[SmallVec<[NodeIdx; 2]>; 1]>,
    /// The claims that get a volume with the pod's node.
    pub(crate) matching: Matching,
    /// The volumes that drivers would have to attach, without repetitions.
    pub(crate) attachments: SmallVec<[Attachment; 2]>,
    has_claims: bool,
    has_ephemeral: bool,
    asks_nodes: bool,
}

impl PodVolumes {
    /// Looks up the volumes of a pod. Cost: claims × look-ups; nothing for a pod without claims.
    pub(crate) fn find(&mut self, cluster: &Cluster, profile: &Profile, pod: PodIdx) {
        if std::mem::take(&mut self.has_claims) {
            *self = Self::default();
        }
        let class = cluster.class_of(pod);
        let spec = cluster.tables().spec(class.key.spec);
        if spec.claims.is_empty() {
            return;
        }
        self.has_claims = true;
        let namespace = class.key.namespace;
        let claims: SmallVec<[Looked<'_>; 4]> = { spec.claims.iter() }
            .map(|&used| Looked::at(cluster, pod, used))
            .collect();
        self.has_ephemeral = claims.iter().any(Looked::is_ephemeral);
        self.count_uses(cluster, namespace, &claims);
        self.refused = refuse(cluster, profile, pod, &claims);
        let volumes = cluster.volumes();
        self.bound = { claims.iter() }
            .filter_map(|looked| {
                let name = looked.fact?.volume?;
                Some(BoundVolume {
                    fact: volumes.volume(name).cloned(),
                    zoned: !looked.is_ephemeral(),
                })
            })
            .collect();
        let keys = claims.iter().filter_map(|looked| looked.key);
        self.attachments = keys.filter_map(|key| volumes.attachment(key)).collect();
        self.attachments.sort_unstable();
        self.attachments.dedup();
        let later = claims
            .iter()
            .filter(|looked| looked.is_bound_later(profile));
        let (made, matched): (Vec<ClaimKey>, Vec<ClaimKey>) = later
            .filter_map(|looked| looked.key)
            .partition(|&key| !volumes.users(key).is_empty() && volumes.assumed(key).is_none());
        self.binding = { made.iter() }
            .map(|&key| SmallVec::from_slice(volumes.users(key)))
            .collect();
        self.matching = volumes.matching(matched.into_iter(), &cluster.names);
        self.asks_nodes = self.in_use > 0
            || !self.binding.is_empty()
            || !self.matching.accepts_every_node()
            || self.bound.iter().any(BoundVolume::asks_nodes)
            || (volumes.any_limits() && !self.attachments.is_empty());
    }

    fn count_uses(&mut self, cluster: &Cluster, namespace: Symbol, claims: &[Looked<'_>]) {
        let once_pod = { claims.iter() }.filter(|l| l.fact.is_some_and(|f| f.once_pod));
        self.once_pod = once_pod.filter_map(|l| l.used.named).collect();
        self.once_pod.sort_unstable();
        self.once_pod.dedup();
        let in_use = |&&claim: &&Symbol| is_used(cluster, (namespace, claim));
        self.in_use = self.once_pod.iter().filter(in_use).count() as i32;
    }

    /// True if the pod has claims.
    pub(crate) fn has_claims(&self) -> bool {
        self.has_claims
    }

    /// True if pods of its class have different claims, because the names of claims depend on the pod's.
    pub(crate) fn has_ephemeral(&self) -> bool {
        self.has_ephemeral
    }

    /// True if nodes may differ: only then each must be checked.
    pub(crate) fn asks_nodes(&self) -> bool {
        self.asks_nodes
    }

    /// The refusal of a node by one of the volume plugins.
    pub(crate) fn filter(
        &self,
        cluster: &Cluster,
        plugin: VolumePlugin,
        node: NodeIdx,
    ) -> Option<Refusal> {
        if !self.asks_nodes {
            return None;
        }
        let row = cluster.node(node);
        match plugin {
            VolumePlugin::Restrictions => volume_restrictions::filter(self.in_use),
            VolumePlugin::Limits => node_volume_limits::filter(cluster, row, &self.attachments),
            VolumePlugin::Binding => volume_binding::filter(cluster, (node, row.fact()?), self),
            VolumePlugin::Zone => volume_zone::filter(row.fact()?, &self.bound),
        }
    }

    /// True if all volume plugins of a profile accept a node.
    pub(crate) fn allow(&self, cluster: &Cluster, profile: &Profile, node: NodeIdx) -> bool {
        let mut plugins = PLUGINS
            .iter()
            .filter(|(id, _)| profile.filters.contains(id));
        plugins.all(|&(_, plugin)| self.filter(cluster, plugin, node).is_none())
    }

    /// True if PreFilter skips a plugin.
    pub(crate) fn skips(&self, plugin: VolumePlugin) -> bool {
        match plugin {
            VolumePlugin::Restrictions => self.in_use == 0,
            VolumePlugin::Zone => {
                let zones = |b: &BoundVolume| b.fact.as_ref().is_some_and(|v| !v.zones.is_empty());
                !self.bound.iter().any(|b| b.zoned && zones(b))
            }
            VolumePlugin::Limits | VolumePlugin::Binding => !self.has_claims,
        }
    }
}

/// A plugin that checks volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VolumePlugin {
    /// VolumeRestrictions
    Restrictions,
    /// NodeVolumeLimits
    Limits,
    /// VolumeBinding
    Binding,
    /// VolumeZone
    Zone,
}

const PLUGINS: [(PluginId, VolumePlugin); 4] = [
    (PluginId::VolumeRestrictions, VolumePlugin::Restrictions),
    (PluginId::NodeVolumeLimits, VolumePlugin::Limits),
    (PluginId::VolumeBinding, VolumePlugin::Binding),
    (PluginId::VolumeZone, VolumePlugin::Zone),
];

impl BoundVolume {
    fn asks_nodes(&self) -> bool {
        let free = |fact: &VolumeFact| fact.terms.is_none() && fact.zones.is_empty();
        !self.fact.as_deref().is_some_and(free)
    }
}

impl<'a> Looked<'a> {
    fn at(cluster: &'a Cluster, pod: PodIdx, used: PodClaim) -> Self {
        let names = &cluster.names;
        let ephemeral = || names.get(&used.claim_name(&cluster.pod(pod).name, names));
        let claim = used.named.or_else(ephemeral);
        let key = claim.map(|claim| (cluster.class_of(pod).key.namespace, claim));
        let volumes = cluster.volumes();
        let fact = key.and_then(|key| volumes.claim(key));
        let waits = fact.is_some_and(|fact| volumes.waits(fact));
        Self {
            used,
            key,
            fact,
            waits,
        }
    }

    /// True if no controller will ever bind it.
    pub(crate) fn is_unattended(&self) -> bool {
        self.fact.is_some_and(|fact| fact.unattended)
    }

    /// True for a generic ephemeral volume.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.used.named.is_none()
    }

    /// True if it is bound when the pod is placed.
    fn is_bound_later(&self, profile: &Profile) -> bool {
        profile.binds_claims && self.waits
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.fact
            .is_some_and(|fact| fact.bound && fact.volume.is_some())
    }
}

/// True if a pod on an existing node uses a claim.
fn is_used(cluster: &Cluster, key: ClaimKey) -> bool {
    let mut users = cluster.volumes().users(key).iter();
    users.any(|&node| cluster.node(node).fact().is_some())
}

/// PreFilter of all volume plugins, in their order; the first refusal ends it. Claims that none of them handles, or
/// that wait for their first pod, are needs that strew does not implement.
fn refuse(
    cluster: &Cluster,
    profile: &Profile,
    pod: PodIdx,
    claims: &[Looked<'_>],
) -> Option<Refusal> {
    let asked = |plugin| profile.filters_with(plugin);
    let refused =
        |plugin, reason: Option<Reason>| reason.map(|reason| Refusal::unresolvable(plugin, reason));
    let restrictions = || match asked(PluginId::VolumeRestrictions) {
        true => volume_restrictions::pre_filter(claims),
        false => None,
    };
    let binding = || match asked(PluginId::VolumeBinding) {
        true => volume_binding::pre_filter(cluster, pod, claims),
        false => None,
    };
    let zone = || match asked(PluginId::VolumeZone) {
        true => volume_zone::pre_filter(cluster, claims),
        false => None,
    };
    refused(PluginId::VolumeRestrictions, restrictions())
        .or_else(|| refused(PluginId::VolumeBinding, binding()))
        .or_else(|| refused(PluginId::VolumeZone, zone()))
        .or_else(|| unbound(profile, claims))
}

fn unbound(profile: &Profile, claims: &[Looked<'_>]) -> Option<Refusal> {
    let need = |l: &Looked<'_>| {
        let volume = l.used.volume;
        let claim = l.key.map_or(volume, |(_, claim)| claim);
        Reason::Unsupported(match l.waits || !l.is_unattended() {
            true => Unsupported::UnboundClaim(volume, claim, l.fact.and_then(|f| f.class)),
            false => Unsupported::UnattendedClaim(volume, claim),
        })
    };
    let reasons: SmallVec<[Reason; 2]> = { claims.iter() }
        .filter(|l| !l.is_bound() && !l.is_bound_later(profile))
        .map(need)
        .collect();
    (!reasons.is_empty()).then_some(Refusal {
        plugin: PluginId::VolumeBinding,
        code: Code::UnschedulableAndUnresolvable,
        reasons,
    })
}
