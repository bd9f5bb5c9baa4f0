//! The result for people.

use std::fmt::Write;

use crate::deploy::Outcome;
use crate::report::when_unsatisfiable;
use crate::simulation::{Shown, Simulation, Summary};
use crate::spread::{Constraint, Spread};
use crate::terminal::Terminal;
use crate::usage::{self, Usage, bytes_short, cpu_text, percent};
use crate::world::World;

/// How to write it.
pub(crate) struct Look<'a> {
    pub(crate) terminal: &'a Terminal,
    /// Every domain, node and key in full.
    pub(crate) wide: bool,
    /// Every pod with its node.
    pub(crate) pods: bool,
    pub(crate) headers: bool,
    /// The command that explains a pod, without its name and namespace.
    pub(crate) explain: &'a dyn Fn(&str, &str) -> String,
    /// Whether a namespace was asked for: then it is not repeated.
    pub(crate) in_namespace: bool,
}

/// Domains that get a bar each; of more, a line says how many hold how much.
const BARS_MAX: usize = 8;

/// The whole result.
pub(crate) fn write(simulation: &Simulation, shown: &Shown, look: &Look<'_>) -> String {
    let mut out = String::new();
    for &index in &shown.workloads {
        workload(&mut out, simulation, index, look);
        out.push('\n');
    }
    if shown.n_left_out > 0 {
        let dim = look.terminal.styles.dim;
        let n = shown.n_left_out;
        let _ = writeln!(
            out,
            "{dim}… and {n} more workloads, less Pending and less skewed (--all shows them, -n and -l choose){dim:#}\n"
        );
    }
    nodes(&mut out, simulation, look);
    out.push('\n');
    out.push_str(&summary_line(simulation, look.terminal));
    if !look.terminal.unicode {
        out = out.replace('…', "...");
    }
    out
}

/// The last line.
pub(crate) fn summary_line(simulation: &Simulation, terminal: &Terminal) -> String {
    let sum = |of: fn(&Summary) -> usize| simulation.summaries.iter().map(of).sum::<usize>();
    let (before, placed, alone) = (sum(|s| s.before), sum(|s| s.placed), sum(|s| s.left_alone));
    let pending = simulation.n_pending();
    let style = if pending == 0 {
        terminal.styles.good
    } else {
        terminal.styles.bad
    };
    let mut text = count(simulation.world.pods.len(), "pod");
    let _ = write!(
        text,
        " of {} on {}: ",
        count(simulation.world.workloads.len(), "workload"),
        count(simulation.nodes.len(), "node")
    );
    if before > 0 {
        let _ = write!(text, "{before} were there, ");
    }
    let _ = write!(text, "{placed} placed, {style}{pending} Pending{style:#}");
    if alone > 0 {
        let _ = write!(text, ", {alone} left alone");
    }
    if simulation.world.n_finished > 0 {
        let _ = write!(
            text,
            " ({} more have finished)",
            simulation.world.n_finished
        );
    }
    text.push('\n');
    text
}

/// `1 pod`, `2 pods`, `1,523 pods`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n))
}

fn grouped(n: usize) -> String {
    match n {
        0..10_000 => n.to_string(),
        _ => {
            let rest = format!("{:03}", n % 1000);
            format!("{},{rest}", grouped_above(n / 1000))
        }
    }
}

fn grouped_above(n: usize) -> String {
    match n {
        0..1000 => n.to_string(),
        _ => format!("{},{:03}", grouped_above(n / 1000), n % 1000),
    }
}

fn workload(out: &mut String, simulation: &Simulation, index: usize, look: &Look<'_>) {
    let world = &simulation.world;
    let name = &world.workloads[index].name;
    let summary = &simulation.summaries[index];
    let title = look.terminal.styles.title;
    let _ = write!(out, "{title}{}{title:#}", name.of());
    if name.namespace != "default" && !look.in_namespace {
        let _ = write!(out, " -n {}", name.namespace);
    }
    let _ = writeln!(out, "  {}", replicas(summary, look));
    let is_one = name.kind == "Pod" || summary.replicas == 1;
    for spread in &simulation.spreads[index] {
        // Of a single pod only what was asked for is worth a line.
        let is_asked = spread.constraint.as_ref().is_some_and(|c| !c.is_default);
        if !is_one || is_asked || look.wide {
            spread_block(out, world, spread, look);
        }
    }
    if is_one && !look.pods {
        own_place(out, simulation, index);
    }
    pending(out, simulation, index, look);
    if look.pods {
        pods(out, simulation, index);
    }
}

fn replicas(summary: &Summary, look: &Look<'_>) -> String {
    let mut parts = Vec::new();
    if summary.before > 0 {
        parts.push(format!("{} there before", summary.before));
    }
    if summary.placed > 0 || summary.before == 0 {
        parts.push(format!("{} placed", summary.placed));
    }
    if summary.ready < summary.before + summary.placed {
        parts.push(format!("{} ready", summary.ready));
    }
    if summary.left_alone > 0 {
        parts.push(format!("{} left alone", summary.left_alone));
    }
    let n_pending = summary.n_pending();
    if n_pending > 0 {
        let bad = look.terminal.styles.bad;
        parts.push(format!("{bad}{n_pending} Pending{bad:#}"));
    }
    format!(
        "{}: {}",
        count(summary.replicas, "replica"),
        parts.join(", ")
    )
}

