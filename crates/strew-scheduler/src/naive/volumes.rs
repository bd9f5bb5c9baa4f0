//! The naive implementation of the volume plugins for one pod. Source: spec/scheduler §2.3, §3.12.

use std::collections::BTreeSet;

use strew_cluster::volumes::Attachment;
use strew_cluster::{
    ClaimFact, Cluster, NodeFact, NodeIdx, PodClaim, PodIdx, Unsupported, VolumeFact,
};
use strew_model::{Symbol, well_known};

use crate::profile::PluginId;
use crate::status::{Code, Reason, Refusal};

/// All four volume plugins of the default profile, by recounting pods.
pub struct NaiveVolumes<'a> {
    cluster: &'a Cluster,
    pod: PodIdx,
    namespace: Symbol,
    claims: &'a [PodClaim],
    /// True if claims that wait get a volume with the pod's node.
    binds: bool,
}

impl<'a> NaiveVolumes<'a> {
    /// For a pod, in the cluster as it is; `binds`: as [`Profile::binds_claims`](crate::Profile::binds_claims).
    pub fn new(cluster: &'a Cluster, pod: PodIdx, binds: bool) -> Self {
        Self {
            cluster,
            pod,
            namespace: cluster.class_of(pod).key.namespace,
            claims: &cluster.spec_of(pod).claims,
            binds,
        }
    }

