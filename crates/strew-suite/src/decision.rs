//! The decisions of the schedulers of a run.

use strew_model::Span;
use strew_sim::Simulation;

/// The events with which a scheduler reports its decisions.
const REASONS: [&str; 3] = ["Scheduled", "FailedScheduling", "Preempted"];

/// A scheduler's decision on a pod.
pub struct Decision {
    /// When.
    pub at: Span,
    /// The pod, the decision, and the scheduler's message.
    pub text: String,
}

/// All decisions of a run.
pub fn all(simulation: &Simulation) -> Vec<Decision> {
    let events = simulation.server().events().iter();
    let decisions = events.filter(|event| REASONS.contains(&&*event.reason));
    decisions
        .map(|event| Decision {
            at: event.at.since(simulation.start()),
            text: format!("{} {}: {}", event.regarding, event.reason, event.note),
        })
        .collect()
}