/// Where a workload's only pod is.
fn own_place(out: &mut String, simulation: &Simulation, index: usize) {
    let world = &simulation.world;
    let node = world.members[index]
        .first()
        .and_then(|&entry| world.node_of(entry));
    if let Some(node) = node {
        let name = world.node_name(node);
        let usage = simulation.nodes.iter().find(|usage| usage.name == name);
        let zone = usage.and_then(|usage| usage.zone.as_deref());
        let zone = zone.map_or(String::new(), |zone| format!(" in {zone}"));
        let _ = writeln!(out, "  on {name}{zone}");
    }
}

fn spread_block(out: &mut String, world: &World, spread: &Spread, look: &Look<'_>) {
    let key = world.cluster.names.text(spread.key);
    let key = if look.wide { key } else { short_key(key) };
    let _ = write!(out, "  by {key}: skew {}", spread.skew);
    if let Some(before) = spread.skew_before.filter(|&before| before != spread.skew) {
        let _ = write!(out, " (was {before})");
    }
    let _ = write!(out, ", {}", constraint_text(world, spread, look));
    if spread.n_others > 0 {
        let _ = write!(
            out,
            "; {} of others count",
            count(spread.n_others as usize, "pod")
        );
    }
    out.push('\n');
    if spread.domains.len() <= BARS_MAX || look.wide {
        bars(out, world, spread, look);
    } else {
        histogram(out, spread);
    }
}

fn constraint_text(world: &World, spread: &Spread, look: &Look<'_>) -> String {
    let Some(constraint) = &spread.constraint else {
        return "no constraint".to_owned();
    };
    let Constraint {
        is_default,
        hard,
        max_skew,
        min_domains,
        ..
    } = constraint;
    let mut text = String::new();
    if *is_default {
        text.push_str("(cluster default) ");
    }
    let _ = write!(text, "{} maxSkew {max_skew}", when_unsatisfiable(*hard));
    if let Some(min_domains) = min_domains {
        let _ = write!(text, " minDomains {min_domains}");
        if (spread.domains.len() as i64) < i64::from(*min_domains) {
            let _ = write!(text, " (there are {})", spread.domains.len());
        }
    }
    if !constraint.match_label_keys.is_empty() {
        let keys: Vec<&str> = constraint
            .match_label_keys
            .iter()
            .map(|&key| world.cluster.names.text(key))
            .collect();
        let _ = write!(text, " matchLabelKeys {}", keys.join(","));
    }
    if look.wide {
        let _ = write!(text, ", counting {}", constraint.selector);
    }
    if spread.skew > *max_skew {
        let bad = look.terminal.styles.bad;
        let _ = write!(text, " {bad}(exceeded){bad:#}");
    }
    text
}

/// The names that people say.
fn short_key(key: &str) -> &str {
    match key {
        "kubernetes.io/hostname" => "hostname",
        "topology.kubernetes.io/zone" => "zone",
        "topology.kubernetes.io/region" => "region",
        key => key,
    }
}

fn bars(out: &mut String, world: &World, spread: &Spread, look: &Look<'_>) {
    let name = |value| match world.cluster.names.text(value) {
        "" => "<no label>",
        text => text,
    };
    let names = spread.domains.iter().map(|d| name(d.value).chars().count());
    let name_width = names.max().unwrap_or(0);
    let highest = spread
        .domains
        .iter()
        .map(|d| d.count)
        .max()
        .unwrap_or(0)
        .max(0) as usize;
    // Two spaces, the name, two spaces, the bar, the number.
    let room = look
        .terminal
        .width
        .saturating_sub(name_width + 20)
        .clamp(8, 48);
    let style = look.terminal.styles.bar;
    let cell = if look.terminal.unicode { "█" } else { "#" };
    for domain in &spread.domains {
        let count = domain.count.max(0) as usize;
        let length = match highest {
            0 => 0,
            _ if highest * 2 <= room => count * 2,
            _ => (count * room).div_ceil(highest),
        };
        let bar = cell.repeat(length);
        let gap = if length == 0 { "" } else { " " };
        let _ = write!(
            out,
            "    {:name_width$}  {style}{bar}{style:#}{gap}{}",
            name(domain.value),
            domain.count
        );
        let more = domain.count - domain.before.unwrap_or(domain.count);
        if more != 0 {
            let _ = write!(out, " ({more:+})");
        }
        out.push('\n');
    }
}

