//! The settings of all machines.

use strew_model::time::Span;
use strew_runtime::{admission as reviews, fair};
use strew_workloadspread::{admission, controller};

/// The time of one decision of kube-scheduler (190 to 200 pods a second). Here a decision takes no time. Without this
/// limit, a thousand Pending pods would be retried whenever a pod goes, however recently they were tried.
const DECISION_TAKES: Span = Span::from_millis(5);

/// The settings of every machine in a simulated cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Of each replica of the scheduler.
    pub scheduler: strew_scheduler::machine::Limits,
    /// Of each replica of WorkloadSpread's webhook.
    pub admission: admission::Limits,
    /// Of the turns of its reviews.
    pub reviews: ReviewLimits,
    /// Of the controller of WorkloadSpreads.
    pub spreads: controller::Limits,
    /// Of the controller that keeps ReplicaSets spread.
    pub keep: strew_keep::Limits,
    /// Of the controller of Placements.
    pub placement: strew_placement::machine::Limits,
}

/// The turns of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewLimits {
    /// Of each namespace.
    pub turns: fair::Limits,
    /// What a namespace is charged for each of its reviews. A decision takes no time here; in a real cluster it is the CPU
    /// time.
    pub cost: Span,
}

impl MachineLimits {
    /// strew's settings in a real cluster. Only the scheduler's `early_every` differs: it stands for the time of a
    /// decision.
    pub const fn production() -> Self {
        Self::of(strew_scheduler::machine::Limits::production())
    }

    /// Production's settings, with the scheduler's from its configuration.
    pub const fn of(mut scheduler: strew_scheduler::machine::Limits) -> Self {
        scheduler.queue.early_every = DECISION_TAKES;
        Self {
            scheduler,
            admission: admission::Limits::production(),
            reviews: ReviewLimits {
                turns: reviews::LIMITS,
                cost: Span(0),
            },
            spreads: controller::Limits::production(),
            keep: strew_keep::Limits::production(),
            placement: strew_placement::machine::Limits::production(),
        }
    }
}
