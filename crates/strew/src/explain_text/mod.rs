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

use strew_wire::explanation::{PodExplanation, State, Suggestion, WhatIf};

use crate::recorded::Recorded;
use paint::Paint;

/// How the text is formatted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextStyle {
    /// The number of columns of a line. Names are never cut, so that they can be copied.
    pub(crate) width: usize,
    /// True for ANSI colours.
    pub(crate) colour: bool,
}

/// The explanation as text, each line with its end. `aside` comes below the verdict, `recorded` at the end.
pub(crate) fn explain_text(
    explanation: &PodExplanation,
    aside: Option<&str>,
    recorded: Option<&Recorded>,
    style: TextStyle,
) -> String {
    let paint = Paint::new(style.colour);
    let mut out = Page {
        text: String::new(),
        paint,
        width: style.width,
    };
    head(explanation, &mut out);
    if let Some(summary) = &explanation.summary {
        out.wrapped(0, &sentence(summary));
        if let Some(others) = spread::counts_others(&explanation.constraints) {
            out.wrapped(0, &others);
        }
    }
    if let Some(aside) = aside {
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
    if let Some(recorded) = recorded {
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

fn head(explanation: &PodExplanation, out: &mut Page) {
    let name = format!(
        "{}/{}",
        explanation.metadata.namespace, explanation.metadata.name
    );
    let target = explanation.would_go_to.as_deref();
    let on = explanation.node.as_deref().unwrap_or_default();
    let nowhere = out.paint.bad("nowhere");
    let line = match (explanation.standing, target) {
        (State::Pending, _) | (State::WouldGo, None) => {
            let pending = out.paint.bad("Pending");
            format!("Pod {name} is {pending}: no node takes it now.")
        }
        (State::WouldGo, Some(node)) => {
            let node = out.paint.good(node);
            format!("Pod {name} is on no node; decided now, it goes to {node}.")
        }
        (State::Placed, Some(node)) if node == on => {
            let node = out.paint.good(node);
            format!("Pod {name} is on {node}, and would go there again.")
        }
        (State::Placed, Some(node)) => {
            let node = out.paint.good(node);
            format!("Pod {name} is on {on}; placed anew, it would go to {node}.")
        }
        (State::Placed, None) => {
            format!("Pod {name} is on {on}; placed anew, it would go {nowhere}.")
        }
        (State::Gated, target) => {
            let gates = explanation.gates.join(", ");
            let then = target.map_or_else(
                || format!("it would go {nowhere}"),
                |node| format!("it would go to {}", out.paint.good(node)),
            );
            format!("Pod {name} is held by its scheduling gates ({gates}); without them {then}.")
        }
    };
    // First and unbroken: people and tools search for it with grep.
    match explanation.standing {
        // The pod has no node yet: the sentence would mislead.
        State::WouldGo => {}
        _ => out.line(0, &explanation.message),
    }
    out.line(0, &line);
    if let Some(now) = explanation
        .message_now
        .as_deref()
        .filter(|_| target.is_none())
    {
        out.line(0, &format!("Now: {now}"));
    }
}

/// A text with a capital letter at its beginning and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
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
    let width = what_if.suggestions.iter().map(|s| s.text.chars().count());
    let column = width
        .filter(|&w| w + 20 < out.width)
        .max()
        .unwrap_or_default();
    for Suggestion {
        text, would_go_to, ..
    } in &what_if.suggestions
    {
        let target = would_go_to.as_deref().unwrap_or("the new node");
        let target = out.paint.good(target);
        out.line(2, &format!("- {text:column$}  -> {target}"));
    }
}
