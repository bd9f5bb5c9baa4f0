//! Dense ids and hash-consing: equal values get one id, and a question about a value is answered once per id.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// Declares a newtype index into a dense table.
#[macro_export]
macro_rules! index_type {
    ($(#[$doc:meta])* $vis:vis struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub u32);

        impl $name {
            /// The index in the table.
            $vis fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// # Panics
            /// `index` is 2³² or more, which no table here reaches.
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

/// Declares the id of a value in a [`HashConsed`] table.
#[macro_export]
macro_rules! id_type {
    ($(#[$doc:meta])* $vis:vis struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name($crate::index::RawId);

        impl $name {
            /// The row in the table. Another id may have had this row before.
            #[inline]
            $vis fn index(self) -> usize {
                self.0.row()
            }
        }

        impl From<$crate::index::RawId> for $name {
            fn from(id: $crate::index::RawId) -> Self {
                Self(id)
            }
        }

        impl From<$name> for $crate::index::RawId {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

/// The number of bits of an id for the row: 67 million rows at a time.
const ROW_BITS: u32 = 26;

const ROW_MASK: u32 = (1 << ROW_BITS) - 1;

/// A row, and the number modulo 64 of the value among all that had this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RawId(u32);

impl RawId {
    /// The id of the first value of a row.
    ///
    /// # Panics
    /// `row` is 2²⁶ or more.
    pub const fn first(row: u32) -> Self {
        assert!(row <= ROW_MASK, "fewer than 2^26 values at a time");
        Self(row)
    }

    /// The row.
    #[inline]
    pub const fn row(self) -> usize {
        (self.0 & ROW_MASK) as usize
    }

    /// The id of the next value of the row.
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(1 << ROW_BITS))
    }
}

/// A table with each distinct value once.
///
/// A [removed](Self::remove) value leaves its row to a later value with another id: the old id finds nothing, and
/// equals no present id (until the row has been used 64 times more). Rows are reused in the order in which they became
/// free.
#[derive(Debug, Clone)]
pub struct HashConsed<Id, T> {
    rows: Vec<Row<T>>,
    /// The first row of the chain of a hash.
    chains: FxHashMap<u32, u32>,
    free: VecDeque<u32>,
    id: PhantomData<Id>,
}

#[derive(Debug, Clone)]
struct Row<T> {
    id: RawId,
    /// The next row whose value has the same hash, or [`END`].
    next: u32,
    value: Option<T>,
}

const END: u32 = u32::MAX;

fn hash_of<Q: Hash + ?Sized>(value: &Q) -> u32 {
    let hash = FxBuildHasher.hash_one(value);
    (hash ^ (hash >> 32)) as u32
}

impl<Id: From<RawId> + Into<RawId> + Copy, T: Hash + Eq> HashConsed<Id, T> {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            chains: FxHashMap::default(),
            free: VecDeque::new(),
            id: PhantomData,
        }
    }

    /// The id of `value`, and whether it is new.
    ///
    /// # Panics
    /// More than 2²⁶ values at a time.
    pub fn insert(&mut self, value: T) -> (Id, bool) {
        if let Some(id) = self.find(&value) {
            return (id, false);
        }
        let first = self.chains.entry(hash_of(&value)).or_insert(END);
        let row = self.free.pop_front().unwrap_or_else(|| {
            let row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            self.rows.push(Row {
                id: RawId::first(row),
                next: END,
                value: None,
            });
            row
        });
        let entry = &mut self.rows[row as usize];
        entry.value = Some(value);
        entry.next = std::mem::replace(first, row);
        (Id::from(entry.id), true)
    }

    /// Removes the value of an id; returns `None` if it was removed before.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let raw: RawId = id.into();
        let entry = self.rows.get_mut(raw.row()).filter(|row| row.id == raw)?;
        let value = entry.value.take()?;
        let (row, next) = (raw.row() as u32, entry.next);
        entry.id = raw.next();
        self.unchain(hash_of(&value), row, next);
        self.free.push_back(row);
        Some(value)
    }

    fn unchain(&mut self, hash: u32, row: u32, next: u32) {
        let Some(first) = self.chains.get_mut(&hash) else {
            return;
        };
        if *first == row {
            match next {
                END => drop(self.chains.remove(&hash)),
                next => *first = next,
            }
            return;
        }
        let mut before = *first;
        while self.rows[before as usize].next != row {
            before = self.rows[before as usize].next;
        }
        self.rows[before as usize].next = next;
    }

    /// The value of an id.
    ///
    /// # Panics
    /// The value was removed.
    #[inline]
    pub fn get(&self, id: Id) -> &T {
        self.try_get(id)
            .expect("an id is used only while its value is there")
    }

    /// The value of an id; `None` if it was removed.
    #[inline]
    pub fn try_get(&self, id: Id) -> Option<&T> {
        let raw: RawId = id.into();
        let row = self.rows.get(raw.row())?;
        row.value.as_ref().filter(|_| row.id == raw)
    }

    /// The id of an equal value, if there is one.
    pub fn find<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Option<Id>
    where
        T: Borrow<Q>,
    {
        let mut row = *self.chains.get(&hash_of(value))?;
        while row != END {
            let entry = &self.rows[row as usize];
            if entry.value.as_ref().is_some_and(|v| v.borrow() == value) {
                return Some(Id::from(entry.id));
            }
            row = entry.next;
        }
        None
    }

    /// The number of distinct values.
    pub fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows, free ones included: every [`RawId::row`] is smaller.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// All values with their ids, by row.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((Id::from(row.id), row.value.as_ref()?)))
    }

    /// Removes the values for whose ids `keep` returns false, and frees memory if most of it is unused.
    pub fn retain(&mut self, mut keep: impl FnMut(Id) -> bool) {
        let dropped: Vec<Id> = { self.iter().map(|(id, _)| id) }
            .filter(|&id| !keep(id))
            .collect();
        for id in dropped {
            self.remove(id);
        }
        if self.chains.capacity() > 4 * self.chains.len() + 64 {
            self.chains.shrink_to(2 * self.chains.len());
        }
    }
}

impl<Id: From<RawId> + Into<RawId> + Copy, T: Hash + Eq> Default for HashConsed<Id, T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    id_type! {
        /// A value of this test.
        struct Word;
    }

    #[test]
    fn equal_values_share_an_id() {
        let mut table: HashConsed<Word, &str> = HashConsed::new();
        let (a, new) = table.insert("a");
        assert!(new);
        let (b, _) = table.insert("b");
        assert_eq!(table.insert("a"), (a, false));
        assert_eq!((a.index(), b.index(), table.len()), (0, 1, 2));
        assert_eq!(*table.get(b), "b");
        assert_eq!(table.find("c"), None);
    }

    #[test]
    fn a_row_is_used_again_under_another_id() {
        let mut table: HashConsed<Word, &str> = HashConsed::new();
        let [a, b] = ["a", "b"].map(|word| table.insert(word).0);
        assert_eq!(table.remove(a), Some("a"));
        assert_eq!(
            (table.remove(a), table.find("a"), table.len()),
            (None, None, 1)
        );
        let (c, new) = table.insert("c");
        assert!(new && c != a && c.index() == a.index());
        assert_eq!((table.try_get(a), table.try_get(c)), (None, Some(&"c")));
        table.retain(|id| id != b);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(c, &"c")]);
        assert_eq!(table.rows(), 2);
    }

    /// What many values of few hashes do to the chains: each is found while it is there, and not after.
    #[test]
    fn values_of_one_hash_are_told_apart() {
        #[derive(PartialEq, Eq, Debug)]
        struct Alike(u32);
        impl Hash for Alike {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                state.write_u32(self.0 % 2);
            }
        }
        let mut table: HashConsed<Word, Alike> = HashConsed::new();
        let mut dice = crate::Prng::new(1);
        let mut there = std::collections::BTreeMap::new();
        for _ in 0..2_000 {
            let number = dice.between(0, 15) as u32;
            match there.remove(&number) {
                Some(id) => assert_eq!(table.remove(id), Some(Alike(number))),
                None => {
                    let (id, new) = table.insert(Alike(number));
                    assert!(new);
                    there.insert(number, id);
                }
            }
            for number in 0..16 {
                assert_eq!(table.find(&Alike(number)), there.get(&number).copied());
            }
        }
        assert!(table.rows() <= 16);
    }
}
