//! Changes of a cluster: carried out on a copy, decided again.
//!
//! [`suggest`](fn@suggest) finds the smallest changes after which a refused pod has a node. Nothing is decided here: the engine of
//! `strew-scheduler` decides, on the changed copy.
//!
//! Reading order: [`change`], `candidates` (which changes are worth a try), [`mod@suggest`].

mod candidates;
pub mod change;
pub mod suggest;

pub use change::{Change, ChangeKind, Target};
pub use suggest::{Suggestion, WhatIf, decide_after, suggest};
