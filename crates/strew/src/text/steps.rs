//! A later step: its changes.

use std::collections::BTreeMap;
use std::fmt::Write;

use strew_manifest::printable::printable_line;
use strew_manifest::read::Severity;
use strew_scenario::expect::availability::Preemption;
use strew_scenario::expect::workloads::LossOf;
use strew_view::loss::LossVerdict;

use super::domains::{domain_name, own_line};
use super::{Look, count, finished_text, short_key, time_text, widest};
use strew_model::Span;
use strew_scenario::format::{NodeTarget, Replicas, RolloutAction, Step, Verb};
use strew_scenario::run::{StepResult, StepState};
use strew_view::cluster_state::ClusterState;
use strew_view::skews::Skews;
use strew_view::spread::Spread;
use strew_view::view::{Summary, View};

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

/// What is told of a step: a line for each failed expectation, what a loss did to each workload, pods that were deleted
/// to make room, and what a person should know.
pub(crate) fn told(result: &StepResult, look: &Look<'_>) -> String {
    let styles = &look.terminal.styles;
    let mut out = String::new();
    let facts = &result.facts;
    let is_of_loss = |code: &str| {
        LossVerdict::ALL
            .iter()
            .any(|verdict| verdict.code() == code)
    };
    for outcome in &result.expectations {
        let mut findings = outcome.findings.iter();
        // The losses say the same in more lines.
        let is_told = !facts.losses.is_empty() && findings.any(|f| is_of_loss(&f.code));
        if !outcome.held && !outcome.is_open && !is_told {
            let (bad, why) = (styles.bad, printable_line(&outcome.why));
            let _ = writeln!(out, "  {bad}failed{bad:#}: {why}");
        }
    }
    losses(&mut out, &facts.losses, look);
    preempted(&mut out, &facts.preemptions);
    let findings = result.expectations.iter().flat_map(|o| &o.findings);
    let findings = findings.filter(|finding| !is_of_loss(&finding.code));
    for finding in findings.filter(|finding| finding.severity > Severity::Error) {
        let (mark, style) = match finding.severity {
            Severity::Note => ("-", styles.dim),
            _ => ("!", styles.warning),
        };
        let message = printable_line(&finding.message);
        let _ = writeln!(out, "  {style}{mark}{style:#} {message}");
    }
    out
}

/// The largest number of workloads that survive a loss and have a line each.
const SURVIVORS_MAX: usize = 5;

/// A line for each workload, the worst first; many that survive share one.
fn losses(out: &mut String, losses: &[LossOf], look: &Look<'_>) {
    let styles = &look.terminal.styles;
    let survives = |of: &&LossOf| of.loss.verdict() == LossVerdict::Survives;
    let n_survive = losses.iter().filter(survives).count();
    let is_folded = n_survive > SURVIVORS_MAX;
    let shown = losses.iter().filter(|of| !is_folded || !survives(of));
    let shown: Vec<&LossOf> = shown.collect();
    let width = widest(shown.iter().map(|of| &of.name));
    for of in shown {
        let (mark, style) = match of.severity() {
            Some(Severity::Error) => ("✗", styles.bad),
            Some(Severity::Warning) => ("!", styles.warning),
            Some(Severity::Note) => ("-", styles.dim),
            None if of.loss.verdict() == LossVerdict::Unknown => ("?", styles.dim),
            None => ("✓", styles.good),
        };
        let _ = writeln!(
            out,
            "  {style}{mark}{style:#} {:width$}  {:8}  {}{}",
            printable_line(&of.name),
            of.loss.verdict().name(),
            of.loss.sentence(),
            if of.is_recorded { " (of the dump)" } else { "" }
        );
        if let Some(missing) = &of.missing {
            let _ = writeln!(out, "      {}", printable_line(&missing.to_string()));
        }
    }
    if is_folded {
        let good = styles.good;
        let more = count(n_survive, "workload");
        let _ = writeln!(out, "  {good}✓{good:#} {more} SURVIVE");
    }
}

/// `preempted: 2 pods of deployment/low for deployment/high (the first: low-x on n1)`, for each pair of workloads.
fn preempted(out: &mut String, preemptions: &[Preemption]) {
    let mut pairs: BTreeMap<(String, String), Vec<&Preemption>> = BTreeMap::new();
    for preemption in preemptions {
        let pair = (preemption.victim_text(), preemption.by_text());
        pairs.entry(pair).or_default().push(preemption);
    }
    for ((victim, by), all) in pairs {
        let first = all.first().map_or("", |first| &first.victim.name);
        let text = match (all.len(), victim.as_str()) {
            (1, victim) if victim.starts_with("pod/") => format!("{victim} for {by}"),
            (n, victim) => format!("{} of {victim} for {by} ({first})", count(n, "pod")),
        };
        let _ = writeln!(out, "  preempted: {}", printable_line(&text));
    }
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
        && now.finished == was.finished
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
        lines.push_str(&own_line(&view.world, spread, "      "));
    }
    (!same_pods || !lines.is_empty()).then_some(lines)
}

/// The largest number of domains whose counts are written out.
const DOMAINS_MAX: usize = 8;

/// `2/3/3` before and now, with names once: the domains have the same order.
fn counts(world: &ClusterState, spread: &Spread) -> Option<(String, String)> {
    if spread.domains.len() > DOMAINS_MAX {
        return None;
    }
    let domains = spread.domains.iter();
    let before = domains.clone().map(|d| d.before.unwrap_or(0).to_string());
    let now = domains.map(|d| format!("{} {}", domain_name(world, &d), d.count));
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
    let finished = finished_text(&now.finished).filter(|_| now.finished != was.finished);
    if let Some(finished) = &finished
        && [now, was].map(|s| s.replicas) == [0, 0]
    {
        return finished.clone();
    }
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
    if let Some(finished) = finished {
        let _ = write!(text, ", {finished}");
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
