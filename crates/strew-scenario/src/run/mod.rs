//! Plays a scenario: a variant and a seed give one run of a cluster, and an outcome for each expectation.
//!
//! Reading order: [`configuration`] (which scheduler), [`admission`] (files as the API server holds them), `missing` and
//! `owners` (objects that the files leave out), [`plan`] (a variant made ready, once for all seeds), `play` (one run), `quiet` (silent waits),
//! [`played`] (its results), [`verbs`] (the verbs of a step), [`errands`] (what continues after its step).

pub mod admission;
pub mod configuration;
pub mod errands;
mod missing;
mod namespaces;
mod owners;
pub mod plan;
pub mod play;
pub mod played;
mod quiet;
mod rollout;
pub mod verbs;

pub use configuration::scheduler_of;
pub use plan::Unplayable;
pub use plan::{Configure, Plan};
pub use play::play;
pub use played::{
    ExpectationOutcome, POD_CREATION, Played, Refused, RunError, StepResult, StepState, Watcher,
};
