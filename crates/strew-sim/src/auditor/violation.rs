//! A rule that was broken.

use std::fmt;

use strew_model::time::Span;

/// Which rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// What a scheduler keeps incrementally is as a recount has it.
    SchedulerState,
    /// A scheduler's cluster equals what its watch delivered and what it assumed.
    SchedulerFacts,
    /// The indexes of tables are as a recount has them.
    Index,
    /// At rest what a component has seen is what is stored.
    Cache,
    /// A decision holds against a recount of what it was made from.
    Bind,
    /// A preempting pod fits nowhere, fits without its victims, and does not fit without fewer of them.
    Preemption,
    /// A pod is bound once.
    BoundTwice,
    /// A bind is sent by a leader whose lease still holds by its own clock.
    Lease,
    /// Two replicas never lead at once.
    TwoLeaders,
    /// Versions only grow, uids are new, what is final stays.
    History,
    /// Nothing is written over what the writer had not seen, and nothing that was written vanishes.
    LostWrite,
    /// Everything comes to rest once faults are over.
    Rest,
    /// No pod waits that fits.
    PendingThoughItFits,
    /// No pod is for ever being deleted, or about to start, on a node that is alive.
    StuckPod,
    /// Nothing outlives its owner.
    Orphan,
    /// Workloads have the pods that they ask for.
    Replicas,
    /// No controller makes more pods than were ever requested.
    Surplus,
    /// A status is what a recount says.
    Status,
    /// A budget's status is what a recount says.
    Budget,
    /// A quota's status is what a recount says.
    Quota,
    /// Sizes are what autoscalers' metrics ask for.
    Autoscaler,
    /// Nothing panics.
    Panic,
    /// A cluster that a placement keeps is in its decisions after every write.
    KeptCluster,
    /// What placements hold is what a controller that begins now would decide, within their hard limits.
    Placed,
    /// Never are more pods let into a subset than it takes (spec/workloadspread §8, I1).
    SpreadLimit,
    /// A subset is taken only if every earlier one was full or closed, markers are sound, dry runs do nothing
    /// (I2, I5, I6, I8).
    SpreadChoice,
    /// At rest a ledger says what the pods say, and a controller that begins now finds nothing to do (I3).
    Ledger,
    /// Scaling in keeps the dearest pods; scaling up fills subsets in their order (I4, I7).
    SpreadScale,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// When, from the start.
    pub after: Span,
    /// The component that broke it, or the object concerned.
    pub actor: String,
    /// How.
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
