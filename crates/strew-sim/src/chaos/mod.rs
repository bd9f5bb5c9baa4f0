//! Small worlds that everything befalls: from a seed a [`Story`], from a story a life, and a verdict on it.
//!
//! A story is a plain value, so that one that ends badly can be made smaller until nothing of it can be left out
//! (`shrink`), and be read by people (`text`).
//!
//! Reading order: [`story`] (what a story is), [`generate`](mod@generate) (one from a seed), [`spreads`] (one with
//! WorkloadSpreads), [`churn`] (one of Jobs that come and go), `manifests` (its objects), [`play`](mod@play) (its life), `acts` (what people do in it),
//! `settings` (of the machines), `shrink`, `text`; the same for a hub with placements: [`placement`].

mod acts;
pub mod churn;
pub mod generate;
mod manifests;
pub mod placement;
pub mod play;
mod probe;
mod settings;
pub mod shrink;
pub mod spreads;
pub mod story;
mod text;

pub use churn::generate_churn;
pub use generate::generate;
pub use play::{Figures, Parts, Verdict, play};
pub use shrink::shrink;
pub use spreads::generate_spreads;
pub use story::{
    Action, Anti, Budgeting, Concurrency, Event, Group, NodePlan, Quota, Scaling, Spread,
    SpreadPlan, Story, SubsetPlan, Worker, Workload, World,
};
