//! Decides which clusters of a fleet a Placement selects, and explains why not the others.
//!
//! A [`Hub`] takes facts. [`schedule`](schedule::schedule) decides one placement: filters, prioritizers, then the
//! selector that spreads over topologies; [`explain`](explain::explain) does the same and records every number.
//! [`decisions`] turns the result into groups and PlacementDecisions, and orders their writes so that a cluster that
//! stays is never missing. [`machine`] connects everything with three functions.
//!
//! This crate has no clock, no random numbers, no I/O, no threads, no parsing of text and no wire format. A
//! [`ClusterPredicate`] from outside evaluates CEL. Skews are computed in `strew_spread` only.
//!
//! Reading order: [`facts`], [`hub`], [`plan`], [`filter`], [`prioritize`], `select`, [`mod@schedule`], [`decisions`],
//! [`conditions`], [`machine`], [`mod@explain`].
//!
//! Source of all rules: spec/placement, the OCM spread proposal.
//!
//! ```
//! use strew_model::{Instant, Interner, Selector};
//! use strew_placement::facts::cluster::ClusterFact;
//! use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
//! use strew_placement::facts::placement::{PlacementFact, PlacementSpec};
//! use strew_placement::{Hub, NoCel, schedule};
//!
//! let mut hub = Hub::new(Interner::new());
//! let [ns, all, p] = ["ns", "all", "p"].map(|text| hub.names.intern(text));
//! hub.set_cluster_set(ClusterSetFact { name: all, selector: SetSelector::Labels(Selector::all_of(vec![])) });
//! hub.set_binding(ns, all);
//! for name in ["west", "east", "north"] {
//!     let name = hub.names.intern(name);
//!     hub.set_cluster(ClusterFact::named(name));
//! }
//! let placement = PlacementFact {
//!     namespace: ns,
//!     name: p,
//!     uid: "1".into(),
//!     spec: PlacementSpec { number_of_clusters: Some(2), ..PlacementSpec::default() },
//!     status: Default::default(),
//!     ignored: false,
//!     revision: 1,
//! };
//! let schedule = schedule::schedule(&hub, Instant::default(), &placement, &NoCel);
//! let picks: Vec<&str> = schedule.picks.iter().map(|pick| hub.names.text(pick.cluster)).collect();
//! assert_eq!(picks, ["east", "north"]);
//! ```

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
pub use filter::predicate::{Answer, COST_MAX_PER_PLACEMENT, ClusterPredicate, NoCel};
pub use hub::Hub;
pub use plan::Problem;
pub use schedule::{Code, Pick, Schedule};
pub use select::measure::{
    Exceeded, Exclusion, GroupsUsed, Limited, LimitedBy, SpreadReport, Unmet,
};
