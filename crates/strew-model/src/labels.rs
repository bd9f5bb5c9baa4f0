//! Label sets.

use crate::Symbol;
use crate::symbol::{Holds, Marks};

/// Labels of one object, sorted by key, each key once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Box<[(Symbol, Symbol)]>);

impl Labels {
    /// Labels from pairs in any order; the last value of a repeated key counts.
    pub fn new(mut pairs: Vec<(Symbol, Symbol)>) -> Self {
        pairs.reverse();
        pairs.sort_by_key(|&(key, _)| key);
        pairs.dedup_by_key(|&mut (key, _)| key);
        Self(pairs.into())
    }

    /// The value of `key`. Label sets are short, so a linear scan is faster than a search.
    #[inline]
    pub fn get(&self, key: Symbol) -> Option<Symbol> {
        self.0.iter().find(|&&(k, _)| k == key).map(|&(_, v)| v)
    }

    /// The pairs, by key in the order of the interner.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, Symbol)> + '_ {
        self.0.iter().copied()
    }

    /// True if there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if every pair of `other` is contained.
    pub fn contains_all(&self, other: &Labels) -> bool {
        other
            .iter()
            .all(|(key, value)| self.get(key) == Some(value))
    }

    /// These labels with `pairs` set.
    #[must_use]
    pub fn with(&self, pairs: impl IntoIterator<Item = (Symbol, Symbol)>) -> Self {
        Self::new(self.iter().chain(pairs).collect())
    }
}

impl Holds for Labels {
    fn mark(&self, marks: &mut Marks) {
        self.0.mark(marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn the_last_of_a_repeated_key_counts() {
        let mut names = Interner::new();
        let (a, b, x, y) = (
            names.intern("a"),
            names.intern("b"),
            names.intern("x"),
            names.intern("y"),
        );
        let labels = Labels::new(vec![(b, x), (a, x), (b, y)]);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [(a, x), (b, y)]);
        assert!(labels.contains_all(&Labels::new(vec![(b, y)])));
        assert!(!labels.contains_all(&Labels::new(vec![(b, x)])));
        assert_eq!(labels.with([(a, y)]).get(a), Some(y));
    }
}
