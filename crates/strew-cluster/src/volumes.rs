//! Claims, volumes, storage classes, and volume limits of nodes, with the fields that decisions read.
//!
//! Source: spec/scheduler §3.12; upstream `pkg/scheduler/framework/plugins/volume*`, v1.36.3.

mod matching;

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Holds, Interner, Labels, Marks, NodeSelectorTerm, Selector, Symbol, well_known};

use crate::index::NodeIdx;
pub use matching::{AccessModes, Matching};

/// The current state of a PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
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
    /// Its uid; empty if it has none.
    pub uid: Arc<str>,
    /// The storage that it asks for, in bytes.
    pub size: i64,
    /// The access modes that it asks for.
    pub modes: AccessModes,
    /// True if it asks for a block device, false for a file system.
    pub block: bool,
    /// The volumes that it accepts; `None`: all.
    pub selector: Option<Selector>,
    /// The node that its provisioner was told to make a volume for.
    pub selected: Option<Symbol>,
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
    /// Its storage class.
    pub class: Option<Symbol>,
    /// Its size, in bytes.
    pub capacity: i64,
    /// The access modes that it has.
    pub modes: AccessModes,
    /// True for a block device, false for a file system.
    pub block: bool,
    /// Its labels, for the selectors of claims.
    pub labels: Labels,
    /// The claim that it is kept for or bound to, with its uid; an empty uid means any claim of the name.
    pub claim: Option<(ClaimKey, Arc<str>)>,
    /// True if its phase is `Available`, or it has none yet.
    pub available: bool,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
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

