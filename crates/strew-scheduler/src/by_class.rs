//! A cache of results per pod class.

use rustc_hash::FxHashMap;
use strew_cluster::ClassId;

/// The number of lines kept, because a refusal has one per node: some 32 MiB.
const LINES_MAX: usize = 1 << 22;

/// The number of classes that are kept in any case.
const CLASSES_MIN: usize = 64;

/// One value for each of the classes decided on last. Beyond the limit all values are dropped at once; a dropped value
/// is computed again.
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

    /// Sets the value of a class, which has this number of lines.
    pub(crate) fn put(&mut self, class: ClassId, value: V, lines: usize) {
        let classes_max = (LINES_MAX / lines.max(1)).max(CLASSES_MIN);
        if self.0.len() >= classes_max && !self.0.contains_key(&class) {
            self.0.clear();
        }
        self.0.insert(class, value);
    }

    /// Drops all values, since classes may be gone.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
