//! Playing a scenario: a variant and a seed give one life of a cluster, and a verdict on each expectation.
//!
//! Reading order: [`configuration`] (which scheduler), [`plan`] (a variant made ready, once for all seeds), `play`
//! (one life), [`verbs`] (what a step does), [`errands`] (what goes on after its step).

pub mod configuration;
pub mod errands;
pub mod plan;
pub mod play;
mod rollout;
pub mod verbs;

pub use configuration::scheduler_of;
pub use plan::Unplayable;
pub use plan::{Configure, Plan};
pub use play::{Outcome, Played, Refused, RunError, StepResult, Watcher, play};
