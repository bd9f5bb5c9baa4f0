//! Interned strings.

use crate::index::{HashConsed, RawId};

/// An interned string: equal symbols of one [`Interner`] are equal strings.
///
/// The order of symbols is not that of their texts. A symbol is valid while a marked value holds it, see
/// [`Interner::sweep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Symbol(RawId);

impl Symbol {
    /// The row of the string in its interner.
    pub fn index(self) -> usize {
        self.0.row()
    }
}

impl From<RawId> for Symbol {
    fn from(id: RawId) -> Self {
        Self(id)
    }
}

impl From<Symbol> for RawId {
    fn from(symbol: Symbol) -> Self {
        symbol.0
    }
}

/// Strings that every interner contains, with fixed symbols.
pub mod well_known {
    use super::{RawId, Symbol};

    macro_rules! well_known {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            well_known!(@ 0u32; $($(#[$doc])* $name = $text;)*);
            pub(super) const TEXTS: &[&str] = &[$($text),*];
        };
        (@ $n:expr; $(#[$doc:meta])* $name:ident = $text:literal; $($rest:tt)*) => {
            $(#[$doc])*
            pub const $name: Symbol = Symbol(RawId::first($n));
            well_known!(@ $n + 1; $($rest)*);
        };
        (@ $n:expr;) => {};
    }

    well_known! {
        /// The empty string; also the domain of nodes without a topology key, if they count.
        EMPTY = "";
        /// The label with a node's host name.
        HOSTNAME = "kubernetes.io/hostname";
        /// The label with a node's zone.
        ZONE = "topology.kubernetes.io/zone";
        /// The label with a node's region.
        REGION = "topology.kubernetes.io/region";
        /// The zone label before v1.17.
        ZONE_BETA = "failure-domain.beta.kubernetes.io/zone";
        /// The region label before v1.17.
        REGION_BETA = "failure-domain.beta.kubernetes.io/region";
        /// The key of the taint of a cordoned node.
        UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable";
        /// The namespace of objects without one.
        DEFAULT_NAMESPACE = "default";
    }
}

/// The strings in use; each is stored once.
///
/// Symbols are not reference-counted. The owner of the interner [sweeps](Self::sweep) it from time to time: everything
/// with symbols marks them, and strings that are not marked are dropped.
#[derive(Debug, Clone)]
pub struct Interner {
    texts: HashConsed<Symbol, Box<str>>,
    /// By row: the number modulo 256 of the last sweep before the string was last requested.
    asked: Vec<u8>,
    /// Strings of smaller rows are never dropped.
    pinned: usize,
    sweeps: u64,
    /// The number of new strings since the last sweep.
    new: usize,
    /// The number of strings left by the last sweep.
    left: usize,
}

impl Interner {
    /// An interner with the [`well_known`] strings.
    pub fn new() -> Self {
        let mut names = Self {
            texts: HashConsed::new(),
            asked: Vec::new(),
            pinned: 0,
            sweeps: 0,
            new: 0,
            left: 0,
        };
        for text in well_known::TEXTS {
            names.intern(text);
        }
        names.pin();
        names
    }

    /// The symbol of `text`, which is added if it is new.
    ///
    /// # Panics
    /// More than 2²⁶ distinct strings at a time.
    pub fn intern(&mut self, text: &str) -> Symbol {
        let symbol = match self.texts.find(text) {
            Some(symbol) => symbol,
            None => {
                self.new += 1;
                self.texts.insert(text.into()).0
            }
        };
        let row = symbol.index();
        if self.asked.len() <= row {
            self.asked.resize(row + 1, 0);
        }
        self.asked[row] = self.sweeps as u8;
        symbol
    }

    /// The symbol of `text`; `None` if it is not in use.
    pub fn get(&self, text: &str) -> Option<Symbol> {
        self.texts.find(text)
    }

    /// The string of a symbol of this interner. A dropped symbol is a bug of its holder: it panics in a debug build,
    /// and has an empty text otherwise.
    pub fn text(&self, symbol: Symbol) -> &str {
        let text = self.texts.try_get(symbol);
        debug_assert!(text.is_some(), "{symbol:?} was dropped while it was held");
        text.map_or("", |text| text)
    }

    /// The string as a base-10 integer, as for node affinity's `Gt` and `Lt`; `None` if it is none.
    pub fn integer(&self, symbol: Symbol) -> Option<i64> {
        self.text(symbol).parse().ok()
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Always false: the well-known strings are never dropped.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

// === what is gone ===

impl Interner {
    /// Keeps all present strings for ever, so that settings need not mark them.
    pub fn pin(&mut self) {
        self.pinned = self.texts.rows();
        self.new = 0;
    }

    /// The number of sweeps. A cache that does not mark its symbols must drop them when this changes.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// True if at least as many strings are new as the last sweep left, and at least `min`: then sweeping costs a
    /// constant number of steps per new string.
    #[inline]
    pub fn is_sweep_due(&self, min: usize) -> bool {
        self.new >= self.left.max(min)
    }

    /// Begins a sweep: only pinned symbols are marked.
    pub fn marks(&self) -> Marks {
        let rows = self.texts.rows();
        Marks {
            held: (0..rows).map(|row| row < self.pinned).collect(),
        }
    }

    /// Drops every string whose symbol is not marked, unless it was requested since the sweep before the last one: a
    /// fact with it may be in transit.
    pub fn sweep(&mut self, marks: &Marks) {
        let now = self.sweeps as u8;
        let asked = &self.asked;
        let mut left = 0;
        self.texts.retain(|symbol| {
            let row = symbol.index();
            let is_held = marks.held.get(row) != Some(&false);
            left += usize::from(is_held);
            is_held || now.wrapping_sub(asked[row]) <= 1
        });
        self.sweeps += 1;
        self.new = 0;
        self.left = left;
    }
}

/// The marked symbols of an interner.
#[derive(Debug, Clone)]
pub struct Marks {
    /// By row.
    held: Vec<bool>,
}

impl Marks {
    /// Marks a symbol.
    #[inline]
    pub fn mark(&mut self, symbol: Symbol) {
        if let Some(held) = self.held.get_mut(symbol.index()) {
            *held = true;
        }
    }
}

/// A value that may contain symbols.
pub trait Holds {
    /// Marks every symbol in it.
    fn mark(&self, marks: &mut Marks);
}

impl Holds for Symbol {
    #[inline]
    fn mark(&self, marks: &mut Marks) {
        marks.mark(*self);
    }
}

impl<T: Holds> Holds for [T] {
    fn mark(&self, marks: &mut Marks) {
        self.iter().for_each(|each| each.mark(marks));
    }
}

impl<T: Holds + ?Sized> Holds for Box<T> {
    fn mark(&self, marks: &mut Marks) {
        (**self).mark(marks);
    }
}

impl<T: Holds> Holds for Option<T> {
    fn mark(&self, marks: &mut Marks) {
        if let Some(value) = self {
            value.mark(marks);
        }
    }
}

impl<A: Holds, B: Holds> Holds for (A, B) {
    fn mark(&self, marks: &mut Marks) {
        self.0.mark(marks);
        self.1.mark(marks);
    }
}

macro_rules! holds_nothing {
    ($($of:ty),*) => {
        $(impl Holds for $of {
            fn mark(&self, _: &mut Marks) {}
        })*
    };
}

holds_nothing!(bool, i32, i64, u32);

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
    #[test]
    fn what_nothing_holds_is_dropped_by_the_third_sweep() {
        let mut names = Interner::new();
        let setting = names.intern("setting");
        names.pin();
        let (held, gone) = (names.intern("held"), names.intern("gone"));
        let sweep = |names: &mut Interner| {
            let mut marks = names.marks();
            held.mark(&mut marks);
            names.sweep(&marks);
        };
        for _ in 0..2 {
            sweep(&mut names);
            assert_eq!(names.get("gone"), Some(gone));
        }
        sweep(&mut names);
        assert_eq!(names.get("gone"), None);
        assert_eq!(names.text(held), "held");
        assert_eq!(names.text(setting), "setting");
        let again = names.intern("gone");
        assert!(again != gone && again.index() == gone.index());
    }
}
