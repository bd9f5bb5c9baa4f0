//! Generated worlds with faults: a seed gives a [`Story`], a story gives a run, and the run a verdict.
//!
//! A story is a plain value, so that a failing one can be reduced to a minimal one (`shrink`) and printed (`text`).
//!
//! Reading order: [`story`] (the type), [`generate`](mod@generate) (from a seed), [`spreads`] (with WorkloadSpreads),
//! [`churn`] (with short-lived Jobs), `manifests` (its objects), [`play`](mod@play) (the run), `acts` (actions of
//! users), `settings` (of the machines), `shrink`, `text`; the same for a hub with placements: [`placement`]. [`keep`] has
//! lives of Deployments that ask to stay spread, which are small enough without a story.

mod acts;
pub mod churn;
pub mod generate;
pub mod keep;
mod manifests;
pub mod placement;
pub mod play;
mod probe;
mod settings;
pub mod shrink;
pub mod spreads;
pub mod story;
mod text;
pub mod zones;

pub use churn::generate_churn;
pub use generate::generate;
pub use play::{Figures, Going, Life, Parts, Verdict, caught, play};
pub use shrink::shrink;
pub use spreads::{generate_registrations, generate_spreads};
pub use story::{
    Action, Anti, Budgeting, ClusterPlan, Concurrency, Event, Group, NodePlan, Quota, Scaling,
    Spread, SpreadPlan, Story, SubsetPlan, Worker, Workload,
};
pub use zones::generate_zones;