/// A StorageClass: when its claims are bound, and where it has volumes made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StorageClassFact {
    /// True if its claims are bound when their first pod is placed (`WaitForFirstConsumer`); false: immediately.
    pub waits: bool,
    /// The CSI driver of its provisioner, under which unbound claims are counted; `None` if they are not.
    pub driver: Option<Symbol>,
    /// True if a provisioner makes volumes for its claims; false: only volumes that are there already count.
    pub provisions: bool,
    /// The nodes that its new volumes can be reached from: one of the terms must match; empty: all nodes.
    pub topologies: Box<[NodeSelectorTerm]>,
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
    /// By class, the volumes that no claim has.
    free: FxHashMap<Option<Symbol>, BTreeSet<Symbol>>,
    /// By claim, the volumes that name it.
    kept: FxHashMap<ClaimKey, BTreeSet<Symbol>>,
    /// The volumes of claims whose pod has a node and whose binding was not seen yet.
    assumed: FxHashMap<ClaimKey, Symbol>,
    /// The same by volume.
    holders: FxHashMap<Symbol, ClaimKey>,
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
    pub fn class(&self, name: Symbol) -> Option<&StorageClassFact> {
        self.classes.get(&name)
    }

    /// All volumes, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = (Symbol, &VolumeFact)> {
        self.volumes.iter().map(|(name, fact)| (*name, &**fact))
    }

    /// The names of all storage classes, in no particular order.
    pub fn classes(&self) -> impl Iterator<Item = Symbol> {
        self.classes.keys().copied()
    }

    /// The names of the claims of a namespace, in no particular order.
    pub fn claims_of(&self, namespace: Symbol) -> impl Iterator<Item = Symbol> {
        let keys = self.claims.keys();
        keys.filter(move |key| key.0 == namespace).map(|key| key.1)
    }

    /// The claim that a volume was assumed for when the claim's pod got its node; `None` for none, and after the volume
    /// controller has bound them.
    pub fn holder(&self, volume: Symbol) -> Option<ClaimKey> {
        self.holders.get(&volume).copied()
    }

    /// The volume that was assumed for a claim when its pod got its node.
    pub fn assumed(&self, key: ClaimKey) -> Option<Symbol> {
        self.assumed.get(&key).copied()
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
    pub fn set_claim(&mut self, key: ClaimKey, fact: Option<ClaimFact>) -> bool {
        if fact.as_ref().is_none_or(|fact| fact.volume.is_some()) {
            self.release(key);
        }
        let changed = set(&mut self.claims, key, fact);
        self.note(changed)
    }

    /// Returns whether anything changed.
    pub fn set_volume(&mut self, name: Symbol, fact: Option<VolumeFact>) -> bool {
        if let Some(old) = self.volumes.get(&name).cloned() {
            self.index(name, &old, false);
        }
        match &fact {
            Some(new) => self.index(name, new, true),
            None => self
                .holder(name)
                .into_iter()
                .for_each(|key| self.release(key)),
        }
        let changed = set(&mut self.volumes, name, fact.map(Arc::new));
        self.note(changed)
    }

    /// Returns whether anything changed.
    pub fn set_class(&mut self, name: Symbol, fact: Option<StorageClassFact>) -> bool {
        let changed = set(&mut self.classes, name, fact);
        self.note(changed)
    }

    pub(crate) fn set_limits(&mut self, node: Symbol, limits: Option<AttachLimits>) -> bool {
        let changed = set(&mut self.limits, node, limits);
        self.note(changed)
    }

    /// Records which claims a volume is there for, or forgets it.
    fn index(&mut self, name: Symbol, fact: &VolumeFact, comes: bool) {
        match &fact.claim {
            Some((key, _)) => list(&mut self.kept, *key, name, comes),
            None => list(&mut self.free, fact.class, name, comes && fact.available),
        }
    }

    /// Assumes the volumes of a pod's claims, since the pod has a node with this name and these labels: until they are
    /// bound, no other claim gets them. Source: upstream `AssumePodVolumes`; spec/scheduler §3.12.
    pub(crate) fn assume(
        &mut self,
        claims: &[ClaimKey],
        node: (Symbol, &Labels),
        names: &Interner,
    ) {
        let matching = self.matching(claims.iter().copied(), names);
        for (key, volume) in matching.on(node.0, node.1, names).into_iter().flatten() {
            if let Some(volume) = volume.filter(|_| self.assumed(key).is_none()) {
                self.assumed.insert(key, volume);
                self.holders.insert(volume, key);
            }
        }
    }

    /// Forgets the volume that was assumed for a claim.
    pub(crate) fn release(&mut self, key: ClaimKey) {
        if let Some(volume) = self.assumed.remove(&key) {
            self.holders.remove(&volume);
        }
    }

    /// Sets the volume that is assumed for a claim.
    pub(crate) fn set_assumed(&mut self, key: ClaimKey, volume: Option<Symbol>) {
        self.release(key);
        if let Some(volume) = volume {
            self.assumed.insert(key, volume);
            self.holders.insert(volume, key);
        }
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

/// Adds a volume to a list of volumes, or removes it.
fn list<K: std::hash::Hash + Eq>(
    lists: &mut FxHashMap<K, BTreeSet<Symbol>>,
    key: K,
    name: Symbol,
    comes: bool,
) {
    if comes {
        lists.entry(key).or_default().insert(name);
    } else if let Some(list) = lists.get_mut(&key) {
        list.remove(&name);
        if list.is_empty() {
            lists.remove(&key);
        }
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
            // Names of volumes and claims, which are marked above.
            free: _,
            kept: _,
            assumed: _,
            holders: _,
            version: _,
        } = self;
        for (key, fact) in claims {
            key.mark(marks);
            (fact.volume, fact.class).mark(marks);
            fact.selected.mark(marks);
            fact.selector.mark(marks);
        }
        for (name, fact) in volumes {
            let VolumeFact {
                terms,
                zones,
                attached,
                class,
                labels,
                claim,
                capacity: _,
                modes: _,
                block: _,
                available: _,
                terminating: _,
            } = &**fact;
            name.mark(marks);
            class.mark(marks);
            labels.mark(marks);
            claim.as_ref().map(|(key, _)| *key).mark(marks);
            terms.mark(marks);
            zones.mark(marks);
            attached.mark(marks);
        }
        for (name, class) in classes {
            let StorageClassFact {
                driver,
                topologies,
                waits: _,
                provisions: _,
            } = class;
            name.mark(marks);
            driver.mark(marks);
            topologies.mark(marks);
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
            class,
            ..ClaimFact::default()
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
            ..StorageClassFact::default()
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
