//! The nodes that refuse the pod, by the plugin that refuses first.

use strew_view::explanation::{Cause, PodExplanation, RefusedNode, reading};

use super::Page;
use super::spread::{names, nodes};
use strew_view::natural_order::natural_order;

/// The largest number of lines of a group.
const LINES_MAX: usize = 12;

pub(super) fn refused(explanation: &PodExplanation, out: &mut Page) {
    if let Some(refusal) = &explanation.refused_outright {
        out.heading(&format!("{} refuses the pod itself", refusal.plugin));
        for line in refusal.reasons.iter().chain(&refusal.details) {
            out.wrapped(2, line);
        }
    }
    let mut groups: Vec<(&str, Vec<&RefusedNode>)> = Vec::new();
    for node in &explanation.refused {
        let plugin = node.first.plugin.as_str();
        match groups.iter_mut().find(|(p, _)| *p == plugin) {
            Some((_, members)) => members.push(node),
            None => groups.push((plugin, vec![node])),
        }
    }
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    for (plugin, members) in groups {
        let verb = if members.len() == 1 { "is" } else { "are" };
        out.heading(&format!(
            "{} of {} {verb} refused by {plugin}",
            members.len(),
            nodes(explanation.nodes)
        ));
        if plugin == FIT {
            sums(explanation, out);
        }
        group(&members, out);
    }
}

/// The plugin whose refusals have amounts.
const FIT: &str = "NodeResourcesFit";

/// A line per resource that more than one node lacks.
fn sums(explanation: &PodExplanation, out: &mut Page) {
    for short in explanation.short.iter().filter(|short| short.nodes > 1) {
        let line = format!(
            "{}: asks {}; {} nodes have less: {} free on all of them, at most {} on {}",
            short.name,
            reading(&short.requested),
            short.nodes,
            reading(&short.free),
            reading(&short.best_free),
            short.best,
        );
        out.wrapped(2, &line);
    }
}

/// Nodes with the same causes share a line.
fn group(members: &[&RefusedNode], out: &mut Page) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut place_of = std::collections::HashMap::new();
    for node in members {
        let line = Line::of(node);
        let place = *place_of.entry(line.text.clone()).or_insert(lines.len());
        match lines.get_mut(place) {
            Some(known) => known.nodes.extend(line.nodes),
            None => lines.push(line),
        }
    }
    for line in &mut lines {
        line.nodes.sort_by(|a, b| natural_order(a, b));
    }
    // The smallest lack first, then the lack of most nodes.
    lines.sort_by(|a, b| {
        let by_size = b.nodes.len().cmp(&a.nodes.len());
        let by_lack = a.lack.cmp(&b.lack);
        let by_name = || natural_order(a.nodes[0], b.nodes[0]);
        by_lack.then(by_size).then_with(by_name)
    });
    for line in lines.iter().take(LINES_MAX) {
        out.wrapped(2, &format!("{}: {}", names(&line.nodes), line.text));
    }
    let hidden: usize = lines.iter().skip(LINES_MAX).map(|l| l.nodes.len()).sum();
    if hidden > 0 {
        out.line(2, &format!("... and {hidden} more"));
    }
}

struct Line<'a> {
    text: String,
    /// The lack of a resource, in thousandths of the request.
    lack: i64,
    nodes: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn of(node: &'a RefusedNode) -> Self {
        let is_first = |c: &&Cause| c.plugin == node.first.plugin;
        let own: Vec<&str> = node
            .causes
            .iter()
            .filter(is_first)
            .map(|c| c.text.as_str())
            .collect();
        let mut others: Vec<&str> = node
            .causes
            .iter()
            .filter(|c| !is_first(c))
            .map(|c| c.short.as_str())
            .collect();
        others.dedup();
        let mut text = own.join("; ");
        if !others.is_empty() {
            text += &format!(" [also: {}]", others.join(", "));
        }
        let lacks = node.causes.iter().filter_map(|c| c.resource.as_ref());
        Self {
            text,
            lack: lacks.map(|r| r.missing_permille).sum(),
            nodes: vec![&node.name],
        }
    }
}
