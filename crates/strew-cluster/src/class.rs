//! Pod classes: pods that no decision can tell apart.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};
use strew_model::{HashConsed, Holds, Interner, Labels, Marks, Symbol, Toleration, id_type};

use crate::census::CensusId;
use crate::fact::{NodeFact, PodFact};
use crate::index::{NodeIdx, PodIdx};
use crate::owners::OwnerRef;
use crate::pod_spec::{NodeAffinity, PodAffinity, PodSpec};

id_type! {
    /// A distinct label set of pods.
    pub struct LabelsId;
}
id_type! {
    /// A distinct [`PodSpec`].
    pub struct SpecId;
}
id_type! {
    /// A distinct required node affinity.
    pub struct NodeAffinityId;
}
id_type! {
    /// A distinct list of tolerations.
    pub struct TolerationsId;
}
id_type! {
    /// A distinct affinity to other pods.
    pub struct AffinityId;
}
id_type! {
    /// A pod class.
    pub struct ClassId;
}

/// The key of a class: everything that decisions can tell apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassKey {
    /// Their namespace.
    pub namespace: Symbol,
    /// Their labels.
    pub labels: LabelsId,
    /// Their spec.
    pub spec: SpecId,
    /// Their controller.
    pub owner: Option<OwnerRef>,
    /// True if they terminate. Topology spread does not count such pods, affinity does (spec/scheduler §0), so they are
    /// a class of their own.
    pub terminating: bool,
}

/// Pods that no decision can tell apart, with their nodes.
#[derive(Debug, Clone)]
pub struct PodClass {
    /// Their common properties.
    pub key: ClassKey,
    /// Bound (or assumed) pods with their nodes, in no particular order.
    pub members: Vec<(PodIdx, NodeIdx)>,
    /// The censuses that count these pods, with the count per pod. Complete while the class has pods.
    pub counted_in: Vec<(CensusId, i32)>,
    id: ClassId,
    serial: u64,
    /// The number of pods, bound or not. Without pods, the next sweep frees the class.
    pods: u32,
    /// While there are no pods: the version of the censuses for which `counted_in` is complete.
    pub(crate) counted_at: Option<u64>,
    /// While there are pods: its index among the populated classes.
    place: usize,
}

impl PodClass {
    /// Classes that appeared later have larger numbers.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The number of its pods, bound or not.
    pub fn n_pods(&self) -> usize {
        self.pods as usize
    }

    /// True if the class has pods, bound or not.
    pub fn has_pods(&self) -> bool {
        self.pods > 0
    }
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

/// Every distinct label set, spec and class. A [sweep](crate::Cluster::begin_sweep) frees those without pods.
#[derive(Debug, Clone, Default)]
pub struct ClassTables {
    labels: HashConsed<LabelsId, Labels>,
    specs: HashConsed<SpecId, PodSpec>,
    /// By row of the specs.
    spec_parts: Vec<SpecParts>,
    node_affinities: HashConsed<NodeAffinityId, NodeAffinity>,
    tolerations: HashConsed<TolerationsId, Box<[Toleration]>>,
    affinities: HashConsed<AffinityId, PodAffinity>,
    keys: HashConsed<ClassId, ClassKey>,
    /// By row of the keys.
    classes: Vec<Option<PodClass>>,
    /// Classes with pods, in no particular order; a census visits only these.
    populated: Vec<ClassId>,
    anti_keys: IndexSet<Symbol, FxBuildHasher>,
    preference_keys: IndexSet<Symbol, FxBuildHasher>,
    affinity_version: u64,
    /// The number of classes so far.
    met: u64,
    /// The number of classes, terms and constraints that are new since the last sweep.
    new: usize,
}

impl ClassTables {
    /// The class of a pod, made if it is new.
    pub(crate) fn class_of(&mut self, pod: &PodFact) -> ClassId {
        let key = ClassKey {
            namespace: pod.namespace,
            labels: self.intern_labels(&pod.labels),
            spec: self.intern_spec(&pod.spec),
            owner: pod.owner,
            terminating: pod.terminating,
        };
        self.intern_key(key)
    }

