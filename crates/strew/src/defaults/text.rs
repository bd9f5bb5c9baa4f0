//! A report for people: the sum first, then the workloads that would change, then those that stay and why.

use std::collections::BTreeMap;
use std::fmt::Write;

use strew_manifest::printable::printable_line;

use super::values::{DefaultCounts, DefaultsReport, Effect, WorkloadDefaults};
use crate::context::Context;
use crate::text::{count, drawn, short_key};

/// The most domains of a constraint that are listed.
const DOMAINS_MAX: usize = 8;

/// The report; of more changed workloads than `top`, the first.
pub(super) fn write(report: &DefaultsReport, context: &Context, top: usize) -> String {
    let mut out = String::new();
    write_sum(&mut out, report, context);
    write_changed(&mut out, report, context, top);
    write_rest(&mut out, report, top);
    let dim = context.terminal.styles.dim;
    let _ = writeln!(
        out,
        "\n{dim}nothing was changed: {} defaults FILE | kubectl apply -f - adds the policies{dim:#}",
        context.program
    );
    drawn(out, &context.terminal)
}

fn write_sum(out: &mut String, report: &DefaultsReport, context: &Context) {
    let sums = &report.summary;
    let styles = &context.terminal.styles;
    let (mark, style) = match sums.uneven + sums.pending + sums.without_domains {
        0 => ("✓", styles.good),
        _ => ("✗", styles.bad),
    };
    let uneven = match sums.uneven {
        0 => "none is uneven under it now".to_owned(),
        1 => "1 is uneven under it now".to_owned(),
        n => format!("{n} are uneven under it now"),
    };
    let pending = match sums.pending {
        0 => String::new(),
        n => format!(", {n} would have Pending pods"),
    };
    let _ = writeln!(
        out,
        "{style}{mark}{style:#} this would change {} of {}: {uneven}{pending}",
        sums.changed,
        count(sums.workloads, "workload"),
    );
    if sums.without_domains > 0 {
        let mut all = report
            .workloads
            .iter()
            .filter_map(WorkloadDefaults::without_domains);
        let key = all.next().map_or("", |constraint| &constraint.topology_key);
        let _ = writeln!(
            out,
            "of {}, no node has the label {}: that constraint spreads nothing, and takes the place of kube-scheduler's own defaults",
            count(sums.without_domains, "workload"),
            printable_line(key)
        );
    }
    if sums.counted_otherwise > 0 {
        let _ = writeln!(
            out,
            "of {}, other pods count than with kube-scheduler's own defaults",
            count(sums.counted_otherwise, "workload")
        );
    }
}

fn write_changed(out: &mut String, report: &DefaultsReport, context: &Context, top: usize) {
    let is_changed = |w: &&WorkloadDefaults| w.effect == Effect::Changed;
    let changed: Vec<_> = report.workloads.iter().filter(is_changed).collect();
    let styles = &context.terminal.styles;
    for workload in changed.iter().take(top) {
        let is_bad =
            workload.uneven || workload.pending > 0 || workload.without_domains().is_some();
        let (mark, style) = match is_bad {
            true => ("✗", styles.bad),
            false => ("✓", styles.good),
        };
        let pods = count(workload.pods, "pod");
        let otherwise = match workload.counted_otherwise {
            true => "; kube-scheduler's own defaults would count other pods",
            false => "",
        };
        let _ = writeln!(
            out,
            "  {style}{mark}{style:#} {} ({pods}){otherwise}",
            name(workload)
        );
        for constraint in &workload.constraints {
            let same = workload.constraints.iter();
            let same = same.filter(|other| other.topology_key == constraint.topology_key);
            let selector = match same.count() {
                0 | 1 => String::new(),
                _ => format!("   {}", printable_line(&constraint.selector)),
            };
            let _ = writeln!(out, "      {}{selector}", counted(constraint));
        }
        if workload.pending > 0 {
            let message = workload.message.as_deref().unwrap_or_default();
            let _ = writeln!(
                out,
                "      created again, {} would stay Pending: {}",
                count(workload.pending, "pod"),
                printable_line(message)
            );
        }
    }
    let n_left = changed.len().saturating_sub(top);
    if n_left > 0 {
        let dim = styles.dim;
        let _ = writeln!(
            out,
            "  {dim}… and {} (-o wide shows all){dim:#}",
            count(n_left, "more workload")
        );
    }
}

/// `over zone, maxSkew 1: a 3, b 1; skew 2`
fn counted(constraint: &DefaultCounts) -> String {
    let domains = constraint.domains.iter();
    let mut texts: Vec<String> = domains
        .take(DOMAINS_MAX)
        .map(|d| format!("{} {}", printable_line(&d.domain), d.pods))
        .collect();
    let n_left = constraint.domains.len().saturating_sub(DOMAINS_MAX);
    if n_left > 0 {
        texts.push(format!("{n_left} more"));
    }
    let soft = if constraint.hard {
        ""
    } else {
        ", ScheduleAnyway"
    };
    let moves = match constraint.moves {
        0 => String::new(),
        n => format!(
            ", {} must move",
            count(usize::try_from(n).unwrap_or(usize::MAX), "pod")
        ),
    };
    let counts = match constraint.domains.is_empty() {
        true => format!(
            "no node has the label {}",
            printable_line(&constraint.topology_key)
        ),
        false => format!("{}; skew {}{moves}", texts.join(", "), constraint.skew),
    };
    format!(
        "over {}, maxSkew {}{soft}: {counts}",
        printable_line(short_key(&constraint.topology_key)),
        constraint.max_skew,
    )
}

fn name(workload: &WorkloadDefaults) -> String {
    let text = format!(
        "{}/{}/{}",
        workload.namespace,
        workload.kind.to_lowercase(),
        workload.name
    );
    printable_line(&text).into_owned()
}

/// The workloads that stay as they are, by reason: the first of each, or all if more than these are asked for.
fn write_rest(out: &mut String, report: &DefaultsReport, top: usize) {
    let mut by_reason: BTreeMap<(Effect, &str), Vec<&WorkloadDefaults>> = BTreeMap::new();
    for workload in &report.workloads {
        if workload.effect != Effect::Changed {
            let reason = workload.reason.as_deref().unwrap_or_default();
            let key = (workload.effect, reason);
            by_reason.entry(key).or_default().push(workload);
        }
    }
    if by_reason.is_empty() {
        return;
    }
    let n_shown = if top == usize::MAX { top } else { 1 };
    out.push_str("\nstay as they are\n");
    for ((_, reason), workloads) in by_reason {
        let shown = workloads
            .iter()
            .take(n_shown)
            .map(|workload| name(workload));
        let shown: Vec<String> = shown.collect();
        let more = match workloads.len() - shown.len() {
            0 => String::new(),
            n => format!(" and {}", count(n, "more workload")),
        };
        let _ = writeln!(out, "  {}{more}: {reason}", shown.join(", "));
    }
}