/// How many domains hold how much, the fullest first.
fn histogram(out: &mut String, spread: &Spread) {
    let mut counts: Vec<i32> = spread.domains.iter().map(|d| d.count).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let groups = counts.chunk_by(|a, b| a == b);
    let each: Vec<String> = groups
        .map(|group| {
            let domains = count(group.len(), "domain");
            match group[0] {
                0 => format!("{domains} empty"),
                held => format!("{domains} x{held}"),
            }
        })
        .collect();
    const GROUPS_SHOWN: usize = 6;
    let shown = match each.len() {
        n if n > GROUPS_SHOWN => {
            let head = each[..GROUPS_SHOWN - 2].join(", ");
            format!("{head}, …, {}", each[n - 1])
        }
        _ => each.join(", "),
    };
    let _ = writeln!(out, "    {shown}");
}

/// Different reasons shown of a workload.
const REASONS_MAX: usize = 3;

fn pending(out: &mut String, simulation: &Simulation, index: usize, look: &Look<'_>) {
    let world = &simulation.world;
    let bad = look.terminal.styles.bad;
    let groups = &simulation.summaries[index].pending;
    let max = if look.wide { groups.len() } else { REASONS_MAX };
    for group in groups.iter().take(max) {
        let n = group.entries.len();
        let _ = writeln!(out, "  {bad}{n} Pending{bad:#}: {}", group.blocked.message);
        let pod = &world.pods[group.entries[0]];
        let _ = writeln!(
            out,
            "    why: {}",
            (look.explain)(&pod.name, &pod.namespace)
        );
    }
    let left_out = groups.iter().skip(max);
    let n_left_out: usize = left_out.clone().map(|group| group.entries.len()).sum();
    if n_left_out > 0 {
        let reasons = count(left_out.count(), "more reason");
        let _ = writeln!(
            out,
            "  {bad}{n_left_out} Pending{bad:#} for {reasons} (-o wide shows them)"
        );
    }
}

fn pods(out: &mut String, simulation: &Simulation, index: usize) {
    let world = &simulation.world;
    for &entry in &world.members[index] {
        let was = match &simulation.deployed.outcomes[entry] {
            Outcome::WasBound => " (there before)",
            Outcome::Pending(_) => " Pending",
            Outcome::LeftAlone => " (left alone)",
            Outcome::Placed(_) => "",
        };
        let node = world
            .node_of(entry)
            .map_or("", |node| world.node_name(node));
        let _ = writeln!(out, "  pod/{} -> {node}{was}", world.pods[entry].name);
    }
}

fn nodes(out: &mut String, simulation: &Simulation, look: &Look<'_>) {
    if simulation.nodes.is_empty() {
        return;
    }
    let zones;
    let (usages, first) = match look.wide {
        true => (&simulation.nodes, "NODE"),
        false => {
            zones = usage::of_zones(&simulation.nodes);
            (&zones, "ZONE")
        }
    };
    let mut rows = Vec::new();
    if look.headers {
        let second = if look.wide { "ZONE" } else { "NODES" };
        let header = [first, second, "CPU", "MEMORY", "PODS", "OTHER"];
        rows.push(header.map(str::to_owned).to_vec());
    }
    rows.extend(
        usages
            .iter()
            .map(|usage| row(&simulation.world, usage, look.wide)),
    );
    // Other resources are rare.
    let has_other = rows
        .iter()
        .skip(usize::from(look.headers))
        .any(|row| !row[5].is_empty());
    if !has_other {
        rows.iter_mut().for_each(|row| row.truncate(5));
    }
    table(out, &rows);
}

fn row(world: &World, usage: &Usage, wide: bool) -> Vec<String> {
    let (used, has) = (&usage.requested, &usage.allocatable);
    let of = |used: String, has: String, percent: i64| format!("{used}/{has} ({percent}%)");
    let second = match wide {
        true => usage.zone.clone().unwrap_or_else(|| "<none>".to_owned()),
        false => usage.n_nodes.to_string(),
    };
    let other = usage.scalars(world);
    let other: Vec<String> = other
        .into_iter()
        .map(|(name, used, has)| format!("{name} {used}/{has} ({}%)", percent(used, has)))
        .collect();
    let n_pods = usage.n_pods as i64;
    let cordoned = if usage.unschedulable {
        " (cordoned)"
    } else {
        ""
    };
    vec![
        format!("{}{cordoned}", usage.name),
        second,
        of(
            cpu_text(used.cpu_milli),
            cpu_text(has.cpu_milli),
            percent(used.cpu_milli, has.cpu_milli),
        ),
        of(
            bytes_short(used.memory),
            bytes_short(has.memory),
            percent(used.memory, has.memory),
        ),
        of(
            n_pods.to_string(),
            usage.pods_max.to_string(),
            percent(n_pods, usage.pods_max),
        ),
        other.join(", "),
    ]
}

/// Columns three spaces apart, as kubectl prints them.
fn table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}   ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(count(1, "pod"), "1 pod");
        assert_eq!(count(8152, "pod"), "8152 pods");
        assert_eq!(count(150_000, "pod"), "150,000 pods");
        assert_eq!(count(1_000_001, "pod"), "1,000,001 pods");
    }
}
