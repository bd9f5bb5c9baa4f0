//! The vocabulary of strew: the plain types that all deciding crates use.
//!
//! Strings become [`Symbol`]s at the boundary, so that decisions compare integers. This crate reads no clock, makes no
//! random choices, and does not parse input of users.
//!
//! Reading order: [`symbol`], [`index`], [`labels`], [`selector`], [`node_selector`], [`taint`], [`resources`],
//! [`time`], [`prng`].
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
