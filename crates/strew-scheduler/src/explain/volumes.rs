//! Why volumes refuse a node, with names and numbers.

use strew_cluster::volumes::Attachment;
use strew_cluster::{Cluster, NodeFact, NodeIdx, PodClaim, PodIdx, VolumeFact};
use strew_model::{NodeSelectorTerm, Symbol};

use super::refused::Blockers;
use crate::plugins::pod_volumes::VolumePlugin;
use crate::plugins::volume_zone;
use crate::profile::PluginId;

/// Why a volume of the pod refuses a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeCause {
    /// Other pods use a claim of access mode ReadWriteOncePod.
    InUse {
        /// The claim.
        claim: Symbol,
        /// These pods.
        holders: Blockers,
    },
    /// A driver can attach no more volumes to the node.
    Limit {
        /// The driver.
        driver: Symbol,
        /// The number of its attached volumes.
        attached: usize,
        /// The number of further volumes that the pod needs.
        wanted: usize,
        /// Its limit.
        limit: i64,
    },
    /// A volume's node affinity excludes the node.
    NodeAffinity {
        /// The claim.
        claim: Symbol,
        /// Its volume.
        volume: Symbol,
        /// The volume's terms, none of which matches.
        terms: Box<[NodeSelectorTerm]>,
    },
    /// A claim that waits for its pod's node gets no volume there.
    NoVolume {
        /// The claim.
        claim: Symbol,
        /// Its storage class.
        class: Option<Symbol>,
        /// The number of volumes of the class that no claim has.
        of_class: usize,
        /// The number of these that the claim may get, on other nodes.
        fitting: usize,
    },
    /// A volume is in another zone or region.
    Zone {
        /// The claim.
        claim: Symbol,
        /// Its volume.
        volume: Symbol,
        /// The volume's label.
        key: Symbol,
        /// The accepted values.
        values: Box<[Symbol]>,
        /// The node's value.
        found: Option<Symbol>,
    },
}

impl VolumeCause {
    /// The plugin of this cause.
    pub fn plugin(&self) -> PluginId {
        match self {
            Self::InUse { .. } => PluginId::VolumeRestrictions,
            Self::Limit { .. } => PluginId::NodeVolumeLimits,
            Self::NodeAffinity { .. } | Self::NoVolume { .. } => PluginId::VolumeBinding,
            Self::Zone { .. } => PluginId::VolumeZone,
        }
    }
}

/// The causes of a refusal by one of the volume plugins.
pub(super) fn causes(
    cluster: &Cluster,
    pod: PodIdx,
    node: NodeIdx,
    plugin: VolumePlugin,
) -> Vec<VolumeCause> {
    let Some(fact) = cluster.node(node).fact() else {
        return Vec::new();
    };
    let look = Look {
        cluster,
        pod,
        namespace: cluster.class_of(pod).key.namespace,
        claims: &cluster.spec_of(pod).claims,
    };
    match plugin {
        VolumePlugin::Restrictions => look.in_use(),
        VolumePlugin::Limits => look.limits(node),
        VolumePlugin::Binding => {
            let mut causes = look.node_affinity(fact);
            causes.extend(look.no_volume(fact));
            causes
        }
        VolumePlugin::Zone => look.zones(fact),
    }
}

struct Look<'a> {
    cluster: &'a Cluster,
    pod: PodIdx,
    namespace: Symbol,
    claims: &'a [PodClaim],
}

impl<'a> Look<'a> {
    fn in_use(&self) -> Vec<VolumeCause> {
        let volumes = self.cluster.volumes();
        let named = self.claims.iter().filter_map(|used| used.named);
        let once = named.filter(|&claim| {
            let fact = volumes.claim((self.namespace, claim));
            fact.is_some_and(|fact| fact.once_pod)
        });
        let cause = |claim| VolumeCause::InUse {
            claim,
            holders: self.holders(claim),
        };
        once.map(cause)
            .filter(
                |cause| matches!(cause, VolumeCause::InUse { holders, .. } if holders.count > 0),
            )
            .collect()
    }

