//! kube-scheduler's default profile: decides where pods go, from tallies, and explains it.
//!
//! [`Engine::decide`] decides where a pod goes; [`Engine::evaluate`] runs the same plugin code and keeps every number;
//! [`mod@explain`] makes a typed tree of it. [`naive`] is a second, simple implementation that recounts everything: the
//! oracle of tests, and the baseline of benchmarks.
//!
//! Reading order: [`profile`], [`status`], [`plan`] (the resolved pod class), [`plugins`] (one file each, named as in
//! kube-scheduler), [`engine`], [`profiles`] (an engine each), [`ties`], `workers` (the order in which feasible nodes
//! are found), [`preemption`], [`queue`] (when a pod is tried), [`machine`] (facts and time in, effects out),
//! [`mod@explain`], [`naive`].
//!
//! Source of all rules: spec/scheduler §1 to §3, checked against kube-scheduler v1.36.3's own answers (vectors/).

pub(crate) mod by_class;
pub(crate) mod columns;
pub(crate) mod cycle;
pub mod engine;
pub mod explain;
mod filters;
pub mod group_limits;
pub(crate) mod groups;
pub mod machine;
pub mod metrics;
pub mod naive;
pub mod plan;
pub mod plugins;
pub mod preemption;
pub mod profile;
pub mod profiles;
pub mod queue;
pub mod refusals;
pub(crate) mod scoring;
pub mod status;
pub mod ties;
pub(crate) mod workers;

pub use engine::{Decision, Engine, Evaluation};
pub use explain::{Explanation, explain};
pub use group_limits::GroupLimits;
pub use preemption::{Preemption, preempt};
pub use profile::{
    AddedAffinity, Compat, DefaultConstraints, FilterOrder, FitArgs, PluginId, PreemptionArgs,
    Profile, SchedulerGates, ScoringStrategy, TieRule,
};
pub use scoring::PluginScores;
pub use status::{Code, Reason, Refusal, Unfit};
