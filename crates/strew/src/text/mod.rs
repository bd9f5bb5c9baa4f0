//! The output for people.

mod domains;
pub(crate) mod eviction;
mod nodes;
mod steps;

use std::fmt::Write;

use domains::spread_block;

use crate::terminal::{self, Terminal};
pub(crate) use domains::{Bar, draw};
use nodes::nodes;
pub(crate) use steps::{step_changes, step_head, told, verdict};
use strew_suite::shown::{AsBefore, Shown};
use strew_view::blocked::PodOutcome;
pub(crate) use strew_view::time_text::time_text;
use strew_view::view::{Finished, Summary, View};
pub(crate) use strew_view::words::{count, short_key};

/// The width of the widest text; 0 without any.
pub(crate) fn widest(texts: impl IntoIterator<Item = impl AsRef<str>>) -> usize {
    let widths = texts.into_iter().map(|text| text.as_ref().chars().count());
    widths.max().unwrap_or(0)
}

/// A note about pods on nodes that nothing is known of.
pub(crate) fn off_nodes(n_pods: usize) -> String {
    format!(
        "{} on nodes that are not in the files: garbage collection removes them; workloads make others, and a pod without one is gone",
        count(n_pods, "pod")
    )
}

/// The command for a pod of a name and namespace, and the files and options that are equal for all pods.
type Explaining<'a> = dyn Fn(&str, &str) -> (String, String) + 'a;

/// How to write it.
pub(crate) struct Look<'a> {
    pub(crate) terminal: &'a Terminal,
    /// Every domain, node and key in full.
    pub(crate) wide: bool,
    /// Every pod with its node.
    pub(crate) pods: bool,
    pub(crate) headers: bool,
    /// The command that explains a pod of a name and a namespace.
    pub(crate) explain: Box<Explaining<'a>>,
    /// True if a namespace was asked for: then it is not repeated.
    pub(crate) in_namespace: bool,
}

/// The first step in full.
pub(crate) fn write(view: &View, shown: &Shown, look: &Look<'_>) -> String {
    let mut out = String::new();
    let mut last_is_tall = false;
    for (place, &index) in shown.workloads.iter().enumerate() {
        let block = workload(view, index, look);
        let is_tall = block.lines().count() > 1;
        if place > 0 && (is_tall || last_is_tall) {
            out.push('\n');
        }
        out.push_str(&block);
        last_is_tall = is_tall;
    }
    if !shown.workloads.is_empty() {
        out.push('\n');
    }
    if shown.n_left_out > 0 {
        let dim = look.terminal.styles.dim;
        let n = count(shown.n_left_out, "more workload");
        let _ = writeln!(
            out,
            "{dim}… and {n}, less Pending and less skewed (--all shows them, -n and -l choose){dim:#}\n"
        );
    }
    let AsBefore {
        n_workloads,
        n_bound,
        n_pending,
    } = shown.as_before;
    if n_workloads > 0 {
        let dim = look.terminal.styles.dim;
        let _ = writeln!(
            out,
            "{dim}As before: {} with {} on nodes and {n_pending} Pending (--all shows them){dim:#}\n",
            count(n_workloads, "workload"),
            count(n_bound, "pod"),
        );
    }
    nodes(&mut out, view, look);
    out.push('\n');
    out
}

/// Text in characters and lines that the terminal can show.
pub(crate) fn drawn(text: String, terminal: &Terminal) -> String {
    let text = match terminal.fit {
        Some(columns) => terminal::fitted(&text, columns),
        None => text,
    };
    match terminal.unicode {
        true => text,
        false => terminal::ascii(&text),
    }
}

/// The summary of the first step, without the end of its line.
pub(crate) fn summary_line(view: &View, shown: &Shown, terminal: &Terminal) -> String {
    let sum = |of: fn(&Summary) -> usize| view.summaries.iter().map(of).sum::<usize>();
    let (before, placed, alone) = (sum(|s| s.before), sum(|s| s.placed), sum(|s| s.left_alone));
    let as_before = shown.as_before.n_pending;
    let pending = view.n_pending() - as_before;
    let style = if pending == 0 {
        terminal.styles.good
    } else {
        terminal.styles.bad
    };
    let mut text = count(view.world.pods.len(), "pod");
    let _ = write!(
        text,
        " of {} on {}: ",
        count(view.world.workloads.len(), "workload"),
        count(view.nodes.len(), "node")
    );
    if before > 0 {
        let _ = write!(text, "{before} were there, ");
    }
    let _ = write!(text, "{placed} placed, {style}{pending} Pending{style:#}");
    if as_before > 0 {
        let _ = write!(text, ", {as_before} Pending as before");
    }
    if alone > 0 {
        let _ = write!(text, ", {alone} left alone");
    }
    let terminating = sum(|s| s.terminating);
    if terminating > 0 {
        let _ = write!(text, ", {terminating} Terminating");
    }
    if !view.world.finished.is_empty() {
        let _ = write!(text, " ({} more have finished)", view.world.finished.len());
    }
    text
}

