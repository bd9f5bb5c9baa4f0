//! Values in the order of their names, each found by the hash of its name.
//!
//! Names of one workload begin alike, so a search in their order compares long texts, each elsewhere in memory. Only a
//! name that comes or goes is looked for there.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::fmt::{self, Debug, Formatter};
use std::hash::{BuildHasher, Hash};
use std::ops::RangeBounds;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

use crate::object::{Name, Pod, Stored};

/// A value of a [`Sorted`] with names of this type.
pub(super) trait Named<K> {
    /// Its name, which never changes.
    fn name(&self) -> &K;
}

impl<T: Stored> Named<Name> for Arc<T> {
    fn name(&self) -> &Name {
        &self.meta().name
    }
}

/// Among the pods of one namespace.
impl Named<Arc<str>> for Arc<Pod> {
    fn name(&self) -> &Arc<str> {
        &self.meta.name.name
    }
}

/// Values by name.
#[derive(Clone)]
pub(super) struct Sorted<K, V> {
    /// The values; a place is empty until another one takes it.
    values: Vec<Option<V>>,
    free: Vec<u32>,
    /// The places, by the hashes of names.
    by_hash: HashTable<u32>,
    /// The places, by names.
    by_name: BTreeMap<K, u32>,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
            by_hash: HashTable::new(),
            by_name: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Hash + Clone, V: Named<K>> Sorted<K, V> {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn get<Q>(&self, name: &Q) -> Option<&V>
    where
        Q: Hash + Eq + ?Sized,
        K: std::borrow::Borrow<Q>,
    {
        let is_it = |place: &u32| name_at(&self.values, *place).is_some_and(|n| n.borrow() == name);
        let place = self.by_hash.find(hash_of(name), is_it)?;
        self.values[*place as usize].as_ref()
    }

    pub(super) fn get_mut(&mut self, name: &K) -> Option<&mut V> {
        let is_it = |place: &u32| name_at(&self.values, *place) == Some(name);
        let place = self.by_hash.find(hash_of(name), is_it)?;
        self.values[*place as usize].as_mut()
    }

    /// Puts a value in the place of the one with its name, which is returned.
    pub(super) fn insert(&mut self, value: V) -> Option<V> {
        let Self {
            values,
            free,
            by_hash,
            by_name,
        } = self;
        let name = value.name();
        let is_it = |place: &u32| name_at(values, *place) == Some(name);
        let hash_at = |place: &u32| name_at(values, *place).map_or(0, hash_of);
        match by_hash.entry(hash_of(name), is_it, hash_at) {
            Entry::Occupied(known) => values[*known.get() as usize].replace(value),
            Entry::Vacant(vacant) => {
                let place = free.pop();
                let place =
                    place.unwrap_or_else(|| u32::try_from(values.len()).unwrap_or(u32::MAX));
                vacant.insert(place);
                by_name.insert(name.clone(), place);
                match values.get_mut(place as usize) {
                    Some(empty) => *empty = Some(value),
                    None => values.push(Some(value)),
                }
                None
            }
        }
    }

    pub(super) fn remove(&mut self, name: &K) -> Option<V> {
        let is_it = |place: &u32| name_at(&self.values, *place) == Some(name);
        let (place, _) = self.by_hash.find_entry(hash_of(name), is_it).ok()?.remove();
        self.by_name.remove(name);
        self.free.push(place);
        self.values[place as usize].take()
    }

    /// The values, by name.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &V> {
        let places = self.by_name.values();
        places.filter_map(|place| self.values[*place as usize].as_ref())
    }

    /// The values with names in this range, by name.
    pub(super) fn range(&self, names: impl RangeBounds<K>) -> impl Iterator<Item = &V> {
        let places: Range<'_, K, u32> = self.by_name.range(names);
        places.filter_map(|(_, place)| self.values[*place as usize].as_ref())
    }
}

fn name_at<K, V: Named<K>>(values: &[Option<V>], place: u32) -> Option<&K> {
    values.get(place as usize)?.as_ref().map(Named::name)
}

fn hash_of<Q: Hash + ?Sized>(name: &Q) -> u64 {
    FxBuildHasher.hash_one(name)
}

impl<K: Ord + Hash + Clone, V: Named<K> + PartialEq> PartialEq for Sorted<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K, V: Debug> Debug for Sorted<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let places = self.by_name.values();
        let values = places.filter_map(|place| self.values[*place as usize].as_ref());
        f.debug_list().entries(values).finish()
    }
}

#[cfg(test)]
mod tests {
    use strew_model::Prng;

    use super::*;
    use crate::object::{Meta, PodStatus};

    fn pod(name: u64, version: u64) -> Arc<Pod> {
        let mut meta = Meta::new(Name::new("shop", format!("web-{name}")));
        meta.version = version;
        Arc::new(Pod {
            meta,
            spec: Arc::default(),
            node: None,
            status: PodStatus::default(),
        })
    }

    #[test]
    fn what_is_kept_is_found_and_comes_in_order_as_in_an_ordered_map() {
        let mut dice = Prng::new(1);
        let mut sorted: Sorted<Name, Arc<Pod>> = Sorted::default();
        let mut plain: BTreeMap<Name, Arc<Pod>> = BTreeMap::new();
        for version in 0..5_000 {
            let pod = pod(dice.between(0, 19), version);
            let name = pod.meta.name.clone();
            let (found, expected) = match dice.chance(1, 2) {
                true => (
                    sorted.insert(Arc::clone(&pod)),
                    plain.insert(name.clone(), pod),
                ),
                false => (sorted.remove(&name), plain.remove(&name)),
            };
            assert_eq!(found, expected);
            assert_eq!(sorted.get(&name), plain.get(&name));
            assert_eq!(sorted.get_mut(&name), plain.get_mut(&name));
            assert!(sorted.iter().eq(plain.values()));
            let after = plain.range(name.clone()..).map(|(_, pod)| pod);
            assert!(sorted.range(name..).eq(after));
            assert_eq!(sorted.len(), plain.len());
            assert_eq!(sorted.is_empty(), plain.is_empty());
        }
        assert!(sorted.values.len() <= 20, "places are taken again");
    }
}