    fn claim(&self, used: &PodClaim) -> Option<&'a ClaimFact> {
        let claim = self.name(used)?;
        self.cluster.volumes().claim((self.namespace, claim))
    }

    fn name(&self, used: &PodClaim) -> Option<Symbol> {
        let names = &self.cluster.names;
        names.get(&used.claim_name(&self.cluster.pod(self.pod).name, names))
    }

    fn waits(&self, claim: &ClaimFact) -> bool {
        let class = claim.class.and_then(|c| self.cluster.volumes().class(c));
        claim.volume.is_none() && class.is_some_and(|class| class.waits)
    }

    /// Why the pod is refused before any node is checked.
    pub fn pre_filter(&self) -> Option<Refusal> {
        for used in self.claims {
            if let (Some(claim), None) = (used.named, self.claim(used)) {
                let plugin = PluginId::VolumeRestrictions;
                let reason = Reason::ClaimMissing(claim);
                return Some(Refusal::unresolvable(plugin, reason));
            }
        }
        let row = self.cluster.pod(self.pod);
        let binding = |reason| Some(Refusal::unresolvable(PluginId::VolumeBinding, reason));
        for used in self.claims {
            let (Some(name), Some(claim)) = (self.name(used), self.claim(used)) else {
                let name = used.claim_name(&row.name, &self.cluster.names);
                return binding(Reason::EphemeralClaimMissing(name.into()));
            };
            if claim.lost {
                let volume = claim.volume.unwrap_or(well_known::EMPTY);
                return binding(Reason::ClaimLost(name, volume));
            }
            if claim.terminating {
                return binding(Reason::ClaimTerminating(name));
            }
            if used.named.is_none() && claim.owner.as_deref() != Some(&*row.uid) {
                return binding(Reason::ClaimOfAnother {
                    namespace: self.namespace,
                    claim: name,
                    pod: row.name.clone(),
                });
            }
        }
        let facts = || { self.claims.iter() }.filter_map(|used| Some((used, self.claim(used)?)));
        let is_bound = |claim: &ClaimFact| claim.bound && claim.volume.is_some();
        if facts().any(|(_, claim)| !is_bound(claim) && !self.waits(claim) && !claim.unattended) {
            return binding(Reason::UnboundClaims);
        }
        for (_, claim) in facts().filter(|(used, _)| used.named.is_some()) {
            let volume = claim.volume;
            if let Some(name) = volume.filter(|v| self.cluster.volumes().volume(*v).is_none()) {
                let reason = Reason::VolumeMissing(name);
                return Some(Refusal::unresolvable(PluginId::VolumeZone, reason));
            }
        }
        let is_late = |claim: &ClaimFact| self.binds && self.waits(claim);
        let waiting = facts().filter(|(_, claim)| !is_bound(claim) && !is_late(claim));
        let needs = waiting.filter_map(|(used, claim)| {
            let (volume, name) = (used.volume, self.name(used)?);
            Some(match claim.unattended && !self.waits(claim) {
                true => Unsupported::UnattendedClaim(volume, name),
                false => Unsupported::UnboundClaim(volume, name, claim.class),
            })
        });
        let reasons: Vec<Reason> = needs.map(Reason::Unsupported).collect();
        (!reasons.is_empty()).then(|| Refusal {
            plugin: PluginId::VolumeBinding,
            code: Code::UnschedulableAndUnresolvable,
            reasons: reasons.into(),
        })
    }

    /// Why a node is refused; `None` if it passes. Only valid if [`pre_filter`](Self::pre_filter) does not refuse.
    ///
    /// `asks_use`: true if claims in use are checked. With nominated pods added they are not checked, unless the pod
    /// was refused without them: PreFilter has skipped the filter (spec/scheduler §2.3).
    pub fn filter(&self, node: NodeIdx, asks_use: bool) -> Option<Refusal> {
        let fact = self.cluster.node(node).fact()?;
        if asks_use && self.is_in_use() {
            let plugin = PluginId::VolumeRestrictions;
            return Some(Refusal::unschedulable(plugin, Reason::ClaimInUse));
        }
        if self.exceeds_limits(node, fact) {
            let plugin = PluginId::NodeVolumeLimits;
            return Some(Refusal::unschedulable(plugin, Reason::VolumeLimit));
        }
        let mut of_bound = None;
        let bound = { self.claims.iter() }.filter(|used| !self.is_waiting(used));
        for used in bound {
            of_bound = match self.volume(used) {
                None => Some(Reason::VolumesMissing),
                Some(volume) if !self.admits(volume, fact) => Some(Reason::VolumeNodeAffinity),
                Some(_) => continue,
            };
            break;
        }
        let mut reasons: Vec<Reason> = Vec::new();
        if self.is_made_elsewhere(node) && of_bound.is_none() {
            of_bound = Some(Reason::VolumeNodeAffinity);
        }
        reasons.extend(of_bound);
        if !self.all_get_volumes(fact) {
            let last = reasons.iter().position(|r| *r == Reason::VolumesMissing);
            reasons.insert(last.unwrap_or(reasons.len()), Reason::NoVolumeToBind);
        }
        if !reasons.is_empty() {
            return Some(Refusal {
                plugin: PluginId::VolumeBinding,
                code: Code::UnschedulableAndUnresolvable,
                reasons: reasons.into(),
            });
        }
        let zoned = self.claims.iter().filter(|used| used.named.is_some());
        let apart = zoned
            .filter_map(|used| self.volume(used))
            .any(|volume| is_apart(volume, fact));
        apart.then(|| Refusal::unresolvable(PluginId::VolumeZone, Reason::VolumeZone))
    }

    fn is_waiting(&self, used: &PodClaim) -> bool {
        self.claim(used).is_some_and(|claim| self.waits(claim))
    }

    /// True if a pod on another node has the volume of a claim made there.
    fn is_made_elsewhere(&self, node: NodeIdx) -> bool {
        let volumes = self.cluster.volumes();
        let elsewhere = |used: &PodClaim| {
            let Some(key) = self.name(used).map(|name| (self.namespace, name)) else {
                return false;
            };
            let users = volumes.users(key);
            volumes.assumed(key).is_none() && !users.is_empty() && !users.contains(&node)
        };
        let mut waiting = self.claims.iter().filter(|used| self.is_waiting(used));
        waiting.any(elsewhere)
    }

    /// True if each claim that waits gets a volume on a node: claim by claim, the smallest first.
    fn all_get_volumes(&self, node: &NodeFact) -> bool {
        let volumes = self.cluster.volumes();
        let names = &self.cluster.names;
        let mut waiting: Vec<(Symbol, &ClaimFact)> = Vec::new();
        for used in self.claims.iter().filter(|used| self.is_waiting(used)) {
            let (Some(name), Some(claim)) = (self.name(used), self.claim(used)) else {
                continue;
            };
            let key = (self.namespace, name);
            let is_made = volumes.assumed(key).is_none() && !volumes.users(key).is_empty();
            if !is_made && waiting.iter().all(|(known, _)| *known != name) {
                waiting.push((name, claim));
            }
        }
        waiting.sort_by_key(|(_, claim)| claim.size);
        let mut taken: BTreeSet<Symbol> = BTreeSet::new();
        for (name, claim) in waiting {
            let key = (self.namespace, name);
            let is_kept = |v: &VolumeFact| {
                let of = v.claim.as_ref();
                of.is_some_and(|(of, uid)| *of == key && (uid.is_empty() || *uid == claim.uid))
            };
            let is_free = |volume: Symbol, v: &VolumeFact| {
                v.claim.is_none()
                    && v.available
                    && v.modes.include(claim.modes)
                    && claim.selector.as_ref().is_none_or(|s| s.matches(&v.labels))
                    && volumes.holder(volume).is_none_or(|holder| holder == key)
            };
            let mut best: Option<(bool, i64, &str, Symbol)> = None;
            for (volume, v) in volumes.all() {
                let fits = !v.terminating && v.capacity >= claim.size && v.block == claim.block;
                let kept = is_kept(v);
                let is_candidate = kept || (is_free(volume, v) && self.admits(v, node));
                if taken.contains(&volume) || v.class != claim.class || !fits || !is_candidate {
                    continue;
                }
                let size = if kept { 0 } else { v.capacity };
                let found = (!kept, size, names.text(volume), volume);
                if best.is_none_or(|best| found < best) {
                    best = Some(found);
                }
            }
            let best = best.map(|(.., volume)| volume);
            let best = best.filter(|_| claim.selected.is_none());
            let best = best.filter(|v| volumes.volume(*v).is_some_and(|v| self.admits(v, node)));
            let class = claim.class.and_then(|class| volumes.class(class));
            let provisions = class.is_some_and(|class| {
                let mut terms = class.topologies.iter();
                class.provisions
                    && claim.selected.is_none_or(|selected| selected == node.name)
                    && (class.topologies.is_empty()
                        || terms.any(|t| t.matches(well_known::EMPTY, &node.labels, names)))
            });
            match best {
                Some(volume) => drop(taken.insert(volume)),
                None if provisions => {}
                None => return false,
            }
        }
        true
    }

    fn volume(&self, used: &PodClaim) -> Option<&'a VolumeFact> {
        let name = self.claim(used)?.volume?;
        self.cluster.volumes().volume(name).map(|fact| &**fact)
    }

    fn admits(&self, volume: &VolumeFact, node: &NodeFact) -> bool {
        let Some(terms) = &volume.terms else {
            return true;
        };
        let names = &self.cluster.names;
        let mut terms = terms.iter();
        terms.any(|term| term.matches(well_known::EMPTY, &node.labels, names))
    }

    /// True if a pod on a node uses a ReadWriteOncePod claim of the pod.
    fn is_in_use(&self) -> bool {
        let once = self.claims.iter();
        let once: BTreeSet<Symbol> = once
            .filter(|used| self.claim(used).is_some_and(|c| c.once_pod))
            .filter_map(|used| used.named)
            .collect();
        self.cluster.pods().any(|(pod, row)| {
            let is_there = row.node.and_then(|n| self.cluster.node(n).fact()).is_some();
            let same_namespace = self.cluster.class_of(pod).key.namespace == self.namespace;
            let mut named = self.cluster.spec_of(pod).claims.iter();
            is_there
                && same_namespace
                && named.any(|used| used.named.is_some_and(|claim| once.contains(&claim)))
        })
    }

    fn exceeds_limits(&self, node: NodeIdx, fact: &NodeFact) -> bool {
        let volumes = self.cluster.volumes();
        let of_pod = |pod: PodIdx| -> BTreeSet<Attachment> {
            let of = NaiveVolumes::new(self.cluster, pod, self.binds);
            let keys = { of.claims.iter() }.filter_map(|used| Some((of.namespace, of.name(used)?)));
            keys.filter_map(|key| volumes.attachment(key)).collect()
        };
        let new = of_pod(self.pod);
        let pods = self.cluster.pods();
        let there = pods.filter(|&(pod, row)| pod != self.pod && row.node == Some(node));
        let attached: BTreeSet<Attachment> = there.flat_map(|(pod, _)| of_pod(pod)).collect();
        volumes.limits(fact.name).iter().any(|&(driver, limit)| {
            let count = |set: &BTreeSet<Attachment>| {
                let of_driver = set.iter().filter(|(by, _)| *by == driver);
                of_driver.count() as i64
            };
            let all: BTreeSet<Attachment> = attached.union(&new).copied().collect();
            count(&all) > count(&attached) && count(&all) > limit
        })
    }
}

/// True if a zone or region label of a volume does not match a node that has any such label.
fn is_apart(volume: &VolumeFact, node: &NodeFact) -> bool {
    use well_known::{REGION, REGION_BETA, ZONE, ZONE_BETA};
    let value = |key| node.labels.get(key);
    let any = [ZONE, ZONE_BETA, REGION, REGION_BETA]
        .into_iter()
        .any(|key| value(key).is_some());
    let holds = |key: Symbol, values: &[Symbol]| {
        let on_node = match key {
            ZONE_BETA => value(ZONE_BETA).or(value(ZONE)),
            REGION_BETA => value(REGION_BETA).or(value(REGION)),
            key => value(key),
        };
        on_node.is_some_and(|on_node| values.contains(&on_node))
    };
    any && !volume.zones.iter().all(|(key, values)| holds(*key, values))
}
