//! `-v`: every decision of a run.

use std::fmt::Write;

use strew_model::Span;
use strew_suite::clock::clock;
use strew_suite::decision::Decision;

use crate::terminal::Terminal;

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
