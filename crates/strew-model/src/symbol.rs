//! Interned strings.

use crate::index::{HashConsed, RawId};

/// An interned string: equal symbols of one [`Interner`] are equal strings.
///
/// The order of symbols says nothing of their texts. A symbol is good while something that is marked holds it, see
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

/// Strings that every interner knows, at fixed places.
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

/// The strings in use; each is kept once.
///
/// Nothing counts who holds a symbol. Whoever owns the interner [sweeps](Self::sweep) it now and then: all that holds
/// symbols marks them, and what is not marked is dropped.
#[derive(Debug, Clone)]
pub struct Interner {
    texts: HashConsed<Symbol, Box<str>>,
    /// By row the sweep, modulo 256, after which the string was last asked for.
    asked: Vec<u8>,
    /// Strings of rows below are never dropped.
    pinned: usize,
    sweeps: u64,
    /// How many strings are new since the last sweep.
    new: usize,
    /// How many strings were held at the last sweep.
    left: usize,
}

impl Interner {
    /// An interner that holds the [`well_known`] strings.
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

    /// The symbol of `text`, new or known.
    ///
    /// # Panics
    /// With more than 2²⁶ distinct strings at a time.
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

    /// The symbol of `text`, if it is in use.
    pub fn get(&self, text: &str) -> Option<Symbol> {
        self.texts.find(text)
    }

    /// The string of a symbol of this interner. A symbol that was dropped is a bug of its holder: it stops a debug build,
    /// and has an empty text otherwise.
    pub fn text(&self, symbol: Symbol) -> &str {
        let text = self.texts.try_get(symbol);
        debug_assert!(text.is_some(), "{symbol:?} was dropped while it was held");
        text.map_or("", |text| text)
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

// === what is gone ===

impl Interner {
    /// Keeps all strings of now for ever: what settings hold need not be marked.
    pub fn pin(&mut self) {
        self.pinned = self.texts.rows();
        self.new = 0;
    }

    /// How often it was swept. What keeps symbols without being asked to mark them must forget them when this changes.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Whether as many strings are new as were held at the last sweep, and `min` at least: sweeping then costs a constant
    /// number of steps for each new string.
    #[inline]
    pub fn is_sweep_due(&self, min: usize) -> bool {
        self.new >= self.left.max(min)
    }

    /// Begins to find out which symbols are held: none is marked but those that are pinned.
    pub fn marks(&self) -> Marks {
        let rows = self.texts.rows();
        Marks {
            held: (0..rows).map(|row| row < self.pinned).collect(),
        }
    }

    /// Drops every string whose symbol is not marked, unless it was asked for since the sweep before the last one: a fact
    /// with it may be on its way.
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

/// The symbols of an interner that something holds.
#[derive(Debug, Clone)]
pub struct Marks {
    /// By row.
    held: Vec<bool>,
}

impl Marks {
    /// Something holds this symbol.
    #[inline]
    pub fn mark(&mut self, symbol: Symbol) {
        if let Some(held) = self.held.get_mut(symbol.index()) {
            *held = true;
        }
    }
}

/// A value in which symbols may be.
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
