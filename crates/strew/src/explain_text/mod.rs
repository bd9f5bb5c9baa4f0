//! An explanation as text.
//!
//! First kube-scheduler's message on a line of its own, then the reason in one sentence with numbers, and changes that
//! would place the pod; then the tables: one per constraint, the nodes by refusing plugin, the scores. Long lists are
//! shortened; no meaning is carried by colour alone.

mod nodes;
pub(crate) mod paint;
mod scores;
mod spread;
pub(crate) mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use strew_view::explanation::{PodExplanation, State, Suggestion, WhatIf};

use crate::recorded::Recorded;
use crate::text::widest;
use paint::Paint;

/// How the text is formatted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextStyle {
    /// The number of columns of a line. Names are never cut, so that they can be copied.
    pub(crate) width: usize,
    /// True for ANSI colours.
    pub(crate) colour: bool,
}

/// What stands beside the explanation of a pod.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    /// The state of the pod's workload.
    pub(crate) workload: Option<&'a str>,
    /// What the cluster recorded.
    pub(crate) recorded: Option<&'a Recorded>,
    /// The preemption for the pod.
    pub(crate) aside: Option<&'a str>,
    /// True for a pod that was put on its node in this run, and is explained at the moment of that decision.
    pub(crate) is_placed: bool,
}

/// The explanation as text, each line with its end. First the cause, then what the cluster recorded or kube-scheduler
/// would say, then the workload: each on a line of its own, unbroken, so that people and tools find it with grep.
pub(crate) fn explain_text(
    explanation: &PodExplanation,
    beside: &Beside<'_>,
    style: TextStyle,
) -> String {
    let paint = Paint::new(style.colour);
    let mut out = Page {
        text: String::new(),
        paint,
        width: style.width,
    };
    head(explanation, beside, &mut out);
    if let Some(aside) = beside.aside {
        out.wrapped(0, aside);
    }
    if let Some(what_if) = &explanation.what_if {
        changes(explanation, what_if, &mut out);
    }
    spread::constraints(explanation, &mut out);
    nodes::refused(explanation, &mut out);
    spread::no_constraint(explanation, &mut out);
    if let Some(choice) = &explanation.choice {
        scores::scores(explanation, choice, &mut out);
    }
    if let Some(recorded) = beside.recorded {
        recorded.text(&mut out);
    }
    out.text
}

/// The text so far.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) paint: Paint,
    pub(crate) width: usize,
}

impl Page {
    pub(crate) fn line(&mut self, indent: usize, text: &str) {
        if !text.is_empty() {
            self.text.extend(std::iter::repeat_n(' ', indent));
            self.text.push_str(text);
        }
        self.text.push('\n');
    }

    /// A heading after an empty line.
    pub(crate) fn heading(&mut self, text: &str) {
        self.line(0, "");
        let text = self.paint.bold(text);
        self.line(0, &text);
    }

    /// A text broken at spaces to fit the width; further lines are indented by two more.
    pub(crate) fn wrapped(&mut self, indent: usize, text: &str) {
        let mut line = String::new();
        let mut at = indent;
        for word in text.split(' ') {
            let len = line.chars().count();
            if len > 0 && at + len + 1 + word.chars().count() > self.width {
                self.line(at, &std::mem::take(&mut line));
                at = indent + 2;
            } else if len > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(at, &line);
    }
}

fn head(explanation: &PodExplanation, beside: &Beside<'_>, out: &mut Page) {
    let metadata = &explanation.metadata;
    let name = out
        .paint
        .bold(&format!("{}/{}", metadata.namespace, metadata.name));
    let target = explanation.would_go_to.as_deref();
    let on = explanation.node.as_deref().unwrap_or_default();
    let nowhere = out.paint.bad("nowhere");
    let pending = out.paint.bad("Pending");
    let cause = explanation.summary.as_deref();
    let cause_text = cause.unwrap_or("no node takes it now");
    let line = match (explanation.standing, target, cause) {
        (State::WouldGo, Some(node), None) if beside.is_placed => {
            let node = out.paint.good(node);
            format!("Pod {name} goes to {node}.")
        }
        (State::WouldGo, Some(node), None) => {
            let node = out.paint.good(node);
            format!("Pod {name} is {pending}, but fits now: decided now, it goes to {node}.")
        }
        (State::Pending | State::WouldGo, ..) => {
            format!("Pod {name} is {pending}: {cause_text}.")
        }
        (State::Placed, Some(node), _) if node == on => {
            let node = out.paint.good(node);
            format!("Pod {name} is on {node}, and would go there again.")
        }
        (State::Placed, Some(node), _) => {
            let node = out.paint.good(node);
            format!("Pod {name} is on {on}; placed anew, it would go to {node}.")
        }
        (State::Placed, None, _) => {
            format!("Pod {name} is on {on}; placed anew, it would go {nowhere}: {cause_text}.")
        }
        (State::Gated, target, _) => {
            let then = target.map_or_else(
                || format!("it would go {nowhere}"),
                |node| format!("it would go to {}", out.paint.good(node)),
            );
            let cause = match cause {
                Some(cause) => cause.to_owned(),
                None => format!("its scheduling gates ({})", explanation.gates.join(", ")),
            };
            format!("Pod {name} is {pending}: {cause}. Without, {then}.")
        }
    };
    out.line(0, &line);
    let recorded = beside.recorded.and_then(Recorded::line);
    match &recorded {
        Some(recorded) => out.line(0, recorded),
        // The pod has no node yet: the sentence would mislead.
        None if explanation.standing == State::WouldGo && !beside.is_placed => {}
        None if explanation.message.is_empty() => {}
        None => out.line(0, &explanation.message),
    }
    if let Some(workload) = beside.workload {
        out.line(0, workload);
    }
    // What the scheduler would say now, where that is another sentence than the one above.
    let is_said = recorded.is_none() || beside.recorded.is_some_and(Recorded::agrees);
    let now = match explanation.standing {
        State::Pending if !is_said => Some(explanation.message.as_str()),
        _ => explanation.message_now.as_deref(),
    };
    if let Some(now) = now.filter(|_| target.is_none()) {
        out.line(0, &format!("Now: {now}"));
    }
}

fn changes(explanation: &PodExplanation, what_if: &WhatIf, out: &mut Page) {
    if what_if.suggestions.is_empty() {
        out.heading("What would change it");
        let mut text = match what_if.in_vain.join(", ") {
            kinds if kinds.is_empty() => "No single change helps.".to_owned(),
            kinds => format!("No single change of those tried helps; tried: {kinds}."),
        };
        let nearest = explanation.refused.iter().min_by_key(|r| r.causes.len());
        if let Some(node) = nearest.filter(|node| node.causes.len() > 1) {
            let causes: Vec<&str> = node.causes.iter().map(|c| c.short.as_str()).collect();
            text += &format!(
                " Every node has more than one thing against it; the fewest: {} ({}).",
                node.name,
                causes.join(", ")
            );
        }
        out.wrapped(2, &text);
        return;
    }
    out.heading("Any one of these changes would place it (each was verified)");
    let texts = what_if.suggestions.iter().map(|s| &s.text);
    let column = widest(texts.filter(|text| text.chars().count() + 20 < out.width));
    for Suggestion {
        text, would_go_to, ..
    } in &what_if.suggestions
    {
        let target = would_go_to.as_deref().unwrap_or("the new node");
        let target = out.paint.good(target);
        out.line(2, &format!("- {text:column$}  -> {target}"));
    }
}
