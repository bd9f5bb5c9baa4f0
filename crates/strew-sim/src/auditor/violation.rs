//! A broken rule, with its place in the run.

use std::fmt;

use strew_model::time::Span;

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// What a scheduler maintains incrementally equals a recount.
    SchedulerState,
    /// A scheduler's cluster equals what its watch delivered and what it assumed.
    SchedulerFacts,
    /// The indexes of tables equal a recount.
    Index,
    /// At rest, a component has seen what is stored.
    Cache,
    /// A bind is allowed by a recount of the facts that it was decided on.
    Bind,
    /// A preempting pod fits nowhere, fits without its victims, and does not fit if one of them stays.
    Preemption,
    /// A pod is bound once.
    BoundTwice,
    /// A bind is sent only by a leader whose lease still holds by its own clock.
    Lease,
    /// Two replicas never lead at once.
    TwoLeaders,
    /// Versions only grow, uids are new, and immutable fields stay.
    History,
    /// No write overwrites what its writer had not seen, and no written object vanishes.
    LostWrite,
    /// The cluster comes to rest once faults are over.
    Rest,
    /// No Pending pod fits on a node.
    PendingThoughItFits,
    /// On a live node, no pod stays terminating or starting for ever.
    StuckPod,
    /// No object outlives its owner.
    Orphan,
    /// Workloads have the pods that they ask for.
    Replicas,
    /// No controller makes more pods than were ever requested.
    Surplus,
    /// A status equals a recount.
    Status,
    /// The status of a budget equals a recount.
    Budget,
    /// No pod of one zone is evicted while pods of another one are being evicted (docs/budgets.md).
    ZoneBudget,
    /// A plan of evictions ends, evicts nothing twice, and leaves no pod waiting (docs/rebalance.md).
    Rebalance,
    /// A scale-down of a ReplicaSet that asks for it ends as spread as it can be, and costs of others stay
    /// (docs/keep.md).
    KeptSpread,
    /// The status of a quota equals a recount.
    Quota,
    /// Sizes are what the metrics of autoscalers ask for.
    Autoscaler,
    /// No component panics.
    Panic,
    /// A cluster that a placement keeps is in its decisions after every write.
    KeptCluster,
    /// Placements hold what a newly started controller would decide, within their hard limits.
    Placed,
    /// A subset never gets more pods than its limit (spec/workloadspread §8, I1).
    SpreadLimit,
    /// A subset is taken only if every earlier one was full or closed, markers are sound, dry runs change nothing (I2,
    /// I5, I6, I8).
    SpreadChoice,
    /// At rest a ledger agrees with the pods, and a newly started controller would write nothing (I3).
    Ledger,
    /// Scaling in keeps the pods with the highest deletion costs; scaling up fills subsets in their order (I4, I7).
    SpreadScale,
    /// A webhook that is not reached is the reason for refused creations for 10 s at most (docs/webhook.md).
    WebhookRefuses,
    /// A webhook that is reached is registered, whatever the load.
    WebhookRegistered,
    /// The API server trusts the certificate of every replica that it asks.
    WebhookTrust,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The time since the start.
    pub after: Span,
    /// The component that broke it, or the object concerned.
    pub actor: String,
    /// What was found, in words.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            after,
            actor,
            text,
        } = self;
        write!(f, "{rule:?} at {after}: {actor}: {text}")
    }
}
