//! Pod classes: pods that no decision can tell apart.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use strew_model::{HashConsed, Interner, Labels, Symbol, Toleration, index_type};

use crate::census::CensusId;
use crate::cluster::{NodeIdx, PodIdx};
use crate::fact::{NodeFact, PodFact};
use crate::owners::OwnerRef;
use crate::pod_spec::{NodeAffinity, PodAffinity, PodSpec};

index_type! {
    /// A distinct label set of pods.
    pub struct LabelsId;
}
index_type! {
    /// A distinct [`PodSpec`].
    pub struct SpecId;
}
index_type! {
    /// A distinct required node affinity.
    pub struct NodeAffinityId;
}
index_type! {
    /// A distinct list of tolerations.
    pub struct TolerationsId;
}
index_type! {
    /// A distinct affinity to other pods.
    pub struct AffinityId;
}
index_type! {
    /// A pod class.
    pub struct ClassId;
}

/// What makes up a class.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassKey {
    /// Their namespace.
    pub namespace: Symbol,
    /// Their labels.
    pub labels: LabelsId,
    /// What they ask for.
    pub spec: SpecId,
    /// Their controller.
    pub owner: Option<OwnerRef>,
    /// Whether they are being deleted. Spread does not count such pods, affinity does (spec/scheduler §0): so they are
    /// a class of their own.
    pub terminating: bool,
}

/// Pods that no decision can tell apart, and where they are.
#[derive(Debug, Clone)]
pub struct PodClass {
    /// What they have in common.
    pub key: ClassKey,
    /// The bound (or assumed) ones with their nodes, in no particular order.
    pub members: Vec<(PodIdx, NodeIdx)>,
    /// The censuses that count these pods, each with what one pod counts there.
    pub counted_in: Vec<(CensusId, i32)>,
}

/// Ids of the parts of a spec that several specs share.
#[derive(Debug, Clone, Copy)]
pub struct SpecParts {
    /// Its required node affinity.
    pub node_affinity: NodeAffinityId,
    /// Its tolerations.
    pub tolerations: TolerationsId,
    /// Its affinity to other pods.
    pub affinity: AffinityId,
}

/// Every distinct label set, spec and class that was met. Ids stay valid.
#[derive(Debug, Clone, Default)]
pub struct ClassTables {
    labels: HashConsed<LabelsId, Labels>,
    specs: HashConsed<SpecId, PodSpec>,
    spec_parts: Vec<SpecParts>,
    node_affinities: HashConsed<NodeAffinityId, NodeAffinity>,
    tolerations: HashConsed<TolerationsId, Box<[Toleration]>>,
    affinities: HashConsed<AffinityId, PodAffinity>,
    keys: HashConsed<ClassId, ClassKey>,
    classes: Vec<PodClass>,
    /// Classes whose pods have some affinity to other pods: the only ones that others must look at.
    with_affinity: Vec<ClassId>,
    anti_keys: IndexSet<Symbol, FxBuildHasher>,
    preference_keys: IndexSet<Symbol, FxBuildHasher>,
}

impl ClassTables {
    /// The class of a pod, and whether it is new.
    pub(crate) fn class_of(&mut self, pod: &PodFact) -> (ClassId, bool) {
        let key = ClassKey {
            namespace: pod.namespace,
            labels: self.intern_labels(&pod.labels),
            spec: self.intern_spec(&pod.spec),
            owner: pod.owner,
            terminating: pod.terminating,
        };
        self.intern_key(key)
    }

    pub(crate) fn intern_key(&mut self, key: ClassKey) -> (ClassId, bool) {
        let (id, new) = self.keys.insert(key.clone());
        if new {
            self.note_affinity(id, key.spec);
            self.classes.push(PodClass {
                key,
                members: Vec::new(),
                counted_in: Vec::new(),
            });
        }
        (id, new)
    }

    fn note_affinity(&mut self, class: ClassId, spec: SpecId) {
        let affinity = self.affinities.get(self.parts(spec).affinity);
        if affinity.is_none() {
            return;
        }
        self.with_affinity.push(class);
        self.anti_keys
            .extend(affinity.required_anti.iter().map(|t| t.key));
        let preferred = affinity.preferred.iter().map(|(_, t)| t.key);
        self.preference_keys
            .extend(affinity.required.iter().map(|t| t.key).chain(preferred));
    }

    pub(crate) fn intern_labels(&mut self, labels: &Labels) -> LabelsId {
        match self.labels.find(labels) {
            Some(id) => id,
            None => self.labels.insert(labels.clone()).0,
        }
    }

    pub(crate) fn intern_spec(&mut self, spec: &PodSpec) -> SpecId {
        if let Some(id) = self.specs.find(spec) {
            return id;
        }
        let parts = SpecParts {
            node_affinity: self.node_affinities.insert(spec.node_affinity.clone()).0,
            tolerations: self.tolerations.insert(spec.tolerations.clone()).0,
            affinity: self.affinities.insert(spec.affinity.clone()).0,
        };
        self.spec_parts.push(parts);
        self.specs.insert(spec.clone()).0
    }

    /// A class.
    #[inline]
    pub fn class(&self, id: ClassId) -> &PodClass {
        &self.classes[id.index()]
    }

    pub(crate) fn class_mut(&mut self, id: ClassId) -> &mut PodClass {
        &mut self.classes[id.index()]
    }

    /// All classes, oldest first.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = (ClassId, &PodClass)> {
        self.classes
            .iter()
            .enumerate()
            .map(|(i, c)| (ClassId::from(i), c))
    }

    pub(crate) fn classes_mut(&mut self) -> &mut [PodClass] {
        &mut self.classes
    }

    /// Classes whose pods have some affinity to other pods.
    pub fn with_affinity(&self) -> &[ClassId] {
        &self.with_affinity
    }

    /// Topology keys of required anti-affinity terms of any class; it only grows.
    pub fn anti_keys(&self) -> &IndexSet<Symbol, FxBuildHasher> {
        &self.anti_keys
    }

    /// Topology keys of all other affinity terms of any class; it only grows.
    pub fn preference_keys(&self) -> &IndexSet<Symbol, FxBuildHasher> {
        &self.preference_keys
    }

    /// A label set.
    pub fn labels(&self, id: LabelsId) -> &Labels {
        self.labels.get(id)
    }

    /// A spec.
    pub fn spec(&self, id: SpecId) -> &PodSpec {
        self.specs.get(id)
    }

    /// The shared parts of a spec.
    pub fn parts(&self, id: SpecId) -> SpecParts {
        self.spec_parts[id.index()]
    }

    /// A list of tolerations.
    pub fn tolerations(&self, id: TolerationsId) -> &[Toleration] {
        self.tolerations.get(id)
    }

    /// A required node affinity.
    pub fn node_affinity(&self, id: NodeAffinityId) -> &NodeAffinity {
        self.node_affinities.get(id)
    }

    /// An affinity to other pods.
    pub fn affinity(&self, id: AffinityId) -> &PodAffinity {
        self.affinities.get(id)
    }

    /// The affinity to other pods of a spec.
    pub fn affinity_of(&self, spec: SpecId) -> &PodAffinity {
        self.affinity(self.parts(spec).affinity)
    }

    /// Whether a node meets a required node affinity. Source: spec/scheduler §0.
    pub fn node_affinity_matches(
        &self,
        id: NodeAffinityId,
        node: &NodeFact,
        names: &Interner,
    ) -> bool {
        self.node_affinity(id)
            .matches(node.name, &node.labels, names)
    }
}
