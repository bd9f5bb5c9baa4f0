//! Clusters for a workload: which of a fleet a Placement gets, and why not the others.
//!
//! [`Hub`] is told facts; [`schedule`](schedule::schedule) decides one placement: filters, prioritizers, then the
//! selector that spreads over topologies; [`explain`](explain::explain) is the same with every number.
//! [`decisions`] makes groups and PlacementDecisions of it, and orders their writes so that a cluster that stays is
//! never missing; [`machine`] ties all together with three verbs.
//!
//! Absent on purpose: clock, dice, I/O, threads, the parsing of texts, the wire. CEL is answered by a
//! [`ClusterPredicate`] that is handed in. Skews are computed in `strew_spread` only.
//!
//! Reading order: [`facts`], [`hub`], [`plan`], [`filter`], [`prioritize`], `select`, [`mod@schedule`], [`decisions`],
//! [`conditions`], [`machine`], [`mod@explain`].
//!
//! Source of all rules: spec/placement, seed 003.

pub mod conditions;
pub mod decisions;
pub mod explain;
pub mod facts;
pub mod filter;
pub mod hub;
pub mod machine;
pub mod plan;
pub mod prioritize;
pub mod schedule;
mod select;

pub use explain::{Explanation, Verdict};
pub use filter::predicate::{ClusterPredicate, NoCel};
pub use hub::Hub;
pub use plan::Problem;
pub use schedule::{Code, Pick, Schedule};
pub use select::measure::{Exceeded, Limited, SpreadReport};
