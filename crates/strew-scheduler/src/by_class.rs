//! A cache of results per pod class.

use rustc_hash::FxHashMap;
use strew_cluster::ClassId;

/// The number of classes kept, because a refusal has a line per node.
const CLASSES_MAX: usize = 64;

/// One value for each of the classes decided on last. Beyond the limit all values are dropped at once; a dropped value
/// is computed again.
/// is found out again costs what it did without.
#[derive(Debug)]
pub(crate) struct ByClass<V>(FxHashMap<ClassId, V>);

impl<V> Default for ByClass<V> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<V> ByClass<V> {
    /// The value of a class.
    pub(crate) fn get(&self, class: ClassId) -> Option<&V> {
        self.0.get(&class)
    }

    /// Sets the value of a class.
    pub(crate) fn put(&mut self, class: ClassId, value: V) {
        if self.0.len() >= CLASSES_MAX && !self.0.contains_key(&class) {
            self.0.clear();
        }
        self.0.insert(class, value);
    }

    /// Drops all values, since classes may be gone.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
