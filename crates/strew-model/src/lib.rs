//! The vocabulary of strew: what every deciding crate talks about.
//!
//! Strings become [`Symbol`]s at the edge, so that a decision compares integers.
//! Nothing here reads a clock, rolls dice of its own or parses what a person wrote.
//!
//! Reading order: [`symbol`], [`index`], [`labels`], [`selector`], [`node_selector`], [`taint`], [`resources`], [`time`], [`prng`].
//!
//! ```
//! use strew_model::{Interner, Labels, Requirement, Selector};
//! let mut names = Interner::new();
//! let (app, web, db) = (names.intern("app"), names.intern("web"), names.intern("db"));
//! let selector = Selector::all_of(vec![Requirement::is_in(app, vec![web, db])]);
//! assert!(selector.matches(&Labels::new(vec![(app, web)])));
//! assert!(!selector.matches(&Labels::default()));
//! ```

pub mod index;
pub mod labels;
pub mod node_selector;
pub mod prng;
pub mod resources;
pub mod selector;
pub mod symbol;
pub mod taint;
pub mod time;

pub use index::{HashConsed, RawId};
pub use labels::Labels;
pub use node_selector::{FieldMatch, NodeExpression, NodeOperator, NodeSelectorTerm};
pub use prng::Prng;
pub use resources::{ResourceName, Resources};
pub use selector::{Operator, Requirement, Selector};
pub use symbol::{Holds, Interner, Marks, Symbol, well_known};
pub use taint::{Effect, Taint, Toleration, TolerationOperator, tolerates_all};
pub use time::{Instant, Span};