    pub(crate) fn intern_key(&mut self, key: ClassKey) -> ClassId {
        if let Some(id) = self.keys.find(&key) {
            return id;
        }
        let (id, _) = self.keys.insert(key.clone());
        self.new += self.weight(key.spec);
        self.met += 1;
        if self.note_affinity(key.spec) {
            self.affinity_version += 1;
        }
        if self.classes.len() <= id.index() {
            self.classes.resize_with(id.index() + 1, || None);
        }
        self.classes[id.index()] = Some(PodClass {
            key,
            members: Vec::new(),
            counted_in: Vec::new(),
            id,
            serial: self.met,
            pods: 0,
            counted_at: None,
            place: 0,
        });
        id
    }

    /// The weight of a spec's class for the next sweep: 1, and the number of terms, of which a hostile pod may have
    /// many.
    fn weight(&self, spec: SpecId) -> usize {
        let spec = self.spec(spec);
        let affinity = &spec.affinity;
        let terms = affinity.required.len() + affinity.required_anti.len();
        1 + terms + affinity.preferred.len() + spec.spread.len()
    }

    /// Records the topology keys of a spec's terms; returns true if one is new.
    fn note_affinity(&mut self, spec: SpecId) -> bool {
        let affinity = self.affinities.get(self.parts(spec).affinity);
        let before = (self.anti_keys.len(), self.preference_keys.len());
        self.anti_keys
            .extend(affinity.required_anti.iter().map(|t| t.key));
        let preferred = affinity.preferred.iter().map(|(_, t)| t.key);
        self.preference_keys
            .extend(affinity.required.iter().map(|t| t.key).chain(preferred));
        before != (self.anti_keys.len(), self.preference_keys.len())
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
        let (id, _) = self.specs.insert(spec.clone());
        if self.spec_parts.len() <= id.index() {
            self.spec_parts.resize(id.index() + 1, parts);
        }
        self.spec_parts[id.index()] = parts;
        id
    }

    /// A class.
    ///
    /// # Panics
    /// It was freed.
    #[inline]
    pub fn class(&self, id: ClassId) -> &PodClass {
        self.find_class(id)
            .expect("a class is used only while a pod is of it")
    }

    /// A class; `None` if it was freed.
    #[inline]
    pub fn find_class(&self, id: ClassId) -> Option<&PodClass> {
        let class = self.classes.get(id.index())?.as_ref();
        class.filter(|class| class.id == id)
    }

    pub(crate) fn class_mut(&mut self, id: ClassId) -> &mut PodClass {
        let class = self.classes.get_mut(id.index()).and_then(Option::as_mut);
        class
            .filter(|class| class.id == id)
            .expect("a class is used only while a pod is of it")
    }

    /// All classes, by row.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &PodClass)> {
        self.classes.iter().flatten().map(|c| (c.id, c))
    }

    /// The number of classes, including those that the next sweep frees.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The classes with pods, bound or not, in no particular order.
    pub fn populated(&self) -> impl ExactSizeIterator<Item = (ClassId, &PodClass)> {
        self.populated.iter().map(|&id| (id, self.class(id)))
    }

    /// Topology keys of required anti-affinity terms of any class.
    pub fn anti_keys(&self) -> &IndexSet<Symbol, FxBuildHasher> {
        &self.anti_keys
    }

    /// Topology keys of all other affinity terms of any class.
    pub fn preference_keys(&self) -> &IndexSet<Symbol, FxBuildHasher> {
        &self.preference_keys
    }

