//! Changes of a cluster: carried out, decided again, compared, taken back.
//!
//! Nothing is decided here: the engine of `strew-scheduler` decides, on the changed cluster. [`suggest`](fn@suggest)
//! finds the smallest changes after which a refused pod has a node; a [`Transaction`] carries changes out and says which
//! pods and skews they turned; [`rebalance`](fn@rebalance) finds evictions after which constraints are kept again. No
//! cluster is copied: what is tried is taken back.
//!
//! Reading order: [`written`] (how changes are written), [`part`] (which nodes are meant), [`change`], `edit` and `apply`
//! (carrying out), [`lives`], [`health`], [`rule`] (constraints with their counts), [`transaction`], [`mod@rebalance`], `candidates`
//! (which changes are worth a try), `deletions`, `node_words`, [`mod@suggest`].

mod apply;
mod candidates;
pub mod change;
mod deletions;
mod edit;
pub mod health;
pub mod lives;
mod node_words;
pub mod part;
pub mod rebalance;
pub mod rule;
pub mod suggest;
pub mod transaction;
pub mod written;

pub use change::{Change, ChangeKind, Target};
pub use health::Health;
pub use lives::{Lived, Lives};
pub use part::{Member, Part};
pub use rebalance::rebalance;
pub use rule::{Measure, Rule};
pub use strew_zones::Away;
pub use suggest::{Suggestion, WhatIf, decide_after, suggest};
pub use transaction::{Fate, Keeping, Refusal, Savepoint, Skew, Touched, Transaction, Turned};
