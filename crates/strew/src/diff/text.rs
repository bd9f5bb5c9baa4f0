//! The difference as text: per step its summary, then the changes, the worst first.

use std::fmt::Write;

use serde_json::Value;
use strew_manifest::printable::printable_line;

use super::compare::{Change, Difference, KeySummary, Moved, StepSummary};
use super::manifests::Refusal;
use crate::context::Context;
use crate::terminal;
use crate::text::{count, short_key};

/// The number of changes of a place that are written out.
const CHANGES_MAX: usize = 8;

/// Which changes of a step are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// At most so many, the worst ones.
    pub(super) top: usize,
    /// True if as many of those that got better follow.
    pub(super) has_best: bool,
}

/// `✗ refused: deployment/web: Deployment "web" is invalid: spec.selector: … field is immutable`; then what is `wrong`
/// after the change.
pub(super) fn refused(all: &[Refusal], wrong: &[String], context: &Context) -> String {
    let bad = context.terminal.styles.bad;
    let line = |refusal: &Refusal| {
        format!(
            "{bad}✗{bad:#} refused: {}: {}\n",
            printable_line(&refusal.of),
            printable_line(&refusal.why)
        )
    };
    let wrong = wrong.iter();
    let wrong = wrong.map(|why| format!("{bad}✗{bad:#} {}\n", printable_line(why)));
    let out: String = all.iter().map(line).chain(wrong).collect();
    match context.terminal.unicode {
        true => out,
        false => terminal::ascii(&out),
    }
}

/// The summary of each step, and its changes unless only the summary is wanted.
pub(super) fn write(difference: &Difference, shown: Shown, context: &Context) -> String {
    let mut out = String::new();
    for summary in &difference.steps {
        let of_step = difference.moved.iter();
        let of_step = of_step.filter(|moved| moved.moment == summary.moment);
        let moved: Vec<&Moved> = of_step.collect();
        if !moved.is_empty() || summary.is_one_sided() {
            step(&mut out, summary, &moved, shown, context);
        }
    }
    let n: usize = difference
        .moved
        .iter()
        .map(|moved| moved.changes.len())
        .sum();
    let _ = match n {
        0 => writeln!(out, "nothing moved"),
        n => writeln!(
            out,
            "{} in {}",
            count(n, "change"),
            count(difference.moved.len(), "place")
        ),
    };
    match context.terminal.unicode {
        true => out,
        false => terminal::ascii(&out),
    }
}

fn step(
    out: &mut String,
    summary: &StepSummary,
    moved: &[&Moved],
    shown: Shown,
    context: &Context,
) {
    let styles = &context.terminal.styles;
    let title = styles.title;
    let _ = writeln!(out, "{title}{}{title:#}", summary.moment);
    let pending = summary.pending;
    if pending.before + pending.after > 0 {
        let style = match pending.after > pending.before {
            true => styles.bad,
            false => styles.good,
        };
        let _ = writeln!(
            out,
            "  {style}Pending {} → {}{style:#}",
            pending.before, pending.after
        );
    }
    for key in &summary.by {
        by_key(out, key, context);
    }
    for (keys, which) in [
        (&summary.only_before, "first"),
        (&summary.only_after, "second"),
    ] {
        for key in keys {
            let _ = writeln!(
                out,
                "  by {}: counted in the {which} report only",
                short_key(key)
            );
        }
    }
    if context.quiet {
        return;
    }
    let Shown { top, has_best } = shown;
    for moved in moved.iter().take(top) {
        place(out, moved, context);
    }
    let rest = moved.get(top..).unwrap_or_default();
    let mut n_best = 0;
    if has_best {
        let best = rest.iter().rev().filter(|moved| moved.worse < 0).take(top);
        for moved in best {
            place(out, moved, context);
            n_best += 1;
        }
    }
    if rest.len() > n_best {
        let dim = styles.dim;
        let more = count(rest.len() - n_best, "more place");
        let _ = writeln!(out, "  {dim}… and {more} (--all shows them){dim:#}");
    }
}

/// `deployment/web by zone: in zone-a 4 → 5 (+1), skew 0 → 1 (+1)`
fn place(out: &mut String, moved: &Moved, context: &Context) {
    let styles = &context.terminal.styles;
    let style = match moved.worse {
        1.. => styles.bad,
        0 => styles.dim,
        _ => styles.good,
    };
    let told = moved.changes.iter().take(CHANGES_MAX).map(change);
    let mut told: Vec<String> = told.collect();
    if moved.changes.len() > CHANGES_MAX {
        told.push(format!("and {} more", moved.changes.len() - CHANGES_MAX));
    }
    let _ = writeln!(out, "  {style}{}{style:#}: {}", moved.what, told.join(", "));
}

/// `by rack: 142 workloads better, 31 worse, 304 same; mean skew 1.4 → 1.1`
fn by_key(out: &mut String, key: &KeySummary, context: &Context) {
    let KeySummary {
        better,
        worse,
        same,
        ..
    } = key;
    let styles = &context.terminal.styles;
    let (good, bad) = (styles.good, styles.bad);
    let _ = writeln!(
        out,
        "  by {}: {good}{better} better{good:#}, {bad}{worse} worse{bad:#}, {same} same; mean skew {:.1} → {:.1}",
        short_key(&key.key),
        key.mean_skew_before,
        key.mean_skew_after
    );
}

impl StepSummary {
    fn is_one_sided(&self) -> bool {
        !self.only_before.is_empty() || !self.only_after.is_empty()
    }
}

/// `in zone-a 4 → 5 (+1)`
fn change(change: &Change) -> String {
    let word = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    };
    let mut out = format!(
        "{} {} → {}",
        change.of,
        word(&change.before),
        word(&change.after)
    );
    if let (Some(before), Some(after)) = (change.before.as_i64(), change.after.as_i64()) {
        let _ = write!(out, " ({:+})", after - before);
    }
    out
}