    /// Increases whenever the topology keys of affinity terms change.
    pub fn affinity_version(&self) -> u64 {
        self.affinity_version
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

    /// True if a node meets a required node affinity. Source: spec/scheduler §0.
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

// === members of a class ===

impl ClassTables {
    /// Adds a pod to this class.
    pub(crate) fn join(&mut self, id: ClassId) {
        let place = self.populated.len();
        let class = self.class_mut(id);
        class.pods += 1;
        if class.pods == 1 {
            class.place = place;
            self.populated.push(id);
        }
    }

    /// Removes a pod from this class; `censuses` is their present version.
    pub(crate) fn leave(&mut self, id: ClassId, censuses: u64) {
        let class = self.class_mut(id);
        class.pods -= 1;
        if class.pods > 0 {
            return;
        }
        class.counted_at = Some(censuses);
        let place = class.place;
        self.populated.swap_remove(place);
        if let Some(&moved) = self.populated.get(place) {
            self.class_mut(moved).place = place;
        }
    }

    /// Changes the censuses in which classes with pods are counted.
    pub(crate) fn recount(&mut self, mut change: impl FnMut(&mut Vec<(CensusId, i32)>)) {
        for id in &self.populated {
            if let Some(class) = &mut self.classes[id.index()] {
                change(&mut class.counted_in);
            }
        }
    }

    /// Compares pods and members by class with a recount: the number of pods, and the number on nodes.
    pub(crate) fn audit(&self, counts: impl Fn(ClassId) -> (usize, usize)) -> Result<(), String> {
        for (id, class) in self.classes() {
            let kept = (class.pods as usize, class.members.len());
            if kept != counts(id) {
                return Err(format!("{id:?}: kept {kept:?}, recounted {:?}", counts(id)));
            }
            let listed = self.populated.get(class.place) == Some(&id);
            if class.has_pods() && !listed {
                return Err(format!("{id:?} has pods and is not among the populated"));
            }
        }
        let populated = self.classes().filter(|(_, c)| c.has_pods());
        match populated.count() == self.populated.len() {
            true => Ok(()),
            false => Err("populated classes without pods".to_owned()),
        }
    }
}

// === what is gone ===

impl ClassTables {
    /// The number of classes, terms and constraints that are new since the last sweep.
    pub(crate) fn new_since_sweep(&self) -> usize {
        self.new
    }

    /// The number of classes, terms and constraints.
    pub(crate) fn weight_in_all(&self) -> usize {
        self.keys.iter().map(|(_, key)| self.weight(key.spec)).sum()
    }

    /// Frees the classes without pods that are not among `kept`, and what only they used.
    pub(crate) fn sweep(&mut self, kept: &FxHashSet<ClassId>) {
        self.new = 0;
        let Self { keys, classes, .. } = self;
        keys.retain(|id| {
            let class = &mut classes[id.index()];
            let stays = class.as_ref().is_some_and(|c| c.pods > 0) || kept.contains(&id);
            if !stays {
                *class = None;
            }
            stays
        });
        let (mut labels, mut specs) = (FxHashSet::default(), FxHashSet::default());
        for (_, key) in self.keys.iter() {
            labels.insert(key.labels);
            specs.insert(key.spec);
        }
        self.labels.retain(|id| labels.contains(&id));
        self.specs.retain(|id| specs.contains(&id));
        let (mut node_affinities, mut tolerations, mut affinities) = (
            FxHashSet::default(),
            FxHashSet::default(),
            FxHashSet::default(),
        );
        for (id, _) in self.specs.iter() {
            let parts = self.spec_parts[id.index()];
            node_affinities.insert(parts.node_affinity);
            tolerations.insert(parts.tolerations);
            affinities.insert(parts.affinity);
        }
        self.node_affinities
            .retain(|id| node_affinities.contains(&id));
        self.tolerations.retain(|id| tolerations.contains(&id));
        self.affinities.retain(|id| affinities.contains(&id));
        self.sweep_keys();
    }

    /// Drops topology keys that no term has any more.
    fn sweep_keys(&mut self) {
        let anti = std::mem::take(&mut self.anti_keys);
        let preference = std::mem::take(&mut self.preference_keys);
        let specs: Vec<SpecId> = self.specs.iter().map(|(id, _)| id).collect();
        for id in specs {
            self.note_affinity(id);
        }
        // Keys were only removed: with an equal number, none was.
        if (anti.len(), preference.len()) == (self.anti_keys.len(), self.preference_keys.len()) {
            (self.anti_keys, self.preference_keys) = (anti, preference);
        } else {
            self.affinity_version += 1;
        }
    }

    pub(crate) fn has_labels(&self, id: LabelsId) -> bool {
        self.labels.try_get(id).is_some()
    }

    pub(crate) fn has_affinity(&self, id: AffinityId) -> bool {
        self.affinities.try_get(id).is_some()
    }
}

impl Holds for ClassTables {
    fn mark(&self, marks: &mut Marks) {
        // Parts of specs are marked with the specs, and so are keys of terms.
        for (_, labels) in self.labels.iter() {
            labels.mark(marks);
        }
        for (_, spec) in self.specs.iter() {
            spec.mark(marks);
        }
        for (_, key) in self.keys.iter() {
            key.namespace.mark(marks);
            key.owner.map(|owner| owner.name).mark(marks);
        }
    }
}
