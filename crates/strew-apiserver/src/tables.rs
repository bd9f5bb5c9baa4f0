//! Stored objects, or those that a component has seen: a table per kind, with indexes over pods.
//!
//! The store has one; each component that watches the store has its own, which lags behind.

mod audit;
mod sorted;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::object::kinds::Typed;
use crate::object::{Key, Name, Object, Plain, Pod, Stored};
use sorted::Sorted;

/// The objects of a kind, by namespace and name.
#[derive(Debug, Clone)]
pub struct Table<T>(Sorted<Name, Arc<T>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Sorted::default())
    }
}

impl<T: Stored> Table<T> {
    /// The object of this name.
    pub fn get(&self, name: &Name) -> Option<&Arc<T>> {
        self.0.get(name)
    }

    /// All objects, by namespace and name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<T>> {
        self.0.iter()
    }

    /// The objects of a namespace, by name.
    pub fn in_namespace<'a>(&'a self, namespace: &Arc<str>) -> impl Iterator<Item = &'a Arc<T>> {
        let first = Name::new(Arc::clone(namespace), "");
        let namespace = Arc::clone(namespace);
        let later = self.0.range(first..);
        later.take_while(move |object| object.meta().name.namespace == namespace)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn set(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        self.0.insert(object)
    }

    pub(crate) fn remove(&mut self, name: &Name) -> Option<Arc<T>> {
        self.0.remove(name)
    }
}

/// The pods of one controller, with their numbers by state.
#[derive(Debug, Clone, Default)]
pub struct OwnedPods {
    pods: Sorted<Arc<str>, Arc<Pod>>,
    /// Pods that have not finished and are not being deleted.
    pub n_active: usize,
    /// Active and ready.
    pub n_ready: usize,
    /// Pods that are being deleted and have not finished.
    pub n_terminating: usize,
}

impl OwnedPods {
    /// The pods, by name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Pod>> {
        self.pods.iter()
    }

    /// The number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The pod with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Pod>> {
        self.pods.get(name)
    }

    fn counters(&mut self, pod: &Pod) -> [(bool, &mut usize); 3] {
        let is_active = pod.is_active();
        [
            (is_active, &mut self.n_active),
            (is_active && pod.is_ready(), &mut self.n_ready),
            (pod.is_terminating(), &mut self.n_terminating),
        ]
    }

    fn add(&mut self, pod: &Arc<Pod>) {
        for (counts, counter) in self.counters(pod) {
            *counter += usize::from(counts);
        }
        self.pods.insert(Arc::clone(pod));
    }

    fn remove(&mut self, pod: &Pod) {
        for (counts, counter) in self.counters(pod) {
            *counter -= usize::from(counts);
        }
        self.pods.remove(&pod.meta.name.name);
    }

    fn replace(&mut self, old: &Pod, new: &Arc<Pod>) {
        for (counts, counter) in self.counters(old) {
            *counter -= usize::from(counts);
        }
        for (counts, counter) in self.counters(new) {
            *counter += usize::from(counts);
        }
        if let Some(pod) = self.pods.get_mut(&new.meta.name.name) {
            *pod = Arc::clone(new);
        }
    }
}

/// Objects of all kinds.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub(crate) typed: Typed,
    plain: BTreeMap<Key, Arc<Plain>>,
    by_owner: FxHashMap<Arc<str>, OwnedPods>,
    by_node: FxHashMap<Arc<str>, BTreeMap<Name, Arc<Pod>>>,
    /// Pods without a controller.
    orphans: BTreeMap<Name, Arc<Pod>>,
    /// The dependents of an owner by the owner's uid, except pods that it controls.
    dependents: FxHashMap<Arc<str>, BTreeSet<Key>>,
}

impl Tables {
    /// The table of a kind.
    pub fn of<T: Stored>(&self) -> &Table<T> {
        T::table(self)
    }

    /// The object of a kind and name.
    pub fn get<T: Stored>(&self, name: &Name) -> Option<&Arc<T>> {
        T::table(self).get(name)
    }

    /// An object of any kind.
    pub fn find(&self, key: &Key) -> Option<Object> {
        Object::find(key, self)
    }

    /// Every object, kind by kind, in the order of names.
    pub fn all(&self) -> Vec<Object> {
        Object::all(self)
    }

    /// Every object of a kind, in the order of names.
    pub fn all_of(&self, kind: &crate::object::Kind) -> Vec<Object> {
        Object::all_of(kind, self)
    }

    /// Stores an object; returns the previous one.
    pub fn set(&mut self, object: Object) -> Option<Object> {
        let new = object.clone();
        let old = object.put(self);
        if let (Some(Object::Pod(old)), Object::Pod(new)) = (&old, &new)
            && old.meta.owners == new.meta.owners
        {
            self.replace_pod(old, new);
            return Some(Object::Pod(Arc::clone(old)));
        }
        if let Some(old) = &old {
            self.forget(old);
        }
        self.index(&new);
        old
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &Key) -> Option<Object> {
        let old = Object::take(key, self)?;
        self.forget(&old);
        Some(old)
    }