fn workload(view: &View, index: usize, look: &Look<'_>) -> String {
    let mut out = String::new();
    let world = &view.world;
    let name = &world.workloads[index].name;
    let summary = &view.summaries[index];
    let title = look.terminal.styles.title;
    let _ = write!(out, "{title}{}{title:#}", name.of());
    if name.namespace != "default" && !look.in_namespace {
        let _ = write!(out, " -n {}", name.namespace);
    }
    let is_one = name.kind == "Pod" || summary.replicas == 1;
    let place = is_one.then(|| own_place(view, index)).flatten();
    let state = place.unwrap_or_else(|| replicas(summary, look));
    let finished = finished_text(&summary.finished);
    let _ = match (summary.replicas, finished) {
        (0, Some(finished)) => writeln!(out, "  {finished}"),
        (n, None) => writeln!(out, "  {}: {state}", count(n, "replica")),
        (n, Some(finished)) => writeln!(out, "  {}: {state}; {finished}", count(n, "replica")),
    };
    for spread in &view.spreads[index] {
        // For a single pod, only constraints of the user are shown.
        let is_asked = spread.constraint.as_ref().is_some_and(|c| !c.is_default);
        if !is_one && summary.replicas > 0 || is_asked || look.wide {
            spread_block(&mut out, world, summary, spread, look);
        }
    }
    pending(&mut out, view, index, look);
    if look.pods {
        pods(&mut out, view, index);
    }
    out
}

/// `6 pods finished: zone-a 2, zone-b 2, zone-c 2; at most 1 on a node`; `None` if none has.
pub(super) fn finished_text(finished: &Finished) -> Option<String> {
    let n = finished.count();
    if n == 0 {
        return None;
    }
    let mut text = format!("{} finished", count(n, "pod"));
    if finished.failed > 0 {
        let _ = write!(text, " ({} failed)", finished.failed);
    }
    let zones = finished.by_zone.iter();
    let zones: Vec<String> = zones.map(|(zone, n)| format!("{zone} {n}")).collect();
    match zones.is_empty() {
        true if finished.nodes > 0 => {
            let _ = write!(text, " on {}", count(finished.nodes, "node"));
        }
        true => {}
        false => {
            let _ = write!(text, ": {}", zones.join(", "));
        }
    }
    if finished.nodes > 0 && n > 1 {
        let _ = write!(text, "; at most {} on a node", finished.most_on_a_node);
    }
    Some(text)
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
    if summary.terminating > 0 {
        parts.push(format!("{} Terminating", summary.terminating));
    }
    let n_pending = summary.n_pending();
    if n_pending > 0 {
        let bad = look.terminal.styles.bad;
        parts.push(format!("{bad}{n_pending} Pending{bad:#}"));
    }
    parts.join(", ")
}

/// The place of a workload's only pod.
fn own_place(view: &View, index: usize) -> Option<String> {
    let world = &view.world;
    let entry = *world.members[index].first()?;
    let name = world.node_name(world.node_of(entry)?);
    let usage = view.nodes.iter().find(|usage| usage.name == name);
    let zone = usage.and_then(|usage| usage.zone.as_deref());
    let zone = zone.map_or(String::new(), |zone| format!(" in {zone}"));
    let was = match view.outcomes[entry] {
        PodOutcome::WasBound => "there before, ",
        _ => "",
    };
    Some(format!("{was}on {name}{zone}"))
}

/// The number of different reasons shown per workload.
const REASONS_MAX: usize = 3;

fn pending(out: &mut String, view: &View, index: usize, look: &Look<'_>) {
    let world = &view.world;
    let bad = look.terminal.styles.bad;
    let groups = &view.summaries[index].pending;
    let max = if look.wide { groups.len() } else { REASONS_MAX };
    for group in groups.iter().take(max) {
        let n = group.entries.len();
        let _ = writeln!(out, "  {bad}{n} Pending{bad:#}: {}", group.blocked.message);
        if let Some(eviction) = &group.blocked.eviction {
            let _ = writeln!(out, "    the first {}", eviction::wait(eviction));
        }
        let pod = &world.pods[group.entries[0]];
        let (command, rest) = (look.explain)(&pod.name, &pod.namespace);
        let _ = writeln!(out, "    why: {command} {rest}");
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

fn pods(out: &mut String, view: &View, index: usize) {
    let world = &view.world;
    for &entry in &world.members[index] {
        let was = match &view.outcomes[entry] {
            PodOutcome::WasBound => " (there before)",
            PodOutcome::Pending(_) => " (Pending)",
            PodOutcome::LeftAlone => " (left alone)",
            PodOutcome::Placed(_) => "",
        };
        let node = world.node_of(entry);
        let node = node.map_or("<none>", |node| world.node_name(node));
        let _ = writeln!(out, "  pod/{} -> {node}{was}", world.pods[entry].name);
    }
}
