//! Changes of a cluster: carried out on a copy, decided again, compared.
//!
//! Nothing is decided here: the engine of `strew-scheduler` decides, on the changed copy. [`suggest`](fn@suggest) finds
//! the smallest changes after which a refused pod has a node; a [`Trial`] carries changes out and says which pods and
//! skews they turned.
//!
//! Reading order: [`part`] (which nodes are meant), [`change`], `edit` and `apply` (carrying out, taking back),
//! [`trial`], `candidates` (which changes are worth a try), `deletions`, `node_words`, [`mod@suggest`].

mod apply;
mod candidates;
pub mod change;
mod deletions;
mod edit;
mod node_words;
pub mod part;
pub mod suggest;
pub mod trial;

pub use change::{Change, ChangeKind, Target};
pub use part::{Member, Part};
pub use suggest::{Suggestion, WhatIf, decide_after, suggest};
pub use trial::{Fate, Skew, Trial, Turned};
