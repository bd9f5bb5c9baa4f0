//! Claims, volumes, storage classes, and volume limits of nodes, with the fields that decisions read.
//!
//! Source: spec/scheduler §3.12; upstream `pkg/scheduler/framework/plugins/volume*`, v1.36.3.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Holds, Interner, Labels, Marks, NodeSelectorTerm, Symbol, well_known};

use crate::index::NodeIdx;

/// The current state of a PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimFact {
    /// `spec.volumeName`.
    pub volume: Option<Symbol>,
    /// Whether it and its volume are bound to each other for good.
    pub bound: bool,
    /// Whether no volume controller has ever seen it: it has no phase, and is not in an API server.
    pub unattended: bool,
    /// Whether its phase is `Lost`: its volume is gone.
    pub lost: bool,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// True if only one pod at a time may use it (access mode `ReadWriteOncePod`).
    pub once_pod: bool,
    /// Its storage class.
    pub class: Option<Symbol>,
    /// The uid of its controller: the pod of a generic ephemeral volume.
    pub owner: Option<Arc<str>>,
}

/// The current state of a PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VolumeFact {
    /// Required node affinity; one of the terms must match, an empty list matches no node.
    pub terms: Option<Box<[NodeSelectorTerm]>>,
    /// Its zone and region labels, each with the values that a node may have.
    pub zones: Box<[(Symbol, Box<[Symbol]>)]>,
    /// The CSI driver that attaches it, and its handle there; `None` if it is not counted.
    pub attached: Option<(Symbol, Symbol)>,
}

impl VolumeFact {
    /// True if its node affinity admits a node. The node's name is not available to it (as upstream: a term on
    /// `metadata.name` sees an empty one).
    pub fn admits(&self, labels: &Labels, names: &Interner) -> bool {
        let matches = |term: &NodeSelectorTerm| term.matches(well_known::EMPTY, labels, names);
        self.terms
            .as_deref()
            .is_none_or(|terms| terms.iter().any(matches))
    }
}

/// A StorageClass: when its claims are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StorageClassFact {
    /// True if its claims are bound when their first pod is placed (`WaitForFirstConsumer`); false: immediately.
    pub waits: bool,
    /// The CSI driver of its provisioner, under which unbound claims are counted; `None` if they are not.
    pub driver: Option<Symbol>,
}

/// The number of volumes that each CSI driver attaches to a node.
pub type AttachLimits = Box<[(Symbol, i64)]>;

/// The identity of a volume for a driver's count: its handle, or namespace and name of an unbound claim.
pub type Attachment = (Symbol, (Symbol, Symbol));

/// Namespace and name of a claim.
pub type ClaimKey = (Symbol, Symbol);

/// All claims, volumes, storage classes and limits, and the pods of each claim.
#[derive(Debug, Clone, Default)]
pub struct Volumes {
    claims: FxHashMap<ClaimKey, ClaimFact>,
    volumes: FxHashMap<Symbol, Arc<VolumeFact>>,
    classes: FxHashMap<Symbol, StorageClassFact>,
    limits: FxHashMap<Symbol, AttachLimits>,
    /// The nodes of the pods that use a claim, once per use.
    users: FxHashMap<ClaimKey, Vec<NodeIdx>>,
    version: u64,
}

impl Volumes {
    /// Increases with every change of a fact, for caches. [`usage_changes`](crate::Cluster::usage_changes) reports
    /// changed uses of claims.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A claim.
    pub fn claim(&self, key: ClaimKey) -> Option<&ClaimFact> {
        self.claims.get(&key)
    }

    /// A volume.
    pub fn volume(&self, name: Symbol) -> Option<&Arc<VolumeFact>> {
        self.volumes.get(&name)
    }

    /// A storage class.
    pub fn class(&self, name: Symbol) -> Option<StorageClassFact> {
        self.classes.get(&name).copied()
    }

    /// The limits of a node's drivers; empty if they are unknown.
    pub fn limits(&self, node: Symbol) -> &[(Symbol, i64)] {
        self.known_limits(node).map_or(&[], |limits| limits)
    }

    /// The limits of a node's drivers; `None` if they are unknown.
    pub fn known_limits(&self, node: Symbol) -> Option<&AttachLimits> {
        self.limits.get(&node)
    }

    /// True if the limits of some node are known.
    pub fn any_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// The nodes of the pods that use a claim, in no particular order.
    pub fn users(&self, key: ClaimKey) -> &[NodeIdx] {
        self.users.get(&key).map_or(&[], |nodes| nodes)
    }

    /// The identity under which a driver counts a claim; `None` if it is not counted. Source: upstream
    /// `nodevolumelimits/csi.go`.
    pub fn attachment(&self, key: ClaimKey) -> Option<Attachment> {
        let claim = self.claim(key)?;
        match claim.volume.and_then(|name| self.volume(name)) {
            Some(volume) => {
                let (driver, handle) = volume.attached?;
                Some((driver, (handle, well_known::EMPTY)))
            }
            None => Some((self.class(claim.class?)?.driver?, key)),
        }
    }

