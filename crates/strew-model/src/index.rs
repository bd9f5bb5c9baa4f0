//! Dense ids and hash-consing: equal values get one id, and a question about a value is answered once an id.

use std::hash::Hash;
use std::marker::PhantomData;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Declares a newtype index into a dense table.
#[macro_export]
macro_rules! index_type {
    ($(#[$doc:meta])* $vis:vis struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub u32);

        impl $name {
            /// The place in the table.
            $vis fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// # Panics
            /// Beyond 2³² rows, which no table here can hold.
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 rows"))
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> usize {
                id.index()
            }
        }
    };
}

/// A table in which each distinct value stands once, in the order of arrival.
///
/// Values are never dropped: ids stay valid for the life of the table.
#[derive(Debug, Clone)]
pub struct HashConsed<Id, T> {
    values: IndexSet<T, FxBuildHasher>,
    id: PhantomData<Id>,
}

impl<Id: From<usize> + Into<usize> + Copy, T: Hash + Eq> HashConsed<Id, T> {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            values: IndexSet::default(),
            id: PhantomData,
        }
    }

    /// The id of `value`, and whether it is new.
    pub fn insert(&mut self, value: T) -> (Id, bool) {
        let (index, new) = self.values.insert_full(value);
        (Id::from(index), new)
    }

    /// The value of an id of this table.
    pub fn get(&self, id: Id) -> &T {
        &self.values[id.into()]
    }

    /// The id of an equal value, if there is one.
    pub fn find(&self, value: &T) -> Option<Id> {
        self.values.get_index_of(value).map(Id::from)
    }

    /// How many distinct values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no value yet.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All values with their ids, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.values
            .iter()
            .enumerate()
            .map(|(i, v)| (Id::from(i), v))
    }
}

impl<Id: From<usize> + Into<usize> + Copy, T: Hash + Eq> Default for HashConsed<Id, T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    index_type! {
        /// A row of this test.
        struct Row;
    }

    #[test]
    fn equal_values_share_an_id() {
        let mut table: HashConsed<Row, &str> = HashConsed::new();
        let (a, new) = table.insert("a");
        assert!(new);
        let (b, _) = table.insert("b");
        assert_eq!(table.insert("a"), (a, false));
        assert_eq!((a.index(), b.index(), table.len()), (0, 1, 2));
        assert_eq!(*table.get(b), "b");
        assert_eq!(table.find(&"c"), None);
    }
}
