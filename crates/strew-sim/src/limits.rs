//! The settings of all machines.

use strew_model::time::Span;
use strew_workloadspread::{admission, controller};

/// What a decision takes kube-scheduler (190 to 200 pods a second). Here it takes no time; what must not follow from
/// that is that a thousand Pending pods are tried anew whenever a pod goes, however lately they were tried.
const DECISION_TAKES: Span = Span::from_millis(5);

/// The settings of every machine that acts in a simulated cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Of each replica of the scheduler.
    pub scheduler: strew_scheduler::machine::Limits,
    /// Of each replica of WorkloadSpread's webhook.
    pub admission: admission::Limits,
    /// Of the controller of WorkloadSpreads.
    pub spreads: controller::Limits,
    /// Of the controller of Placements.
    pub placement: strew_placement::machine::Limits,
}

impl MachineLimits {
    /// What strew runs with in a real cluster, but for the time that a decision takes there.
    pub const fn production() -> Self {
        Self::of(strew_scheduler::machine::Limits::production())
    }

    /// The same, with the scheduler's settings from its configuration.
    pub const fn of(mut scheduler: strew_scheduler::machine::Limits) -> Self {
        scheduler.queue.early_every = DECISION_TAKES;
        Self {
            scheduler,
            admission: admission::Limits::production(),
            spreads: controller::Limits::production(),
            placement: strew_placement::machine::Limits::production(),
        }
    }
}