    /// Returns whether anything changed.
    pub(crate) fn set_claim(&mut self, key: ClaimKey, fact: Option<ClaimFact>) -> bool {
        let changed = set(&mut self.claims, key, fact);
        self.note(changed)
    }

    pub(crate) fn set_volume(&mut self, name: Symbol, fact: Option<VolumeFact>) -> bool {
        let changed = set(&mut self.volumes, name, fact.map(Arc::new));
        self.note(changed)
    }

    pub(crate) fn set_class(&mut self, name: Symbol, fact: Option<StorageClassFact>) -> bool {
        let changed = set(&mut self.classes, name, fact);
        self.note(changed)
    }

    pub(crate) fn set_limits(&mut self, node: Symbol, limits: Option<AttachLimits>) -> bool {
        let changed = set(&mut self.limits, node, limits);
        self.note(changed)
    }

    fn note(&mut self, changed: bool) -> bool {
        self.version += u64::from(changed);
        changed
    }

    /// Records that a pod with a claim was bound to a node, or unbound.
    pub(crate) fn use_claim(&mut self, key: ClaimKey, node: NodeIdx, comes: bool) {
        let users = self.users.entry(key).or_default();
        if comes {
            users.push(node);
        } else if let Some(place) = users.iter().position(|&n| n == node) {
            users.swap_remove(place);
        }
        if users.is_empty() {
            self.users.remove(&key);
        }
    }

    /// Compares the pods of each claim with a recount.
    pub(crate) fn audit(&self, recounted: &FxHashMap<ClaimKey, Vec<NodeIdx>>) -> bool {
        let sorted = |nodes: &[NodeIdx]| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes
        };
        let same = |(key, nodes): (&ClaimKey, &Vec<NodeIdx>)| {
            recounted.get(key).map(|n| sorted(n)) == Some(sorted(nodes))
        };
        self.users.len() == recounted.len() && self.users.iter().all(same)
    }
}

fn set<K: std::hash::Hash + Eq, V: PartialEq>(
    table: &mut FxHashMap<K, V>,
    key: K,
    value: Option<V>,
) -> bool {
    if table.get(&key) == value.as_ref() {
        return false;
    }
    match value {
        Some(value) => table.insert(key, value),
        None => table.remove(&key),
    };
    true
}

impl Holds for Volumes {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        let Self {
            claims,
            volumes,
            classes,
            limits,
            users,
            version: _,
        } = self;
        for (key, fact) in claims {
            key.mark(marks);
            (fact.volume, fact.class).mark(marks);
        }
        for (name, fact) in volumes {
            let VolumeFact {
                terms,
                zones,
                attached,
            } = &**fact;
            name.mark(marks);
            terms.mark(marks);
            zones.mark(marks);
            attached.mark(marks);
        }
        for (name, class) in classes {
            name.mark(marks);
            class.driver.mark(marks);
        }
        for (node, limits) in limits {
            node.mark(marks);
            limits.mark(marks);
        }
        for key in users.keys() {
            key.mark(marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(volume: Option<Symbol>, class: Option<Symbol>) -> ClaimFact {
        ClaimFact {
            volume,
            bound: volume.is_some(),
            unattended: false,
            lost: false,
            terminating: false,
            once_pod: false,
            class,
            owner: None,
        }
    }

    #[test]
    fn only_what_is_new_makes_a_new_version() {
        let mut volumes = Volumes::default();
        let key = (well_known::DEFAULT_NAMESPACE, well_known::ZONE);
        assert!(!volumes.set_claim(key, None));
        assert!(volumes.set_claim(key, Some(claim(None, None))));
        assert!(!volumes.set_claim(key, Some(claim(None, None))));
        assert_eq!(volumes.version(), 1);
        assert!(volumes.set_claim(key, None));
        assert_eq!((volumes.version(), volumes.claim(key)), (2, None));
    }

    #[test]
    fn a_claim_is_counted_by_its_volume_or_by_its_class() {
        let mut names = Interner::new();
        let [driver, handle, pv, fast, data] =
            ["ebs.csi.aws.com", "vol-1", "pv", "fast", "data"].map(|text| names.intern(text));
        let key = (well_known::DEFAULT_NAMESPACE, data);
        let mut volumes = Volumes::default();
        volumes.set_claim(key, Some(claim(Some(pv), Some(fast))));
        assert_eq!(volumes.attachment(key), None);
        let waits = true;
        let class = StorageClassFact {
            waits,
            driver: Some(driver),
        };
        volumes.set_class(fast, Some(class));
        assert_eq!(volumes.attachment(key), Some((driver, key)));
        let volume = VolumeFact {
            attached: Some((driver, handle)),
            ..VolumeFact::default()
        };
        volumes.set_volume(pv, Some(volume));
        let by_handle = (driver, (handle, well_known::EMPTY));
        assert_eq!(volumes.attachment(key), Some(by_handle));
        volumes.set_volume(pv, Some(VolumeFact::default()));
        assert_eq!(volumes.attachment(key), None);
    }
}
