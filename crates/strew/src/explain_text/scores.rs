//! How the node was chosen: scores, other good nodes, the tie.

use strew_view::explanation::{Choice, Constraint, PodExplanation, ScoreRow};

use super::Page;
use super::spread::{names, nodes};
use super::table::{Cell, Table, Tone};

pub(super) fn scores(explanation: &PodExplanation, choice: &Choice, out: &mut Page) {
    if choice.plugins.is_empty() {
        out.heading("Scores");
        out.wrapped(
            2,
            &format!(
                "{} is the only node that takes it: it is not scored.",
                choice.taken
            ),
        );
        return;
    }
    out.heading(&match choice.rows.len() {
        n if n == explanation.feasible => format!("Scores of the {} that take it", nodes(n)),
        n => format!(
            "Scores of {n} of the {} that take it",
            nodes(explanation.feasible)
        ),
    });
    score_table(explanation, choice, out);
    tie(choice, out);
    spread_terms(explanation, choice, out);
}

/// A row per node. Plugins that make no difference among these nodes are named below.
fn score_table(explanation: &PodExplanation, choice: &Choice, out: &mut Page) {
    let differs = |place: usize| {
        let mut scores = choice.rows.iter().map(|row| row.scores[place]);
        let first = scores.next();
        choice.rows.len() == 1 || scores.any(|s| Some(s) != first)
    };
    let shown: Vec<usize> = (0..choice.plugins.len()).filter(|&p| differs(p)).collect();
    let mut header = vec![("node", false), ("total", true)];
    header.extend(
        shown
            .iter()
            .map(|&p| (short_name(&choice.plugins[p].name), true)),
    );
    header.push(("", false));
    let mut table = Table::new(header);
    for row in &choice.rows {
        let tone = if row.node == choice.taken {
            Tone::Good
        } else {
            Tone::Plain
        };
        let mut cells = vec![Cell::of(&row.node, tone), Cell::plain(row.total)];
        for &p in &shown {
            let weight = choice.plugins[p].weight;
            cells.push(match row.scores[p] {
                Some(score) if weight == 1 => Cell::plain(score),
                Some(score) => Cell::plain(format!("{score}*{weight}")),
                None => Cell::plain("-"),
            });
        }
        cells.push(Cell::plain(mark(explanation, choice, row)));
        table.row(cells);
    }
    table.write(2, out);
    let first = &choice.rows[0];
    let same: Vec<String> = (0..choice.plugins.len())
        .filter(|p| !shown.contains(p))
        .filter_map(|p| {
            let score = first.scores[p].filter(|&s| s > 0)?;
            Some(format!(
                "{} {score}*{}",
                choice.plugins[p].name, choice.plugins[p].weight
            ))
        })
        .collect();
    if !same.is_empty() {
        out.wrapped(2, &format!("the same for all: {}", same.join(", ")));
    }
}

fn mark(explanation: &PodExplanation, choice: &Choice, row: &ScoreRow) -> &'static str {
    let on = explanation.node.as_deref() == Some(&row.node);
    match (row.node == choice.taken, on) {
        (true, true) => "<- taken, and where it is",
        (true, false) => "<- taken",
        (false, true) => "<- where it is",
        (false, false) => "",
    }
}

/// A plugin's name, short enough for a column.
fn short_name(name: &str) -> &'static str {
    match name {
        "TaintToleration" => "Taints",
        "NodeAffinity" => "NodeAffinity",
        "NodeResourcesFit" => "Fit",
        "NodeResourcesBalancedAllocation" => "Balanced",
        "PodTopologySpread" => "Spread",
        "InterPodAffinity" => "PodAffinity",
        "ImageLocality" => "Images",
        "SelectorSpread" => "SelectorSpread",
        "VolumeBinding" => "Volumes",
        "DynamicResources" => "Claims",
        _ => "other",
    }
}

fn tie(choice: &Choice, out: &mut Page) {
    if choice.best.len() < 2 {
        return;
    }
    let best: Vec<&str> = choice.best.iter().map(String::as_str).collect();
    let rule = match choice.tie_rule.as_str() {
        "first-name" => "the first by name is taken",
        rule if rule.starts_with("random") => "one of them is drawn",
        _ if choice.drawn => {
            "kube-scheduler 1.36 takes the first in its heap's order over the nodes that its parallel filter workers \
             found, and in which order they did was drawn"
        }
        _ => "kube-scheduler 1.36 takes the first in its heap's order, not a random one",
    };
    out.wrapped(
        2,
        &format!(
            "{} share the best total: {}; {rule}",
            nodes(best.len()),
            names(&best)
        ),
    );
}

/// The raw score of soft constraints, written out for each node shown.
fn spread_terms(explanation: &PodExplanation, choice: &Choice, out: &mut Page) {
    let soft = &explanation.constraints.soft;
    if soft.is_empty() || choice.rows.iter().all(|row| row.spread.is_empty()) {
        return;
    }
    out.line(
        2,
        "Spread before it is put on 0 to 100 (lower is better): pods * weight + (maxSkew - 1) each",
    );
    let mut table = Table::new(vec![("node", false), ("raw", true), ("", false)]);
    for row in &choice.rows {
        let raw = row.spread_raw.map_or("-".to_owned(), |raw| raw.to_string());
        table.row(vec![
            Cell::plain(&row.node),
            Cell::plain(raw),
            Cell::plain(sum(row, soft)),
        ]);
    }
    table.write(4, out);
}

fn sum(row: &ScoreRow, soft: &[Constraint]) -> String {
    if row.spread_raw.is_none() {
        return "lacks a label that is needed to be scored: 0".to_owned();
    }
    let terms = row.spread.iter().zip(soft).map(|(share, constraint)| {
        let Some(value) = &share.value else {
            return format!("no label {}: nothing", constraint.topology_key);
        };
        let weight = constraint.weight.map_or(0.0, |w| w.weight);
        format!(
            "{value}: {} * {weight:.3} + {} = {:.2}",
            share.pods,
            constraint.max_skew - 1,
            share.adds
        )
    });
    terms.collect::<Vec<_>>().join("; ")
}