    /// The pods that an object with this uid controls.
    pub fn pods_of(&self, uid: &str) -> Option<&OwnedPods> {
        self.by_owner.get(uid)
    }

    /// The pods on a node, finished ones included, by name.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_node
            .get(node)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// Pods of a namespace without a controller.
    pub fn orphans<'a>(&'a self, namespace: &'a Arc<str>) -> impl Iterator<Item = &'a Arc<Pod>> {
        let first = Name::new(Arc::clone(namespace), "");
        let range = self
            .orphans
            .range((Bound::Included(first), Bound::Unbounded));
        range
            .map(|(_, pod)| pod)
            .take_while(move |pod| pod.meta.name.namespace == *namespace)
    }

    /// The dependents of an object with this uid, by kind and name; the pods that it controls come last.
    pub fn dependents(&self, uid: &str) -> Vec<Object> {
        self.iter_dependents(uid).collect()
    }

    /// As [`dependents`](Self::dependents), lazily, for callers that stop early.
    pub fn iter_dependents<'a>(&'a self, uid: &str) -> impl Iterator<Item = Object> + use<'a> {
        let keys = self.dependents.get(uid).into_iter().flatten();
        let pods = self.pods_of(uid).into_iter().flat_map(OwnedPods::iter);
        keys.filter_map(|key| self.find(key))
            .chain(pods.cloned().map(Object::Pod))
    }

    /// An object that is stored as it was given.
    pub fn plain(&self, key: &Key) -> Option<&Arc<Plain>> {
        self.plain.get(key)
    }

    /// All objects that are stored as they were given, by kind and name.
    pub fn all_plain(&self) -> impl Iterator<Item = &Arc<Plain>> {
        self.plain.values()
    }

    pub(crate) fn set_plain(&mut self, object: Arc<Plain>) -> Option<Arc<Plain>> {
        let key = Key {
            kind: object.kind.clone(),
            name: object.meta.name.clone(),
        };
        self.plain.insert(key, object)
    }

    pub(crate) fn remove_plain(&mut self, key: &Key) -> Option<Arc<Plain>> {
        self.plain.remove(key)
    }

    fn index(&mut self, object: &Object) {
        let controls = match object {
            Object::Pod(pod) => {
                self.index_pod(pod);
                true
            }
            _ => false,
        };
        for owner in object.meta().owners.iter() {
            if !(controls && owner.is_controller) {
                let of_owner = self.dependents.entry(Arc::clone(&owner.uid)).or_default();
                of_owner.insert(object.key());
            }
        }
    }

    /// Takes in a new version of a pod with the same owners.
    fn replace_pod(&mut self, old: &Pod, new: &Arc<Pod>) {
        let name = &new.meta.name;
        let unowned = match new.meta.controller() {
            Some(owner) => {
                if let Some(owned) = self.by_owner.get_mut(&owner.uid) {
                    owned.replace(old, new);
                }
                None
            }
            None => self.orphans.get_mut(name),
        };
        if let Some(known) = unowned {
            *known = Arc::clone(new);
        }
        if old.node != new.node {
            self.forget_node(old);
        }
        self.index_node(new);
    }

    fn index_pod(&mut self, pod: &Arc<Pod>) {
        match pod.meta.controller() {
            Some(owner) => {
                let uid = Arc::clone(&owner.uid);
                self.by_owner.entry(uid).or_default().add(pod);
            }
            None => {
                self.orphans.insert(pod.meta.name.clone(), Arc::clone(pod));
            }
        }
        self.index_node(pod);
    }

    fn index_node(&mut self, pod: &Arc<Pod>) {
        if let Some(node) = &pod.node {
            let on_node = self.by_node.entry(Arc::clone(node)).or_default();
            on_node.insert(pod.meta.name.clone(), Arc::clone(pod));
        }
    }

    fn forget(&mut self, object: &Object) {
        let controls = match object {
            Object::Pod(pod) => {
                self.forget_pod(pod);
                true
            }
            _ => false,
        };
        for owner in object.meta().owners.iter() {
            if controls && owner.is_controller {
                continue;
            }
            if let Some(of_owner) = self.dependents.get_mut(&owner.uid) {
                of_owner.remove(&object.key());
                if of_owner.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    fn forget_pod(&mut self, pod: &Pod) {
        match pod.meta.controller() {
            Some(owner) => {
                if let Some(owned) = self.by_owner.get_mut(&owner.uid) {
                    owned.remove(pod);
                    if owned.is_empty() {
                        self.by_owner.remove(&owner.uid);
                    }
                }
            }
            None => {
                self.orphans.remove(&pod.meta.name);
            }
        }
        self.forget_node(pod);
    }

    fn forget_node(&mut self, pod: &Pod) {
        let Some(node) = &pod.node else {
            return;
        };
        if let Some(on_node) = self.by_node.get_mut(node) {
            on_node.remove(&pod.meta.name);
            if on_node.is_empty() {
                self.by_node.remove(node);
            }
        }
    }
}
