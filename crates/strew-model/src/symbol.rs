//! Interned strings.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// An interned string: equal symbols of one [`Interner`] are equal strings.
///
/// The order of symbols is the order in which they were met, not that of their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Symbol(u32);

impl Symbol {
    /// The place of the string in its interner.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Strings that every interner knows, at fixed places.
pub mod well_known {
    use super::Symbol;

    macro_rules! well_known {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            well_known!(@ 0u32; $($(#[$doc])* $name = $text;)*);
            pub(super) const TEXTS: &[&str] = &[$($text),*];
        };
        (@ $n:expr; $(#[$doc:meta])* $name:ident = $text:literal; $($rest:tt)*) => {
            $(#[$doc])*
            pub const $name: Symbol = Symbol($n);
            well_known!(@ $n + 1; $($rest)*);
        };
        (@ $n:expr;) => {};
    }

    well_known! {
        /// The empty string; also the domain of nodes that lack a topology key, where they count.
        EMPTY = "";
        /// The label that names a node's host.
        HOSTNAME = "kubernetes.io/hostname";
        /// The label that names a node's zone.
        ZONE = "topology.kubernetes.io/zone";
        /// The label that names a node's region.
        REGION = "topology.kubernetes.io/region";
        /// The zone label before v1.17.
        ZONE_BETA = "failure-domain.beta.kubernetes.io/zone";
        /// The region label before v1.17.
        REGION_BETA = "failure-domain.beta.kubernetes.io/region";
        /// The key of the taint of a cordoned node.
        UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable";
        /// The namespace of objects that name none.
        DEFAULT_NAMESPACE = "default";
    }
}

/// The strings met so far; each is kept once and never dropped.
#[derive(Debug, Clone)]
pub struct Interner {
    texts: IndexSet<Box<str>, FxBuildHasher>,
}

impl Interner {
    /// An interner that holds the [`well_known`] strings.
    pub fn new() -> Self {
        let texts = well_known::TEXTS.iter().map(|&text| text.into()).collect();
        Self { texts }
    }

    /// The symbol of `text`, new or known.
    ///
    /// # Panics
    /// With more than 2³² distinct strings.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(index) = self.texts.get_index_of(text) {
            return Symbol(index as u32);
        }
        let (index, _) = self.texts.insert_full(text.into());
        Symbol(u32::try_from(index).expect("fewer than 2^32 distinct strings"))
    }

    /// The symbol of `text`, if it was met before.
    pub fn get(&self, text: &str) -> Option<Symbol> {
        self.texts.get_index_of(text).map(|i| Symbol(i as u32))
    }

    /// The string of a symbol of this interner.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol.index()]
    }

    /// The string read as a base-10 integer, as node affinity's `Gt` and `Lt` do.
    pub fn integer(&self, symbol: Symbol) -> Option<i64> {
        self.text(symbol).parse().ok()
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Never: the well-known strings are always there.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

impl Default for Interner {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_strings_stand_at_their_places() {
        let names = Interner::new();
        for (symbol, text) in [
            (well_known::EMPTY, ""),
            (well_known::HOSTNAME, "kubernetes.io/hostname"),
            (
                well_known::REGION_BETA,
                "failure-domain.beta.kubernetes.io/region",
            ),
            (well_known::DEFAULT_NAMESPACE, "default"),
        ] {
            assert_eq!(names.text(symbol), text);
            assert_eq!(names.get(text), Some(symbol));
        }
    }

    #[test]
    fn equal_strings_are_one_symbol() {
        let mut names = Interner::new();
        let web = names.intern("web");
        assert_eq!(names.intern("web"), web);
        assert_ne!(names.intern("db"), web);
        assert_eq!(names.text(web), "web");
        assert_eq!(names.integer(web), None);
        let seven = names.intern("-7");
        assert_eq!(names.integer(seven), Some(-7));
    }
}
