//! A later step: its changes.

use std::fmt::Write;

use strew_manifest::printable::printable_line;

use super::domains::{domain_name, short_key};
use super::{Look, count, time_text};
use strew_model::Span;
use strew_scenario::format::{NodeTarget, Replicas, RolloutAction, Step, Verb};
use strew_scenario::run::{StepResult, StepState};
use strew_view::skews::Skews;
use strew_view::spread::Spread;
use strew_view::view::{Summary, View};
use strew_view::world::World;

/// The step and how it ended, in one or more lines.
pub(crate) fn step_head(name: &str, step: &Step, result: &StepResult, look: &Look<'_>) -> String {
    let title = look.terminal.styles.title;
    let mut out = format!("{title}{name}{title:#}");
    let verbs = step.verbs.iter();
    let verbs: Vec<String> = verbs
        .map(|located| verb_text(&located.verb, &located.text, &result.chosen))
        .collect();
    match verbs.is_empty() {
        true => out.push_str("  nothing done"),
        false => {
            let _ = write!(out, "  {}", verbs.join(", "));
        }
    }
    let after = time_text(Span(result.ended.0.saturating_sub(result.began.0)));
    match result.state {
        StepState::Done => {}
        StepState::AtRest => {
            let _ = write!(out, ": at rest after {after}");
        }
        StepState::NotAtRest => {
            let _ = write!(out, ": not at rest after {after}");
        }
        StepState::Cut => {
            let _ = write!(out, ": ended after {after}");
        }
    }
    out.push('\n');
    for refused in &result.refused {
        let _ = writeln!(out, "  not done: {}: {}", refused.text, refused.why);
    }
    out
}

/// The verdict on a step's expectations: `ok`, `failed`, or `open` in a run that ended before.
pub(crate) fn verdict(result: &StepResult, look: &Look<'_>) -> String {
    let all = || result.expectations.iter();
    let styles = &look.terminal.styles;
    let is_refused = result.refused.iter().any(|refused| refused.is_breach);
    let (word, style) = match all().all(|outcome| outcome.held) && !is_refused {
        true => ("ok", styles.good),
        false if is_refused || all().any(|o| !o.held && !o.is_open) => ("failed", styles.bad),
        false => ("open", styles.warning),
    };
    format!("{style}{word}{style:#}")
}

/// A line for each failed expectation, with what was found.
pub(crate) fn failed(result: &StepResult, look: &Look<'_>) -> String {
    let bad = look.terminal.styles.bad;
    let broken = result.expectations.iter();
    let broken = broken.filter(|outcome| !outcome.held && !outcome.is_open);
    let lines = broken.map(|outcome| {
        let why = printable_line(&outcome.why);
        format!("  {bad}failed{bad:#}: {why}\n")
    });
    lines.collect()
}

/// A verb as text; in words if it names many objects.
fn verb_text(verb: &Verb, text: &str, chosen: &[String]) -> String {
    let nodes = |targets: &[NodeTarget], done: &str| {
        let targets = targets.iter().map(|target| match target {
            NodeTarget::Name(name) => name.clone(),
            NodeTarget::Label(key, value) => format!("{}={value}", short_key(key)),
            NodeTarget::MostPods(_) | NodeTarget::Lost => chosen.join(", "),
        });
        let targets: Vec<String> = targets.collect();
        match targets.join(", ").as_str() {
            "" => format!("nothing {done}"),
            targets => format!("{targets} {done}"),
        }
    };
    match verb {
        Verb::Rollout(RolloutAction::Restart, targets) => {
            format!("{} restarted", count(targets.len(), "workload"))
        }
        Verb::Scale(targets) if targets.len() > 1 => {
            let first = targets[0].1;
            let n = count(targets.len(), "workload");
            match first {
                Replicas::Percent(percent) if targets.iter().all(|(_, to)| *to == first) => {
                    format!("{n} to {percent}% of the replicas")
                }
                _ => format!("{n} scaled"),
            }
        }
        Verb::Lose(targets) => nodes(targets, "lost"),
        Verb::Restore(targets) => nodes(targets, "restored"),
        _ => text.to_owned(),
    }
}

