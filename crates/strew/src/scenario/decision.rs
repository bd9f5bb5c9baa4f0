//! `-v`: every decision of a run.

use std::fmt::Write;

use strew_model::Span;
use strew_sim::Simulation;

use super::clock::clock;
use crate::terminal::Terminal;

/// The events with which a scheduler reports its decisions.
const REASONS: [&str; 3] = ["Scheduled", "FailedScheduling", "Preempted"];

/// A scheduler's decision on a pod.
pub(super) struct Decision {
    at: Span,
    text: String,
}

/// All decisions of a run.
pub(super) fn all(simulation: &Simulation) -> Vec<Decision> {
    let events = simulation.server().events().iter();
    let decisions = events.filter(|event| REASONS.contains(&&*event.reason));
    decisions
        .map(|event| Decision {
            at: event.at.since(simulation.start()),
            text: format!("{} {}: {}", event.regarding, event.reason, event.note),
        })
        .collect()
}

/// Writes the decisions up to a time; returns the other ones.
pub(super) fn write<'a>(
    out: &mut String,
    decisions: &'a [Decision],
    until: Option<Span>,
    terminal: &Terminal,
) -> &'a [Decision] {
    let is_due = |decision: &Decision| until.is_none_or(|until| decision.at <= until);
    let (due, later) = decisions.split_at(decisions.partition_point(is_due));
    let dim = terminal.styles.dim;
    for decision in due {
        let (at, text) = (clock(decision.at), &decision.text);
        let _ = writeln!(out, "      {dim}{at}{dim:#} {text}");
    }
    later
}