    fn holders(&self, claim: Symbol) -> Blockers {
        let mut holders = Blockers::default();
        for (pod, row) in self.cluster.pods() {
            let key = &self.cluster.class_of(pod).key;
            let mut claims = self.cluster.spec_of(pod).claims.iter();
            let is_on_node = row.node.is_some() && pod != self.pod;
            if is_on_node
                && key.namespace == self.namespace
                && claims.any(|u| u.named == Some(claim))
            {
                holders.add(pod);
            }
        }
        holders
    }

    fn limits(&self, node: NodeIdx) -> Vec<VolumeCause> {
        let volumes = self.cluster.volumes();
        let row = self.cluster.node(node);
        let distinct = |keys: &mut dyn Iterator<Item = (Symbol, Symbol)>| {
            let mut found: Vec<Attachment> = keys.filter_map(|k| volumes.attachment(k)).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let there = distinct(&mut row.claims().iter().copied());
        let new = distinct(&mut self.cluster.claims_of(self.pod));
        let cause = |&(driver, limit): &(Symbol, i64)| {
            let of_driver = |a: &&Attachment| a.0 == driver;
            let added = new.iter().filter(of_driver);
            let wanted = added.filter(|a| there.binary_search(a).is_err()).count();
            let attached = there.iter().filter(of_driver).count();
            (wanted > 0 && (attached + wanted) as i64 > limit).then_some(VolumeCause::Limit {
                driver,
                attached,
                wanted,
                limit,
            })
        };
        volumes
            .limits(row.name())
            .iter()
            .filter_map(cause)
            .collect()
    }

    /// The claims with the names of their volumes, and the volumes' facts.
    fn bound(&self) -> impl Iterator<Item = (Symbol, Symbol, &'a VolumeFact)> + '_ {
        let volumes = self.cluster.volumes();
        self.cluster.claims_of(self.pod).filter_map(move |key| {
            let name = volumes.claim(key)?.volume?;
            Some((key.1, name, &**volumes.volume(name)?))
        })
    }

    fn node_affinity(&self, node: &NodeFact) -> Vec<VolumeCause> {
        let names = &self.cluster.names;
        let refuses = |(claim, volume, fact): (Symbol, Symbol, &VolumeFact)| {
            let terms = fact.terms.clone()?;
            (!fact.admits(&node.labels, names)).then_some(VolumeCause::NodeAffinity {
                claim,
                volume,
                terms,
            })
        };
        self.bound().filter_map(refuses).collect()
    }

    fn no_volume(&self, node: &NodeFact) -> Option<VolumeCause> {
        let (volumes, names) = (self.cluster.volumes(), &self.cluster.names);
        let matching = volumes.matching(self.cluster.claims_of(self.pod), names);
        let key = matching.on(node.name, &node.labels, names).err()?;
        let (of_class, fitting) = volumes.count_free(key);
        Some(VolumeCause::NoVolume {
            claim: key.1,
            class: volumes.claim(key)?.class,
            of_class,
            fitting,
        })
    }

    fn zones(&self, node: &NodeFact) -> Vec<VolumeCause> {
        let mut causes = Vec::new();
        let is_named = |claim| self.claims.iter().any(|used| used.named == Some(claim));
        for (claim, volume, fact) in self.bound().filter(|&(claim, ..)| is_named(claim)) {
            let apart = fact.zones.iter().filter_map(|(key, values)| {
                let found = volume_zone::value_on(node, *key);
                let differs = found.is_none_or(|found| !values.contains(&found));
                differs.then(|| VolumeCause::Zone {
                    claim,
                    volume,
                    key: *key,
                    values: values.clone(),
                    found,
                })
            });
            causes.extend(apart);
        }
        causes
    }
}