/// A line for each workload that changed.
pub(crate) fn step_changes(
    view: &View,
    before: &View,
    skews: &Skews,
    workloads: &[usize],
    look: &Look<'_>,
) -> String {
    let mut out = String::new();
    let mut n_same = 0;
    for &workload in workloads {
        match changes(view, before, skews, workload) {
            None => n_same += 1,
            Some(lines) => {
                let world = &view.world;
                let name = &world.workloads[workload].name;
                let _ = write!(out, "  {}", name.of());
                if name.namespace != "default" && !look.in_namespace {
                    let _ = write!(out, " -n {}", name.namespace);
                }
                let _ = writeln!(out, "  {}", replicas(view, before, workload, look));
                out.push_str(&lines);
                pending(&mut out, view, workload, look);
            }
        }
    }
    if n_same > 0 {
        let _ = writeln!(out, "  {}: no change", count(n_same, "workload"));
    }
    out
}

/// The changed spreads, one line each; `None` if the workload is known and nothing about it has changed.
fn changes(view: &View, before: &View, skews: &Skews, workload: usize) -> Option<String> {
    let nothing = Summary::default();
    let now = &view.summaries[workload];
    let known = before.summaries.get(workload);
    let was = known.unwrap_or(&nothing);
    let same_pods = known.is_some()
        && now.placed == 0
        && now.replicas == was.replicas
        && now.ready == was.ready
        && now.terminating == was.terminating
        && now.n_pending() == was.n_pending();
    let mut lines = String::new();
    // The skew of one pod has no meaning; a constraint of the user is shown.
    let is_one = now.replicas <= 1 && was.replicas <= 1;
    let is_told = |spread: &&Spread| {
        let is_asked = spread.constraint.as_ref().is_some_and(|c| !c.is_default);
        !spread.domains.is_empty() && (!is_one || is_asked)
    };
    for spread in view.spreads[workload].iter().filter(is_told) {
        let key = view.world.cluster.names.text(spread.key);
        let largest = skews.of(workload).find(|(of, _)| *of == key);
        let on_the_way = largest.map_or(0, |(_, largest)| largest.step);
        let was = spread.skew_before.unwrap_or(0);
        if same_pods && was == spread.skew && on_the_way <= was {
            continue;
        }
        let _ = write!(lines, "    by {}: ", short_key(key));
        if let Some((then, now)) = counts(&view.world, spread) {
            let _ = write!(lines, "{then} -> {now}, ");
        }
        let _ = write!(lines, "skew {was} -> {}", spread.skew);
        if on_the_way > was.max(spread.skew) {
            let _ = write!(lines, ", up to {on_the_way} on the way");
        }
        lines.push('\n');
    }
    (!same_pods || !lines.is_empty()).then_some(lines)
}

/// The largest number of domains whose counts are written out.
const DOMAINS_MAX: usize = 8;

/// `2/3/3` before and now, with names once: the domains have the same order.
fn counts(world: &World, spread: &Spread) -> Option<(String, String)> {
    if spread.domains.len() > DOMAINS_MAX {
        return None;
    }
    let domains = spread.domains.iter();
    let before = domains.clone().map(|d| d.before.unwrap_or(0).to_string());
    let now = domains.map(|d| format!("{} {}", domain_name(world, d), d.count));
    let before: Vec<String> = before.collect();
    let now: Vec<String> = now.collect();
    Some((before.join("/"), now.join(", ")))
}

fn replicas(view: &View, before: &View, workload: usize, look: &Look<'_>) -> String {
    let nothing = Summary::default();
    let now = &view.summaries[workload];
    let was = before.summaries.get(workload).unwrap_or(&nothing);
    let mut text = match now.replicas == was.replicas {
        true => count(now.replicas, "replica"),
        false => format!("{} -> {}", was.replicas, count(now.replicas, "replica")),
    };
    let _ = write!(text, ", {} ready", now.ready);
    if now.placed > 0 {
        let _ = write!(text, ", {} new", now.placed);
    }
    if now.terminating > 0 {
        let _ = write!(text, ", {} Terminating", now.terminating);
    }
    if now.n_pending() > 0 {
        let bad = look.terminal.styles.bad;
        let _ = write!(text, ", {bad}{} Pending{bad:#}", now.n_pending());
    }
    if !now.revisions.is_empty() {
        let each = now.revisions.iter();
        let each: Vec<String> = each.map(|(hash, n)| format!("{n} of {hash}")).collect();
        let _ = write!(text, ", revisions: {}", each.join(", "));
    }
    text
}

fn pending(out: &mut String, view: &View, workload: usize, look: &Look<'_>) {
    let bad = look.terminal.styles.bad;
    for group in &view.summaries[workload].pending {
        let n = group.entries.len();
        let _ = writeln!(
            out,
            "    {bad}{n} Pending{bad:#}: {}",
            group.blocked.message
        );
    }
}
