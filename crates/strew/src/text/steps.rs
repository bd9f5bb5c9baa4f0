//! A later step: what it has changed.

use std::fmt::Write;

use super::domains::short_key;
use super::{Look, count, time_text};
use crate::story::{Done, StepName};
use strew_view::skews::Skews;
use strew_view::spread::Spread;
use strew_view::view::View;
use strew_view::world::World;

/// A block: the step, and a line for each workload that is otherwise than before.
pub(crate) fn step_block(
    done: &Done,
    view: &View,
    before: &View,
    skews: &Skews,
    workloads: &[usize],
    look: &Look<'_>,
) -> String {
    let title = look.terminal.styles.title;
    let name = done.step.name();
    let mut out = format!("{title}{name}{title:#}  {}", what(done));
    let words = if done.rests { "at rest" } else { "as it was" };
    let _ = writeln!(out, ": {words} after {}", time_text(done.at));
    for refused in &done.refused {
        let _ = writeln!(out, "  not done: {refused}");
    }
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

fn what(done: &Done) -> String {
    let target = done.target.as_deref().unwrap_or("nothing");
    match done.step {
        StepName::Deploy => "all pods".to_owned(),
        StepName::Rollout => "every Deployment, StatefulSet and DaemonSet restarted".to_owned(),
        StepName::Scale => "to half the replicas".to_owned(),
        StepName::Lose => format!("{target} lost"),
        StepName::Restore => format!("{target} restored"),
    }
}

/// The spreads that have changed, a line each; `None`: nothing about the workload has.
fn changes(view: &View, before: &View, skews: &Skews, workload: usize) -> Option<String> {
    let (now, was) = (&view.summaries[workload], before.summaries.get(workload)?);
    let same_pods = now.placed == 0
        && now.replicas == was.replicas
        && now.ready == was.ready
        && now.terminating == was.terminating
        && now.n_pending() == was.n_pending();
    let mut lines = String::new();
    let spreads = view.spreads[workload].iter();
    for spread in spreads.filter(|spread| !spread.domains.is_empty()) {
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

/// Domains whose counts are written out.
const DOMAINS_MAX: usize = 8;

/// `2/3/3` before and now, with names once: the domains are in the same order.
fn counts(world: &World, spread: &Spread) -> Option<(String, String)> {
    if spread.domains.len() > DOMAINS_MAX {
        return None;
    }
    let name = |d: &strew_view::spread::Domain| world.cluster.names.text(d.value).to_owned();
    let domains = spread.domains.iter();
    let before = domains.clone().map(|d| d.before.unwrap_or(0).to_string());
    let now = domains.map(|d| format!("{} {}", name(d), d.count));
    let before: Vec<String> = before.collect();
    let now: Vec<String> = now.collect();
    Some((before.join("/"), now.join(", ")))
}

fn replicas(view: &View, before: &View, workload: usize, look: &Look<'_>) -> String {
    let (now, was) = (&view.summaries[workload], &before.summaries[workload]);
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
